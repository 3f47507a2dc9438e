"""Writes docs/learning.md and its pictures from the records of finished runs: no figure comes from elsewhere.

Knows the files of a run (`evaluation.json`, `trainer_state.json`, and `learning.json` of `train/learning.py`) and
what the recipes' tasks are; starts nothing.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mm_gym.cli.plot import draw, read_run
from train.evaluation import Evaluation
from train.report import FIGURES_FILE

RECORD_FILE = "learning.json"
START, END = "after warm-up", "after GRPO"
COMMAND = "python train/learning.py"
COLUMNS = (
    "run",
    "random weights",
    "after warm-up",
    "after GRPO",
    "gain",
    "apart",
    "turns",
    "tool calls",
    "late pictures",
    "seconds",
    "CPU seconds",
    "load",
)


@dataclass(frozen=True)
class Variant:
    """How one run differs from the recipe."""

    name: str
    seed: int
    hidden: str | None = None
    """Which pictures are blanked: None, "all" or "later"."""
    script: str = "grpo.py"
    """The script in train/ that runs it."""

    @property
    def ablation(self) -> bool:
        """Whether it runs with a fault put in."""
        return self.hidden is not None or self.script != "grpo.py"


@dataclass(frozen=True)
class About:
    """A recipe's task in words, and what can be had of it without looking."""

    title: str
    text: str
    blank: float
    """Success of the best policy that sees no picture."""
    later_blank: float
    """Success of the best policy that sees the first picture only."""
    why: str
    """How the two are derived."""


ABOUT = {
    "pointing": About(
        "Look under a card (`mm_gym/Pointing-v0`)",
        "The question names one of nine covered cells. The policy calls the tool `zoom` on it, gets a second "
        "picture, and names the colour of what lies there. The first picture shows the covers alone.",
        blank=1 / 5,
        later_blank=1 / 5,
        why="five colours are equally likely and no word tells which, so the best guess without the second "
        "picture is right once in five",
    ),
    "screens": About(
        "Press a button that jumps (`mm_gym/ComputerUse-v0`, page and task in `configs/learning/jump`)",
        "A page in a real Chromium, 96 x 96 pixels, shows a button in one of nine places. Pressed, it jumps to "
        "another, three times in all; a click beside it ends the episode. The policy writes the pixel to click.",
        blank=1 / 576,
        later_blank=1 / 64,
        why="the first place is one of nine, the next two are each one of the other eight; there are three "
        "turns, so nobody clicks twice for one press. Without pictures that is 1 in 9 x 8 x 8, with the first "
        "picture 1 in 8 x 8",
    ),
}


@dataclass(frozen=True)
class Finished:
    """A finished run and its figures."""

    recipe: str
    variant: Variant
    folder: Path
    stages: dict[str, Evaluation]
    record: dict[str, Any]

    @property
    def apart(self) -> bool:
        """Whether the intervals before and after GRPO do not touch, GRPO's being the higher."""
        return self.stages[END].interval[0] > self.stages[START].interval[1]


def read(recipe: str, variant: Variant, folder: Path) -> Finished:
    """A run from its folder."""
    stored = json.loads((folder / FIGURES_FILE).read_text())
    stages = {name: Evaluation(**figures) for name, figures in stored.items()}
    return Finished(recipe, variant, folder, stages, json.loads((folder / RECORD_FILE).read_text()))


def write_page(runs: Sequence[tuple[str, Variant, Path]], docs: Path) -> Path:
    """Write `learning.md` and its pictures into the folder of the documentation.

    Args:
        runs: Recipe, variant and folder of each finished run.
        docs: The documentation's folder.

    Returns:
        The page.
    """
    finished = [read(*run) for run in runs]
    parts = [_head(finished)]
    for recipe, about in ABOUT.items():
        mine = [run for run in finished if run.recipe == recipe]
        if mine:
            parts.append(_section(recipe, about, mine, docs))
    page = docs / "learning.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _head(runs: Sequence[Finished]) -> str:
    dates = sorted({str(run.record["finished"]) for run in runs})
    seconds = [run.record["seconds"] for run in runs]
    measured = [run.record for run in runs if "load" in run.record]
    cpu = [record["cpu_seconds"] for record in measured] or [float("nan")]
    loads = [record["load"] for record in measured] or [float("nan")]
    return f"""\
# Learning shown on a CPU

```bash
{COMMAND}
```

A vision-language model of one million parameters with random weights is made, follows the environments' own
solvers for a minute (warm-up), and goes on by GRPO. The command ran the runs below and wrote this page and its
pictures from their records. Finished runs are not repeated, a killed one goes on from its last checkpoint.

- Machine: {_machine()}. Each run on one core, at most two side by side. Run on {" and ".join(dates)}.
- A run took {min(seconds):.0f} to {max(seconds):.0f} seconds, all counted: making the model, warm-up, GRPO,
  evaluations. Its core worked {min(cpu):.0f} to {max(cpu):.0f} seconds of these for it. The machine's load was
  {min(loads):.0f} to {max(loads):.0f}, the table has it for each run. It counts all threads that wait for a core:
  two runs alone make 2, and a browser's threads, which share the run's core, many more.
- Success is measured on held-out tasks at temperature 1, the interval is Wilson's at 95%. "Apart" says that the
  intervals before and after GRPO do not touch.
"""


