"""`mm-gym plot`: the curves of training runs, from what they logged.

Reads `trainer_state.json` of a run, or of its last checkpoint, its warm-up's too, and the held-out figures
in `evaluation.json`. Knows the files and matplotlib; nothing of trainers.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from gymnasium.error import DependencyNotInstalled

from mm_gym.intervals import wilson_interval as _interval

CURVES = {
    "rollout/success": "success in training rollouts",
    "eval_success": "success on held-out tasks",
    "reward": "mean reward in training",
    "rollout/turns": "turns",
    "rollout/tool_calls": "tool calls of an episode",
    "completions/mean_length": "sampled tokens of an episode",
    "loss": "loss",
    "entropy": "entropy of the policy",
    "grad_norm": "gradient norm",
}
"""What is drawn where it was logged, and its title."""


@dataclass
class Run:
    """What one run logged."""

    name: str
    history: list[dict[str, float]] = field(default_factory=list)
    """One record a logging step, with `step`."""
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Held-out figures by stage: `episodes`, `successes`."""

    def curve(self, metric: str) -> list[tuple[float, float]]:
        """(step, value) wherever the metric was logged as a number."""
        points = [(r["step"], r[metric]) for r in self.history if metric in r and "step" in r]
        return [(step, value) for step, value in points if isinstance(value, (int, float))]

    @property
    def metrics(self) -> list[str]:
        """Names of all that was logged."""
        return sorted({name for record in self.history for name in record} - {"step", "epoch"})


def plot(
    runs: list[Path] = typer.Argument(help="Folders of training runs; several are drawn together."),
    output: Path | None = typer.Option(None, "--output", "-o", help="PNG; default RUN/curves.png."),
    metric: list[str] = typer.Option([], help="Draw this logged metric too; may be given several times."),
    list_metrics: bool = typer.Option(False, "--list", help="Only name what was logged."),
) -> None:
    """Draw the curves of training runs to a PNG."""
    try:
        loaded = [read_run(path) for path in runs]
        if list_metrics:
            typer.echo("\n".join(sorted({name for run in loaded for name in run.metrics})))
            return
        path = draw(loaded, output or runs[0] / "curves.png", metric)
    except (FileNotFoundError, ValueError, DependencyNotInstalled) as error:
        typer.echo(f"mm-gym: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(str(path))


def read_run(folder: str | Path) -> Run:
    """What a run logged.

    Raises:
        FileNotFoundError: The folder is none of a run.
    """
    folder = Path(folder)
    run = Run(folder.name or str(folder), _history(folder))
    figures = folder / "evaluation.json"
    if figures.is_file():
        run.stages = json.loads(figures.read_text())
    if not run.history and not run.stages:
        raise FileNotFoundError(
            f"{folder} holds neither a trainer_state.json with logged metrics (or a checkpoint with one) "
            "nor an evaluation.json: name a run's output_dir; its logging_steps must not exceed max_steps"
        )
    return run


def draw(runs: list[Run], path: str | Path, metrics: list[str] | None = None) -> Path:
    """Draw runs to a PNG and return its path.

    Args:
        runs: Each a line in every panel.
        path: Folders are made when missing.
        metrics: Logged metrics to draw beside `CURVES`.

    Raises:
        ValueError: A metric was not logged by any of the runs.
    """
    known = {name for run in runs for name in run.metrics}
    unknown = [name for name in metrics or [] if name not in known]
    if unknown:
        raise ValueError(f"{unknown} was not logged; `mm-gym plot --list` names what was")
    titles = CURVES | {name: name for name in metrics or []}
    panels = [name for name in titles if any(run.curve(name) for run in runs)]
    staged = any(run.stages for run in runs)
    figure, axes = _panels(len(panels) + staged)
    if staged:
        _draw_stages(axes.pop(0), runs)
    for axis, name in zip(axes, panels, strict=True):
        for number, run in enumerate(runs):
            _draw_curve(axis, run, name, _color(number))
        axis.set_title(titles[name], fontsize=10)
        axis.set_xlabel("step")
    _name_runs(figure, runs)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def _history(folder: Path) -> list[dict[str, float]]:
    """The log of the run, or of its last checkpoint when it was not finished."""
    states = [folder / "trainer_state.json"]
    checkpoints = [p for p in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", p.name)]
    checkpoints.sort(key=lambda p: int(p.name.split("-")[1]))
    states += [p / "trainer_state.json" for p in checkpoints[-1:]]
    logs = [json.loads(path.read_text())["log_history"] for path in states if path.is_file()]
    return max(logs, key=lambda log: max((r.get("step", 0) for r in log), default=0), default=[])


def _panels(count: int) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyNotInstalled('mm-gym plot needs matplotlib: pip install "mm-gym[train]"') from error
    columns = min(3, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(4.2 * columns, 3.0 * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, number + 1) for number in range(count)]
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.locator_params(axis="x", integer=True)
    return figure, axes


def _color(number: int) -> str:
    """Of a run, in every panel."""
    return f"C{number % 10}"


def _name_runs(figure: Any, runs: list[Run]) -> None:
    """One run's name above all; several in a legend, also those that lack some of the curves."""
    if len(runs) == 1:
        figure.suptitle(runs[0].name, fontsize=11)
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=_color(n), marker="o", label=run.name) for n, run in enumerate(runs)]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(runs), 6), fontsize=9)


def _draw_curve(axis: Any, run: Run, metric: str, color: str) -> None:
    """A line, with its interval where one was logged (`<metric>_low`, `<metric>_high`)."""
    points = run.curve(metric)
    if not points:
        return
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) < 30 else None
    axis.plot(steps, values, marker=marker, markersize=3, linewidth=1.2, color=color)
    low, high = dict(run.curve(f"{metric}_low")), dict(run.curve(f"{metric}_high"))
    if all(step in low and step in high for step in steps):
        bounds = [low[s] for s in steps], [high[s] for s in steps]
        axis.fill_between(steps, *bounds, alpha=0.15, color=color)
        axis.set_ylim(-0.03, 1.03)


def _draw_stages(axis: Any, runs: list[Run]) -> None:
    """Held-out success by stage, with Wilson's 95% intervals."""
    names = list(dict.fromkeys(stage for run in runs for stage in run.stages))
    for offset, run in enumerate(runs):
        at = [names.index(stage) + 0.12 * (offset - (len(runs) - 1) / 2) for stage in run.stages]
        intervals = [_interval(one["successes"], one["episodes"]) for one in run.stages.values()]
        shares = [one["successes"] / max(1, one["episodes"]) for one in run.stages.values()]
        below = [share - low for share, (low, _) in zip(shares, intervals, strict=True)]
        above = [high - share for share, (_, high) in zip(shares, intervals, strict=True)]
        axis.errorbar(at, shares, yerr=[below, above], fmt="o", capsize=4, color=_color(offset))
        if len(runs) == 1:
            for x, share in zip(at, shares, strict=True):
                axis.annotate(f"{share:.0%}", (x, share), (8, -3), textcoords="offset points", fontsize=9)
    axis.set_xticks(range(len(names)), names, fontsize=8)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_ylim(-0.03, 1.03)
    axis.set_title("held-out success, 95% interval", fontsize=10)
