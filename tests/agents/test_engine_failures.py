"""What the engine does when an environment or the policy breaks: mended, counted, or masked, never scored."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import gymnasium
import psutil
import pytest
from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import Budgets, GroupPolicy, RetryPolicy, RolloutEngine, Timeouts
from agents.types import Task
from mm_gym import StopReason

QUICK = Timeouts(reset=20.0, step=1.0, close=2.0)


def faulty(tmp_path: Path, kind: str, turn: int, times: int = 1, group: int = 0, **kwargs) -> Task:
    fault = {"kind": kind, "turn": turn, "times": times, "ledger": str(tmp_path / f"ledger-{group}")}
    return Task(ENV_ID, kwargs, options={"fault": fault}, group=group)


def engine(policy=None, **options) -> RolloutEngine:
    return RolloutEngine(policy or ScriptedPolicy(), CharRenderer(), **options)


def children_with(name: str) -> list[psutil.Process]:
    """Live child processes that serve environments, or fork them."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            if any(name in argument for argument in process.cmdline()):
                found.append(process)
    return found


@pytest.mark.parametrize(
    ("kind", "turn"), [("failure", 0), ("exception", 0), ("failure", 2), ("exception", 2), ("garbage", 2)]
)
def test_one_failure_is_mended_and_the_stream_is_as_without_it(tmp_path, kind, turn):
    with engine() as e:
        clean, mended = (e.collect([t])[0] for t in (Task(ENV_ID), faulty(tmp_path, kind, turn)))
    assert not mended.masked
    assert mended.reward == 1.0
    assert mended.token_ids == clean.token_ids
    assert mended.failures == {{"failure": "server"}.get(kind, kind): 1}
    assert sum(sum(t.retries.values()) for t in mended.turns) == (1 if turn else 0)


@pytest.mark.parametrize("kind", ["hang", "death"])
def test_a_hung_or_dead_process_is_replaced_and_the_episode_replayed(tmp_path, kind):
    with engine(workers="process", timeouts=QUICK) as e:
        clean, mended = (e.collect([t])[0] for t in (Task(ENV_ID), faulty(tmp_path, kind, 2)))
        assert e.open_environments == 1
    assert mended.token_ids == clean.token_ids
    assert mended.reward == 1.0
    assert mended.failures == {{"hang": "timeout", "death": "worker_death"}[kind]: 1}
    assert e.open_environments == e.abandoned_threads == 0
    assert not children_with("agents.env_server")


def test_a_hung_thread_is_abandoned_and_counted(tmp_path):
    task = faulty(tmp_path, "hang", 2)
    task.options["fault"]["seconds"] = 3.0
    with engine(timeouts=QUICK) as e:
        trajectory = e.collect([task])[0]
        assert trajectory.reward == 1.0
        assert trajectory.failures == {"timeout": 1}
        assert e.abandoned_threads == 1
        assert e.open_environments == 1


@pytest.mark.parametrize("kind", ["failure", "exception", "garbage"])
def test_a_lasting_failure_masks_the_trajectory_and_never_scores_it(tmp_path, kind):
    retries = RetryPolicy(max_env_retries_per_turn=2)
    with engine(retries=retries, groups=GroupPolicy(refills=1)) as e:
        trajectory = e.collect([faulty(tmp_path, kind, 2, times=1000)])[0]
        assert e.open_environments <= 1
    assert trajectory.masked
    assert trajectory.reward is None
    assert trajectory.stop_reason == StopReason.ENV_FAILURE
    assert sum(trajectory.failures.values()) == 2 * 3  # two attempts, a try and two retries each


def test_a_refill_replaces_a_lost_episode(tmp_path):
    retries = RetryPolicy(max_env_retries_per_turn=0)
    with engine(retries=retries, groups=GroupPolicy(refills=1)) as e:
        trajectory = e.collect([faulty(tmp_path, "failure", 2, times=1)])[0]
    assert trajectory.reward == 1.0
    assert trajectory.failures == {"server": 1}


def test_a_group_that_lost_one_is_dropped_whole_unless_survivors_are_kept(tmp_path):
    tasks = [faulty(tmp_path / "a", "failure", 1, times=1000), Task(ENV_ID), Task(ENV_ID, group=1)]
    for keep in (False, True):
        with engine(groups=GroupPolicy(refills=0, keep_survivors=keep)) as e:
            lost, survivor, other = e.collect(tasks)
        assert lost.masked
        assert lost.reward is None
        assert survivor.masked is not keep
        assert survivor.reward == (1.0 if keep else None)
        assert other.reward == 1.0


