"""What a run prints and writes at its end: the table of held-out figures, and a page of episodes.

Knows figures and episodes; nothing of models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from agents.types import Trajectory
from mm_gym.viewer.page import write_page
from train.evaluation import Evaluation

FIGURES_FILE = "evaluation.json"


class Report:
    """Held-out figures by stage, kept in a file so that a resumed run still has the early ones.

    Args:
        folder: The run's output.
        main: Whether this process prints and writes.
        resume: Whether the figures that are in the folder belong to this run.
    """

    def __init__(self, folder: str | Path, *, main: bool = True, resume: bool = False) -> None:
        self.folder = Path(folder)
        self.main = main
        self.stages: dict[str, Evaluation] = {}
        if resume and (self.folder / FIGURES_FILE).is_file():
            stored = json.loads((self.folder / FIGURES_FILE).read_text())
            self.stages = {name: Evaluation(**figures) for name, figures in stored.items()}

    def add(self, stage: str, figures: Evaluation) -> None:
        """Note a stage's figures and print its success."""
        self.stages[stage] = figures
        low, high = figures.interval
        self.say(
            f"held-out success {stage}: {figures.success:.1%} ({low:.1%} to {high:.1%}, "
            f"{figures.episodes} episodes, {figures.late_images} pictures after turn 1)"
        )
        if self.main:
            self.folder.mkdir(parents=True, exist_ok=True)
            stored = {name: asdict(one) for name, one in self.stages.items()}
            (self.folder / FIGURES_FILE).write_text(json.dumps(stored, indent=2))

    def say(self, text: str) -> None:
        """Print a line, on the main process only."""
        if self.main:
            Console().print(text, highlight=False, markup=False)

    def table(self, title: str) -> None:
        """Print all stages, one a column."""
        if not self.main:
            return
        table = Table(title=title)
        table.add_column("held-out episodes")
        for stage in self.stages:
            table.add_column(stage, justify="right")
        for name, cells in _cells(self.stages).items():
            table.add_row(name, *cells)
        Console().print(table)

    def page(self, trajectories: Sequence[Trajectory], count: int, title: str) -> Path | None:
        """Write some episodes to a page and say where it is."""
        if not self.main:
            return None
        path = write_page(
            [t.episode for t in trajectories[:count]], self.folder / "rollouts.html", title=title
        )
        self.say(f"rollouts to look at: {path.resolve()}")
        return path


def _cells(stages: Mapping[str, Evaluation]) -> dict[str, list[str]]:
    figures = list(stages.values())
    reasons = sorted({reason for one in figures for reason in one.stop_reasons})
    rows = {
        "success": [f"{one.success:.1%}" for one in figures],
        "  95% interval": ["{:.1%} to {:.1%}".format(*one.interval) for one in figures],
        "episodes": [str(one.episodes) for one in figures],
        "mean reward": [f"{one.reward:.3f}" for one in figures],
        "turns": [f"{one.turns:.2f}" for one in figures],
        "tool calls": [f"{one.tool_calls:.2f}" for one in figures],
        "malformed or failed calls": [str(one.failed_calls) for one in figures],
        "pictures after turn 1": [str(one.late_images) for one in figures],
        "sampled tokens": [f"{one.sampled_tokens:.1f}" for one in figures],
        "lost to failures": [str(one.masked) for one in figures],
    }
    for reason in reasons:
        rows[f"stop: {reason}"] = [str(one.stop_reasons.get(reason, 0)) for one in figures]
    return rows
