"""One asyncio loop in a background thread per process, for everything that speaks to servers.

Knows threads and forks: the loop starts at first use, and a forked child (AsyncVectorEnv's workers) starts
its own, since the parent's thread does not exist there. Knows nothing of MCP.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_forget: list[Callable[[], None]] = []
_fork_forget: list[Callable[[], None]] = []

SLACK = 10.0
"""Seconds beyond a work's own time-out, after which the loop itself is suspected."""


def on_loss(forget: Callable[[], None]) -> None:
    """Register what to forget when the loop is lost, by a fork or since it was given up: what lives on it."""
    _forget.append(forget)


def on_fork(forget: Callable[[], None]) -> None:
    """Register what a forked child must forget: what belongs to the parent."""
    _fork_forget.append(forget)


def background_loop() -> asyncio.AbstractEventLoop:
    """This process's loop, started if need be."""
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="mm-gym-mcp", daemon=True).start()
        return _loop


def is_current(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether `loop` is this process's: not a parent's, not one that was given up."""
    return loop is _loop


def run(work: Coroutine[Any, Any, T], timeout: float) -> T:
    """Run a coroutine on the loop and wait for it, from any thread but the loop's own.

    Args:
        work: It should end by itself within `timeout` seconds; `SLACK` more are waited.
        timeout: In seconds.

    Raises:
        TimeoutError: It did not. It is cancelled; a loop that something blocks is given up for a new one.
    """
    loop = background_loop()
    call = _Call(work)
    loop.call_soon_threadsafe(call.start, loop)
    try:
        if not call.done.acquire(timeout=timeout + SLACK):
            loop.call_soon_threadsafe(call.cancel)
            if not _answers(loop):
                _give_up(loop)
            raise TimeoutError(f"no answer within {timeout + SLACK:g} s")
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(call.cancel)
        raise
    assert call.task is not None
    return call.task.result()


class _Call:
    """One coroutine that a thread waits for; a bare lock takes half the time of a concurrent future."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.work = work
        self.task: asyncio.Task[Any] | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.task = loop.create_task(self.work)
        self.task.add_done_callback(lambda _: self.done.release())

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


def spawn(work: Coroutine[Any, Any, Any]) -> None:
    """Start a coroutine on the loop and don't wait for it."""
    asyncio.run_coroutine_threadsafe(work, background_loop())


def _answers(loop: asyncio.AbstractEventLoop, seconds: float = 1.0) -> bool:
    answered = threading.Event()
    loop.call_soon_threadsafe(answered.set)
    return answered.wait(seconds)


def _give_up(loop: asyncio.AbstractEventLoop) -> None:
    """Leave a blocked loop to itself: its thread can't be stopped, and what lives on it is lost."""
    global _loop
    with _lock:
        if _loop is not loop:
            return
        _loop = None
    for forget in _forget:
        forget()


def _after_fork() -> None:
    global _loop, _lock
    _lock = threading.Lock()
    _loop = None
    for forget in (*_forget, *_fork_forget):
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
