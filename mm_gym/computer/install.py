"""Finding a browser on this system, and the one command that installs it.

Fast mode needs chromium-headless-shell (begin frames); any Chromium or Chrome serves as the slower fallback.
`MM_GYM_BROWSER` names an executable, or the websocket of a running browser (`ws://...`).
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "MM_GYM_BROWSER"

_SHELLS = (
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium-browser/headless_shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/opt/google/chrome-headless-shell/chrome-headless-shell",
)
# /usr/bin/chromium of Debian is a script that adds flags of its own: the program behind it is meant
_FULL = (
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_SHELL_NAMES = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
_FULL_NAMES = ("google-chrome-stable", "google-chrome", "chromium", "chromium-browser")


@dataclass(frozen=True)
class Found:
    """A browser to use."""

    location: str
    """Path of an executable, or a websocket address."""
    fast: bool
    """Whether it is a headless shell, which takes begin frames."""

    @property
    def remote(self) -> bool:
        return self.location.startswith(("ws://", "wss://"))


def find_browser(mode: str = "auto") -> Found:
    """The browser of this system.

    Args:
        mode: "auto" (the fast one if there is one), "fast" or "full".

    Raises:
        gymnasium.error.DependencyNotInstalled: There is none; the text says how to install it.
    """
    if mode not in ("auto", "fast", "full"):
        raise ValueError(f'browser mode must be "auto", "fast" or "full", got {mode!r}')
    named = os.environ.get(VARIABLE)
    if named:
        return _named(named, mode)
    shell = _first(_SHELLS, _SHELL_NAMES, "chromium_headless_shell-*/*/*headless*shell")
    full = _first(_FULL, _FULL_NAMES, "chromium-*/*/chrome")
    if mode != "full" and shell:
        return Found(shell, fast=True)
    if mode != "fast" and (full or shell):
        return Found(full or shell or "", fast=False)
    raise missing()


def _named(named: str, mode: str) -> Found:
    if named.startswith(("ws://", "wss://")):
        return Found(named, fast=False)
    if not os.access(named, os.X_OK):
        raise missing(f"{VARIABLE}={named} is not an executable file. ")
    return Found(named, fast=mode != "full" and "shell" in Path(named).name)


def _first(paths: tuple[str, ...], names: tuple[str, ...], cached: str) -> str | None:
    for path in paths:
        if os.access(path, os.X_OK):
            return path
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    cache = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ms-playwright"
    downloads = sorted(p for p in cache.glob(cached) if os.access(p, os.X_OK)) if cache.is_dir() else []
    return str(downloads[-1]) if downloads else None


def install_command() -> str:
    """The one command that installs the browser of fast mode on this system."""
    download = "pip install playwright && playwright install --with-deps chromium-headless-shell"
    if sys.platform == "darwin":
        return download
    sudo = "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "
    release = _os_release()
    if release & {"fedora", "rhel", "centos"}:
        return f"{sudo}dnf install -y chromium-headless"
    if "debian" in release and "ubuntu" not in release:  # Ubuntu's chromium is a snap without the shell
        return f"{sudo}apt-get update && {sudo}apt-get install -y chromium-headless-shell"
    return download


def _os_release() -> set[str]:
    path = Path("/etc/os-release")
    if not path.is_file():
        return set()
    fields = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    return {word for key in ("ID", "ID_LIKE") for word in fields.get(key, "").strip('"').split()}


def missing(before: str = "") -> Exception:
    """The error for a system without a browser."""
    from gymnasium.error import DependencyNotInstalled

    return DependencyNotInstalled(
        f"{before}Computer use needs Chromium, and none was found. Install it with:\n"
        f"    {install_command()}\n"
        f"or set {VARIABLE} to an executable or to a running browser's websocket (ws://...)."
    )
