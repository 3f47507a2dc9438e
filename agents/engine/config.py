"""How an engine behaves: small frozen objects, one for each thing that varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Budgets:
    """Limits of one episode. None means no limit of this kind; each has a stop reason of its own."""

    max_turns: int | None = None
    """StopReason.MAX_TURNS. Passed to the environment, so that a last-turn reminder can fire."""
    max_tokens_per_turn: int = 512
    """StopReason.GENERATION_LENGTH, where a cut response ends the episode."""
    max_tokens_per_episode: int | None = None
    """StopReason.TOKEN_BUDGET. Counts the whole stream: prompt, responses and observations."""
    max_context: int | None = None
    """StopReason.CONTEXT_FULL. Default: what the policy says (`policy.max_context`)."""
    wall_seconds: float | None = None
    """StopReason.ABORTED. Of one episode, from its reset on."""
    min_tokens_per_turn: int = 1
    """A turn is not begun with less room than this."""
    cut_response: Literal["end", "step"] = "end"
    """What a response cut by `max_tokens_per_turn` does: end the episode, or go to the environment."""

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_tokens_per_turn", "max_tokens_per_episode", "max_context"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.cut_response not in ("end", "step"):
            raise ValueError(f'cut_response must be "end" or "step", got {self.cut_response!r}')


@dataclass(frozen=True)
class RetryPolicy:
    """How much failure of ours an episode survives."""

    max_env_retries_per_turn: int = 2
    max_env_retries_per_episode: int = 4
    max_generation_retries_per_turn: int = 2
    restart: bool = True
    """Make a new environment and replay the actions so far, where the environment is deterministic."""
    backoff_seconds: float = 0.0
    """Before a retry; doubled with each of the turn."""


@dataclass(frozen=True)
class GroupPolicy:
    """What becomes of a group that lost an episode."""

    refills: int = 1
    """Fresh episodes of the same task that may replace a lost one, each."""
    keep_survivors: bool = False
    """Keep what is left of a group that could not be refilled, instead of dropping it whole."""
