"""Which tasks a run trains on: one environment or several with weights, drawn by a seed.

The source is a pure function from (seed, index) to a task, so a resumed run needs the index alone, and
every rank draws its own part without talking to the others. Knows environment ids and keyword arguments;
neither tokens nor trainers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import gymnasium
import numpy as np

import mm_gym  # noqa: F401
from agents.types import Task

TRAIN, EVALUATION, WARMUP, EARLY = 0, 1, 2, 3
"""Streams of seeds that share no task; `EARLY` is for looks at a warm-up while it runs."""


@dataclass(frozen=True)
class EnvMember:
    """One environment of a mix."""

    id: str
    """A registered id, or `module:id` for an environment that importing `module` registers."""
    weight: float = 1.0
    """Its share of the tasks, relative to the others'."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Passed to `gymnasium.make`."""
    options: dict[str, Any] = field(default_factory=dict)
    """Passed to every `reset`."""


EnvSpec: TypeAlias = "str | Mapping[str, Any] | EnvMember | Sequence[Any] | gymnasium.Env[Any, Any]"
"""An id, a mapping with `id`, `weight`, `kwargs`, `options`, JSON of those, a made environment, or a list."""


def parse_members(spec: EnvSpec, **kwargs: Any) -> list[EnvMember]:
    """Read an environment specification, as it comes from YAML, the command line or Python.

    >>> parse_members([{"id": "mm_gym/Pointing-v0", "weight": 2}, "mm_gym/Geo3k-v0"])[0].weight
    2.0

    Args:
        spec: See `EnvSpec`. An environment object stands for its registered id and arguments.
        kwargs: Keyword arguments added to every member (the member's own win).
    """
    if isinstance(spec, str) and spec.lstrip()[:1] in ("[", "{"):
        spec = json.loads(spec)
    if isinstance(spec, gymnasium.Env):
        if spec.spec is None:
            raise ValueError(
                f"{spec.unwrapped} was not made by gymnasium.make, so a rollout cannot make more of it: "
                "register it and pass its id"
            )
        spec = EnvMember(spec.spec.id, kwargs=dict(spec.spec.kwargs))
    if isinstance(spec, (str, Mapping, EnvMember)):
        spec = [spec]
    members = [_member(one, kwargs) for one in spec]
    if not members or sum(m.weight for m in members) <= 0:
        raise ValueError(f"at least one environment with a weight above 0 is needed, got {spec!r}")
    return members


def _member(one: Any, kwargs: dict[str, Any]) -> EnvMember:
    if isinstance(one, str):
        return EnvMember(one, kwargs=kwargs)
    if isinstance(one, gymnasium.Env):
        (made,) = parse_members(one)
        one = made
    if isinstance(one, EnvMember):
        return EnvMember(one.id, one.weight, {**kwargs, **one.kwargs}, one.options)
    known = {"id", "weight", "kwargs", "options"}
    unknown = set(one) - known
    if unknown or "id" not in one:
        raise ValueError(f"an environment is given by {sorted(known)} (id is required), got {dict(one)!r}")
    weight = float(one.get("weight", 1.0))
    if weight < 0:
        raise ValueError(f"the weight of {one['id']} must not be negative, got {weight}")
    return EnvMember(
        one["id"], weight, {**kwargs, **(one.get("kwargs") or {})}, dict(one.get("options") or {})
    )


class TaskSource:
    """Draws tasks from a mix of environments.

    Args:
        members: The environments, or what `parse_members` takes.
        seed: Same seed, same tasks.
        stream: Another number gives other tasks (`TRAIN`, `EVALUATION`, `WARMUP`).
        ordered: Take the environment's tasks (`env.unwrapped.task_ids`) one after another, in place of
            drawing: for a test set that is to be seen once, as a whole.
    """

    def __init__(
        self, members: EnvSpec, *, seed: int = 0, stream: int = TRAIN, ordered: bool = False
    ) -> None:
        self.members = parse_members(members)
        self.seed = seed
        self.stream = stream
        weights = np.array([m.weight for m in self.members])
        self._shares = weights / weights.sum()
        self._ids = [(m, i) for m in self.members for i in _task_ids(m)] if ordered else None

    def __len__(self) -> int:
        """How many tasks an ordered source has.

        Raises:
            TypeError: The source draws without end.
        """
        if self._ids is None:
            raise TypeError("a drawing TaskSource has no length; say how many tasks you want")
        return len(self._ids)

    def task(self, index: int) -> Task:
        """Task number `index`; the index is also its group's."""
        if self._ids is not None:
            member, task_id = self._ids[index]
            options = {**member.options, "task": task_id}
            return Task(member.id, dict(member.kwargs), self.seed, options, group=index)
        rng = np.random.default_rng([self.seed, self.stream, index])
        member = self.members[int(rng.choice(len(self.members), p=self._shares))]
        seed = int(rng.integers(2**31))
        return Task(member.id, dict(member.kwargs), seed, dict(member.options), group=index)

    def tasks(self, start: int, count: int, copies: int = 1) -> list[Task]:
        """`count` tasks from number `start`, each `copies` times in a row (a group)."""
        return [self.task(index) for index in range(start, start + count) for _ in range(copies)]


def _task_ids(member: EnvMember) -> tuple[str, ...]:
    env = gymnasium.make(member.id, **member.kwargs)
    try:
        ids = getattr(env.unwrapped, "task_ids", None)
        if not ids:
            raise ValueError(
                f"{member.id} with {member.kwargs} has no fixed set of tasks (no `task_ids`): draw a number "
                "of them instead of taking each once"
            )
        return tuple(ids)
    finally:
        env.close()


def name_of(task: Task) -> str:
    """A short name of the task's environment for tables and metrics.

    >>> name_of(Task("mm_gym/Geo3k-v0"))
    'Geo3k'
    """
    return task.env_id.split(":")[-1].split("/")[-1].split("-v")[0]
