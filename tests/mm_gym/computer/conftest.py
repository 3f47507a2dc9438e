"""Fixtures of the browser tests: skipped, with the command that mends it, where no browser is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gymnasium.error import DependencyNotInstalled

from mm_gym.computer.install import find_browser
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen import Screen


@pytest.fixture(scope="session")
def browser() -> None:
    """Needs Chromium."""
    try:
        find_browser()
    except DependencyNotInstalled as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def shared_browser(browser: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps one browser running for a module's tests (the last screen's close would end it)."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "index.html").write_text("shared")
    held = Screen()
    held.open(PageSpec(folder, "index.html", (100, 100)))
    yield
    held.close()


@pytest.fixture
def screen(browser: None) -> Iterator[Screen]:
    """A screen, closed at the end."""
    made = Screen()
    yield made
    made.close()


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., PageSpec]:
    """Makes a page from HTML: `site(html, size, **spec)`."""

    def make(html: str, size: tuple[int, int] = (400, 300), **spec: object) -> PageSpec:
        (tmp_path / "index.html").write_text(f"<!doctype html><meta charset=utf-8>{html}")
        return PageSpec(tmp_path, "index.html", size, **spec)  # type: ignore[arg-type]

    return make


def browser_processes() -> set[int]:
    """Process ids of watchdogs and browsers that this test session's processes started."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return {
        int(line.split()[0])
        for line in listed.splitlines()
        if "mm_gym_browser_" in line and "ps -eo" not in line
    }
