"""A pantry as an MCP server: text alone, two tools, HUD's setup and evaluate convention.

    python -m mm_gym.mcp.servers.pantry            # over stdin and stdout
    python -m mm_gym.mcp.servers.pantry --http     # streamable HTTP on port 8765

Small enough for a language model of a hundred million parameters: look one thing up, then say what was seen.
What a pantry holds is kept by the episode id in a call's `_meta`. Tasks for it and the solver as an agent are
in `tasks_pantry`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mm_gym.mcp.servers.common import Context, Episodes, MCPServer, ToolError, content, dispatch, serve


@dataclass
class Pantry:
    """What there is and what was asked; the arguments of `setup`."""

    things: dict[str, int]
    asked: str
    answer: int | None = None

    def __post_init__(self) -> None:
        if self.asked not in self.things:
            raise ValueError(f"asked for {self.asked!r}, which is not among {', '.join(self.things)}")


def make_server() -> Any:
    """A server object, for in-process use or `run`."""
    server = MCPServer("mm-gym-pantry", log_level="WARNING")
    pantries: Episodes[Pantry] = Episodes()

    @server.tool(structured_output=False)
    def setup(ctx: Context, name: str = "pantry", arguments: dict[str, Any] | str | None = None) -> Any:
        """Fill the pantry. Functions: pantry(things, asked)."""
        pantries[ctx] = dispatch("setup", {"pantry": Pantry}, name, arguments)
        return content()

    @server.tool(structured_output=False)
    def evaluate(ctx: Context, name: str = "count", arguments: dict[str, Any] | str | None = None) -> Any:
        """Grade the answer. Functions: count()."""
        pantry = pantries[ctx]
        right = pantry.answer == pantry.things[pantry.asked]
        reward = dispatch("evaluate", {"count": lambda: float(right)}, name, arguments)
        return content(json.dumps({"reward": reward}), structured={"reward": reward, "done": True})

    @server.tool(structured_output=False)
    def look_up(thing: str, ctx: Context) -> Any:
        """How many of a thing there are."""
        things = pantries[ctx].things
        if thing not in things:
            raise ToolError(f"there is no {thing!r}; there are {', '.join(things)}")
        return content(f"{things[thing]} {thing}", structured={"count": things[thing]})

    @server.tool(structured_output=False)
    def answer(number: int, ctx: Context) -> Any:
        """Answer the question."""
        pantries[ctx].answer = number
        return content("Thank you.", structured={"done": True})

    return server


def main() -> None:
    serve(make_server, "a pantry as an MCP server")


if __name__ == "__main__":
    main()
