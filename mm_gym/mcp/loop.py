"""One asyncio loop in a background thread per process, for everything that speaks to servers.

Knows threads and forks: the loop starts at first use, and a forked child (AsyncVectorEnv's workers) starts
its own, since the parent's thread does not exist there. Knows nothing of MCP.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_forget: list[Callable[[], None]] = []


def on_fork(forget: Callable[[], None]) -> None:
    """Register what a forked child must forget: objects that belong to the parent's loop."""
    _forget.append(forget)


def background_loop() -> asyncio.AbstractEventLoop:
    """This process's loop, started if need be."""
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="mm-gym-mcp", daemon=True).start()
        return _loop


def run(work: Coroutine[Any, Any, T], timeout: float) -> T:
    """Run a coroutine on the loop and wait for it, from any thread but the loop's own.

    Raises:
        TimeoutError: It took more than `timeout` seconds; it is cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(work, background_loop())
    try:
        return future.result(timeout)
    except FutureTimeout:
        if not future.done():
            future.cancel()
        raise TimeoutError(f"no answer within {timeout:g} s") from None
    except KeyboardInterrupt:
        future.cancel()
        raise


def spawn(work: Coroutine[Any, Any, Any]) -> None:
    """Start a coroutine on the loop and don't wait for it."""
    asyncio.run_coroutine_threadsafe(work, background_loop())


def _after_fork() -> None:
    global _loop, _lock
    _lock = threading.Lock()
    _loop = None
    for forget in _forget:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
