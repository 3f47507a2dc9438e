"""Why an episode ended. Every trajectory has exactly one of these."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """Why an episode ended."""

    ENV_DONE = "env_done"
    """The environment said `terminated`: the task reached its end."""
    ENV_TRUNCATED = "env_truncated"
    """The environment said `truncated`: a limit of its own cut the episode."""
    MAX_TURNS = "max_turns"
    """The rollout engine's turn cap was reached."""
    TOKEN_BUDGET = "token_budget"
    """The next observation or turn would exceed the episode's token budget."""
    CONTEXT_FULL = "context_full"
    """The next observation or turn would exceed the model's context."""
    GENERATION_LENGTH = "generation_length"
    """A turn was cut by its token limit before the model ended it."""
    NO_TOOL_CALL = "no_tool_call"
    """The response held no tool call and the task says that this ends the episode."""
    PARSE_FAILURES = "parse_failures"
    """Too many malformed responses in a row, where the task sets a limit."""
    ENV_FAILURE = "env_failure"
    """The environment broke more often than the failure budget allows."""
    GENERATION_FAILURE = "generation_failure"
    """The generation back end broke more often than the failure budget allows."""
    ABORTED = "aborted"
    """Stopped from outside: wall time, shutdown, or no longer needed."""
