"""A newcomer's walk, timed: from a fresh clone to a first picture, an own environment and a training curve.

    make walk

types the commands of `stages` into one shell, in a new folder, and writes them with their times into docs/walk.md.
It downloads everything that a newcomer would, so it takes minutes. `python docs/walk.py --commands` writes the
commands alone. Knows the commands; imports nothing of ours.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/walk.md"
PICTURES = ROOT / "docs/images/walk"
KEPT = ("runs/bars/curves.png",)
"""What the walk leaves that the page shows."""
BLOCK = re.compile(r"(<!-- walk -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Stage:
    """Commands up to something to look at."""

    title: str
    commands: tuple[str, ...]
    note: str = ""
    before: str = ""
    """What the newcomer does by hand first: shell that is run, and not shown."""


@dataclass(frozen=True)
class Spent:
    """Seconds: on the clock, and on processors (what does not depend on who else uses the machine)."""

    wall: float
    processor: float


def readme(language: str, holding: str) -> str:
    """The README's one block in a language that holds a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.DOTALL)
    (found,) = [block for block in blocks if holding in block]
    return str(found)


def stages() -> list[Stage]:
    """The walk."""
    torch = re.search(r"^TORCH \?= (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert torch is not None
    return [
        Stage(
            "A first picture",
            (
                "git clone URL mm-gym && cd mm-gym",
                "python3 -m venv .venv && . .venv/bin/activate",
                "pip install -e .",
                "mm-gym play mm_gym/Geo3k-v0 --seed 8 --expert --page first.html",
            ),
            "Open `first.html`: a figure, a question, the solver's answer. Without `--expert` you act yourself.",
        ),
        Stage(
            "An environment of your own",
            ("mm-gym play bars:Bars-v0 --expert --page bars.html",),
            "First save the README's class `Bars` as `bars.py`; `bars.html` shows an episode of it.",
            before=f"cat > bars.py <<'END_OF_FILE'\n{readme('python', 'class Bars')}END_OF_FILE",
        ),
        Stage(
            "A training curve",
            (
                f"pip install {torch[1]}",
                'pip install -e ".[train]"',
                readme("bash", "bars:Bars-v0").strip(),
                "mm-gym plot runs/bars",
            ),
            "The curves are in `runs/bars/curves.png`, held-out episodes in `runs/bars/rollouts.html`.",
        ),
    ]


def script(walk: Sequence[Stage], times: Path) -> str:
    """The shell script that types the walk and notes when each command ended, and the processor time so far."""
    lines = ["set -e", f'mark() {{ {{ echo "$EPOCHREALTIME"; times; }} >> {times}; }}']
    for stage in walk:
        lines += [stage.before, "mark"]
        for command in stage.commands:
            lines += [command.replace("URL", str(ROOT)), "mark"]
    return "\n".join(lines) + "\n"


def walked(walk: Sequence[Stage], folder: Path) -> list[list[Spent]]:
    """Walk in a folder; what each command took, by stage."""
    times = folder / "times"
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment["PIP_NO_CACHE_DIR"] = "1"
    subprocess.run(["bash", "-c", script(walk, times)], cwd=folder, env=environment, check=True)
    return spent_of(walk, times.read_text())


def spent_of(walk: Sequence[Stage], noted: str) -> list[list[Spent]]:
    """What each command took, from the marks that the script noted: three lines each."""
    lines = noted.splitlines()
    marks = iter(
        Spent(float(clock), sum(map(_seconds, f"{shell} {children}".split())))
        for clock, shell, children in zip(lines[::3], lines[1::3], lines[2::3], strict=True)
    )
    out = []
    for stage in walk:
        before, row = next(marks), []
        for _ in stage.commands:
            now = next(marks)
            row.append(Spent(now.wall - before.wall, now.processor - before.processor))
            before = now
        out.append(row)
    return out


def _seconds(text: str) -> float:
    """Of bash's `1m2.345s`."""
    minutes, _, seconds = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(seconds)


def written(walk: Sequence[Stage], spent: Sequence[Sequence[Spent]] | None = None, machine: str = "") -> str:
    """The page's part: commands, with times where they were measured."""
    parts = [_table(walk, spent), machine] if spent else []
    for number, stage in enumerate(walk):
        shown = "\n".join(stage.commands)
        times = f"Times: {', '.join(_clock(one.wall) for one in spent[number])}. " if spent else ""
        parts.append(f"## {stage.title}\n\n```bash\n{shown}\n```\n\n{times}{stage.note}")
    if spent:
        parts.append("![Curves of the walk's own training run](images/walk/curves.png)")
    return "\n\n".join(parts)


def _table(walk: Sequence[Stage], spent: Sequence[Sequence[Spent]]) -> str:
    rows = ["| from a clone to | this part | of it computing | so far |", "|---|---|---|---|"]
    so_far = 0.0
    for stage, row in zip(walk, spent, strict=True):
        wall, processor = sum(one.wall for one in row), sum(one.processor for one in row)
        so_far += wall
        title = f"{stage.title[0].lower()}{stage.title[1:]}"
        rows.append(f"| {title} | {_clock(wall)} | {_clock(processor)} | {_clock(so_far)} |")
    return "\n".join(rows)


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def main() -> None:
    walk = stages()
    part = written(walk) if "--commands" in sys.argv else measured(walk)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda m: f"{m[1]}{part}\n{m[2]}", page), encoding="utf-8")
    print(part, file=sys.stderr)


def measured(walk: Sequence[Stage]) -> str:
    """Walk, keep the picture of the curves, and return the page's part."""
    with tempfile.TemporaryDirectory(prefix="mm-gym-walk-") as name:
        folder = Path(name)
        spent = walked(walk, folder)
        PICTURES.mkdir(parents=True, exist_ok=True)
        for kept in KEPT:
            shutil.copy(folder / "mm-gym" / kept, PICTURES / Path(kept).name)
    machine = (
        f"Measured by `make walk` with Python {platform.python_version()} on {os.cpu_count()} CPU cores, on which "
        "other programs may have run too; no GPU. Packages were downloaded, not taken from pip's cache: your "
        "network says how long `pip` takes."
    )
    return written(walk, spent, machine)


if __name__ == "__main__":
    main()
