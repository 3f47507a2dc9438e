"""Pages that are kept ready: prepared while nobody waits, equal to those opened on the spot, let go in time."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mm_gym.computer import observe
from mm_gym.computer import pool as pools
from mm_gym.computer.env import ComputerUseEnv
from mm_gym.computer.miniwob import MiniWoBEnv
from mm_gym.computer.page import BLANK, PageSpec
from mm_gym.computer.screen import Screen

sys.path.insert(0, str(Path(__file__).parent))
from random_actions import fingerprints, responses

pytest.importorskip("miniwob")
browser_test = pytest.mark.browser
MIX = ["click-test", "click-test-2", "click-button", "enter-text", "focus-text"]


def ready() -> list[str]:
    """The paths of the pages that are ready now."""
    return [page.spec.path for pages in pools.pool()._ready.values() for page in pages]


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, ready()
        time.sleep(0.01)


@browser_test
@pytest.mark.parametrize(
    ("make", "waits_for"),
    [
        (lambda: MiniWoBEnv(task="enter-text", dialect="hud"), "miniwob/enter-text.html"),
        (lambda: MiniWoBEnv(tasks=MIX, dialect="hud"), BLANK),
        (lambda: ComputerUseEnv(task="calendar/create", level=2, dialect="hud"), BLANK),
    ],
    ids=["one task", "a mix", "an app"],
)
def test_a_page_that_was_ready_gives_the_same_pixels(
    shared_browser: None, make: Callable[[], MiniWoBEnv | ComputerUseEnv], waits_for: str
) -> None:
    env = make()
    try:
        actions = responses(5, 4, *env.screen_size)
        opened_now = fingerprints(env, 1, actions)
        wait_until(lambda: ready() == [waits_for])
        opened = pools.pool().browsers[0].opened
        assert fingerprints(env, 1, actions) == opened_now
        assert pools.pool().browsers[0].opened <= opened + 1  # at most the next one's, none for this episode
    finally:
        env.close()


@browser_test
def test_what_was_kept_ready_goes_with_its_last_user(shared_browser: None) -> None:
    envs = [MiniWoBEnv(task="click-test") for _ in range(2)]
    try:
        for env in envs:
            env.reset(seed=0)
        wait_until(lambda: len(ready()) == 2)
        envs[0].close()
        assert ready()
    finally:
        for env in envs:
            env.close()
    wait_until(lambda: not ready())


def test_work_in_the_background_waits_until_nobody_waits() -> None:
    async def main() -> tuple[float, float]:
        quiet = pools.Quiet()
        begun = time.monotonic()
        with quiet.disturbed():
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(quiet.wait(), 0.1)
            await quiet.wait(longest=0.1)
            bounded = time.monotonic() - begun
        ended = time.monotonic()
        await quiet.wait()
        return bounded, time.monotonic() - ended

    bounded, after = asyncio.run(main())
    assert bounded >= 0.2
    assert pools.QUIET_SECONDS <= after < 1.0


def test_a_mix_of_many_pages_keeps_blank_ones_and_a_small_mix_one_of_each() -> None:
    pool, found = pools.Pool(), object()
    pages = [PageSpec(Path("/x"), f"{i}.html", (100, 100)) for i in range(9)]
    pool._users[found, tuple(pages)] = 3  # type: ignore[index]
    assert pool._wanted() == {(found, pages[0].blank): 3}
    pool._users.clear()
    pool._users[found, tuple(pages[:3])] = 64  # type: ignore[index]
    assert pool._wanted() == {(found, page): 2 for page in pages[:3]}


@browser_test
def test_pictures_are_decoded_as_pillow_does(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(site("<body style='background:linear-gradient(45deg,red,blue)'>text", (203, 101)))
    png = screen.look(50).png
    plain = np.array(Image.open(io.BytesIO(png)).convert("RGB"))
    assert observe._browsers_png(png) is not None, "the browser writes another kind of PNG now: slower"
    assert np.array_equal(observe.picture(png), plain)
    for mode in ("RGB", "RGBA", "L", "P"):
        other = io.BytesIO()
        Image.fromarray(plain).convert(mode).save(other, "PNG")
        expected = np.array(Image.open(io.BytesIO(other.getvalue())).convert("RGB"))
        assert np.array_equal(observe.picture(other.getvalue()), expected)


@browser_test
def test_only_what_is_shown_is_drawn_though_more_is_laid_out(
    screen: Screen, site: Callable[..., PageSpec]
) -> None:
    screen.open(site("<body style='background:#123'>", (160, 210), viewport=(500, 320)))
    assert screen.evaluate("[innerWidth, innerHeight]") == [500, 320]
    assert observe.picture(screen.look(50).png).shape == (210, 160, 3)
