"""The browsers of one process, shared by all its environments, and pages kept ready.

A page is never used twice: each episode gets a fresh context, and the next one of the same spec is prepared
in the background. Browsers are added when pages crowd, retired after many pages, and replaced when they are
lost. Everything here runs on the background loop.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from dataclasses import dataclass, field

from mm_gym.computer.browser import Browser
from mm_gym.computer.cdp import BrowserLost, CDPError, PageLost
from mm_gym.computer.install import Found
from mm_gym.computer.loop import forget_in_children
from mm_gym.computer.page import Page, PageSpec
from mm_gym.errors import EnvironmentFailure

PAGES_PER_BROWSER = 16
"""From here on another browser is started, up to one per core."""
PAGES_PER_LIFE = 1000
"""A browser that opened this many pages gets no more, and ends with its last one."""
WARM_PER_SPEC = 4
"""At most this many pages of one spec are kept ready (and no more than it has users)."""
_ATTEMPTS = 3

Key = tuple[Found, PageSpec]


@dataclass
class Pool:
    """Browsers and ready pages."""

    browsers: list[Browser] = field(default_factory=list)
    _warm: dict[Key, deque[Page]] = field(default_factory=dict)
    _users: Counter[Key] = field(default_factory=Counter)
    _warming: Counter[Key] = field(default_factory=Counter)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _closed: bool = False

    async def acquire(self, found: Found, spec: PageSpec, *, warm: bool = True) -> Page:
        """A fresh, loaded page, from those kept ready if there is one.

        Args:
            warm: Prepare the next page of this spec in the background.

        Raises:
            EnvironmentFailure: No browser starts, or the page does not load; kind "browser".
        """
        key = (found, spec)
        self._users[key] += 1
        try:
            page = self._ready(key) or await self._open(found, spec)
        except BaseException:
            self._left(key)
            raise
        if warm:
            self._refill(key)
        return page

    async def release(self, found: Found, page: Page) -> None:
        """End a page's episode. Safe when its browser is gone."""
        self._left((found, page.spec))
        await page.close()
        await self._retire()

    async def close(self) -> None:
        """End all browsers."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._warm.clear()
        browsers, self.browsers = self.browsers, []
        await asyncio.gather(*(b.close() for b in browsers))

    # -- pages -----------------------------------------------------------------------------------------

    def _ready(self, key: Key) -> Page | None:
        pages = self._warm.get(key, deque())
        while pages:
            page = pages.popleft()
            if page.healthy:
                return page
            self._background(page.close())
        return None

    def _left(self, key: Key) -> None:
        """One user less: without any, what was kept ready for it goes."""
        self._users[key] -= 1
        if self._users[key] <= 0:
            del self._users[key]

    def drop_warm(self, found: Found, spec: PageSpec) -> None:
        """Free the pages kept ready for a spec, unless somebody is on it."""
        if not self._users[(found, spec)]:
            for page in self._warm.pop((found, spec), ()):
                self._background(page.close())

    def _refill(self, key: Key) -> None:
        pages = self._warm.setdefault(key, deque())
        wanted = min(WARM_PER_SPEC, self._users[key]) - len(pages) - self._warming[key]
        for _ in range(wanted):
            self._warming[key] += 1
            self._background(self._warm_one(key))

    async def _warm_one(self, key: Key) -> None:
        try:
            page = await self._open(*key)
        except EnvironmentFailure:
            return  # whoever needs the page opens it and gets the failure
        finally:
            self._warming[key] -= 1
        self._warm.setdefault(key, deque()).append(page)

    async def _open(self, found: Found, spec: PageSpec) -> Page:
        problem = ""
        for _ in range(_ATTEMPTS):
            browser = await self._browser(found, spec.allowed_hosts)
            try:
                return await Page.open(browser, spec)
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
        for browser in list(self.browsers):
            if browser.lost or (browser.opened >= PAGES_PER_LIFE and browser.pages == 0):
                self.browsers.remove(browser)
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
