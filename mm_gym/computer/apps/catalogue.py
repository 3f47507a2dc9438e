"""The page about the apps, docs/apps.md: a picture of each, its tasks, what a goal reads like.

    python -m mm_gym.computer.apps.catalogue docs

writes the end of `apps.md` and `images/apps/<app>.png`. What it says is read from the apps themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from mm_gym.computer.tasks import App, TaskSpec, builtin_apps

SEED = 3
SIZES = {"target": (160, 160)}
"""Screens for the pictures, where they are not 640 x 480."""

MARK = "<!-- what follows is written by `python -m mm_gym.computer.apps.catalogue docs` -->\n"
HEAD = """\
## Our apps

There are {apps} with {tasks} tasks. Every task is made from a seed: content, layout, colours, fonts and the goal's
wording vary; each has three levels. The app's state must be exactly what was asked for, so that a wrong side
effect fails the task.

| tag | tasks |
|---|---|
{tags}
"""


def page(apps: list[App]) -> str:
    """The page's part about our apps, as Markdown."""
    specs = [spec for app in apps for spec in app.tasks]
    tags = sorted({tag for spec in specs for tag in spec.tags})
    rows = [f"| {tag} | {sum(tag in spec.tags for spec in specs)} |" for tag in tags]
    head = HEAD.format(apps=len(apps), tasks=len(specs), tags="\n".join(rows))
    return "\n".join([head, *(section(app) for app in apps)])


def section(app: App) -> str:
    """One app: its picture and a row for each task."""
    rows = [f"| `{s.full_name}` | {', '.join(s.tags)} | {example(s)} |" for s in app.tasks]
    return "\n".join(
        [
            f"### {app.name}",
            "",
            f"![{app.name}](images/apps/{app.name}.png)",
            "",
            "| task | tags | a goal |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def example(spec: TaskSpec) -> str:
    """A goal of the middle level, as a table cell."""
    goal = spec.generate(np.random.default_rng(SEED), spec.levels[len(spec.levels) // 2]).goal
    return goal.replace("|", "\\|").replace("\n", " ")


def pictures(apps: list[App], folder: Path) -> None:
    """The first screen of an episode of each app."""
    from mm_gym.computer.env import ComputerUseEnv

    folder.mkdir(parents=True, exist_ok=True)
    for index, app in enumerate(apps):
        env = ComputerUseEnv(
            task=app.tasks[0].full_name, level=2, screen_size=SIZES.get(app.name, (640, 480))
        )
        try:
            observation, _ = env.reset(seed=SEED + index)
        finally:
            env.close()
        Image.fromarray(observation["images"][0]).quantize(128).save(
            folder / f"{app.name}.png", optimize=True
        )


def main(docs: Path) -> None:
    apps = builtin_apps()
    pictures(apps, docs / "images" / "apps")
    place = docs / "apps.md"
    by_hand, mark, _ = place.read_text(encoding="utf-8").partition(MARK)
    place.write_text(by_hand + mark + page(apps), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m mm_gym.computer.apps.catalogue FOLDER_OF_THE_DOCS")
    main(Path(sys.argv[1]))
