"""One browser: starting it as safely as the system allows, its connection, its end.

Knows processes and flags; must not know pages' contents or tasks. Everything here runs on the background
loop. A browser that misses a deadline is killed: nothing waits for it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from mm_gym.computer.cdp import BrowserLost, Connection, PipeTransport, Transport, WebSocketTransport
from mm_gym.computer.install import Found
from mm_gym.computer.loop import close_in_children, released
from mm_gym.errors import EnvironmentFailure

LAUNCH_SECONDS = 20.0

_FLAGS = """
headless disable-gpu disable-quic no-first-run no-default-browser-check disable-background-networking
disable-component-update disable-sync disable-domain-reliability disable-breakpad disable-crash-reporter
disable-default-apps disable-extensions disable-hang-monitor disable-prompt-on-repost
disable-ipc-flooding-protection disable-renderer-backgrounding disable-backgrounding-occluded-windows
disable-background-timer-throttling metrics-recording-only password-store=basic use-mock-keychain mute-audio
hide-scrollbars disable-smooth-scrolling font-render-hinting=none force-color-profile=srgb
disable-lcd-text disable-partial-raster force-device-scale-factor=1 lang=en-US log-level=3
block-new-web-contents
disable-notifications deny-permission-prompts force-webrtc-ip-handling-policy=disable_non_proxied_udp
enable-blink-features=ComputedAccessibilityInfo
disable-features=Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider,DeferRendererTasksAfterInput
"""
_BEGIN_FRAMES = """
enable-begin-frame-control run-all-compositor-stages-before-draw disable-new-content-rendering-timeout
disable-threaded-animation disable-threaded-scrolling disable-checker-imaging disable-image-animation-resync
"""


@dataclass(frozen=True)
class Safety:
    """How a browser's processes are confined."""

    sandbox: bool
    """Chromium's own sandbox (namespaces and seccomp) around each page."""
    user: str | None = None
    """The unprivileged user that root runs it as; None for our own user."""

    def __str__(self) -> str:
        who = f"as user {self.user}" if self.user else "as our own user"
        return f"{who}, {'in' if self.sandbox else 'WITHOUT'} Chromium's sandbox"


def safest_first() -> list[Safety]:
    """Ways to start a browser here, the safest first: never as root where it can be helped."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return [Safety(True), Safety(False)]
    with contextlib.suppress(KeyError):
        pwd.getpwnam("nobody")
        return [Safety(True, "nobody"), Safety(False, "nobody"), Safety(False)]
    return [Safety(False)]


_known_good: dict[str, Safety] = {}  # by executable: what worked first in this process


@dataclass(eq=False)
class Browser:
    """A running browser and its connection."""

    found: Found
    allowed_hosts: frozenset[str] = frozenset()
    """Hosts that pages may reach over the network; all others do not resolve."""
    connection: Connection = field(init=False)
    safety: Safety | None = field(init=False, default=None)
    """None for a browser that somebody else started."""
    frames: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Only one begin frame may be in flight per browser: two deadlock it."""
    pages: int = 0
    """Pages open now."""
    opened: int = 0
    """Pages opened since the start."""
    _process: subprocess.Popen[bytes] | None = None
    _lifeline: IO[bytes] | None = None
    _profile: str = ""

    @property
    def fast(self) -> bool:
        """Whether begin frames are used."""
        return self.found.fast

    @property
    def lost(self) -> str | None:
        """Why it is gone, or None."""
        return self.connection.lost

    @property
    def pid(self) -> int | None:
        """The watchdog's process id."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Launch or connect.

        Raises:
            EnvironmentFailure: It does not start; kind "browser".
        """
        if self.found.remote:
            await self._connect(WebSocketTransport(self.found.location), 10.0)
            return
        known = _known_good.get(self.found.location)
        ways = [known] if known else safest_first()
        failures = []
        # each twice: what fails by chance (a loaded machine, a kill) must not make the next one less safe
        for safety in [way for way in ways for _ in range(2)]:
            try:
                await self._launch(safety)
            except BrowserLost as error:
                failures.append(f"{safety}: {error}")
                continue
            self.safety = _known_good[self.found.location] = safety
            return
        raise EnvironmentFailure(
            f"the browser {self.found.location} does not start. Tried: {'; '.join(failures)}. "
            "Run it by hand with --headless --version to see what it lacks.",
            kind="browser",
        )

    async def _launch(self, safety: Safety) -> None:
        profile = self._profile = tempfile.mkdtemp(prefix="mm_gym_browser_")
        user = pwd.getpwnam(safety.user) if safety.user else None
        if user:
            os.chown(profile, user.pw_uid, user.pw_gid)
        answers, to_us = os.pipe()
        commands, from_us = os.pipe()
        lifeline, ours = os.pipe()
        command = [self.found.location, *self._flags(profile, safety)]
        watchdog = [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py"))]
        fds = [lifeline, commands, to_us]
        with tempfile.TemporaryFile() as errors:
            try:
                self._process = subprocess.Popen(
                    [*watchdog, profile, *map(str, fds), safety.user or "", *command],
                    pass_fds=fds,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env={**os.environ, "HOME": profile, "TZ": "UTC", "LANG": "C.UTF-8"},
                )
            finally:
                for fd in fds:
                    os.close(fd)
            self._lifeline = close_in_children(os.fdopen(ours, "wb", 0))
            try:
                await self._connect(PipeTransport(answers, from_us), LAUNCH_SECONDS)
            except BrowserLost as error:
                await self.close()
                errors.seek(0)
                said = errors.read()[-600:].decode(errors="replace").strip()
                raise BrowserLost(f"{error}. It said: {said or 'nothing'}") from error

    def _flags(self, profile: str, safety: Safety) -> list[str]:
        words = _FLAGS + (_BEGIN_FRAMES if self.fast else "")
        flags = [f"--{word}" for word in words.split()]
        flags += [f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        if not safety.sandbox:
            flags.append("--no-sandbox")
        if sys.platform == "linux" and shutil.disk_usage("/dev/shm").total < 1 << 30:
            flags.append("--disable-dev-shm-usage")  # small in containers: pages would crash
        excluded = "".join(f" , EXCLUDE {host}" for host in sorted(self.allowed_hosts))
        return [*flags, f"--host-resolver-rules=MAP * ~NOTFOUND{excluded}"]

    async def _connect(self, transport: Transport, timeout: float) -> None:
        self.connection = Connection(transport)
        await self.connection.start()
        await self.connection.call("Browser.getVersion", timeout=timeout)

    async def call(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = 10.0
    ) -> dict[str, Any]:
        """A call to the browser itself (not to a page)."""
        return await self.connection.call(method, params, timeout=timeout)

    def kill(self) -> None:
        """End it at once; its processes and profile folder go with it. Safe to call twice."""
        if hasattr(self, "connection"):
            self.connection.close()
        if self._lifeline is not None:
            released(self._lifeline)
            self._lifeline = None

    async def close(self) -> None:
        """End it and wait until its processes are gone."""
        self.kill()
        if self._process is not None:
            while (
                self._process.poll() is None
            ):  # the watchdog always ends: it only waits for a SIGKILL to act
                await asyncio.sleep(0.005)
            shutil.rmtree(self._profile, ignore_errors=True)  # the watchdog did, unless it was killed itself
