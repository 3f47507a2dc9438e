"""What the agent reads: results, mistakes and notes as messages, in our words or in hud-vf-gym's.

Knows texts and pictures; no servers, no scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mm_gym import messages
from mm_gym.mcp.config import MCPConfig
from mm_gym.mcp.results import ToolResult

Parts = list[str | np.ndarray]
"""Texts and pictures (uint8 (H, W, 3)), in order."""


class Wording:
    """How an environment with this configuration says things.

    Args:
        config: `compat` and `show_errors` decide about words.
        native: Whether calls are native JSON calls, which get a tool message each.
    """

    def __init__(self, config: MCPConfig, *, native: bool) -> None:
        self._config = config
        self._native = native

    @property
    def done(self) -> str:
        """The answer to the agent's `done`."""
        return "Agent is done, Evaluating..." if self._config.compat else "Done."

    def mistake(self, kind: str, why: str) -> str:
        """What was wrong with a call."""
        return kind if self._config.compat or not self._config.show_errors else f"{kind}: {why}"

    def missing_call(self, names: Sequence[str]) -> str:
        """The answer to a response without a call."""
        how = f"write <tool>name(arguments)</tool>. The tools are: {', '.join(names)}."
        return self.mistake("Missing Tool Call", how)

    def ignored(self) -> str:
        """That more calls were made than may run."""
        limit = self._config.parser.max_calls
        note = f"Only {limit} call{'s' * (limit > 1)} of a response run; the rest did not."
        return note if self._native else f"\n{note}"

    def result(self, result: ToolResult) -> Parts:
        """What the agent sees of a result: all of it in order; in hud-vf-gym the last image or text."""
        if not self._config.compat:
            content = _content(result)
            return content if self._native else ["<result>\n", *merged(content, "\n"), "\n</result>"]
        if result.images:
            return [result.images[-1]]
        texts = [part for part in _content(result) if isinstance(part, str)]
        return [f"<result>\n{texts[-1] if texts else ''}\n</result>"]

    def as_messages(self, sections: Sequence[tuple[str, Parts]]) -> list[messages.Message]:
        """The answers to a turn's calls, each under the name that was called."""
        if self._native:
            return [
                messages.tool(name or "error", index, *(merged(parts, "\n") or ["(no output)"]))
                for index, (name, parts) in enumerate(sections)
            ]
        parts = [part for _, section in sections for part in (*section, "\n")][:-1]
        return [messages.user(*merged(parts, ""))]


def merged(parts: Sequence[str | np.ndarray], separator: str) -> Parts:
    """Adjacent texts as one: chat templates join text blocks without anything between."""
    joined: Parts = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += separator + part
        else:
            joined.append(part)
    return joined


def _content(result: ToolResult) -> Parts:
    return list(result.content) or [result.structured_text] * bool(result.structured_text)
