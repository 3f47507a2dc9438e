"""From a model's raw response to tool calls. Nothing here raises for what the text says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ToolCall:
    """One call that a response makes."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolParse:
    """The calls of a response, and what was wrong with it."""

    calls: tuple[ToolCall, ...] = ()
    error: str | None = None
    """None, or text for the agent: what was wrong and how it should look."""


def parse_tool_calls(text: str, format: str = "hermes") -> ToolParse:
    """Find the tool calls in a response."""
    raise NotImplementedError
