"""One connection to an MCP server over the official SDK: opened, called, closed.

The thin seam to the `mcp` package (2.x). Knows transports and faults; everything here runs on the background
loop. Must not know episodes, tasks, rewards or text formats. A fault of a server is an `EnvironmentFailure`
with its last log lines; a tool's own error is a result.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from gymnasium.error import DependencyNotInstalled

try:
    import mcp
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT
except ImportError as error:
    raise DependencyNotInstalled('MCP environments need the mcp SDK: pip install "mm-gym[mcp]"') from error

from mm_gym.errors import EnvironmentFailure
from mm_gym.mcp.config import Limits
from mm_gym.mcp.http_limits import http_client
from mm_gym.mcp.results import clean
from mm_gym.mcp.server_spec import ServerSpec
from mm_gym.mcp.stdio import StdioTransport

EPISODE_KEY = "mm-gym/episode"
"""Key in a call's `_meta`: servers that many episodes share keep their state by it."""


class Connection:
    """One open connection. The SDK's client lives in a task of its own, which must also close it."""

    def __init__(self, spec: ServerSpec, limits: Limits) -> None:
        self.spec = spec
        self.limits = limits
        self.tools: list[Any] = []
        self._client: Any = None
        self._stdio: StdioTransport | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._broken = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start or reach the server and list its tools.

        Raises:
            EnvironmentFailure: It can't be started or reached, or takes more than `limits.connect`.
        """
        self._task = asyncio.create_task(self._keep())
        try:
            async with asyncio.timeout(self.limits.connect):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self._broken = True
            await self.close()
            raise self._failure(f"did not get ready within {self.limits.connect:g} s", "timeout") from None

    async def _keep(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                target = await self._target(stack)
                # no client-side cache of listings: a connection lists once
                client = mcp.Client(target, cache=None, read_timeout_seconds=self.limits.connect)
                self._client = await stack.enter_async_context(client)
                self.tools = await _list_tools(self._client)
                self._ready.set_result(None)
                await self._stop.wait()
        except asyncio.CancelledError:
            if not self._ready.done():
                self._ready.set_exception(self._failure("was closed while it started", "server"))
            raise
        except (
            Exception
        ) as error:  # the SDK raises many kinds, in groups; all mean that the server is unusable
            self._broken = True
            if not self._ready.done():
                self._ready.set_exception(self._failure(f"can't be used: {_root(error)}", "server"))
        finally:
            self._broken = True
            if self._ready.done() and not self._ready.cancelled():
                self._ready.exception()  # taken note of, also when nobody waits any more

    async def _target(self, stack: contextlib.AsyncExitStack) -> Any:
        spec = self.spec
        if spec.kind == "stdio":
            self._stdio = StdioTransport(spec, self.limits.message_bytes)
            return self._stdio
        if spec.kind == "http":
            client = await stack.enter_async_context(http_client(spec.headers, self.limits))
            return streamable_http_client(
                spec.url, http_client=client, max_sse_event_size=self.limits.message_bytes
            )
        return _in_process(spec)

    @property
    def alive(self) -> bool:
        """Whether the connection may be used again."""
        return not self._broken and (self._stdio is None or self._stdio.alive)

    def give_up(self) -> None:
        """Never use it again; `close` will not wait for it."""
        self._broken = True

    async def call(self, name: str, arguments: Mapping[str, Any], timeout: float, episode: str) -> Any:
        """Call a tool.

        Returns:
            The SDK's `CallToolResult`; an error that the server reports is a result with `is_error`.

        Raises:
            EnvironmentFailure: The server died, hung, or sent what is no result.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._client.call_tool(
                    name, dict(arguments), read_timeout_seconds=timeout, meta={EPISODE_KEY: episode}
                )
        except TimeoutError:
            raise self._fail(f"gave no answer to {name!r} within {timeout:g} s", "timeout") from None
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise self._fail(f"gave no answer to {name!r} within {timeout:g} s", "timeout") from error
            if error.code == CONNECTION_CLOSED or not self.alive:
                raise self._fail(f"ended during {name!r}", "server") from error
            if error.code == INTERNAL_ERROR:  # the server's own fault, which it survived
                raise self._failure(
                    f"had an internal error in {name!r}: {clean(error.message)[:500]}", "server"
                ) from error
            return error_result(error.message)  # the server refuses this call: the agent's mistake
        except Exception as error:  # not the protocol: a malformed result, a broken pipe, an HTTP error
            raise self._fail(f"broke during {name!r}: {_root(error)}", "server") from error

    def _fail(self, what: str, kind: str) -> EnvironmentFailure:
        self._broken = True
        return self._failure(what, kind)

    def _failure(self, what: str, kind: str) -> EnvironmentFailure:
        fault, log = None, []
        if self._stdio is not None:
            fault, log = self._stdio.fault, list(self._stdio.log)[-10:]
            process = self._stdio.process
            if fault is None and process is not None and process.returncode is not None:
                fault = f"it exited with status {process.returncode}"
        text = f"MCP server {self.spec.name!r} ({self.spec.kind}) {what}"
        if fault:
            text += f": {fault}"
        if log:
            text += "; its last log lines:\n" + "\n".join(f"  {line}" for line in log)
        return EnvironmentFailure(text, kind=kind)

    async def close(self) -> None:
        """End the connection and its process. Bounded in time; safe to call twice."""
        self._stop.set()
        if self._task is None:
            return
        if self._broken and self._stdio is not None and self._stdio.fault is None:
            self._stdio.fault = "it was given up"  # no time for a server that hangs
        if self._broken:
            self._task.cancel()
        done, _ = await asyncio.wait([self._task], timeout=8)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=2)


def error_result(message: str) -> Any:
    """A call's result that says what was wrong with it, in the SDK's form."""
    block = SimpleNamespace(type="text", text=message)
    return SimpleNamespace(content=[block], is_error=True, structured_content=None)


async def _list_tools(client: Any) -> list[Any]:
    tools: list[Any] = []
    cursor = None
    for _ in range(100):  # a listing without end is a broken server, not a reason to hang
        page = await client.list_tools(cursor=cursor)
        tools.extend(page.tools)
        cursor = page.next_cursor
        if not cursor:
            break
    return tools[:1_000]


def _in_process(spec: ServerSpec) -> Any:
    """A fresh server object from `module:function`: state is never shared between episodes."""
    module_name, _, name = spec.factory.partition(":")
    factory = getattr(importlib.import_module(module_name), name)
    return factory(**spec.kwargs)


def _root(error: BaseException) -> str:
    """The innermost cause in words, without control characters."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return clean(f"{type(error).__name__}: {error}")[:500]
