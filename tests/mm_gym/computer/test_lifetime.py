"""Browsers that die, hang or are left behind: episodes fail as ours, nothing outlives its process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium
import psutil
import pytest

import mm_gym
from mm_gym.computer import actions as a
from mm_gym.computer.install import Found, find_browser, install_command, missing
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen import Screen
from mm_gym.episode import expert, play

pytestmark = pytest.mark.browser


def watchdogs_of(pid: int) -> list[psutil.Process]:
    """The watchdogs that a process started, one a browser; other tests' children are none of them."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(pid).children(recursive=True)
        return [p for p in children if "watchdog.py" in " ".join(p.cmdline()[:5])]
    return []


def browsers_of(pid: int) -> list[psutil.Process]:
    """The processes of the browsers that a process started."""
    return [p for dog in watchdogs_of(pid) for p in dog.children(recursive=True)]


def main_browsers() -> list[psutil.Process]:
    return [
        p
        for p in browsers_of(os.getpid())
        if "--remote-debugging-pipe" in p.cmdline() and "--type" not in " ".join(p.cmdline()[:3])
    ]


def profiles_of(processes: list[psutil.Process]) -> set[str]:
    found = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found |= {arg.split("=", 1)[1] for arg in process.cmdline() if arg.startswith("--user-data-dir=")}
    return found


def gone(processes: list[psutil.Process], seconds: float = 5.0) -> bool:
    return not psutil.wait_procs(processes, timeout=seconds)[1]


def test_close_leaves_no_process_thread_file_or_folder(screen: Screen, site: Callable[..., PageSpec]) -> None:
    me = psutil.Process()
    threads, files = set(threading.enumerate()), me.num_fds()
    screen.open(site("x"))
    processes = browsers_of(os.getpid())
    profiles = profiles_of(processes)
    assert processes
    assert len(profiles) == 1
    screen.close()
    screen.close()
    assert gone(processes)
    assert set(threading.enumerate()) == threads
    assert me.num_fds() <= files + 1  # the interpreter may keep one of its own
    assert not any(Path(p).exists() for p in profiles)


@pytest.mark.parametrize("victim", ["browser", "watchdog"])
def test_a_killed_browser_is_our_failure_and_the_next_reset_works(victim: str, browser: None) -> None:
    env = gymnasium.make("mm_gym/MiniWoB-v0", task="click-test-2")
    try:
        env.reset(seed=0)
        action = env.unwrapped.expert_action()
        processes = browsers_of(os.getpid())
        profiles = profiles_of(processes)
        if victim == "browser":
            os.kill(main_browsers()[0].pid, signal.SIGKILL)
        else:
            (dog,) = watchdogs_of(os.getpid())
            os.kill(dog.pid, signal.SIGKILL)
        with pytest.raises(mm_gym.EnvironmentFailure) as failure:
            env.step(action)
        assert failure.value.kind == "browser"
        assert gone(processes)
        env.reset(seed=0)
        assert env.step(action)[1] == 1.0
        assert not any(Path(p).exists() for p in profiles)
    finally:
        env.close()


def test_a_crashed_page_leaves_the_others_alone(site: Callable[..., PageSpec], screen: Screen) -> None:
    other = Screen()
    page = site("x")
    try:
        screen.open(page)
        other.open(page)
        renderers = [p for p in browsers_of(os.getpid()) if "--type=renderer" in p.cmdline()]
        screen.evaluate("window.mark = 1")
        os.kill(max(renderers, key=lambda p: p.create_time()).pid, signal.SIGKILL)
        with pytest.raises(mm_gym.EnvironmentFailure, match=r"crashed|lost"):
            [other.look(10) for _ in range(20)]  # the news of it takes a moment
        assert screen.look(10).png
        other.open(page)
        assert other.look(10).png
    finally:
        other.close()


def test_a_hung_page_misses_its_deadline_and_the_browser_is_replaced(
    screen: Screen, site: Callable[..., PageSpec]
) -> None:
    page = site(
        "<button style='position:absolute;left:0;top:0' onclick='while (true);'>hang</button>", deadline=2
    )
    screen.open(page)
    processes = browsers_of(os.getpid())
    begun = time.monotonic()
    with pytest.raises(mm_gym.EnvironmentFailure, match="deadline of 2 s"):
        screen.act(a.Click(10, 10), 10)
    assert time.monotonic() - begun < 8
    assert gone(processes)
    screen.open(page)
    assert screen.look(10).png


CHILD = """
import sys, time, gymnasium, mm_gym
env = gymnasium.make("mm_gym/MiniWoB-v0", task="click-test")
env.reset(seed=0)
print("ready", flush=True)
{then}
"""


