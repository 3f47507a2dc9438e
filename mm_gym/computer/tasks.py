"""The task format: how an app (a folder of plain web pages) and its tasks are written.

An app is a folder, ours under `mm_gym/computer/apps/<app>/` or anybody's anywhere:

    <app>/index.html    the page; its css, js and pictures lie beside it. No network, no wall clock,
                        no `Math.random` for content: everything that varies comes in as state.
    <app>/tasks.yaml    its tasks as data, see docs/apps.md; nothing in it is run as code
    <app>/app.py        tasks that need code: defines `TASKS: list[TaskSpec]`, and `SCENES` that tasks.yaml may
                        name; trusted Python, written by the task's author. One of the two files is enough.

The page and the environment meet in two places:

- `window.APP_STATE`: the instance's `state` (JSON), there before any script of the page runs. Seeded
  content, layout, theme and wording all travel in it.
- `window.app.getState()`: returns the app's state as JSON-serialisable data. It is read after every
  action, and the instance's `check` judges it in Python; nothing is read from the screen.

The page's clock is virtual and starts at `Instance.now`; it moves only while an action is carried out
(`settle_ms` per action, or what a Wait asks for), so `setTimeout`, animations and `Date` are
deterministic. `Math.random` is seeded. Pages should fit screens from 480x360 up, unless the spec says
otherwise.

When does an episode end? When `check` says success (unless `ends_on_success=False`: then only when the
agent answers or terminates), when it says `over` (a wrong side effect that spoils the task: another
mail deleted, a second order), when the agent answers or terminates, or at the turn limit. The episode's
return is the last verdict's score; a turn's reward is what it added to the score.

A solver is a generator of canonical actions, fed by a live view of the page:

    def solve(page: PageQuery) -> Iterator[Action]:
        yield from reveal(page, "#row-7 .delete")
        yield click(page.find("#row-7 .delete"))
        yield click(page.find("button", text="Confirm"))

Each `yield` is one turn: the page has reacted before the generator goes on. It acts through the same
mouse and keyboard as the agent; `page` is for looking only.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from mm_gym.computer.actions import Action, Click, Drag, Scroll

TAGS = ("grounding", "forms", "drag", "scrolling", "memory", "reading", "typing", "keyboard", "navigation")
"""The curricula's tags; a task may bear others too."""


@dataclass(frozen=True)
class Rect:
    """A rectangle in screen pixels (CSS pixels of the viewport; may lie outside of it when scrolled away)."""

    x: float
    y: float
    width: float
    height: float

    @property
    def center(self) -> tuple[int, int]:
        """The middle, as a pixel."""
        return int(self.x + self.width / 2), int(self.y + self.height / 2)

    def at(self, fx: float, fy: float) -> tuple[int, int]:
        """The pixel at a fraction of the width and height (0 to 1)."""
        right, bottom = self.x + max(self.width - 1, 0), self.y + max(self.height - 1, 0)
        return int(min(self.x + fx * self.width, right)), int(min(self.y + fy * self.height, bottom))


class PageQuery(Protocol):
    """A solver's view of the page. Looking changes nothing and takes no virtual time."""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the screen in pixels."""
        ...

    def find(self, selector: str, text: str | None = None, index: int = 0) -> Rect:
        """The rectangle of the `index`-th visible match of a CSS selector (visible: it has a size).

        Args:
            selector: CSS.
            text: Keep only matches whose trimmed text content (or value, for inputs) equals this.

        Raises:
            LookupError: There is no such element.
        """
        ...

    def find_all(self, selector: str, text: str | None = None) -> list[Rect]:
        """The rectangles of all visible matches, in document order."""
        ...

    def state(self) -> Any:
        """What `window.app.getState()` returns now."""
        ...

    def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression that only reads."""
        ...


@dataclass(frozen=True)
class Verdict:
    """What the state says about the task."""

    success: bool = False
    reward: float | None = None
    """None means 1.0 on success and 0.0 otherwise. Partial credit is paid in the turn that earns it."""
    reason: str = ""
    """For people and logs; the agent does not see it."""
    over: bool = False
    """The task can no longer succeed (a wrong side effect): the episode ends."""

    @property
    def score(self) -> float:
        """The reward."""
        return self.reward if self.reward is not None else float(self.success)


@dataclass(frozen=True)
class Instance:
    """One concrete task, made from a seed."""

    goal: str
    """What the agent is asked, in plain words."""
    state: Mapping[str, Any]
    """JSON for `window.APP_STATE`."""
    check: Callable[[Any, str | None], Verdict]
    """`check(state, answer)`: the verdict on `window.app.getState()` and the agent's answer (None before
    it answered)."""
    solve: Callable[[PageQuery], Iterator[Action]] | None
    """A solver; see the module's docstring. None where there is none: no warm-up, no baseline."""
    ends_on_success: bool = True
    """False where success must be confirmed by the agent (it answers or terminates)."""
    now: str = "2026-03-10T09:00:00Z"
    """Where the page's clock starts, ISO 8601 UTC."""
    page: str = "index.html"
    """The page to open, relative to the app's folder; may carry a query or fragment."""


