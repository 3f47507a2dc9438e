"""The environments' own solvers as baselines: `expert`, and `random` for what guessing earns.

A solver belongs to an environment, so each response is computed on one of the policy's own: reset as the
episode was, the actions so far replayed. Knows environments with a solver (`expert_action`); no models.
Where an environment is not deterministic the solver answers for another episode than the one played.
"""

from __future__ import annotations

import asyncio
import queue
from typing import Any

from agents.env_host import EnvRecipe
from agents.types import TextResponse
from mm_gym.episode import Episode

KINDS = ("expert", "random")


class SolverPolicy:
    """Answers as an environment's own solver would.

    Args:
        kind: "expert" solves the very task. "random" gives the solver's responses to another task of the
            same environment, drawn by the seed: what an agent earns that knows the form of an answer, and
            how often each is right, but does not look.
        max_concurrent: Environments open at once; further responses wait.
    """

    def __init__(self, kind: str = "expert", *, max_concurrent: int = 4) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        self.kind = kind
        self.version = 0
        self._max_concurrent = max_concurrent
        self._slots: asyncio.Semaphore | None = None
        self._idle: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._seeds: dict[int, int] = {}

    async def start(self) -> None:
        """Get ready to open environments."""
        self._slots = asyncio.Semaphore(self._max_concurrent)

    async def stop(self) -> None:
        """Close the environments."""
        self._seeds.clear()
        while not self._idle.empty():
            await asyncio.to_thread(self._idle.get()[1].close)

    async def respond(self, episode: Episode, *, max_tokens: int, seed: int) -> TextResponse:
        """The solver's next response.

        Raises:
            ValueError: The environment has no solver for this task.
        """
        if self._slots is None:
            raise RuntimeError("SolverPolicy.respond was called outside start() and stop()")
        if not episode.actions:
            self._seeds[id(episode)] = seed % 2**31  # of the other task; the same in all turns
        other = self._seeds[id(episode)]
        async with self._slots:
            return TextResponse(await asyncio.to_thread(self._answer, episode, other))

    def _answer(self, episode: Episode, other: int) -> str:
        recipe = EnvRecipe(episode.env_id, episode.env_kwargs)
        env = self._lease(recipe)
        try:
            return self._solve(env, episode, other)
        finally:
            self._idle.put((recipe.key, env))

    def _solve(self, env: Any, episode: Episode, other: int) -> str:
        if self.kind == "expert":
            env.reset(seed=episode.seed, options=dict(episode.options))
        else:
            options = {name: value for name, value in episode.options.items() if name != "task"}
            env.reset(seed=other, options=options)
        for action in episode.actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:  # the other task was shorter: nothing better to say than before
                return action
        solution: str | None = getattr(env.unwrapped, "expert_action", lambda: None)()
        if solution is None:
            raise ValueError(f"{episode.env_id} has no solver for task {episode.task_id!r}: name a model")
        return solution

    def _lease(self, recipe: EnvRecipe) -> Any:
        """An idle environment of this recipe, or a new one."""
        try:
            key, env = self._idle.get_nowait()
        except queue.Empty:
            return recipe.make()
        if key == recipe.key:
            return env
        env.close()
        return recipe.make()
