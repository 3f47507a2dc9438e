"""The environments' own solvers as baselines: `expert`, and `random` for what guessing earns.

A solver belongs to an environment, so each episode is followed on one of the policy's own: reset as the
episode was, and given the same actions. Knows environments with a solver (`expert_action`); no models.
Where an environment is not deterministic the solver answers for another episode than the one played.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

from agents.env_host import EnvRecipe
from agents.types import TextResponse
from mm_gym.episode import Episode

KINDS = ("expert", "random")


@dataclass
class _Shadow:
    """An environment that follows an episode."""

    env: Any
    recipe: EnvRecipe
    episode: Episode | None = None
    followed: int = 0
    """Actions that it was given."""
    next: str | None = None
    """What the solver says now; None after the end of a task."""


class SolverPolicy:
    """Answers as an environment's own solver would.

    Args:
        kind: "expert" solves the very task. "random" gives the solver's responses to another task of the
            same environment, drawn by the seed: what an agent earns that knows the form of an answer, and
            how often each is right, but does not look.
        max_open: Environments open at once. With fewer than episodes running, some are followed from the
            start again.
    """

    def __init__(self, kind: str = "expert", *, max_open: int = 4) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        self.kind = kind
        self.version = 0
        self._max_open = max_open
        self._slots: asyncio.Semaphore | None = None
        self._lock = threading.Lock()
        self._idle: list[_Shadow] = []
        self._busy = 0
        self._seeds: dict[int, int] = {}
        """Of the other task that "random" solves in an episode; drawn at its first turn."""

    async def start(self) -> None:
        """Get ready to open environments."""
        self._slots = asyncio.Semaphore(self._max_open)

    async def stop(self) -> None:
        """Close the environments."""
        self._seeds.clear()
        idle, self._idle = self._idle, []
        for shadow in idle:
            await asyncio.to_thread(shadow.env.close)

    async def respond(self, episode: Episode, *, max_tokens: int, seed: int) -> TextResponse:
        """The solver's next response.

        Raises:
            ValueError: The environment has no solver for this task.
        """
        if self._slots is None:
            raise RuntimeError("SolverPolicy.respond was called outside start() and stop()")
        if not episode.actions:
            self._seeds[id(episode)] = seed % 2**31
        async with self._slots:
            return TextResponse(await asyncio.to_thread(self._answer, episode))

    def _answer(self, episode: Episode) -> str:
        shadow: _Shadow | None = None
        with self._lock:
            self._busy += 1
        try:
            shadow = self._lease(episode)
            if shadow.episode is not episode:
                self._begin(shadow, episode)
            for action in episode.actions[shadow.followed :]:
                self._follow(shadow, action)
            if shadow.next is not None:
                return shadow.next
            return episode.actions[-1]  # the other task was shorter: nothing better to say than before
        finally:
            with self._lock:
                self._busy -= 1
                if shadow is not None:
                    self._idle.append(shadow)

    def _begin(self, shadow: _Shadow, episode: Episode) -> None:
        shadow.episode, shadow.followed = None, 0
        if self.kind == "expert":
            shadow.env.reset(seed=episode.seed, options=dict(episode.options))
        else:
            options = {name: value for name, value in episode.options.items() if name != "task"}
            shadow.env.reset(seed=self._seeds[id(episode)], options=options)
        shadow.next = _solution(shadow.env, episode)
        shadow.episode = episode

    def _follow(self, shadow: _Shadow, action: str) -> None:
        """Give it an action, then ask its solver: solvers with a plan count how often they are asked."""
        shadow.followed += 1
        if shadow.next is None:
            return
        _, _, terminated, truncated, _ = shadow.env.step(action)
        assert shadow.episode is not None
        shadow.next = None if terminated or truncated else _solution(shadow.env, shadow.episode)

    def _lease(self, episode: Episode) -> _Shadow:
        """The episode's own shadow, else one that is free, else a new one."""
        recipe = EnvRecipe(episode.env_id, episode.env_kwargs)
        with self._lock:
            full = len(self._idle) + self._busy > self._max_open
            own = next((s for s in self._idle if s.episode is episode), None)
            shadow = own or (self._idle[0] if full and self._idle else None)  # the one idle for longest
            if shadow is not None:
                self._idle.remove(shadow)
        if shadow is not None and shadow.recipe.key != recipe.key:
            shadow.env.close()
            shadow = None
        return shadow or _Shadow(recipe.make(), recipe)


def _solution(env: Any, episode: Episode) -> str:
    solution: str | None = getattr(env.unwrapped, "expert_action", lambda: None)()
    if solution is None:
        raise ValueError(f"{episode.env_id} has no solver for task {episode.task_id!r}: name a model")
    return solution
