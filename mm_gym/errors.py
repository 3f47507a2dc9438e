"""The one exception that means "our side is broken", as opposed to "the agent did something wrong"."""

from __future__ import annotations

from typing import Any


class EnvironmentFailure(Exception):  # noqa: N818  (the name is part of the public contract)
    """Something on the environment's side broke: a browser died, a server hung, a file is unreadable.

    The rollout engine retries it and, when retries are spent, masks the trajectory. It is never a
    reward of 0. An agent's mistake is an observation, not this.

    It survives what vector environments do to exceptions: it pickles, and it can be rebuilt from an
    instance of itself (`AsyncVectorEnv` raises `exctype(value)`).

    Args:
        message: What broke and what to do, or another `EnvironmentFailure` to copy.
        kind: Short stable name for counting, e.g. "timeout", "browser", "server", "data".
    """

    message: str
    kind: str

    def __init__(self, message: Any = "", *, kind: str = "environment") -> None:
        if isinstance(message, EnvironmentFailure):
            message, kind = message.message, message.kind
        super().__init__(str(message))
        self.message = str(message)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.kind)


def _rebuild(cls: type[EnvironmentFailure], message: str, kind: str) -> EnvironmentFailure:
    return cls(message, kind=kind)
