"""The one background event loop of a process, on which all its browsers live.

Environments call it from any thread, also inside a running asyncio loop. It starts with the first call. A
forked child starts its own: a loop from before the fork is dead there, and what it held is closed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar

T = TypeVar("T")

_GRACE = 5.0  # seconds that a call may need beyond its own deadlines before it counts as hung


class BackgroundLoop:
    """An asyncio loop in a daemon thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mm_gym.computer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float) -> T:
        """Run a coroutine on the loop and wait for it, from any other thread.

        Args:
            coroutine: Has deadlines of its own; `timeout` is the last resort.
            timeout: Seconds.

        Raises:
            TimeoutError: It did not end `_GRACE` seconds after `timeout`; it has been cancelled.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("the browser's own loop must not wait for itself: call from another thread")
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(timeout + _GRACE)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise TimeoutError(f"a browser call did not end within {timeout + _GRACE:g} s") from None

    def stop(self) -> None:
        """End the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_GRACE)


_lock = threading.Lock()
_loop: BackgroundLoop | None = None
_inherited: set[IO[bytes]] = set()
_forget: list[Callable[[], None]] = []


def background() -> BackgroundLoop:
    """This process's loop, started if need be."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = BackgroundLoop()
        return _loop


def stop_background() -> None:
    """End the loop when nothing is left on it; the next call of `background` starts another."""
    global _loop
    with _lock:
        loop, _loop = _loop, None
    if loop is not None and loop.pid == os.getpid():
        loop.stop()


def close_in_children(file: IO[bytes]) -> IO[bytes]:
    """Mark a file that belongs to this process alone: forked children close their copy."""
    _inherited.add(file)
    return file


def released(file: IO[bytes]) -> None:
    """Close a file that was marked."""
    _inherited.discard(file)
    file.close()


def forget_in_children(function: Callable[[], None]) -> None:
    """Call `function` in each forked child, to drop what belongs to the parent."""
    _forget.append(function)


def _after_fork() -> None:
    global _loop, _lock
    _lock = threading.Lock()  # may have been held by another thread of the parent
    if _loop is not None:
        # the selector's descriptor is shared with the parent: drop it without unregistering anything
        with contextlib.suppress(OSError, AttributeError):
            _loop.loop._selector._selector.close()  # type: ignore[attr-defined]
    _abandoned.append(_loop)
    _loop = None
    for file in _inherited:
        with contextlib.suppress(OSError):
            file.close()
    _inherited.clear()
    for function in _forget:
        function()


_abandoned: list[BackgroundLoop | None] = []  # never collected: finalisers would touch the parent's state

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
