"""What our servers share: state by episode, HUD's dispatch, results with pictures, and the command line.

Imports the SDK: only servers import this module.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import anyio
from gymnasium.error import DependencyNotInstalled
from PIL import Image

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.stdio import stdio_server
    from mcp_types import CallToolResult, ImageContent, TextContent
except ImportError as error:
    raise DependencyNotInstalled('MCP servers need the mcp SDK: pip install "mm-gym[mcp]"') from error

__all__ = ["Context", "Episodes", "MCPServer", "ToolError", "content", "dispatch", "episode_of", "serve"]

T = TypeVar("T")

EPISODE_KEY = "mm-gym/episode"
MAX_EPISODES = 1_024


def episode_of(ctx: Any) -> str:
    """The episode that a call belongs to: its `_meta` says so, else the session, else one for all."""
    request = ctx.request_context
    meta = request.meta or {}
    if isinstance(meta, Mapping) and meta.get(EPISODE_KEY):
        return str(meta[EPISODE_KEY])[:200]
    headers = getattr(request.request, "headers", None) or {}
    return str(headers.get("mcp-session-id", "only"))


class Episodes(Generic[T]):
    """State by episode; the longest unused goes when there are too many."""

    def __init__(self, limit: int = MAX_EPISODES, on_drop: Callable[[T], None] | None = None) -> None:
        self._states: OrderedDict[str, T] = OrderedDict()
        self._limit = limit
        self._on_drop = on_drop

    def __getitem__(self, ctx: Any) -> T:
        key = episode_of(ctx)
        if key not in self._states:
            raise ToolError("no episode is running: call setup first")
        self._states.move_to_end(key)
        return self._states[key]

    def __setitem__(self, ctx: Any, state: T) -> None:
        key = episode_of(ctx)
        dropped = self._states.pop(key, None)
        self._states[key] = state
        if len(self._states) > self._limit:
            dropped = self._states.popitem(last=False)[1]
        if dropped is not None and self._on_drop is not None:
            self._on_drop(dropped)


def dispatch(
    tool: str,
    functions: Mapping[str, Callable[..., Any]],
    name: str,
    arguments: dict[str, Any] | str | None,
    function: str | None = None,
    args: dict[str, Any] | str | None = None,
) -> Any:
    """Call a hidden function, by HUD's new form (name, arguments) or its old one (function, args).

    Raises:
        ToolError: There is no such function, or its arguments are wrong.
    """
    chosen = function or name
    given = args if args is not None else arguments
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except ValueError as error:
            raise ToolError(f"{tool}: arguments are not valid JSON: {error}") from error
    if chosen not in functions:
        raise ToolError(f"{tool} has no function {chosen!r}; functions are {', '.join(sorted(functions))}")
    if given is not None and not isinstance(given, dict):
        raise ToolError(f"{tool}: arguments must be an object, got {type(given).__name__}")
    try:
        return functions[chosen](**(given or {}))
    except (TypeError, ValueError) as error:
        raise ToolError(f"{tool} {chosen!r}: {error}") from error


def content(*parts: Any, structured: dict[str, Any] | None = None) -> CallToolResult:
    """A result of texts and PIL pictures, in order."""
    blocks: list[Any] = []
    for part in parts:
        if isinstance(part, Image.Image):
            buffer = io.BytesIO()
            part.save(buffer, "PNG", compress_level=1)
            data = base64.b64encode(buffer.getvalue()).decode()
            blocks.append(ImageContent(type="image", data=data, mime_type="image/png"))
        else:
            blocks.append(TextContent(type="text", text=str(part)))
    return CallToolResult(content=blocks, structured_content=structured)


def serve(make_server: Callable[[], Any], description: str) -> None:
    """Run a server from the command line: stdio, or streamable HTTP with --http."""
    parser = argparse.ArgumentParser(description=description)
    add_transport_arguments(parser)
    arguments = parser.parse_args()
    run_server(make_server(), arguments)


def add_transport_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", help="streamable HTTP in place of stdin and stdout")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8765)


def run_server(server: Any, arguments: argparse.Namespace) -> None:
    """Serve until the client leaves (stdio) or for ever (HTTP).

    Args:
        server: The SDK's `MCPServer` or low-level `Server`.
        arguments: `http`, `host`, `port` (0 for a free one; the address is written to stderr).
    """
    if arguments.http:
        anyio.run(_serve_http, server, arguments.host, arguments.port)
    else:
        anyio.run(_serve_stdio, server)


async def _serve_stdio(server: Any) -> None:
    if isinstance(server, MCPServer):
        await server.run_stdio_async()
        return
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


async def _serve_http(server: Any, host: str, port: int) -> None:
    import uvicorn

    app = server.streamable_http_app(host=host, json_response=True, max_request_body_size=64 << 20)
    listening = socket.create_server((host, port))
    # asyncio does so only for sockets that it opened itself: without it an answer waits 40 ms for an ACK
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sys.stderr.write(f"listening on http://{host}:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listening])
