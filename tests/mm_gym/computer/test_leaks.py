"""Many episodes leave memory, processes, threads and files as they were.

In a module of its own: a page that other tests hold open keeps its browser alive beyond its last new page.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time

import psutil
import pytest

from mm_gym.computer.miniwob import MiniWoBEnv

pytestmark = pytest.mark.browser


def usage() -> dict[str, float]:
    """Memory (MiB, browsers included), processes, threads and files of this process and its children."""
    gc.collect()
    me = psutil.Process()
    family = [me, *me.children(recursive=True)]
    pss = 0
    for process in family:
        with contextlib.suppress(psutil.Error):
            pss += process.memory_full_info().pss
    return {
        "MiB": pss / 2**20,
        "processes": len(family),
        "threads": threading.active_count(),
        "files": me.num_fds(),
    }


def usage_between(env: MiniWoBEnv) -> dict[str, float]:
    """Usage once pages that are prepared or let go, and a browser at its life's end, are done."""
    for _ in range(3):
        env.reset(seed=0)
        time.sleep(0.5)
    return usage()


def run_flat(env: MiniWoBEnv, episodes: int) -> tuple[dict[str, float], dict[str, float]]:
    """Usage after a first quarter and at the end."""
    for seed in range(episodes):
        env.reset(seed=seed)
        env.step(env.expert_action() or "")
        if seed == episodes // 4:
            first = usage_between(env)
    return first, usage_between(env)


def flat(episodes: int) -> None:
    env = MiniWoBEnv(task="click-test-2")
    try:
        first, last = run_flat(env, episodes)
    finally:
        env.close()
    assert last["threads"] == first["threads"]
    assert last["files"] <= first["files"] + 2
    assert last["processes"] <= first["processes"] + 2  # a page being prepared, one being let go
    assert last["MiB"] <= first["MiB"] * 1.15 + 40


def test_a_hundred_episodes_leave_everything_flat(browser: None) -> None:
    flat(100)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_thousand_episodes_leave_everything_flat(browser: None) -> None:
    flat(2000)