@pytest.mark.parametrize(
    "then",
    ["time.sleep(60)", "import os; os.fork() or time.sleep(3); time.sleep(60)"],
    ids=["alone", "forked"],
)
def test_nothing_outlives_a_parent_that_is_killed(browser: None, then: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(then=then)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    everything = psutil.Process(child.pid).children(recursive=True)
    processes = [
        p for p in everything if "headless" in " ".join(p.cmdline()) or "watchdog" in " ".join(p.cmdline())
    ]
    profiles = profiles_of(processes)
    assert profiles
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert gone(processes, 10)
    deadline = time.monotonic() + 5
    while any(Path(p).exists() for p in profiles) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(p).exists() for p in profiles)
    for process in everything:  # the forked sibling, where there is one
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.parametrize("then", ["pass", "raise SystemExit(3)", "1/0"])
def test_a_process_that_ends_without_closing_leaves_nothing(browser: None, then: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(then=f"sys.stdin.readline(); {then}")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    processes = browsers_of(child.pid)
    assert processes
    child.stdin.write("\n")
    child.stdin.close()
    child.wait(20)
    assert gone(processes)


def solve(env: gymnasium.Env, seed: int) -> bool:
    return play(env, expert(env), seed=seed).success


def test_environments_work_from_many_threads_at_once(browser: None) -> None:
    envs = [gymnasium.make("mm_gym/MiniWoB-v0", task="click-test-2") for _ in range(6)]
    try:
        with ThreadPoolExecutor(6) as threads:
            for seeds in (range(6), range(6, 12)):  # one environment is for one thread at a time
                assert all(threads.map(solve, envs, seeds))
    finally:
        for env in envs:
            env.close()


def test_environments_work_inside_a_running_loop(browser: None) -> None:
    async def main() -> bool:
        env = gymnasium.make("mm_gym/MiniWoB-v0", task="click-test-2")
        try:
            return solve(env, 0)
        finally:
            env.close()

    assert asyncio.run(main())


def test_a_forked_child_gets_a_browser_of_its_own(browser: None) -> None:
    env = gymnasium.make("mm_gym/MiniWoB-v0", task="click-test-2")
    try:
        assert solve(env, 0)
        pid = os.fork()
        if pid == 0:  # the child: the parent's page is not its own, a reset gives it one
            code = 1
            try:
                env.reset(seed=1)
                code = 0 if env.step(env.unwrapped.expert_action())[1] == 1.0 else 2
                env.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert solve(env, 2)
    finally:
        env.close()


def test_a_browser_that_does_not_start_says_so(tmp_path: Path, site: Callable[..., PageSpec]) -> None:
    fake = tmp_path / "headless-shell"
    fake.write_text("#!/bin/sh\necho cannot open display >&2\nexit 1\n")
    fake.chmod(0o755)
    screen = Screen()
    screen._found = Found(str(fake), fast=True)
    try:
        with pytest.raises(mm_gym.EnvironmentFailure, match=r"(?s)does not start.*cannot open display"):
            screen.open(site("x"))
    finally:
        screen.close()


def test_without_a_browser_the_error_says_the_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MM_GYM_BROWSER", "/nonexistent/chromium")
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match="not an executable"):
        find_browser()
    assert install_command() in str(missing())
    with pytest.raises(ValueError, match="auto"):
        find_browser("slow")


def test_a_full_browser_over_a_websocket(
    site: Callable[..., PageSpec], tmp_path: Path, browser: None
) -> None:
    """The slower way: no begin frames, a browser that somebody else started."""
    pytest.importorskip("websockets")
    found = find_browser()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--hide-scrollbars"]
    process = subprocess.Popen(
        [found.location, *flags, f"--user-data-dir={tmp_path / 'profile'}"], stderr=subprocess.PIPE, text=True
    )
    screen = Screen()
    try:
        assert process.stderr is not None
        url = next(line.split()[-1] for line in process.stderr if line.startswith("DevTools listening"))
        screen._found = Found(url, fast=False)
        screen.open(
            site(
                "<body style='margin:0'><button id=b onclick='window.hits = 1'>x</button><input id=i>",
                (300, 200),
            )
        )
        x, y, w, h = screen.evaluate(
            "(() => {const r = b.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]})()"
        )
        seen = screen.act(a.Click(int(x + w / 2), int(y + h / 2)), 50, "window.hits")
        assert seen.value == 1
        assert seen.png
        screen.evaluate("i.focus()")
        assert screen.act(a.Type("hé"), 50, "i.value").value == "hé"
        assert "elsewhere" in screen.safety
    finally:
        screen.close()
        process.kill()
        process.wait()


def test_full_mode_over_the_pipe(browser: None) -> None:
    env = gymnasium.make("mm_gym/MiniWoB-v0", task="enter-text", browser="full")
    try:
        assert solve(env, 0)
    finally:
        env.close()
