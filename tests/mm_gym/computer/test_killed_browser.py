"""Killing the browser amid running episodes loses none of them: the rollout engine restarts and replays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

import psutil
import pytest

from agents.engine import GroupPolicy, RolloutEngine
from agents.types import Task, TextResponse, Trajectory
from agents.workers import Timeouts
from mm_gym.computer.miniwob import MiniWoBEnv
from mm_gym.episode import Episode, expert, play

pytest.importorskip("miniwob")
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]
TASK = "enter-password"


class Scripted:
    """Says what the solver said in a rehearsal, after a moment of thought."""

    def __init__(self, scripts: dict[int, list[str]]) -> None:
        self.version = 0
        self.scripts = scripts
        self.answers = 0
        self.running: set[int] = set()
        """Seeds of the episodes that are past their first turn and not over."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def respond(self, episode: Episode, *, max_tokens: int, seed: int) -> TextResponse:
        assert episode.seed is not None
        await asyncio.sleep(0.05)
        script, turn = self.scripts[episode.seed], len(episode.actions)
        self.answers += 1
        self.running.add(episode.seed)
        if turn == len(script) - 1:
            self.running.discard(episode.seed)
        return TextResponse(script[turn])


def rehearsed(seeds: range) -> tuple[dict[int, list[str]], list[float]]:
    """The solver's responses by seed, and the rewards, on a browser that is left alone."""
    env = MiniWoBEnv(task=TASK)
    try:
        episodes = [play(env, expert(env), seed=seed) for seed in seeds]
    finally:
        env.close()
    return {s: e.actions for s, e in zip(seeds, episodes, strict=True)}, [e.episode_return for e in episodes]


def kill_browsers() -> int:
    """SIGKILL to this process's browsers (not to their watchdogs)."""
    killed = 0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if "--remote-debugging-pipe" in command and "watchdog" not in " ".join(command[:5]):
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
    return killed


def collect(count: int, kills: int) -> tuple[list[Trajectory], list[float]]:
    """`count` episodes at once, the browsers killed `kills` times amid them."""
    scripts, rewards = rehearsed(range(count))
    policy = Scripted(scripts)
    tasks = [Task("mm_gym/MiniWoB-v0", {"task": TASK}, seed=seed, group=seed) for seed in scripts]
    patient = Timeouts(reset=600, step=600)
    with RolloutEngine(policy, groups=GroupPolicy(refills=0), timeouts=patient) as engine:
        future = engine.submit(tasks)
        for _ in range(kills):
            seen = policy.answers
            while not future.done() and (
                len(policy.running) < count // 2 or policy.answers < seen + count // 4 or not kill_browsers()
            ):
                time.sleep(0.005)
            assert not future.done(), "the episodes were over before half of them ran at once"
        return future.result(), rewards


def assert_none_is_lost(trajectories: list[Trajectory], rewards: list[float]) -> None:
    assert [t.masked for t in trajectories] == [False] * len(rewards)
    assert [t.reward for t in trajectories] == rewards
    assert all(t.episode.success for t in trajectories)
    failures = [kind for t in trajectories for kind in t.failures]
    assert len(failures) >= len(rewards) // 2, "the kills were hardly met"
    assert all("browser" in kind for kind in failures), failures


def test_killing_the_browser_amid_16_episodes_loses_none() -> None:
    assert_none_is_lost(*collect(16, kills=1))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killing_the_browser_amid_64_episodes_twice_loses_none() -> None:
    assert_none_is_lost(*collect(64, kills=2))
