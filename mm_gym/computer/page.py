"""One episode's page: virtual time, frames, screenshots, evaluation, and what it may reach.

Everything runs on the background loop. In fast mode the page's clock stands still but while `advance` lets an
exact amount pass, so a slow model changes nothing; a full browser's runs in real time. Knows the protocol; must
not know tasks or dialects.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mm_gym.computer.browser import Browser
from mm_gym.computer.cdp import BrowserLost, CDPError, Event, PageLost
from mm_gym.errors import EnvironmentFailure

ORIGIN = "https://mm-gym.test"
"""Where a page sees its own files: a secure origin that no network knows."""

BLANK = "about:blank"

_PATIENCE = 0.005  # seconds that input may take before another frame is drawn for it
_LONG_PATIENCE = 1.0  # where it needs none: with a frame more or less the page may see other hover events
_SLICE_MS = 50
_LOAD_SLICES = 200  # 10 s of virtual time
_BEFORE = (Path(__file__).with_name("js") / "before.js").read_text()


@dataclass(frozen=True)
class PageSpec:
    """What to open. Equal specs give equal pages: the pool keeps some ready by spec."""

    root: Path | None
    """The folder served at `ORIGIN`; None for a page of the web."""
    path: str
    """The page, relative to `root` (with query and fragment), or a whole address."""
    size: tuple[int, int]
    """(width, height) in pixels of what is shown, from the top left corner."""
    viewport: tuple[int, int] | None = None
    """(width, height) of the page where it is laid out for more than is shown; None for `size`."""
    now: float = 1_773_133_200.0
    """Where the page's clock starts, seconds since 1970."""
    seed: int = 0
    """Of `Math.random`."""
    script: str = ""
    """JavaScript that runs before the page's own, in every frame."""
    allowed_hosts: frozenset[str] = frozenset()
    """Hosts that it may reach besides its own files."""
    deadline: float = 20.0
    """Seconds of real time that any one call may take."""

    @property
    def url(self) -> str:
        return self.path if self.root is None else f"{ORIGIN}/{self.path}"

    @property
    def blank(self) -> PageSpec:
        """An empty page on which this one can be loaded: the same for many specs."""
        return replace(self, root=None, path=BLANK, now=0.0, seed=0, script="")


async def at_once() -> None:
    """No reason to wait between the steps of preparing a page."""


