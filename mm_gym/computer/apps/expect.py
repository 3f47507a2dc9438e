"""Judging by state: an episode succeeds when the app's data is exactly what the task asked for.

The expected data is the initial data with the intended change and nothing else, so a wrong side effect
(another mail deleted, a second order) differs from it as much as a missing change does. The `ui` part
of the state (which folder is open, where a list is scrolled) is never compared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mm_gym.computer.actions import Action
from mm_gym.computer.apps import content
from mm_gym.computer.tasks import Instance, PageQuery, Verdict

Data = dict[str, Any]


@dataclass(frozen=True)
class Expect:
    """The check of a task: equal data (and answer), save for declared volatile fields."""

    expected: Mapping[str, Any]
    start: Mapping[str, Any]
    volatile: tuple[str, ...] = ()
    """Dotted paths left out of the comparison, `*` standing for any key or index: `mails.*.read`."""
    irreversible: tuple[str, ...] = ()
    """Top-level keys that can't be mended: a value that is neither as before nor as expected (nor, for a
    list, the beginning of what is expected) ends the episode."""
    keeps: tuple[str, ...] = ()
    """Top-level collections (by key, or lists of things with an `id`) from which nothing that is expected
    may vanish: a wrong deletion ends the episode."""
    answer: str | None = None
    """The answer that must be given too, compared without case and outer spaces."""

    def __call__(self, state: Any, answer: str | None = None) -> Verdict:
        """The verdict on the page's state (`{"data": ..., "ui": ...}`) and the agent's answer."""
        data = state["data"]
        for key in self.irreversible:
            if data[key] != self.start[key] and not _on_the_way(data[key], self.expected[key]):
                return Verdict(reason=f"{key} changed in a way that can't be mended", over=True)
        for key in self.keeps:
            if lost := _names(self.expected[key]) - _names(data[key]):
                return Verdict(reason=f"{key} lost {sorted(lost)}", over=True)
        wrong = difference(without(self.expected, self.volatile), without(data, self.volatile))
        if wrong is not None:
            return Verdict(reason=wrong)
        if self.answer is not None and (answer is None or plain(answer) != plain(self.answer)):
            return Verdict(reason=f"answer: expected {self.answer!r}, got {answer!r}")
        return Verdict(success=True, reason="as asked")


@dataclass
class Draft:
    """An instance in the making: `data` is what the page starts with, `after` what it must end with.

    Change `after` only; `make` refuses a task that is already done at the start.
    """

    rng: content.Rng
    data: Data
    options: Data = field(default_factory=dict)
    """What the page needs but nobody can change: labels, layout."""

    def __post_init__(self) -> None:
        self.look = content.theme(self.rng)
        self.after: Data = copy.deepcopy(self.data)

    def make(
        self,
        goal: str,
        solve: Callable[[PageQuery], Iterator[Action]],
        *,
        volatile: tuple[str, ...] = (),
        irreversible: tuple[str, ...] = (),
        keeps: tuple[str, ...] = (),
        answer: str | None = None,
        ends_on_success: bool = True,
    ) -> Instance:
        """The finished instance.

        Raises:
            ValueError: Nothing is left to do: the data already is as expected.
        """
        check = Expect(self.after, self.data, volatile, irreversible, keeps, answer)
        if check({"data": self.data}).success:
            raise ValueError(f"this task is done before it starts: {goal!r}")
        state = {"data": self.data, "options": self.options, "theme": self.look}
        return Instance(goal, state, check, solve, ends_on_success)


def without(data: Any, volatile: tuple[str, ...]) -> Any:
    """A copy of the data without the volatile fields.

    >>> without({"mails": {"m1": {"read": True, "folder": "inbox"}}}, ("mails.*.read",))
    {'mails': {'m1': {'folder': 'inbox'}}}
    """
    out = copy.deepcopy(data)
    for path in volatile:
        _remove(out, path.split("."))
    return out


def _remove(node: Any, path: list[str]) -> None:
    head, *rest = path
    if isinstance(node, dict):
        keys: list[Any] = list(node) if head == "*" else [head] * (head in node)
    elif isinstance(node, list):
        keys = list(range(len(node))) if head == "*" else []
    else:
        return
    for key in keys:
        if rest:
            _remove(node[key], rest)
        elif isinstance(node, dict):
            del node[key]


def difference(expected: Any, actual: Any, path: str = "data") -> str | None:
    """The first place where two JSON values differ, in words; None when they are equal.

    >>> difference({"a": [1, 2]}, {"a": [1, 3]})
    'data.a.1: expected 2, got 3'
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(k for k in actual if k not in expected)]:
            if key not in actual or key not in expected:
                where = "missing" if key not in actual else "unexpected"
                return f"{path}.{key}: {where}"
            if (found := difference(expected[key], actual[key], f"{path}.{key}")) is not None:
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            if (found := difference(*pair, f"{path}.{index}")) is not None:
                return found
        return None
    same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return None if same else f"{path}: expected {expected!r}, got {actual!r}"


def _on_the_way(actual: Any, expected: Any) -> bool:
    if isinstance(actual, list) and isinstance(expected, list):
        return actual == expected[: len(actual)]
    return bool(actual == expected)


def _names(collection: Any) -> set[str]:
    return set(collection) if isinstance(collection, dict) else {item["id"] for item in collection}


def plain(text: str) -> str:
    """A text as answers are compared: without case and outer or double spaces."""
    return " ".join(text.split()).casefold()
