"""One episode's environment, with retries: what fails is repeated, restarted and replayed, or lost.

Knows workers and failures; not tokens or policies. Only a completed interaction counts: a step that
failed has changed nothing that the caller sees.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from agents.engine.config import RetryPolicy
from agents.env_host import EnvRecipe, Observed, Stepped, observation_digest
from agents.types import Task
from agents.workers import EnvPool, EnvWorker
from mm_gym.errors import EnvironmentFailure

_GONE = ("garbage", "browser")
"""Kinds of failure after which nothing is left on which to repeat a step: a killed browser's page, say."""


class EnvSession:
    """The environment of one episode. Close it whatever happens.

    Args:
        pool: Where environments come from.
        task: What is run.
        retries: How much failure is mended.
        name: Prefix of the step ids.
        max_turns: The engine's own cap, told to the environment.
    """

    def __init__(
        self, pool: EnvPool, task: Task, retries: RetryPolicy, name: str, max_turns: int | None = None
    ) -> None:
        self.task = task
        self.failures: Counter[str] = Counter()
        """Every failure met, by kind."""
        self.turn_retries: Counter[str] = Counter()
        """Of the call that was made last."""
        self.options = dict(task.options)
        if max_turns is not None:
            self.options.setdefault("max_turns", max_turns)
        self._pool = pool
        self._recipe = EnvRecipe(task.env_id, task.env_kwargs)
        self._retries = retries
        self._name = name
        self._worker: EnvWorker | None = None
        self._actions: list[str] = []
        self._seen: list[str | Observed] = []
        """Each observation so far: as it came, or its digest."""

    @property
    def is_open(self) -> bool:
        return self._worker is not None

    async def reset(self) -> Observed:
        """Lease an environment and start the episode.

        Raises:
            EnvironmentFailure: The budget of failures is spent.
        """
        self.turn_retries.clear()
        while True:
            try:
                observation, info = await self._start()
                self._actions, self._seen = [], [(observation, info)]
                return observation, info
            except EnvironmentFailure as failure:
                await self._count(failure)
                await self.close(reusable=False)

    async def step(self, action: str) -> Stepped:
        """Answer one action.

        Raises:
            EnvironmentFailure: The budget of failures is spent, or the episode can't be replayed.
        """
        self.turn_retries.clear()
        step_id = f"{self._name}/{len(self._actions)}"
        while True:
            try:
                worker = self._worker or await self._restart()
                result = await worker.step(action, step_id, self._pool.timeouts.step)
                self._actions.append(action)
                self._seen.append((result[0], result[4]))
                return result
            except EnvironmentFailure as failure:
                await self._count(failure)
                if self._worker is not None and self._must_restart(failure):
                    await self.close(reusable=False)

    async def finish(self, stop_reason: str) -> tuple[float, dict[str, float]]:
        """What the episode still earns now that the engine ends it. Asked once; a failure is not mended."""
        self.turn_retries.clear()
        if self._worker is None:
            raise EnvironmentFailure("the environment is gone before finish()", kind="worker")
        try:
            return await self._worker.finish(stop_reason, self._pool.timeouts.finish)
        except EnvironmentFailure as failure:
            self.failures[failure.kind] += 1
            raise

    async def close(self, *, reusable: bool = True) -> None:
        """Give the environment back, or drop it where it is not fit for another episode."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await self._pool.release(worker, self._recipe, reusable=reusable)

    # -- inside ----------------------------------------------------------------------------------------

    async def _start(self) -> Observed:
        if self._worker is None:
            self._worker = await self._pool.lease(self._recipe)
        return await self._worker.reset(self.task.seed, dict(self.options), self._pool.timeouts.reset)

    def _must_restart(self, failure: EnvironmentFailure) -> bool:
        """A step may be repeated on the same environment once; then it is not trusted any more."""
        broken = self._worker is None or self._worker.broken
        return broken or failure.kind in _GONE or sum(self.turn_retries.values()) > 1

    async def _count(self, failure: EnvironmentFailure) -> None:
        """Count a failure; raise it when the turn's or the episode's budget is spent."""
        self.failures[failure.kind] += 1
        limits = self._retries
        spent = sum(self.turn_retries.values())
        lost = failure.kind in ("replay", "not_replayable")
        if lost or spent >= limits.max_env_retries_per_turn:
            raise failure
        if sum(self.failures.values()) > limits.max_env_retries_per_episode:
            raise failure
        self.turn_retries[failure.kind] += 1
        if limits.backoff_seconds:
            await asyncio.sleep(limits.backoff_seconds * 2**spent)

    async def _restart(self) -> EnvWorker:
        """A new environment brought to where the episode stands; what it shows must equal what was seen."""
        observation, info = await self._start()
        worker = self._worker
        assert worker is not None
        if not self._retries.restart or not worker.deterministic:
            raise EnvironmentFailure(
                f"{self.task.env_id} broke in turn {len(self._actions)} and can't be replayed "
                "(deterministic is False, or restarts are off)",
                kind="not_replayable",
            )
        self._compare(0, observation, info)
        for turn, action in enumerate(self._actions):
            step_id = f"{self._name}/{turn}"
            observation, _, terminated, truncated, info = await worker.step(
                action, step_id, self._pool.timeouts.step
            )
            self._compare(turn + 1, observation, info)
            if terminated or truncated:
                raise EnvironmentFailure(f"the replay ended early, in turn {turn}", kind="replay")
        return worker

    def _compare(self, index: int, observation: dict[str, Any], info: dict[str, Any]) -> None:
        if _digest((observation, info)) != _digest(self._seen[index]):
            raise EnvironmentFailure(
                f"the replay of {self.task.env_id} differs from what observation {index} was: "
                "the environment says deterministic but is not",
                kind="replay",
            )


def _digest(seen: str | Observed) -> str:
    if isinstance(seen, str):
        return seen
    observation, info = seen
    return observation_digest(info["messages"], observation["images"])