def test_what_is_not_replayable_is_lost_not_repeated(tmp_path):
    with engine(workers="process", timeouts=QUICK, groups=GroupPolicy(refills=0)) as e:
        trajectory = e.collect([faulty(tmp_path, "death", 2, replayable=False)])[0]
    assert trajectory.masked
    assert trajectory.failures == {"worker_death": 1, "not_replayable": 1}


def test_a_replay_that_shows_something_else_is_lost(tmp_path):
    with engine(workers="process", timeouts=QUICK, groups=GroupPolicy(refills=0)) as e:
        trajectory = e.collect([faulty(tmp_path, "death", 2, drifts=True)])[0]
    assert trajectory.masked
    assert trajectory.failures == {"worker_death": 1, "replay": 1}


def test_the_episode_has_a_failure_budget_of_its_own(tmp_path):
    """Two retries a turn would do, but the episode may fail once."""
    retries = RetryPolicy(max_env_retries_per_turn=5, max_env_retries_per_episode=1)
    with engine(retries=retries, groups=GroupPolicy(refills=0)) as e:
        trajectory = e.collect([faulty(tmp_path, "failure", 2, times=2)])[0]
    assert trajectory.masked
    assert trajectory.failures == {"server": 2}


def test_generation_failures_are_retried_then_masked():
    calls = {"n": 0}

    def fails_once(request) -> bool:
        calls["n"] += 1
        return calls["n"] == 2

    with engine(ScriptedPolicy(fault=fails_once)) as e:
        mended = e.collect([Task(ENV_ID)])[0]
    assert mended.reward == 1.0
    assert mended.failures == {"generation": 1}
    with engine(ScriptedPolicy(fault=lambda r: True), groups=GroupPolicy(refills=0)) as e:
        lost = e.collect([Task(ENV_ID)])[0]
    assert lost.masked
    assert lost.stop_reason == StopReason.GENERATION_FAILURE
    assert lost.failures == {"generation": 3}


def test_an_unknown_environment_raises_and_leaves_nothing_open():
    policy = ScriptedPolicy()
    with engine(policy) as e:
        with pytest.raises(gymnasium.error.Error):
            e.collect([Task(ENV_ID), Task("mm_gym/Nothing-v0")])
        assert e.open_environments == 0
        assert not policy.running
        assert e.collect([Task(ENV_ID)])[0].reward == 1.0


def test_a_bug_in_the_policy_surfaces_and_closes_all():
    def broken(request):
        raise KeyError("a bug")

    with engine(ScriptedPolicy(reply=broken), workers="process") as e:
        with pytest.raises(KeyError, match="a bug"):
            e.collect([Task(ENV_ID)] * 4)
        assert e.open_environments == 0
    assert not children_with("agents.env_server")


def test_environments_are_started_once_and_reused():
    with engine(workers="process") as e:
        e.collect([Task(ENV_ID, seed=i, group=i) for i in range(3)])
        pids = {p.pid for p in children_with("agents.env_server")}
        e.collect([Task(ENV_ID, seed=i, group=i) for i in range(3)])
        assert {p.pid for p in children_with("agents.env_server")} == pids
        assert e.open_environments == 3


def test_a_bounded_pool_runs_more_episodes_than_it_has_environments():
    with engine(max_open=2) as e:
        done = e.collect([Task(ENV_ID, {"length": 1 + i % 2}, group=i) for i in range(12)])
        assert e.open_environments <= 2
    assert [t.reward for t in done] == [1.0] * 12


def test_budgets_of_wall_time_abort_and_let_the_environment_settle():
    budgets = Budgets(wall_seconds=0.5)
    start = time.monotonic()
    with engine(ScriptedPolicy(latency=0.2), budgets=budgets) as e:
        trajectory = e.collect([Task(ENV_ID, {"length": 50})])[0]
    assert time.monotonic() - start < 5
    assert trajectory.stop_reason == StopReason.ABORTED
    assert trajectory.reward == 0.25
    assert trajectory.metrics["finish_calls"] == 1.0
