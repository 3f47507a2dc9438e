"""Connections to MCP servers over the official SDK: opened, called, pooled, closed.

The thin seam to the `mcp` package (2.x). Knows transports and faults; everything here runs on the background
loop. Must not know tasks, rewards or text formats. A fault of a server is an `EnvironmentFailure` with its
last log lines; a tool's own error is a result.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from gymnasium.error import DependencyNotInstalled

try:
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT
except ImportError as error:
    raise DependencyNotInstalled('MCP environments need the mcp SDK: pip install "mm-gym[mcp]"') from error

from mm_gym.errors import EnvironmentFailure
from mm_gym.mcp.config import Limits
from mm_gym.mcp.loop import is_current, on_loss
from mm_gym.mcp.results import clean
from mm_gym.mcp.server_spec import ServerSpec
from mm_gym.mcp.stdio import StdioTransport

EPISODE_KEY = "mm-gym/episode"
"""Key in a call's `_meta`: servers that many episodes share keep their state by it."""
MAX_IDLE = 64
"""Servers kept for reuse, of each kind."""


@dataclass(frozen=True)
class ServerTool:
    """A tool as a server lists it."""

    name: str
    """As the agent calls it: with the server's name before it where there are several servers."""
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    own_name: str = ""
    """As the server calls it."""


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
            client = await stack.enter_async_context(_http_client(spec, self.limits))
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
            return _error_result(error.message)  # the server refuses this call: the agent's mistake
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


# -- sessions -----------------------------------------------------------------------------------------


class Session:
    """The servers of one episode."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self.connections = list(connections)
        self.loop = asyncio.get_running_loop()
        self.episode = uuid.uuid4().hex
        self._routes: dict[str, tuple[Connection, str]] = {}
        self.tools: list[ServerTool] = []
        several = len(self.connections) > 1
        for connection in self.connections:
            for tool in connection.tools:
                name = f"{connection.spec.name}_{tool.name}" if several else tool.name
                self._routes[name] = (connection, tool.name)
                self.tools.append(
                    ServerTool(name, tool.description or "", tool.input_schema or {}, tool.name)
                )
        if several:
            self._add_short_names()

    def _add_short_names(self) -> None:
        """A name that only one server has works without the server's name before it."""
        owners: dict[str, list[tuple[Connection, str]]] = defaultdict(list)
        for connection, own_name in self._routes.values():
            owners[own_name].append((connection, own_name))
        for own_name, found in owners.items():
            if len(found) == 1:
                self._routes.setdefault(own_name, found[0])

    def __contains__(self, name: str) -> bool:
        return name in self._routes

    async def call(self, name: str, arguments: Mapping[str, Any], timeout: float) -> Any:
        """Call a tool by the agent's or the server's name; see `Connection.call`."""
        if name not in self._routes:
            # one server may hide tools from its listing (HUD's dispatchers do not, old servers do)
            if len(self.connections) != 1:
                return _error_result(f"no server has a tool {name!r}")
            self._routes[name] = (self.connections[0], name)
        connection, own_name = self._routes[name]
        return await connection.call(own_name, arguments, timeout, self.episode)

    @property
    def alive(self) -> bool:
        """Whether calls can be made: in this process, on its loop, with sound connections."""
        return is_current(self.loop) and all(connection.alive for connection in self.connections)

    def give_up(self) -> None:
        """Use its connections no more, after one that did not even time out."""
        for connection in self.connections:
            connection.give_up()


_idle: dict[str, list[Connection]] = defaultdict(list)
_shared: dict[str, asyncio.Task[Connection]] = {}
_open: set[Connection] = set()


def _forget() -> None:
    """Connections of a loop that is lost, or of a parent process, are not ours."""
    _idle.clear()
    _shared.clear()
    _open.clear()


on_loss(_forget)


async def open_session(specs: Sequence[ServerSpec], limits: Limits, servers: str) -> Session:
    """Connect to all servers of a task, at once.

    Args:
        specs: The servers.
        limits: Their time and sizes.
        servers: "own", "reuse" or "shared"; see `MCPConfig.servers`.

    Raises:
        EnvironmentFailure: One can't be started or reached; the others are closed.
    """
    connect = {"own": _start, "reuse": _reuse, "shared": _share}[servers]
    results = await asyncio.gather(*(connect(spec, limits) for spec in specs), return_exceptions=True)
    connections = [result for result in results if isinstance(result, Connection)]
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        await close_session(Session(connections), servers)
        raise errors[0]
    return Session(connections)


async def _start(spec: ServerSpec, limits: Limits) -> Connection:
    connection = Connection(spec, limits)
    _open.add(connection)
    try:
        await connection.open()
    except BaseException:
        _open.discard(connection)
        raise
    return connection


async def _reuse(spec: ServerSpec, limits: Limits) -> Connection:
    for connection in _take_idle(spec.key):
        if connection.alive:
            return connection
        await _drop(connection)
    return await _start(spec, limits)


async def _share(spec: ServerSpec, limits: Limits) -> Connection:
    opening = _shared.get(spec.key)
    if opening is not None and opening.done() and (opening.exception() or not opening.result().alive):
        opening = None
    if opening is None:
        opening = _shared[spec.key] = asyncio.create_task(_start(spec, limits))
    return await asyncio.shield(opening)


def _take_idle(key: str) -> Iterator[Connection]:
    while _idle[key]:
        yield _idle[key].pop()


async def close_session(session: Session, servers: str) -> None:
    """Keep sound servers where the policy says so, end the others."""
    for connection in session.connections:
        idle = _idle[connection.spec.key]
        if servers == "shared" and connection.alive:
            continue
        if servers == "reuse" and connection.alive and len(idle) < MAX_IDLE:
            idle.append(connection)
        else:
            await _drop(connection)


async def close_idle() -> None:
    """End every server kept for reuse or shared: episodes that still run on a shared one fail."""
    kept = [connection for key in list(_idle) for connection in _take_idle(key)]
    for key in list(_shared):
        opened = await asyncio.gather(_shared.pop(key), return_exceptions=True)
        kept += [connection for connection in opened if isinstance(connection, Connection)]
    await asyncio.gather(*(_drop(connection) for connection in kept))


async def _drop(connection: Connection) -> None:
    await connection.close()
    _open.discard(connection)


def open_connections() -> int:
    """Connections that are open in this process, idle ones too."""
    return len(_open)


# -- details of the transports ------------------------------------------------------------------------


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


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Refuses answers above a size while they arrive. An event stream has its own limit per event."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    async def handle_async_request(self, request: Any) -> Any:
        response = await super().handle_async_request(request)
        if request.method == "POST":
            response.stream = _BoundedStream(response.stream, 2 * self._limit)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit

    async def __aiter__(self) -> Any:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("the answer is larger than limits.message_bytes allows")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _http_client(spec: ServerSpec, limits: Limits) -> Any:
    return httpx2.AsyncClient(
        headers=dict(spec.headers),
        transport=_BoundedTransport(limits.message_bytes),
        timeout=httpx2.Timeout(limits.connect, read=None),  # reads end by the call's own time-out
    )


def _error_result(message: str) -> Any:
    block = SimpleNamespace(type="text", text=message)
    return SimpleNamespace(content=[block], is_error=True, structured_content=None)


def _root(error: BaseException) -> str:
    """The innermost cause in words, without control characters."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return clean(f"{type(error).__name__}: {error}")[:500]
