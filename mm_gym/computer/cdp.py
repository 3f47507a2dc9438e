"""The Chrome DevTools Protocol over a debugging pipe or a websocket: calls, events, deadlines.

Knows JSON messages and asyncio; must not know pages, tasks or how a browser is started. A connection lives
in one event loop. Every call has a deadline, and everything that waits is woken when the connection drops.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Callable
from typing import Any, Protocol

Event = dict[str, Any]
Listener = Callable[[Event], None]

_PIPE_BYTES = 1 << 20  # a screenshot's answer should not take 20 turns of a 64 kB pipe
_F_SETPIPE_SZ = 1031


class CDPError(Exception):
    """The browser refused a call: its method and the browser's words."""


class BrowserLost(Exception):  # noqa: N818  (says what happened; not every caller treats it as an error)
    """The connection dropped or a call missed its deadline: the browser is of no more use."""


class PageLost(Exception):  # noqa: N818
    """One page is gone (its process crashed, or it does not load); its browser is not."""


class Transport(Protocol):
    """Carries whole messages. `start` names what is called with each message and once at the end."""

    async def start(self, received: Callable[[bytes], None], dropped: Callable[[str], None]) -> None: ...

    def send(self, message: bytes) -> None: ...

    def close(self) -> None: ...


class PipeTransport(asyncio.Protocol):
    """NUL-terminated messages over two pipe ends, which it owns.

    Args:
        read_fd: Where the browser's answers come from.
        write_fd: Where commands go.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._buffer = bytearray()
        self._reader: asyncio.BaseTransport | None = None
        self._writer: asyncio.WriteTransport | None = None

    async def start(self, received: Callable[[bytes], None], dropped: Callable[[str], None]) -> None:
        self._received, self._dropped = received, dropped
        for fd in (self._read_fd, self._write_fd):
            try:
                fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                break  # not Linux, or beyond the user's limit: slower, not wrong
        loop = asyncio.get_running_loop()
        self._reader, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(self._read_fd, "rb", 0))
        self._writer, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(self._write_fd, "wb", 0)
        )

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        if whole:
            whole[0] = bytes(self._buffer) + whole[0]
            self._buffer = bytearray(rest)
            for message in whole:
                self._received(message)
        else:
            self._buffer += rest

    def connection_lost(self, exc: Exception | None) -> None:
        self._dropped(f"the debugging pipe closed ({exc or 'end of file'})")

    def send(self, message: bytes) -> None:
        if self._writer is None or self._writer.is_closing():
            raise BrowserLost("the debugging pipe is closed")
        self._writer.write(message + b"\0")

    def close(self) -> None:
        for transport in (self._reader, self._writer):
            if transport is not None:
                transport.close()


class WebSocketTransport:
    """Messages over a browser's websocket (`ws://host:port/devtools/browser/<id>`).

    Raises:
        gymnasium.error.DependencyNotInstalled: `websockets` is missing.
    """

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        self.url, self._timeout = url, timeout
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, received: Callable[[bytes], None], dropped: Callable[[str], None]) -> None:
        try:
            from websockets.asyncio.client import connect
        except ImportError as error:
            from gymnasium.error import DependencyNotInstalled

            raise DependencyNotInstalled(
                "a browser over a websocket needs `websockets`: pip install 'mm-gym[browser]'"
            ) from error
        try:
            self._socket = await connect(
                self.url,
                max_size=None,
                open_timeout=self._timeout,
                compression=None,
                ping_interval=None,
                proxy=None,
            )
        except (OSError, TimeoutError) as error:
            raise BrowserLost(f"no browser answers at {self.url} ({error})") from error
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks = [
            asyncio.create_task(self._receive(received, dropped)),
            asyncio.create_task(self._send_all()),
        ]

    async def _receive(self, received: Callable[[bytes], None], dropped: Callable[[str], None]) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            async for message in self._socket:
                received(message if isinstance(message, bytes) else message.encode())
            dropped("the websocket closed")
        except ConnectionClosed as error:
            dropped(f"the websocket closed ({error})")

    async def _send_all(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                await self._socket.send((await self._outbox.get()).decode())
        except ConnectionClosed:
            return  # `_receive` reports it

    def send(self, message: bytes) -> None:
        self._outbox.put_nowait(message)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            self._tasks.append(asyncio.create_task(self._socket.close()))


class Connection:
    """Calls and events of one browser."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._last_id = 0
        self._pending: dict[int, tuple[str, str | None, asyncio.Future[dict[str, Any]]]] = {}
        self._listeners: dict[str | None, Listener] = {}
        self._lost: asyncio.Future[str] | None = None

    async def start(self) -> None:
        """Connect."""
        self._lost = asyncio.get_running_loop().create_future()
        await self._transport.start(self._received, self._dropped)

    @property
    def lost(self) -> str | None:
        """Why the connection is gone, or None while it stands."""
        return self._lost.result() if self._lost is not None and self._lost.done() else None

    @property
    def waiting(self) -> int:
        """Calls without an answer yet."""
        return len(self._pending)

    def listen(self, session: str | None, listener: Listener | None) -> None:
        """Send a session's events (None: the browser's own) to `listener`; None stops that."""
        if listener is None:
            self._listeners.pop(session, None)
        else:
            self._listeners[session] = listener

    def send(
        self, method: str, params: dict[str, Any] | None = None, session: str | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """Send a command now; the future gives its result, or raises CDPError or BrowserLost."""
        assert self._lost is not None
        if self._lost.done():
            raise BrowserLost(self._lost.result())
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[self._last_id] = (method, session, future)
        self._transport.send(json.dumps(message).encode())
        return future

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        session: str | None = None,
        timeout: float = 10.0,
    ) -> dict[str, Any]:
        """Send a command and wait for its result, at most `timeout` seconds.

        Raises:
            CDPError: The browser refused.
            BrowserLost: The connection dropped, or the deadline passed.
        """
        return await self.wait(self.send(method, params, session), method, timeout)

    async def wait(self, future: asyncio.Future[Any], what: str, timeout: float) -> Any:
        """Wait for a future of this connection, at most `timeout` seconds (BrowserLost after it)."""
        if future.done():
            return future.result()
        try:
            return await asyncio.wait_for(future, timeout)
        except TimeoutError as error:
            raise BrowserLost(f"{what} missed its deadline of {timeout:g} s") from error

    def fail_session(self, session: str, why: str) -> None:
        """Give PageLost to everything that waits for a session which is gone."""
        for id_, (method, owner, future) in list(self._pending.items()):
            if owner == session:
                del self._pending[id_]
                _fail(future, PageLost(f"{method}: {why}"))

    def close(self) -> None:
        """Close the transport; everything that waits gets BrowserLost."""
        self._transport.close()
        self._dropped("the connection was closed")

    def _received(self, data: bytes) -> None:
        message = json.loads(data)
        if "id" not in message:
            listener = self._listeners.get(message.get("sessionId"))
            if listener is not None:
                listener(message)
            return
        method, _, future = self._pending.pop(message["id"], ("", None, None))
        if future is None or future.done():
            return
        if "error" in message:
            error = message["error"]
            future.set_exception(
                CDPError(f"{method}: {error.get('message')} {error.get('data', '')}".strip())
            )
        else:
            future.set_result(message["result"])

    def _dropped(self, why: str) -> None:
        assert self._lost is not None
        if not self._lost.done():
            self._lost.set_result(why)
        pending, self._pending = self._pending, {}
        for method, _, future in pending.values():
            _fail(future, BrowserLost(f"{method}: {why}"))
        for listener in list(self._listeners.values()):
            listener({"method": "lost", "params": {"reason": why}})


def _fail(future: asyncio.Future[dict[str, Any]], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # mark as seen: a caller that gave up must not cause a warning
