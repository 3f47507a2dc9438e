"""The servers of an episode, and the pool that they come from and go back to.

Knows connections, names of tools and who owns a server; runs on the background loop. Must not know tasks,
rewards or text formats.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mm_gym.mcp.config import Limits
from mm_gym.mcp.connection import EPISODE_KEY, Connection, error_result
from mm_gym.mcp.loop import is_current, on_loss
from mm_gym.mcp.server_spec import ServerSpec

__all__ = [
    "EPISODE_KEY",
    "Connection",
    "ServerTool",
    "Session",
    "close_idle",
    "close_session",
    "open_connections",
    "open_session",
]

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
                return error_result(f"no server has a tool {name!r}")
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