@dataclass(frozen=True)
class TaskSpec:
    """One parametrised task of an app."""

    name: str
    """Unique within the app: lower case, digits and hyphens. The task's full name is `<app>/<name>`."""
    app: str
    generate: Callable[[np.random.Generator, int], Instance]
    """`generate(rng, level)`: draws from `rng` only; the same seed and level give the same instance."""
    levels: tuple[int, ...] = (1, 2, 3)
    """The difficulty levels that `generate` takes, 1 the easiest."""
    tags: tuple[str, ...] = ()
    min_size: tuple[int, int] = (480, 360)
    """The smallest screen (width, height) on which the task can be done."""
    settle_ms: int = 100
    """Virtual time that passes after each action."""

    @property
    def full_name(self) -> str:
        return f"{self.app}/{self.name}"


@dataclass(frozen=True)
class App:
    """A folder of pages and its tasks."""

    name: str
    folder: Path
    tasks: tuple[TaskSpec, ...] = field(default=(), repr=False)


# -- what solvers are written with ---------------------------------------------------------------------


def click(rect: Rect, **kwargs: Any) -> Click:
    """A click into the middle of a rectangle."""
    return Click(*rect.center, **kwargs)


def drag(start: Rect | tuple[int, int], end: Rect | tuple[int, int]) -> Drag:
    """A drag from one place to another, with a point between."""
    (x0, y0), (x1, y1) = (p.center if isinstance(p, Rect) else p for p in (start, end))
    return Drag(((x0, y0), ((x0 + x1) // 2, (y0 + y1) // 2), (x1, y1)))


def reveal(
    page: PageQuery,
    selector: str,
    text: str | None = None,
    index: int = 0,
    *,
    within: str | None = None,
    margin: int = 4,
    limit: int = 30,
) -> Iterator[Action]:
    """Scroll with the wheel until the middle of an element is in view.

    Args:
        within: CSS selector of the scrolling container; the wheel turns over its middle, and the element must
            come into view inside it. Default: the whole screen.
        margin: Pixels that must remain to the container's edge.
        limit: Wheel turns before it gives up.

    Raises:
        LookupError: The element is not there, or did not come into view.
    """
    width, height = page.size
    for _ in range(limit):
        x, y = page.find(selector, text, index).center
        box = page.find(within) if within else Rect(0, 0, width, height)
        left, top = max(box.x, 0), max(box.y, 0)
        right, bottom = min(box.x + box.width, width), min(box.y + box.height, height)
        dx = _overshoot(x, left + margin, right - margin)
        dy = _overshoot(y, top + margin, bottom - margin)
        if not dx and not dy:
            return
        yield Scroll(dx, dy, int((left + right) / 2), int((top + bottom) / 2))
    raise LookupError(f"{selector!r} (text={text!r}) did not come into view after {limit} wheel turns")


def _overshoot(value: int, low: float, high: float) -> int:
    """Pixels to scroll (whole 40 px notches, at most 400) so that `value` comes between low and high."""
    if low <= value <= high:
        return 0
    distance = value - (low + high) / 2
    notches = max(1, min(10, round(abs(distance) / 40)))
    return int(np.sign(distance)) * 40 * notches


# -- loading -------------------------------------------------------------------------------------------

BUILTIN = Path(__file__).parent / "apps"


def builtin_apps() -> list[App]:
    """The apps of this package, by name."""
    return [load_app(folder) for folder in sorted(BUILTIN.iterdir()) if (folder / "index.html").is_file()]


def load_app(folder: str | Path) -> App:
    """Read an app folder. Its `app.py`, if it has one, is trusted Python and runs.

    Raises:
        ValueError: The folder does not hold an app, or a task in it is not well formed.
    """
    folder = Path(folder).resolve()
    code, file = (folder / name for name in ("app.py", "tasks.yaml"))
    if not (code.is_file() or file.is_file()):
        raise ValueError(f"{folder} is not an app: it has neither tasks.yaml nor app.py (see docs/apps.md)")
    module = _load_python(folder) if code.is_file() else None
    tasks = tuple(getattr(module, "TASKS", ()))
    if file.is_file():
        from mm_gym.computer.task_file import read_tasks

        tasks = (*read_tasks(file, getattr(module, "SCENES", {})), *tasks)
    _check_tasks(folder, tasks)
    return App(folder.name, folder, tasks)


def _load_python(folder: Path) -> ModuleType:
    builtin = folder.parent == BUILTIN
    name = (
        f"mm_gym.computer.apps.{folder.name}.app"
        if builtin
        else f"_mm_gym_app_{folder.name}_{abs(hash(folder))}"
    )
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, folder / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        return module
    except BaseException:
        del sys.modules[name]
        raise


def _check_tasks(folder: Path, tasks: Sequence[TaskSpec]) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.app != folder.name:
            raise ValueError(f"task {task.name!r} in {folder} says app={task.app!r}: use the folder's name")
        if task.name in seen:
            raise ValueError(f"{folder} has two tasks named {task.name!r}: names are unique within an app")
        seen.add(task.name)
