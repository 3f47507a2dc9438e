"""MCP over a child process's pipes, with limits: a transport for the SDK's `Client`.

The SDK's own transport has no bound on a message and copies a growing buffer with each read, so that one
endless line takes all time and memory. This one bounds a message, what comes unasked, and garbage; keeps the
last log lines; and hands its child to the guard. Knows processes and JSON-RPC lines, not tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from typing import Self

import anyio
import mcp_types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from mm_gym.mcp import guard
from mm_gym.mcp.results import clean
from mm_gym.mcp.server_spec import ServerSpec

MAX_GARBAGE = 200
"""Lines on stdout that are no messages (stray prints); more means that the server is broken."""
FLOOD = 2
"""Times the message limit that may arrive between two requests of ours."""
LOG_LINES = 40
GRACE = 2.0
"""Seconds for a server to end by itself once its stdin is closed, and again after SIGTERM."""


class StdioTransport:
    """An async context manager that gives the SDK its two streams.

    Args:
        spec: Command, arguments, environment (beside HOME, PATH and the like nothing is inherited).
        message_bytes: Largest message.
    """

    def __init__(self, spec: ServerSpec, message_bytes: int) -> None:
        self.spec = spec
        self.message_bytes = message_bytes
        self.fault: str | None = None
        """What the server did wrong, once it did."""
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.process: asyncio.subprocess.Process | None = None
        self._received = 0
        self._garbage = 0
        self._log_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> tuple[_FromServer, _ToServer]:
        spec = self.spec
        command = sys.executable if spec.command == "python" else spec.command
        self.process = await asyncio.create_subprocess_exec(
            command,
            *spec.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(spec.env),
            cwd=spec.cwd,
            start_new_session=True,
            limit=self.message_bytes,
        )
        guard.watch(self.process.pid)
        self._log_task = asyncio.create_task(self._read_log())
        return _FromServer(self), _ToServer(self)

    async def __aexit__(self, *error: object) -> None:
        # cancelling the caller must not leave a process: what follows is bounded by itself
        await asyncio.shield(asyncio.ensure_future(self._shut()))

    @property
    def alive(self) -> bool:
        return self.fault is None and self.process is not None and self.process.returncode is None

    async def _shut(self) -> None:
        process = self.process
        assert process is not None
        if process.stdin is not None:
            process.stdin.close()
        steps = (None, signal.SIGTERM, signal.SIGKILL) if self.fault is None else (signal.SIGKILL,)
        for number in steps:
            if number is not None:
                guard.kill_group(process.pid, number)
            if await _ended(process, GRACE):
                break
        guard.kill_group(process.pid)  # what it left behind
        assert self._log_task is not None
        self._log_task.cancel()
        await asyncio.wait([self._log_task])
        transport = getattr(process, "_transport", None)
        if transport is not None:  # pipes that a grandchild still holds would keep it open
            transport.close()
        guard.unwatch(process.pid)

    # -- the three pipes ------------------------------------------------------------------------------

    async def read(self) -> SessionMessage | None:
        """The server's next message; None when there will be no more: it ended, or `fault` says why."""
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            while self.fault is None:
                line = await self.process.stdout.readuntil(b"\n")
                self._received += len(line)
                message = self._message(line)
                if self._received > FLOOD * self.message_bytes:
                    self.fault = f"it sent more than {FLOOD * self.message_bytes} bytes unasked"
                elif message is not None:
                    return message
                elif self._garbage > MAX_GARBAGE:
                    self.fault = f"it wrote more than {MAX_GARBAGE} lines to stdout that are no messages"
        except asyncio.IncompleteReadError as error:
            if error.partial:
                self._note(error.partial)
            await _ended(self.process, 0.5)  # so that its exit status and last words can be told
        except asyncio.LimitOverrunError:
            self.fault = f"it sent a message of more than {self.message_bytes} bytes"
        except OSError:
            return None
        if self.fault is not None:
            guard.kill_group(self.process.pid)
        return None

    def _message(self, line: bytes) -> SessionMessage | None:
        try:
            return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            if line.strip():
                self._garbage += 1
                self._note(line)
            return None

    async def write(self, message: SessionMessage) -> None:
        """Send a message.

        Raises:
            anyio.BrokenResourceError: The server reads no more.
        """
        assert self.process is not None
        assert self.process.stdin is not None
        self._received = 0
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            self.process.stdin.write(text.encode() + b"\n")
            await self.process.stdin.drain()
        except OSError as error:
            raise anyio.BrokenResourceError from error

    async def _read_log(self) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        reader = self.process.stderr
        rest = b""
        while chunk := await reader.read(65_536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines[-LOG_LINES:]:
                self._note(line)
            rest = rest[-4_000:]
        self._note(rest)

    def _note(self, line: bytes) -> None:
        text = clean(line[:2_000].decode("utf-8", "replace")).strip()
        if text:
            self.log.append(text[:500])


class _Stream:
    """A direction as the SDK takes it. Read and written by its own tasks: a task between takes time a message."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport

    async def aclose(self) -> None:
        """Nothing: the transport closes its pipes."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class _FromServer(_Stream):
    """Messages of the server, the SDK's `ReadStream`."""

    async def receive(self) -> SessionMessage:
        message = await self._transport.read()
        if message is None:
            raise anyio.EndOfStream
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _ToServer(_Stream):
    """Messages to the server, the SDK's `WriteStream`."""

    async def send(self, item: SessionMessage, /) -> None:
        await self._transport.write(item)


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether the process ends in time. Polled: `wait` also waits for pipes that others may hold."""
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(0.005)
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(process.pid, os.WNOHANG)
    return True
