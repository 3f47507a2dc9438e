"""The browsers of one process, shared by all its environments, and pages kept ready.

A page is never used twice: each episode gets a fresh context. What the next episodes are likely to want is
prepared while nobody waits for a browser: the loaded page itself, or a blank one where it could be one of many.
Browsers are added when pages crowd, retired after many pages, and replaced when they are lost. Everything here
runs on the background loop.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from mm_gym.computer.browser import Browser
from mm_gym.computer.cdp import BrowserLost, CDPError, PageLost
from mm_gym.computer.install import Found
from mm_gym.computer.loop import forget_in_children
from mm_gym.computer.page import Page, PageSpec, at_once
from mm_gym.errors import EnvironmentFailure

PAGES_PER_BROWSER = 16
"""From here on another browser is started, up to one per core."""
PAGES_PER_LIFE = 1000
"""A browser that opened this many pages gets no more, and ends with its last one."""
READY_PAGES = 4
"""At most this many pages are kept ready for one kind of user (and no more than it has users)."""
QUIET_SECONDS = 0.03
"""So long nobody must have waited for a browser before a page is prepared."""
CLOSING_SECONDS = 0.2
"""So long a page may wait to be closed."""
OPENINGS = 8
"""At most this many pages are opened at once: more would only make each miss its deadline."""
_ATTEMPTS = 3

Likely = tuple[Found, tuple[PageSpec, ...]]
"""What a user's next page may be, one of these."""


