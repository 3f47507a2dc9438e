"""Solvers for MiniWoB++ tasks whose goal says plainly what to do: for warm-up data, tests and baselines.

Each reads the goal's words and looks elements up on the page; it acts with the mouse and keyboard only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from mm_gym.computer.actions import Action, Click, Keys, Type
from mm_gym.computer.tasks import PageQuery

Solver = Callable[[PageQuery, str], Iterator[Action]]


_TENTHS = (5, 2, 8, 1, 9, 0, 10)


def hit(page: PageQuery, selector: str, text: str | None = None, index: int = 0) -> Click:
    """A click on an element where nothing covers it: MiniWoB++ lets things overlap.

    Where it is covered everywhere (click-test-2, 1 of some 500 seeds), on its middle: such a task can't be done.

    Raises:
        LookupError: There is no such element.
    """
    box = page.find(selector, text, index)
    spots = [box.at(x / 10, y / 10) for y in _TENTHS for x in _TENTHS]
    tops = page.evaluate(
        f"({json.dumps(spots)}).map(([x, y]) => {{const e = document.elementFromPoint(x, y);"
        f"const s = {json.dumps(selector)}; return Boolean(e && (e.closest(s) || e.querySelector(s)));}})"
    )
    return Click(*(spots[tops.index(True)] if True in tops else box.center))


def _quoted(goal: str) -> list[str]:
    return re.findall(r'"([^"]*)"', goal)


def _click_first(selector: str) -> Solver:
    def solve(page: PageQuery, goal: str) -> Iterator[Action]:
        yield hit(page, selector)

    return solve


def _click_named(selector: str) -> Solver:
    """Click the element whose text the goal quotes."""

    def solve(page: PageQuery, goal: str) -> Iterator[Action]:
        yield hit(page, selector, text=_quoted(goal)[0])

    return solve


def _click_sequence(page: PageQuery, goal: str) -> Iterator[Action]:
    yield hit(page, "#subbtn")
    yield hit(page, "#subbtn2")


def _focus_nth(page: PageQuery, goal: str) -> Iterator[Action]:
    number = re.search(r"(\d+)(?:st|nd|rd|th)", goal)
    yield hit(page, "#area input", index=int(number[1]) - 1 if number else 0)


def _enter_text(page: PageQuery, goal: str) -> Iterator[Action]:
    yield hit(page, "#tt")
    yield Type(_quoted(goal)[0])
    yield hit(page, "#subbtn")


def _enter_password(page: PageQuery, goal: str) -> Iterator[Action]:
    for field in ("#password", "#verify"):
        yield hit(page, field)
        yield Type(_quoted(goal)[0])
    yield hit(page, "#subbtn")


def _login(page: PageQuery, goal: str) -> Iterator[Action]:
    for field, text in zip(("#username", "#password"), _quoted(goal), strict=True):
        yield hit(page, field)
        yield Type(text)
    yield hit(page, "#subbtn")


def _click_color(page: PageQuery, goal: str) -> Iterator[Action]:
    wanted = re.search(r"(\w+) (?:colored )?box", goal)
    yield hit(page, f'#area .color[data-color="{wanted[1] if wanted else ""}"]')


def _click_dialog(page: PageQuery, goal: str) -> Iterator[Action]:
    yield hit(page, "button.ui-button")


def _click_dialog_2(page: PageQuery, goal: str) -> Iterator[Action]:
    wanted = _quoted(goal)[0]
    if wanted.lower() == "x":
        yield hit(page, ".ui-dialog-titlebar-close")
    else:
        yield hit(page, ".ui-dialog-buttonset button", text=wanted)


def _click_tab(page: PageQuery, goal: str) -> Iterator[Action]:
    number = re.search(r"Tab #?(\d+)", goal)
    index = int(number[1]) - 1 if number else 0
    yield hit(page, ".ui-tabs-nav a", index=index)


def _click_option(page: PageQuery, goal: str) -> Iterator[Action]:
    wanted = re.match(r"Select (.*) and click Submit", goal)
    yield hit(page, "#area label", text=wanted[1] if wanted else "")
    yield hit(page, "#subbtn")


def _click_checkboxes(page: PageQuery, goal: str) -> Iterator[Action]:
    wanted = re.match(r"Select (.*) and click Submit", goal)
    names = [n.strip() for n in wanted[1].split(",")] if wanted else []
    for name in names:
        if name != "nothing":
            yield hit(page, "#area label", text=name)
    yield hit(page, "#subbtn")


def _enter_text_2(page: PageQuery, goal: str) -> Iterator[Action]:
    text = _quoted(goal)[0]
    yield hit(page, "#tt")
    yield Type(text.upper() if "upper case" in goal else text.lower())
    yield hit(page, "#subbtn")


def _arithmetic(page: PageQuery, goal: str) -> Iterator[Action]:
    problem = str(page.evaluate("document.querySelector('#math-problem').textContent"))
    parts = re.match(r"\s*(\d+)\s*([-+x])\s*(\d+)", problem)
    assert parts is not None
    left, right = int(parts[1]), int(parts[3])
    answer = {"+": left + right, "-": left - right, "x": left * right}[parts[2]]
    yield hit(page, "#math-answer")
    yield Type(str(answer))
    yield hit(page, "#subbtn")


def _copy_paste(page: PageQuery, goal: str) -> Iterator[Action]:
    yield hit(page, "textarea")
    yield Keys(("Control", "a"))
    yield Keys(("Control", "c"))
    yield hit(page, "#answer-input")
    yield Keys(("Control", "v"))
    yield hit(page, "#subbtn")


SOLVERS: dict[str, Solver] = {
    "click-test": _click_first("#subbtn"),
    "click-test-2": _click_first("#subbtn"),
    "click-test-transfer": _click_first("#subbtn"),
    "click-button": _click_named("#area button"),
    "click-button-sequence": _click_sequence,
    "click-link": _click_named("#area .alink"),
    "click-color": _click_color,
    "click-dialog": _click_dialog,
    "click-dialog-2": _click_dialog_2,
    "click-tab": _click_tab,
    "click-option": _click_option,
    "click-checkboxes": _click_checkboxes,
    "click-checkboxes-transfer": _click_checkboxes,
    "focus-text": _click_first("#tt"),
    "focus-text-2": _focus_nth,
    "enter-text": _enter_text,
    "enter-text-2": _enter_text_2,
    "enter-text-dynamic": _enter_text,
    "enter-password": _enter_password,
    "login-user": _login,
    "simple-arithmetic": _arithmetic,
    "copy-paste": _copy_paste,
}
"""By task name."""