def _machine() -> str:
    """Processor and number of cores."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = names[0].split(":", 1)[1].strip() if names else name
    return f"{name}, {os.cpu_count()} cores, no GPU"


def _section(recipe: str, about: About, runs: Sequence[Finished], docs: Path) -> str:
    plain = [run for run in runs if not run.variant.ablation]
    faulty = [run for run in runs if run.variant.ablation]
    lines = [
        f"## {about.title}",
        "",
        f"{about.text} Recipe: `configs/learning/{recipe}.yaml`.",
        "",
        f"Chance, with nothing to see: {about.blank:.1%}; with the first picture alone: {about.later_blank:.1%}. "
        f"How so: {about.why}.",
        "",
        *_table(runs),
        "",
        *_verdicts(about, plain, faulty),
    ]
    for name, group in (("seeds", plain), ("ablations", [*plain[:1], *faulty])):
        if group:
            lines += ["", f"![{name}]({_picture(f'{recipe}-{name}.png', group, docs)})"]
    return "\n".join([*lines, ""])


def _table(runs: Sequence[Finished]) -> list[str]:
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for run in runs:
        start, end = run.stages[START], run.stages[END]
        first = run.stages.get("before warm-up")
        seconds = f"{run.record['seconds']:.0f}"
        cpu, load = "not measured", "not measured"
        if "load" in run.record:
            cpu, load = f"{run.record['cpu_seconds']:.0f}", f"{run.record['load']:.0f}"
        if run.record["starts"] > 1:
            seconds += f" ({run.record['starts']} starts)"
        cells = [
            run.variant.name,
            f"{first.success:.1%}" if first else "",
            _share(start),
            _share(end),
            f"{100 * (end.success - start.success):+.1f} points",
            "yes" if run.apart else "no",
            f"{start.turns:.2f} to {end.turns:.2f}",
            f"{start.tool_calls:.2f} to {end.tool_calls:.2f}",
            f"{start.late_images / start.episodes:.2f} to {end.late_images / end.episodes:.2f}",
            seconds,
            cpu,
            load,
        ]
        rows.append(f"| {' | '.join(cells)} |")
    counts = sorted({stage.episodes for run in runs for stage in (run.stages[START], run.stages[END])})
    note = f"{' or '.join(map(str, counts))} held-out episodes in each evaluation. Turns, tool calls and pictures "
    note += "after the first turn are means of an episode, after warm-up and after GRPO."
    return [*rows, "", note]


def _share(stage: Evaluation) -> str:
    return "{:.1%} ({:.1%} to {:.1%})".format(stage.success, *stage.interval)


def _verdicts(about: About, plain: Sequence[Finished], faulty: Sequence[Finished]) -> list[str]:
    """What the figures say, each sentence computed from them."""
    lines = []
    if plain:
        gains = [100 * (run.stages[END].success - run.stages[START].success) for run in plain]
        lines.append(
            f"- GRPO raises held-out success by {min(gains):.1f} to {max(gains):.1f} points over the warm-up; the "
            f"intervals are apart for {sum(run.apart for run in plain)} of {len(plain)} seeds."
        )
    for run in faulty:
        low, high = run.stages[END].interval
        text = f"- {run.variant.name[0].upper()}{run.variant.name[1:]}: {low:.1%} to {high:.1%} after GRPO"
        if run.variant.hidden is not None:
            chance = about.blank if run.variant.hidden == "all" else about.later_blank
            where = "above" if low > chance else "below" if high < chance else "level with"
            text += f", {where} chance ({chance:.1%})"
        same = [one for one in plain if one.variant.seed == run.variant.seed]
        if same:
            text += f"; the same seed without the fault {_against(run.stages[END], same[0].stages[END])}"
        lines.append(text + ".")
    return lines


def _against(faulty: Evaluation, whole: Evaluation) -> str:
    if faulty.interval[1] < whole.interval[0]:
        how = "does better"
    elif faulty.interval[0] > whole.interval[1]:
        how = "does worse"
    else:
        how = "does not differ beyond the intervals"
    return f"{how} ({whole.success:.1%})"


def _picture(name: str, runs: Sequence[Finished], docs: Path) -> str:
    loaded = []
    for run in runs:
        one = read_run(run.folder)
        one.name = run.variant.name
        loaded.append(one)
    path = Path("images") / "learning" / name
    draw(loaded, docs / path)
    return path.as_posix()