class Quiet:
    """Lets work in the background wait until nobody waits for a browser."""

    def __init__(self) -> None:
        self._waiting = 0
        self._last = 0.0

    @contextmanager
    def disturbed(self) -> Iterator[None]:
        """While somebody waits."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            self._last = time.monotonic()

    async def wait(self, longest: float = math.inf) -> None:
        """Return when it has been quiet for `QUIET_SECONDS`, or after `longest` seconds."""
        end = time.monotonic() + longest
        while (now := time.monotonic()) < end:
            left = QUIET_SECONDS if self._waiting else self._last + QUIET_SECONDS - now
            if left <= 0:
                return
            await asyncio.sleep(left)


@dataclass
class Pool:
    """Browsers and ready pages."""

    browsers: list[Browser] = field(default_factory=list)
    quiet: Quiet = field(default_factory=Quiet)
    _ready: dict[tuple[Found, PageSpec], deque[Page]] = field(default_factory=dict)
    _users: Counter[Likely] = field(default_factory=Counter)
    _preparing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _openings: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OPENINGS))
    _closed: bool = False

    async def acquire(self, found: Found, spec: PageSpec) -> Page:
        """A fresh, loaded page: one that is ready, a blank one on which it is loaded now, or a new one.

        Raises:
            EnvironmentFailure: No browser starts, or the page does not load; kind "browser".
        """
        page = self._pop(found, spec)
        if page is None:
            blank = self._pop(found, spec.blank)
            page = await self._loaded(blank, spec) if blank else None
        page = page or await self._open(found, spec)
        self._prepare()
        return page

    def release(self, page: Page) -> None:
        """End a page's episode; it is closed in the background. Safe when its browser is gone."""
        self._background(self._close_page(page))

    def expect(self, likely: Likely) -> None:
        """A user more whose next page is likely one of these."""
        self._users[likely] += 1
        self._prepare()

    def forget(self, likely: Likely) -> None:
        """A user less: what was kept ready for it alone goes."""
        self._users[likely] -= 1
        self._users += Counter()  # without those at zero
        wanted = self._wanted()
        for key in [key for key in self._ready if key not in wanted]:
            for page in self._ready.pop(key):
                self.release(page)

    async def close(self) -> None:
        """End all browsers."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._ready.clear()
        browsers, self.browsers = self.browsers, []
        await asyncio.gather(*(b.close() for b in browsers))

    # -- pages -----------------------------------------------------------------------------------------

    def _pop(self, found: Found, spec: PageSpec) -> Page | None:
        pages = self._ready.get((found, spec), deque())
        while pages:
            page = pages.popleft()
            if page.healthy:
                return page
            self.release(page)
        return None

    async def _loaded(self, page: Page, spec: PageSpec) -> Page | None:
        """A blank page with the spec on it; None when that failed."""
        try:
            async with self._openings:
                await page.load(spec)
        except (BrowserLost, PageLost, CDPError) as error:
            if isinstance(error, BrowserLost):
                page.browser.kill()
            self.release(page)
            return None
        return page

    async def _close_page(self, page: Page) -> None:
        await self.quiet.wait(CLOSING_SECONDS)
        await page.close()
        await self._retire()

    def _wanted(self) -> Counter[tuple[Found, PageSpec]]:
        """How many pages of which kind should be ready."""
        wanted: Counter[tuple[Found, PageSpec]] = Counter()
        for (found, specs), users in self._users.items():
            # of many, the right one would seldom be ready: blank pages serve all
            kinds = specs if len(specs) <= READY_PAGES else tuple({spec.blank: None for spec in specs})
            for spec in kinds:
                wanted[found, spec] += -(-min(users, READY_PAGES) // len(kinds))
        return wanted

    def _prepare(self) -> None:
        if not self._preparing.locked():
            self._background(self._prepare_all())

    async def _prepare_all(self) -> None:
        """Prepare what is wanted, one page after another, while it is quiet."""
        async with self._preparing:
            while lacking := self._lacking():
                try:
                    page = await self._open(*lacking, self.quiet.wait)
                except EnvironmentFailure:
                    return  # whoever needs the page opens it and gets the failure
                if lacking in self._wanted():
                    self._ready.setdefault(lacking, deque()).append(page)
                else:  # its last user left meanwhile
                    self.release(page)

    def _lacking(self) -> tuple[Found, PageSpec] | None:
        for key, count in self._wanted().items():
            if sum(page.healthy for page in self._ready.get(key, ())) < count:
                return key
        return None

    async def _open(
        self, found: Found, spec: PageSpec, turn: Callable[[], Awaitable[None]] = at_once
    ) -> Page:
        problem = ""
        for _ in range(_ATTEMPTS):
            await turn()
            # whoever lets others go first must not hold a place while it does
            async with self._openings if turn is at_once else nullcontext():
                browser = await self._browser(found, spec.allowed_hosts)
                try:
                    return await Page.open(browser, spec, turn)
                except BrowserLost as error:
                    problem = str(error)
                    browser.kill()
                except (PageLost, CDPError) as error:
                    problem = str(error)
        raise EnvironmentFailure(
            f"a page could not be opened in {_ATTEMPTS} attempts; the last said: {problem}", kind="browser"
        )

    # -- browsers --------------------------------------------------------------------------------------

    async def _browser(self, found: Found, hosts: frozenset[str]) -> Browser:
        """The emptiest browser, or a new one where pages crowd."""
        async with self._starting:
            await self._retire()
            mine = [b for b in self.browsers if (b.found, b.allowed_hosts) == (found, hosts)]
            open_to_more = [b for b in mine if b.opened < PAGES_PER_LIFE]
            best = min(open_to_more, key=lambda b: b.pages, default=None)
            crowded = best is not None and best.pages >= PAGES_PER_BROWSER
            limit = 1 if found.remote else max(1, os.cpu_count() or 1)
            if best is None or (crowded and len(open_to_more) < limit):
                best = Browser(found, hosts)
                await best.start()
                self.browsers.append(best)
            return best

    async def _retire(self) -> None:
        """Let go of lost browsers, and of old ones without pages."""
        gone = [b for b in self.browsers if b.lost or (b.opened >= PAGES_PER_LIFE and b.pages == 0)]
        self.browsers = [b for b in self.browsers if b not in gone]  # before any wait: others retire too
        for browser in gone:
            await browser.close()

    def _background(self, coroutine) -> None:  # type: ignore[no-untyped-def]
        if self._closed:
            coroutine.close()
            return
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_pool: Pool | None = None


def pool() -> Pool:
    """This process's pool; call it on the background loop."""
    global _pool
    if _pool is None:
        _pool = Pool()
    return _pool


async def close_pool() -> None:
    """End everything; the next `pool()` starts afresh."""
    global _pool
    if _pool is not None:
        old, _pool = _pool, None
        await old.close()


def _forget() -> None:
    global _pool
    _pool = None  # the parent's


forget_in_children(_forget)
