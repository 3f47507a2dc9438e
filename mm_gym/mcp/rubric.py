"""From an episode's record to its reward: hud-vf-gym's three components, and the user's own.

reward = sum of weight * component. Knows records and weights; must not know servers or text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mm_gym.mcp.config import RubricConfig
from mm_gym.mcp.dotted import load_function
from mm_gym.mcp.tasksets import MCPTask
from mm_gym.mcp.xml_calls import Form, Forms

COMPONENTS = ("task_completion", "tool_execution", "format_compliance")


@dataclass(frozen=True)
class CallRecord:
    """One call that the agent made."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    status: str = "ok"
    """"ok", "failed", "unknown", "malformed" or "done"."""
    error: str = ""
    """What was wrong with it."""

    @property
    def attempt(self) -> bool:
        """Whether it counts for tool execution: a malformed call never was one."""
        return self.status in ("ok", "failed", "unknown")


@dataclass(frozen=True)
class TurnRecord:
    """One response and what came of it."""

    response: str
    calls: tuple[CallRecord, ...] = ()
    form: Form = Form(0.0)  # noqa: RUF009  (frozen)
    """How it is formed."""


@dataclass
class RubricRecord:
    """An episode so far: what own components are computed from."""

    task: MCPTask
    turns: list[TurnRecord] = field(default_factory=list)
    task_score: float | None = None
    """What the evaluation gave; None before it, and for a task without one."""
    forms: Forms = field(default_factory=Forms)
    """Of all turns, summed up as they come."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Of all calls."""

    def add(self, turn: TurnRecord) -> None:
        """Take in a turn."""
        self.turns.append(turn)
        self.forms.add(turn.form)
        self.statuses.update(call.status for call in turn.calls)

    def undo(self) -> None:
        """Take the last turn back: it was not completed."""
        turns = self.turns[:-1]
        self.turns, self.forms, self.statuses = [], Forms(), Counter()
        for turn in turns:
            self.add(turn)

    @property
    def calls(self) -> list[CallRecord]:
        return [call for turn in self.turns for call in turn.calls]

    @property
    def responses(self) -> list[str]:
        return [turn.response for turn in self.turns]


class Rubric:
    """Scores records.

    Args:
        config: Weights and own components.
        format_score: Of the forms of all turns.
        hud: Score as hud-vf-gym: done() is a successful attempt, the task's score is not clipped.

    Raises:
        ValueError: An own component does not exist.
    """

    def __init__(self, config: RubricConfig, format_score: Callable[[Forms], float], hud: bool) -> None:
        self.config = config
        self.hud = hud
        self._format_score = format_score
        self._own = {entry.name: load_function(entry.function) for entry in config.components}
        self.weights = {**config.weights, **{entry.name: entry.weight for entry in config.components}}

    def scores(self, record: RubricRecord) -> dict[str, float]:
        """Every component by name; `task_completion` only once the task has been evaluated."""
        scores = {
            "tool_execution": tool_execution(record.statuses, self.hud),
            "format_compliance": self._format_score(record.forms),
        }
        if record.task_score is not None:
            clip = self.config.clip and not self.hud
            score = record.task_score
            scores["task_completion"] = min(1.0, max(0.0, score)) if clip else score
        for name, function in self._own.items():
            scores[name] = _finite(function(record), name)
        return scores

    def reward(self, scores: dict[str, float]) -> float:
        """The weighted sum."""
        return sum(self.weights[name] * score for name, score in scores.items())


def tool_execution(statuses: Mapping[str, int], hud: bool = False) -> float:
    """Successful attempts among all; 0.0 without any.

    An attempt is a well-formed call. In hud-vf-gym `done()` is one that always succeeds, so that a lone
    `done()` scores 1.0; here it is none.

    Args:
        statuses: How many calls had each status.
        hud: As hud-vf-gym.
    """
    good = statuses.get("ok", 0) + (statuses.get("done", 0) if hud else 0)
    attempts = good + statuses.get("failed", 0) + statuses.get("unknown", 0)
    return good / attempts if attempts else 0.0


def _finite(value: Any, name: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"rubric component {name!r} gave {value!r}; it must be a finite number")
    return number
