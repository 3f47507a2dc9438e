"""What a rollout function works with: the episode's environment, its policy, its stream and its limits.

Adds to each of them what must hold in any rollout: retries, time-outs, random streams, times and counts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from agents.engine.config import Budgets, RetryPolicy
from agents.engine.seeds import turn_seed
from agents.engine.session import EnvSession
from agents.engine.stream import Stream
from agents.env_host import Observed, Stepped
from agents.types import GenerationFailure, Task, Trajectory
from mm_gym.errors import EnvironmentFailure
from mm_gym.stop import StopReason

logger = logging.getLogger(__name__)


class EpisodeContext:
    """One episode in the making.

    Args:
        task: What is run.
        sample: Which episode of its group.
        attempt: How often the episode was begun afresh after a loss.
        session: Its environment.
        stream: Its conversation.
        budgets: Its limits.
        retries: How much failure it survives.
        seed: The engine's.
        gate: Set while turns may be begun.
    """

    def __init__(
        self,
        task: Task,
        sample: int,
        attempt: int,
        *,
        session: EnvSession,
        stream: Stream,
        budgets: Budgets,
        retries: RetryPolicy,
        seed: int,
        gate: asyncio.Event,
    ) -> None:
        self.task = task
        self.sample = sample
        self.attempt = attempt
        self.session = session
        self.stream = stream
        self.budgets = budgets
        self.started = time.monotonic()
        self._retries = retries
        self._seed = seed
        self.gate = gate
        self._seconds: Counter[str] = Counter()
        self._turn_retries: Counter[str] = Counter()
        self._generation: asyncio.Future[str] | None = None
        self._interrupted = False

    @property
    def trajectory(self) -> Trajectory:
        return self.stream.trajectory

    @property
    def turn(self) -> int:
        """How many turns are complete."""
        return len(self.trajectory.turns)

    # -- the environment -------------------------------------------------------------------------------

    async def reset(self) -> Observed:
        """Start the episode. Raises EnvironmentFailure when retries are spent."""
        async with _Timer(self._seconds, "waiting"):
            result = await self.session.reset()
        self.started = time.monotonic()
        return result

    async def step(self, action: str) -> Stepped:
        """Answer one action. Raises EnvironmentFailure when retries are spent."""
        async with _Timer(self._seconds, "environment"):
            result = await self.session.step(action)
        self._turn_retries.update(self.session.turn_retries)
        return result

    async def finish(self, reason: StopReason) -> tuple[float, dict[str, float]]:
        """Tell the environment that the episode is over, once; what it still earns."""
        return await self.session.finish(str(reason))

    # -- the policy ------------------------------------------------------------------------------------

    def room(self) -> int | StopReason:
        """How many tokens the next turn may have, or the limit that forbids it."""
        cap = self.budgets.max_turns
        if cap is not None and self.turn >= cap:
            return StopReason.MAX_TURNS
        if self.wall_left() <= 0:
            return StopReason.ABORTED
        return self.stream.room()

    def wall_left(self) -> float:
        """Seconds left of the episode's wall time."""
        limit = self.budgets.wall_seconds
        return float("inf") if limit is None else limit - (time.monotonic() - self.started)

    async def generate(self, room: int) -> str | None:
        """Sample the next turn of at most `room` tokens; returns the action, or None when wall time ran out.

        Raises:
            GenerationFailure: Retries are spent.
        """
        seed = turn_seed(self._seed, self.task, self.sample, self.attempt, self.turn)
        failed = 0
        while True:
            await self._pass_gate()
            try:
                async with _Timer(self._seconds, "generation"):
                    return await self._generate_once(lambda: self.stream.generate(room, seed))
            except TimeoutError:
                return None
            except GenerationFailure as failure:
                self.trajectory.failures[failure.kind] = self.trajectory.failures.get(failure.kind, 0) + 1
                if failed >= self._retries.max_generation_retries_per_turn:
                    raise
                failed += 1
                self._turn_retries[failure.kind] += 1

    def interrupt(self) -> None:
        """Stop sampling the turn; when the gate opens it goes on where it stood, where the policy can."""
        if self._generation is not None and not self._generation.done():
            self._interrupted = True
            self._generation.cancel()

    async def _generate_once(self, sample: Callable[[], Awaitable[str]]) -> str:
        while True:
            self._generation = asyncio.ensure_future(sample())
            left = self.wall_left()
            try:
                async with asyncio.timeout(None if left == float("inf") else left):
                    return await self._generation
            except asyncio.CancelledError:
                if not self._interrupted:
                    raise
                self._interrupted = False
                await self._pass_gate()
            finally:
                self._generation = None

    async def _pass_gate(self) -> None:
        if not self.gate.is_set():
            async with _Timer(self._seconds, "waiting"):
                await self.gate.wait()

    # -- the record ------------------------------------------------------------------------------------

    def record_turn(self) -> None:
        """Note the times and retries of the turn that was just taken into the trajectory."""
        turn = self.trajectory.turns[-1]
        turn.seconds = dict(self._seconds)
        turn.retries = dict(self._turn_retries)
        self._seconds.clear()
        self._turn_retries.clear()

    def lose(self, reason: StopReason, failure: EnvironmentFailure | GenerationFailure) -> Trajectory:
        """The trajectory, masked: lost to a failure of ours, without a reward."""
        trajectory = self.trajectory
        trajectory.masked, trajectory.reward, trajectory.stop_reason = True, None, reason
        trajectory.episode.stop_reason = str(reason)
        logger.info("%s seed %s was lost: %s: %s", self.task.env_id, self.task.seed, failure.kind, failure)
        return trajectory

    def seal(self) -> Trajectory:
        """The finished trajectory with the environment's failures counted in."""
        trajectory = self.trajectory
        trajectory.task = self.task
        for kind, count in self.session.failures.items():
            trajectory.failures[kind] = trajectory.failures.get(kind, 0) + count
        return trajectory


Rollout: TypeAlias = Callable[[EpisodeContext], Awaitable[Trajectory]]
"""A rollout function: runs one episode with the context's pieces and returns its trajectory."""


class _Timer:
    """Adds the wall time of a block to a counter."""

    def __init__(self, into: Counter[str], name: str) -> None:
        self._into = into
        self._name = name

    async def __aenter__(self) -> None:
        self._started = time.perf_counter()

    async def __aexit__(self, *exc: object) -> None:
        self._into[self._name] += time.perf_counter() - self._started  # type: ignore[assignment]
