"""Collecting groups for training: over-provision, carry what is unfinished, drop what teaches nothing.

Knows groups, their rewards and their age; not how an episode runs, nor what a trainer does with it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from agents.engine.engine import RolloutEngine
from agents.types import Task, Trajectory

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartialRollouts:
    """Begin more groups than are needed and go on with the unfinished ones at the next step.

    A step then holds more of the quick tasks, and the slow ones come a step later; those that are begun
    afresh for their age may not come at all, so give slow tasks a higher `max_staleness`.
    """

    over_provision: float = 1.5
    """Groups in flight, as a multiple of the groups wanted."""
    max_staleness: int = 1
    """Versions of the policy that a carried group may be behind; an older one is begun afresh."""

    def __post_init__(self) -> None:
        if self.over_provision < 1.0:
            raise ValueError(f"over_provision must be at least 1, got {self.over_provision}")
        if self.max_staleness < 1:
            raise ValueError(f"max_staleness must be at least 1, got {self.max_staleness}")


@dataclass(frozen=True)
class DynamicSampling:
    """Drop groups whose rewards are all equal (they have no advantage) and draw others."""

    max_redraws: float = 2.0
    """Groups drawn in place of dropped ones, as a multiple of the groups wanted; then equal ones are kept."""


@dataclass
class Collection:
    """What one step collected."""

    trajectories: list[Trajectory]
    """Group after group, in the order in which the groups were drawn."""
    dropped_equal: int = 0
    """Groups dropped because their rewards were all equal."""
    dropped_lost: int = 0
    """Groups dropped because an episode was lost to a failure of ours."""
    carried_in: int = 0
    """Unfinished groups taken over from the step before."""
    carried_out: int = 0
    """Unfinished groups left for the next step."""
    requeued: int = 0
    """Carried groups that had grown too old and were begun afresh."""

    @property
    def metrics(self) -> dict[str, float]:
        """The counts, as floats for a log."""
        return {name: float(n) for name, n in vars(self).items() if name != "trajectories"}


@dataclass
class _Group:
    """A group in flight."""

    index: int
    """Of its task in the source."""
    task: Task
    episodes: list[asyncio.Task[Trajectory]]
    version: int
    """Of the policy when the group was begun."""
    carried: bool = False

    @property
    def done(self) -> bool:
        return all(e.done() for e in self.episodes)


class GroupCollector:
    """Draws tasks and collects whole groups of episodes.

    Args:
        engine: Runs the episodes; not closed here.
        draw: From an index to a task, the same index giving the same task.
        group_size: Episodes of a group.
        start: First index.
        stride: From one index to the next: the number of ranks, where each draws its own.
        partial: Carry unfinished groups over; None waits for all.
        dynamic: Drop and redraw groups of equal rewards; None keeps them.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        draw: Callable[[int], Task],
        group_size: int,
        *,
        start: int = 0,
        stride: int = 1,
        partial: PartialRollouts | None = None,
        dynamic: DynamicSampling | None = None,
    ) -> None:
        if group_size < 1:
            raise ValueError(f"group_size must be at least 1, got {group_size}")
        self.engine = engine
        self.group_size = group_size
        self.cursor = start
        """The next index to draw."""
        self._draw = draw
        self._stride = stride
        self._partial = partial
        self._dynamic = dynamic
        self._gate = engine.new_gate()
        self._live: list[_Group] = []
        self._requeued: list[int] = []

    def collect(self, groups: int) -> Collection:
        """Collect `groups` whole groups.

        Lost groups are replaced by others, as many times over as are wanted; then they are returned masked.
        """
        return self.engine.wait(self.submit(groups))

    def submit(self, groups: int) -> Future[Collection]:
        """Begin to collect; the future holds what `collect` returns."""
        if groups < 1:
            raise ValueError(f"groups must be at least 1, got {groups}")
        return self.engine.run_exclusively(lambda: self._collect(groups))

    def close(self) -> None:
        """Give up what is carried; the environments go back to the engine."""
        self.engine.wait(self.engine.run_exclusively(self._give_up, generates=False))

    def state_dict(self) -> dict[str, Any]:
        """The source's cursor and the carried groups, which are begun afresh from their seeds on resuming."""
        return {"cursor": self.cursor, "unfinished": [*self._requeued, *sorted(g.index for g in self._live)]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.close()
        self.cursor = int(state["cursor"])
        self._requeued = list(state["unfinished"])
        if self._requeued:
            logger.warning("%d unfinished groups are begun afresh from their seeds", len(self._requeued))

    # -- one step --------------------------------------------------------------------------------------

    async def _collect(self, wanted: int) -> Collection:
        self._gate.set()
        collection = Collection([])
        await self._drop_stale(collection)
        collection.carried_in = len(self._live)
        for group in self._live:
            group.carried = True
        step = _Step(wanted, self._dynamic)
        try:
            while len(step.kept) < wanted:
                self._provision(wanted - len(step.kept))
                await self._settle(step, collection)
        except BaseException:
            await self._give_up()
            raise
        self._pause()
        collection.carried_out = len(self._live)
        step.kept.sort(key=lambda pair: pair[0])
        collection.trajectories = [t for _, trajectories in step.kept for t in trajectories]
        return collection

    def _provision(self, missing: int) -> None:
        """Have enough groups in flight for what is missing."""
        factor = self._partial.over_provision if self._partial else 1.0
        while len(self._live) < math.ceil(missing * factor):
            index = self._requeued.pop(0) if self._requeued else self._next_index()
            task = self._draw(index)
            episodes = [self.engine.begin(task, sample, self._gate) for sample in range(self.group_size)]
            self._live.append(_Group(index, task, episodes, self.engine.policy.version))

    def _next_index(self) -> int:
        index = self.cursor
        self.cursor += self._stride
        return index

    async def _settle(self, step: _Step, collection: Collection) -> None:
        """Wait for a group to be whole and decide about it."""
        pending = [e for g in self._live for e in g.episodes if not e.done()]
        if pending and not any(g.done for g in self._live):
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for episode in done:
                episode.result()  # what is no failure of ours surfaces at once
        for group in [g for g in self._live if g.done]:
            if len(step.kept) == step.wanted:
                return  # whole, but for the next step
            self._live.remove(group)
            trajectories = [e.result() for e in group.episodes]
            self.engine.finish_groups(trajectories)
            step.judge(group.index, trajectories, collection)

    async def _drop_stale(self, collection: Collection) -> None:
        """Begin groups afresh whose first tokens are too many versions old."""
        if self._partial is None:
            return
        oldest = self.engine.policy.version - self._partial.max_staleness
        stale = [g for g in self._live if g.version < oldest]
        self._live = [g for g in self._live if g.version >= oldest]
        await _cancel(stale)
        self._requeued.extend(g.index for g in stale)
        collection.requeued = len(stale)
        if stale:
            logger.info("%d carried groups grew older than max_staleness and start afresh", len(stale))

    def _pause(self) -> None:
        """Stop the unfinished where they stand, in the midst of a turn too."""
        self._gate.clear()
        self.engine.interrupt(self._gate)

    async def _give_up(self) -> None:
        live, self._live = self._live, []
        await _cancel(live)


@dataclass
class _Step:
    """What one step has so far."""

    wanted: int
    dynamic: DynamicSampling | None
    kept: list[tuple[int, list[Trajectory]]] = field(default_factory=list)

    def judge(self, index: int, trajectories: list[Trajectory], collection: Collection) -> None:
        """Keep a whole group, or drop it and count why."""
        lost = all(t.masked for t in trajectories)
        if lost and collection.dropped_lost < self.wanted:
            collection.dropped_lost += 1
            return
        redraws = math.ceil(self.dynamic.max_redraws * self.wanted) if self.dynamic else 0
        if not lost and collection.dropped_equal < redraws and _equal_rewards(trajectories):
            collection.dropped_equal += 1
            return
        self.kept.append((index, trajectories))


def _equal_rewards(trajectories: Sequence[Trajectory]) -> bool:
    """Whether the group has no advantage; rewards are compared exactly."""
    return len({t.reward for t in trajectories if not t.masked}) <= 1


async def _cancel(groups: Sequence[_Group]) -> None:
    episodes = [e for g in groups for e in g.episodes]
    for episode in episodes:
        episode.cancel()
    await asyncio.gather(*episodes, return_exceptions=True)


class OneStepAhead:
    """Collects step k+1 while step k trains. Only where generation has weights and a device of its own.

    Args:
        collector: Its engine's policy must not share weights with the model in training.
    """

    def __init__(self, collector: GroupCollector) -> None:
        self._collector = collector
        self._pending: Future[Collection] | None = None
        self._before: dict[str, Any] = {}
        """The collector's state when the pending step was begun."""

    def next(
        self, groups: int, push_weights: Callable[[], None] = lambda: None, *, more: bool = True
    ) -> Collection:
        """The step that was begun a call ago; begins the next one.

        Args:
            groups: Of the step to begin (and of this one, at the first call).
            push_weights: Gives the sampler the trainer's weights; called while nothing is generated.
            more: False for the last step: none is begun after it.
        """
        if self._pending is None:
            self._begin(groups, push_weights)
        pending, self._pending = self._pending, None
        assert pending is not None
        collection = self._collector.engine.wait(pending)
        if more:
            self._begin(groups, push_weights)
        return collection

    def settle(self) -> None:
        """Wait until the step that is being collected is whole; `next` still returns it."""
        if self._pending is not None:
            self._collector.engine.wait(self._pending)

    def close(self) -> None:
        """Drop the step that is being collected, and close its environments."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()
            self._collector.engine.close_environments()

    def state_dict(self) -> dict[str, Any]:
        """As the collector's; the groups of a step that was not handed out yet are drawn again on resuming."""
        return self._collector.state_dict() if self._pending is None else self._before

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.close()
        self._collector.load_state_dict(state)

    def _begin(self, groups: int, push_weights: Callable[[], None]) -> None:
        push_weights()
        self._before = self._collector.state_dict()
        self._pending = self._collector.submit(groups)
