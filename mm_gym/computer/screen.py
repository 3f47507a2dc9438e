"""What an environment holds: one page at a time, its hands, and calls from any thread.

The bridge between ordinary code and the background loop. The first `open` of a process starts a browser, and
the close of the last screen ends it: no process, thread or folder stays behind.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mm_gym.computer import pool as pools
from mm_gym.computer.actions import Action, Point
from mm_gym.computer.cdp import BrowserLost, CDPError, PageLost
from mm_gym.computer.hands import Hands
from mm_gym.computer.install import Found, find_browser
from mm_gym.computer.loop import background, forget_in_children, stop_background
from mm_gym.computer.page import Page, PageSpec
from mm_gym.errors import EnvironmentFailure

T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """What there is to see after an action."""

    png: bytes
    value: Any = None
    """Of the probe expression."""
    dialogs: tuple[str, ...] = ()
    """What dialogs of the page said meanwhile, and how they were answered."""
    pointer: Point | None = None
    url: str = ""


@dataclass
class Screen:
    """One screen; not for two threads at once.

    Args:
        mode: "auto", "fast" or "full"; see `find_browser`.
    """

    mode: str = "auto"
    _found: Found | None = None
    _page: Page | None = None
    _hands: Hands | None = None
    _pid: int = 0
    _likely: pools.Likely | None = None

    @property
    def is_open(self) -> bool:
        return self._page is not None and self._pid == os.getpid()

    @property
    def safety(self) -> str:
        """How the browser is confined, in words."""
        assert self._page is not None
        return str(self._page.browser.safety or "a browser that was started elsewhere")

    def open(self, spec: PageSpec, likely: Sequence[PageSpec] = ()) -> None:
        """Leave the last page, if any, and open a fresh one.

        Args:
            spec: Of the page.
            likely: What the next call may ask for, one of these: prepared in the background.
        """
        if self._found is None:
            self._found = find_browser(self.mode)
        if self._pid != os.getpid():
            self._pid, self._page, self._likely = os.getpid(), None, None
            _enter()
        old, self._page, self._hands = self._page, None, None
        self._page = self._run(self._turn_to(old, spec, tuple(likely)), 15 * spec.deadline + 60)
        self._hands = Hands(self._page)

    def look(self, settle_ms: float = 0, probe: str | None = None, *, picture: bool = True) -> Seen:
        """Let virtual time pass, then look."""
        return self._run(self._look(settle_ms, probe, picture), self._patience)

    def act(
        self, action: Action, settle_ms: float, probe: str | None = None, *, picture: bool = True
    ) -> Seen:
        """Carry out an action, let virtual time pass, then look.

        Raises:
            ActionError: The agent asked for what can't be done.
            EnvironmentFailure: The browser or the page is gone; kind "browser".
        """
        return self._run(self._act(action, settle_ms, probe, picture), self._patience)

    def evaluate(self, expression: str, *, await_promise: bool = False) -> Any:
        """The JSON value of a JavaScript expression."""
        return self._run(self._live.evaluate(expression, await_promise=await_promise), self._patience)

    def leave(self) -> None:
        """End the present page. Safe to call twice, after a fork and when its browser is gone."""
        page, self._page, self._hands = self._page, None, None
        if page is not None and self._pid == os.getpid():
            self._run(_release(page), page.spec.deadline)

    def close(self) -> None:
        """Free everything. Safe to call twice."""
        self.leave()
        if self._pid != os.getpid():
            return  # never opened, or opened by the process that we were forked from
        self._pid = 0
        likely, self._likely = self._likely, None
        _exit(likely)

    # -- on the loop -----------------------------------------------------------------------------------

    async def _turn_to(self, old: Page | None, spec: PageSpec, likely: tuple[PageSpec, ...]) -> Page:
        assert self._found is not None
        pool = pools.pool()
        if old is not None:
            pool.release(old)
        page = await pool.acquire(self._found, spec)
        now = (self._found, likely) if likely else None
        if now != self._likely:
            if self._likely is not None:
                pool.forget(self._likely)
            if now is not None:
                pool.expect(now)
            self._likely = now
        return page

    async def _look(self, settle_ms: float, probe: str | None, picture: bool) -> Seen:
        page = self._live
        await page.advance(settle_ms)
        dialogs: tuple[str, ...]
        if not (settle_ms or probe or picture):
            dialogs, page.dialogs = tuple(page.dialogs), []
            assert self._hands is not None
            return Seen(b"", None, dialogs, self._hands.pointer)
        # its answer comes after the main thread's news to the compositor, which the frame must not overtake
        value = await page.evaluate(probe or "0")
        png = b""
        if picture:
            png = await page.screenshot()
        elif settle_ms and page.browser.fast:
            await page.frame()  # scrolling, layout and animations come with frames
        dialogs, page.dialogs = tuple(page.dialogs), []
        assert self._hands is not None
        return Seen(png, value, dialogs, self._hands.pointer)

    async def _act(self, action: Action, settle_ms: float, probe: str | None, picture: bool) -> Seen:
        assert self._hands is not None
        await self._hands.perform(action)
        return await self._look(settle_ms, probe, picture)

    @property
    def _live(self) -> Page:
        if self._page is None or self._pid != os.getpid():
            raise EnvironmentFailure(
                "this screen has no page in this process: reset the environment first", kind="browser"
            )
        return self._page

    @property
    def _patience(self) -> float:
        return 6 * self._live.spec.deadline

    def _run(self, coroutine: Coroutine[Any, Any, T], timeout: float) -> T:
        try:
            return background().run(_disturbing(coroutine), timeout)
        except (BrowserLost, TimeoutError) as error:
            if self._page is not None:
                background().loop.call_soon_threadsafe(self._page.browser.kill)
            raise EnvironmentFailure(f"the browser is lost: {error}", kind="browser") from error
        except (PageLost, CDPError) as error:
            raise EnvironmentFailure(f"the page is lost: {error}", kind="browser") from error


async def _disturbing(coroutine: Coroutine[Any, Any, T]) -> T:
    """Somebody waits: work in the background waits too."""
    with pools.pool().quiet.disturbed():
        return await coroutine


async def _release(page: Page) -> None:
    pools.pool().release(page)


_lock = threading.RLock()
_open_screens = 0


def _enter() -> None:
    global _open_screens
    with _lock:
        _open_screens += 1


def _exit(likely: pools.Likely | None) -> None:
    """One screen less; with the last one the browsers and the loop end."""
    global _open_screens
    with _lock:
        _open_screens -= 1
        if _open_screens > 0:
            if likely is not None:
                background().run(_forget_likely(likely), 30)
            return
        background().run(pools.close_pool(), 30)
        stop_background()


async def _forget_likely(likely: pools.Likely) -> None:
    pools.pool().forget(likely)


def _forget() -> None:
    global _lock, _open_screens
    _lock, _open_screens = threading.RLock(), 0


forget_in_children(_forget)


@atexit.register
def _end() -> None:
    """At the process's end: what environments left open."""
    global _open_screens
    with _lock:
        if _open_screens > 0:
            _open_screens = 0
            background().run(pools.close_pool(), 30)
            stop_background()
