"""The same seeds and actions give the same pixels, byte for byte, on a second start of the browser too."""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mm_gym.computer.env import ComputerUseEnv
from mm_gym.computer.miniwob import MiniWoBEnv, miniwob_tasks

pytest.importorskip("miniwob")
pytestmark = pytest.mark.browser

_spec = importlib.util.spec_from_file_location(
    "random_actions", Path(__file__).with_name("random_actions.py")
)
assert _spec is not None
assert _spec.loader is not None
random_actions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(random_actions)

SOME = (
    "moving-items", "chase-circle", "stock-market", "click-menu", "multi-layouts", "click-collapsible-2",
    "terminal", "tic-tac-toe", "resize-textarea", "drag-cube", "simon-says", "use-autocomplete",
    "choose-date", "draw-line",
)  # fmt: skip
"""Those that move, flicker, or differed in other set-ups."""
EXCEPTIONS: dict[str, str] = {}
"""Tasks that may differ, and why: none."""


def run(env: Any, names: tuple[str, ...], seeds: range, steps: int) -> dict[tuple[str, int], list[str]]:
    """Fingerprints of random episodes, by task and seed; the environment is closed."""
    width, height = env.screen_size
    try:
        return {
            (name, seed): random_actions.fingerprints(
                env, seed, random_actions.responses(seed * 1000 + 7, steps, width, height), {"task": name}
            )
            for name in names
            for seed in seeds
        }
    finally:
        env.close()


def differing(first: dict[tuple[str, int], list[str]], second: dict[tuple[str, int], list[str]]) -> list[Any]:
    return [key for key in first if first[key] != second[key] and key[0] not in EXCEPTIONS]


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy_machine(hogs: int = 3) -> Iterator[None]:
    """Processes that take all they can."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_spin, daemon=True) for _ in range(hogs)]
    for process in processes:
        process.start()
    time.sleep(0.5)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def miniwob() -> MiniWoBEnv:
    return MiniWoBEnv(dialect="hud", max_turns=50)


def computer() -> ComputerUseEnv:
    return ComputerUseEnv(dialect="hud", max_turns=50)


def test_miniwob_replays_byte_for_byte(browser: None) -> None:
    first = run(miniwob(), SOME, range(1), 6)
    assert differing(first, run(miniwob(), SOME, range(1), 6)) == []


def test_our_apps_replay_byte_for_byte(browser: None) -> None:
    names = tuple(sorted(computer()._all))[::9]
    first = run(computer(), names, range(1), 5)
    assert differing(first, run(computer(), names, range(1), 5)) == []


def test_a_click_that_changes_what_lies_under_the_pointer_replays_on_a_busy_machine(browser: None) -> None:
    """With a frame more or less while the click was taken in, a menu's hover timers began at other times."""
    with busy_machine():
        first, *others = (run(miniwob(), ("click-menu",), range(1), 6) for _ in range(6))
    assert [differing(first, other) for other in others] == [[]] * 5


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_thousand_episodes_replay_byte_for_byte_on_a_loaded_machine(browser: None) -> None:
    apps = tuple(sorted(computer()._all))
    seeds = range(-(-1000 // (len(apps) + len(miniwob_tasks()))))
    first = run(miniwob(), miniwob_tasks(), seeds, 6) | run(computer(), apps, seeds, 6)
    assert len(first) >= 1000
    with busy_machine():
        second = run(miniwob(), miniwob_tasks(), seeds, 6) | run(computer(), apps, seeds, 6)
    assert differing(first, second) == []
