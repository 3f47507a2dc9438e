"""The canonical actions of a computer: what every dialect is decoded to and what a page carries out.

All positions are integer pixels of the screen as (x, y), x from the left, y from the top, the first
pixel 0 and the last `width - 1` / `height - 1`. This module knows neither dialects nor browsers.

Key names are those of the DOM (`KeyboardEvent.key`): "a", "Enter", "ArrowLeft", "Control", "F5", " ".
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

Button = Literal["left", "right", "middle", "back", "forward"]
Point: TypeAlias = tuple[int, int]

BUTTONS: tuple[str, ...] = ("left", "right", "middle", "back", "forward")
MODIFIERS: tuple[str, ...] = ("Alt", "Control", "Meta", "Shift")


class ActionError(Exception):
    """A mistake of the agent in an action: the text goes to the agent and says what to do instead."""


@dataclass(frozen=True)
class Click:
    """Press and release a button `count` times (2 is a double click) at (x, y)."""

    x: int
    y: int
    button: Button = "left"
    count: int = 1
    modifiers: tuple[str, ...] = ()
    """Keys held meanwhile, of `MODIFIERS`."""


@dataclass(frozen=True)
class Move:
    """Move the pointer to (x, y)."""

    x: int
    y: int


@dataclass(frozen=True)
class Drag:
    """Press at the path's first point, move along it, release at its last (at least two points)."""

    path: tuple[Point, ...]
    button: Button = "left"
    modifiers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Press:
    """Press a button and hold it, at (x, y) or, when they are None, where the pointer is."""

    x: int | None = None
    y: int | None = None
    button: Button = "left"


@dataclass(frozen=True)
class Release:
    """Release a button, at (x, y) or, when they are None, where the pointer is."""

    x: int | None = None
    y: int | None = None
    button: Button = "left"


@dataclass(frozen=True)
class Type:
    """Type text into what has the focus; any Unicode, a newline is the Enter key, a tab the Tab key."""

    text: str


@dataclass(frozen=True)
class Keys:
    """Press keys together and release them: `("Control", "a")`; `count` times."""

    keys: tuple[str, ...]
    count: int = 1


@dataclass(frozen=True)
class KeyDown:
    """Press one key and hold it over the following actions."""

    key: str


@dataclass(frozen=True)
class KeyUp:
    """Release one key."""

    key: str


@dataclass(frozen=True)
class Scroll:
    """Turn the wheel at (x, y), or where the pointer is: `dy` > 0 scrolls down, `dx` > 0 right, pixels."""

    dx: int
    dy: int
    x: int | None = None
    y: int | None = None


@dataclass(frozen=True)
class Wait:
    """Let `seconds` of the page's virtual time pass."""

    seconds: float = 1.0


@dataclass(frozen=True)
class Zoom:
    """Show the region (left, top, right, bottom), ends included, enlarged to the screen's size."""

    region: tuple[int, int, int, int]


@dataclass(frozen=True)
class Screenshot:
    """Only look."""


@dataclass(frozen=True)
class Select:
    """Choose options of a `<select>` element by its element id (dialects with element ids only)."""

    element: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """Give the task's answer as text and end the episode."""

    text: str


@dataclass(frozen=True)
class Terminate:
    """End the episode, saying how it went."""

    status: Literal["success", "failure"] = "success"


Action: TypeAlias = (
    Click
    | Move
    | Drag
    | Press
    | Release
    | Type
    | Keys
    | KeyDown
    | KeyUp
    | Scroll
    | Wait
    | Zoom
    | Screenshot
    | Select
    | Answer
    | Terminate
)


def describe(action: Action) -> str:
    """One short line for logs and frames.

    >>> describe(Click(3, 4))
    'click x=3 y=4'
    """
    shown = [
        f"{f.name}={getattr(action, f.name)!r}"
        for f in fields(action)
        if getattr(action, f.name) != f.default
    ]
    return " ".join([type(action).__name__.lower(), *shown])


def points(action: Action) -> list[Point]:
    """All screen positions that an action names, in order."""
    if isinstance(action, Drag):
        return list(action.path)
    if isinstance(action, Zoom):
        left, top, right, bottom = action.region
        return [(left, top), (right, bottom)]
    x: Any = getattr(action, "x", None)
    y: Any = getattr(action, "y", None)
    return [] if x is None or y is None else [(x, y)]


def check_on_screen(action: Action, width: int, height: int) -> None:
    """Refuse positions beyond the screen; nothing is ever clamped.

    Raises:
        ActionError: A position lies outside `0..width-1` by `0..height-1`.
    """
    for x, y in points(action):
        if not (0 <= x < width and 0 <= y < height):
            raise ActionError(
                f"position ({x}, {y}) is outside the screen of {width}x{height} pixels: "
                f"x goes from 0 to {width - 1}, y from 0 to {height - 1}"
            )
