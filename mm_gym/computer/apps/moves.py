"""Moves that solvers are made of: each is a generator of the actions that a person would take.

Controls are named by `k`, the page's `data-k` attribute (see shared/widgets.js).
"""

from __future__ import annotations

from collections.abc import Iterator

from mm_gym.computer.actions import Action, Keys, Type
from mm_gym.computer.tasks import PageQuery, click, drag, reveal

Moves = Iterator[Action]


def at(k: str) -> str:
    """The CSS selector of a control.

    >>> at("star:m3")
    '[data-k="star:m3"]'
    """
    return f'[data-k="{k}"]'


def press(page: PageQuery, k: str, within: str | None = None, **kwargs: object) -> Moves:
    """Click a control, after scrolling `within` (the name of a scrolling area) until it is in view."""
    yield from reveal(page, at(k), within=at(within) if within else None)
    yield click(page.find(at(k)), **kwargs)


def write(page: PageQuery, k: str, text: str, within: str | None = None, end: str = "") -> Moves:
    """Click a text field, empty it and type; `end` may hold a final "\\n"."""
    yield from press(page, k, within)
    if page.evaluate(f"document.querySelector('{at(k)}').value"):
        yield Keys(("Control", "a"))
    if text + end:
        yield Type(text + end)
    else:
        yield Keys(("Delete",))


def choose(page: PageQuery, k: str, value: str | int, within: str | None = None) -> Moves:
    """Pick an entry of a drop-down list."""
    yield from press(page, k, within)
    listed = at(f"{k}:list")
    inside = page.evaluate(f"document.querySelector('{listed}').scrollHeight > 212")
    if inside:
        yield from reveal(page, at(f"{k}:{value}"), within=listed)
    yield from reveal(page, at(f"{k}:{value}"), within=at(within) if within else None)
    yield click(page.find(at(f"{k}:{value}")))


def carry(page: PageQuery, k: str, target: str) -> Moves:
    """Drag a control onto another (both in view)."""
    yield drag(page.find(at(k)), page.find(at(target)))