@dataclass
class Page:
    """An open page in a context of its own."""

    browser: Browser
    spec: PageSpec
    elapsed: float = 0.0
    """Virtual milliseconds since the page was made."""
    dialogs: list[str] = field(default_factory=list)
    """What dialogs said since the last look, each with how it was answered."""
    drag_data: dict[str, Any] | None = None
    """What an HTML drag carries, while one is under way."""
    closed: bool = False
    _context: str = ""
    _target: str = ""
    _session: str = ""
    _ticks: float = 0.0
    _last_frame: int = 0
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _expired: asyncio.Event = field(default_factory=asyncio.Event)
    _crashed: str = ""

    # -- opening and closing ---------------------------------------------------------------------------

    @classmethod
    async def open(
        cls, browser: Browser, spec: PageSpec, turn: Callable[[], Awaitable[None]] = at_once
    ) -> Page:
        """Make a fresh context with one page, and load it unless the spec is blank.

        Args:
            browser: Where.
            spec: What. A blank page is for `load`.
            turn: Awaited before each step: work in the background lets others go first.

        Raises:
            BrowserLost: The browser is gone or missed a deadline.
            PageLost: The page does not load.
        """
        page = cls(browser, spec)
        browser.pages += 1
        browser.opened += 1
        try:
            await page._create(turn)
            if spec.path != BLANK:
                await turn()
                await page.load(spec)
        except BaseException:
            await page.close()
            raise
        return page

    async def _create(self, turn: Callable[[], Awaitable[None]]) -> None:
        await turn()
        browser = self.browser
        width, height = self.spec.viewport or self.spec.size
        made = await browser.call(
            "Target.createBrowserContext", {"disposeOnDetach": True}, self.spec.deadline
        )
        self._context = made["browserContextId"]
        target: dict[str, Any] = {"url": "about:blank", "browserContextId": self._context}
        target["width"], target["height"] = self.spec.size
        if browser.fast:
            target["enableBeginFrameControl"] = True
        await turn()
        self._target = (await browser.call("Target.createTarget", target, self.spec.deadline))["targetId"]
        attached = await browser.call(
            "Target.attachToTarget", {"targetId": self._target, "flatten": True}, self.spec.deadline
        )
        self._session = attached["sessionId"]
        browser.connection.listen(self._session, self._event)
        calls = [
            self.send("Page.enable"),
            self.send("Inspector.enable"),
            self.send("Runtime.enable"),  # else the script below waits for a page's first script to run
            self.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}),
            self.send("Emulation.setTimezoneOverride", {"timezoneId": "UTC"}),
            self.send("Emulation.setLocaleOverride", {"locale": "en-US"}),
            self.send("Emulation.setFocusEmulationEnabled", {"enabled": True}),
            self.send("Input.setInterceptDrags", {"enabled": True}),
            self.send("Page.setInterceptFileChooserDialog", {"enabled": True}),
        ]
        if not browser.fast or (width, height) != self.spec.size:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            # in fast mode what lies beyond `size` is laid out and neither drawn nor encoded
            metrics["dontSetVisibleSize"] = browser.fast
            calls.append(self.send("Emulation.setDeviceMetricsOverride", metrics))
        denied = {"behavior": "deny", "browserContextId": self._context}
        calls.append(browser.connection.send("Browser.setDownloadBehavior", denied))
        for call in calls:
            await self._wait(call, "setting up a page")

    async def load(self, spec: PageSpec) -> None:
        """Load a blank page with a spec whose `blank` it is.

        Raises:
            BrowserLost: The browser is gone or missed a deadline.
            PageLost: The page does not load.
        """
        self.spec = spec
        script = _BEFORE.replace("__SEED__", str(int(spec.seed) & 0xFFFFFFFF)) + spec.script
        scripted = self.send("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        if self.browser.fast:
            # half a millisecond on: the clock's rounding errors then never reach the whole ones that pages see
            clock = {"policy": "pause", "initialVirtualTime": spec.now + 0.0005}
            started = await self.call("Emulation.setVirtualTimePolicy", clock)
            self._ticks = started["virtualTimeTicksBase"]
        await self._wait(scripted, "setting up a page")
        navigation = await self.call("Page.navigate", {"url": spec.url})
        if navigation.get("errorText"):
            raise PageLost(f"{spec.url} does not open: {navigation['errorText']}")
        for _ in range(_LOAD_SLICES):
            if self.browser.fast or not self._loaded.is_set():
                await self.advance(_SLICE_MS)
            if self._loaded.is_set():
                await self.call("Page.resetNavigationHistory")  # "back" must not leave the task's page
                if self.browser.fast:
                    await self.frame(screenshot=True)  # a page's first takes three times as long
                return
        seconds = _LOAD_SLICES * _SLICE_MS / 1000
        raise PageLost(f"{self.spec.url} was not loaded after {seconds:g} s of its clock")

    async def close(self) -> None:
        """Free the context. Safe to call twice, and when the browser is gone."""
        if self.closed:
            return
        self.closed = True
        self.browser.pages -= 1
        if self.browser.lost is None and self._context:
            try:
                await self.browser.call("Target.disposeBrowserContext", {"browserContextId": self._context})
            except CDPError:
                pass  # the context is gone already, which is what was wanted
            except BrowserLost:
                self.browser.kill()
        self.browser.connection.listen(self._session, None)

    @property
    def healthy(self) -> bool:
        """Whether it can still be used."""
        return not (self.closed or self._crashed or self.browser.lost)

    # -- calls -----------------------------------------------------------------------------------------

    def send(self, method: str, params: dict[str, Any] | None = None) -> asyncio.Future[dict[str, Any]]:
        """Send a command to the page now; await it with `until` or `call` instead."""
        return self.browser.connection.send(method, params, self._session)

    async def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """A call to the page, within the spec's deadline."""
        return await self._wait(self.send(method, params), method)

    async def _wait(self, future: asyncio.Future[dict[str, Any]], what: str) -> dict[str, Any]:
        return await self.browser.connection.wait(future, what, self.spec.deadline)

    async def evaluate(self, expression: str, *, await_promise: bool = False) -> Any:
        """The JSON value of a JavaScript expression.

        Raises:
            EnvironmentFailure: It throws; kind "browser".
        """
        params = {"expression": expression, "returnByValue": True, "awaitPromise": await_promise}
        result = await self.call("Runtime.evaluate", params)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            said = details.get("exception", {}).get("description") or details.get("text")
            raise EnvironmentFailure(
                f"the page's script failed: {said} (in {expression[:80]!r})", kind="browser"
            )
        return result["result"].get("value")

    # -- time, frames, pixels --------------------------------------------------------------------------

    async def advance(self, milliseconds: float) -> None:
        """Let virtual time pass, waiting for what the page fetches meanwhile."""
        if milliseconds <= 0:
            return
        if not self.browser.fast:  # a full browser takes no pictures while its clock is held: real time
            await asyncio.sleep(milliseconds / 1000)
            self._check()
            self.elapsed += milliseconds
            return
        self._expired.clear()
        await self.call(
            "Emulation.setVirtualTimePolicy",
            {"policy": "pauseIfNetworkFetchesPending", "budget": milliseconds},
        )
        try:
            await asyncio.wait_for(self._expired.wait(), self.spec.deadline)
        except TimeoutError as error:
            raise BrowserLost(f"the page's clock did not advance by {milliseconds:g} ms") from error
        self._check()
        self.elapsed += milliseconds

    async def frame(self, screenshot: bool = False) -> bytes:
        """Fast mode: draw one frame at the page's present time; a PNG when asked for one."""
        now = round((self._ticks + self.elapsed) * 1000)
        # never the same microsecond twice: the compositor drops such a frame, and the call never returns
        self._last_frame = max(self._last_frame + 10, now)
        params: dict[str, Any] = {"frameTimeTicks": self._last_frame / 1000}
        if screenshot:
            params["screenshot"] = {"format": "png", "optimizeForSpeed": True}
        async with self.browser.frames:
            drawn = await self.call("HeadlessExperimental.beginFrame", params)
        return base64.b64decode(drawn.get("screenshotData", ""))

    async def screenshot(self) -> bytes:
        """The screen as PNG."""
        if self.browser.fast:
            for _ in range(5):
                png = await self.frame(screenshot=True)
                if png:
                    return png
            raise EnvironmentFailure("the browser drew frames but gave no screenshot", kind="browser")
        shot = await self.call("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
        return base64.b64decode(shot["data"])

    async def until(
        self, futures: Sequence[asyncio.Future[dict[str, Any]]], what: str, *, needs_frame: bool = False
    ) -> None:
        """Wait for input to be taken in.

        Args:
            futures: Of the input's commands, sent in order.
            what: For the error.
            needs_frame: Moves and wheel turns wait for a frame in fast mode; the rest does not.
        """
        pending = set(futures)
        end = asyncio.get_running_loop().time() + self.spec.deadline
        # on a busy machine everything takes longer, and more frames only make it busier
        patience = _PATIENCE * max(1, self.browser.connection.waiting) if needs_frame else _LONG_PATIENCE
        while pending:
            if self.browser.fast and needs_frame:
                await self.frame()
            needs_frame = True  # what still waits after so long may wait for a frame
            _, pending = await asyncio.wait(pending, timeout=patience)
            patience = max(patience, min(2 * patience, 0.2))
            if pending and asyncio.get_running_loop().time() > end:
                raise BrowserLost(f"{what} was not taken in within {self.spec.deadline:g} s")
        for future in futures:
            future.result()
        self._check()

    def _check(self) -> None:
        if self.browser.lost:
            raise BrowserLost(self.browser.lost)
        if self._crashed:
            raise PageLost(self._crashed)

    # -- events ----------------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        method, params = event["method"], event["params"]
        if method == "Fetch.requestPaused":
            self._serve(params)
        elif method == "Emulation.virtualTimeBudgetExpired":
            self._expired.set()
        elif method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Page.javascriptDialogOpening":
            self._answer_dialog(params)
        elif method == "Input.dragIntercepted":
            self.drag_data = params["data"]
        elif method in ("lost", "Inspector.targetCrashed"):
            self._crashed = params.get("reason") or "the page's process crashed"
            self.browser.connection.fail_session(self._session, self._crashed)
            self._expired.set()

    def _answer_dialog(self, params: dict[str, Any]) -> None:
        kind = params["type"]
        accept = kind != "prompt"
        self.dialogs.append(
            f"The page showed a dialog ({kind}): {params['message']!r}. It was "
            + ("accepted." if accept else "dismissed.")
        )
        self.send("Page.handleJavaScriptDialog", {"accept": accept}).add_done_callback(_seen)

    def _serve(self, params: dict[str, Any]) -> None:
        """Answer a request of the page: its own files, allowed hosts, and nothing else."""
        url, request = params["request"]["url"], {"requestId": params["requestId"]}
        parts = urlsplit(url)
        document = params.get("resourceType") == "Document"
        file = None
        if self.spec.root is not None and url.startswith(ORIGIN + "/"):
            file = _file(self.spec.root, unquote(parts.path).lstrip("/"))
        if file is not None:
            answer = _fulfilment(file, file.stat().st_mtime_ns)
            self.send("Fetch.fulfillRequest", request | answer).add_done_callback(_seen)
        elif self.spec.root is not None and url.startswith(ORIGIN + "/") and not document:
            self.send("Fetch.fulfillRequest", request | _NOT_FOUND).add_done_callback(_seen)
        elif parts.scheme in ("http", "https") and parts.hostname in self.spec.allowed_hosts:
            self.send("Fetch.continueRequest", request).add_done_callback(_seen)
        else:
            # an aborted navigation leaves the page where it is; others would show an error page in its place
            blocked = request | {"errorReason": "Aborted" if document else "BlockedByClient"}
            self.send("Fetch.failRequest", blocked).add_done_callback(_seen)


def _seen(future: asyncio.Future[Any]) -> None:
    """An answer nobody waits for: a request that was cancelled meanwhile is no fault."""
    if not future.cancelled():
        future.exception()


def _file(root: Path, path: str) -> Path | None:
    """The file of a request, inside `root` only, symbolic links included."""
    if "\0" in path:
        return None
    root = root.resolve()
    file = (root / path).resolve()
    return file if file.is_relative_to(root) and file.is_file() else None


_NOT_FOUND: dict[str, Any] = {
    "responseCode": 404,
    "responseHeaders": [{"name": "Content-Length", "value": "0"}],
}


@lru_cache(maxsize=512)
def _fulfilment(file: Path, _modified: int) -> dict[str, Any]:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind in ("application/javascript", "application/json"):
        kind += "; charset=utf-8"
    return {
        "responseCode": 200,
        "responseHeaders": [{"name": "Content-Type", "value": kind}],
        "body": base64.b64encode(file.read_bytes()).decode(),
    }
