"""The figures of a step, on trajectories whose figures are known."""

from __future__ import annotations

import pytest
from faulty_env import ENV_ID
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import Budgets, GroupPolicy, RolloutEngine
from agents.metrics import repetition, rollout_metrics, turn_records, wilson_interval, without_bulk
from agents.types import Task, Trajectory, Turn
from mm_gym import StopReason


def episode(env_id: str, *, reward: float | None, turns: int, group: int = 0, **fields) -> Trajectory:
    t = Trajectory(task=Task(env_id, group=group), reward=reward, masked=reward is None, **fields)
    t.append([5, 6])
    t.prompt_length = 2
    for number in range(turns):
        start = len(t.token_ids)
        t.append([7, 8, 9], [-1.0] * 3)
        calls = [{"name": "zoom", "status": "ok"}, {"name": "zom", "status": "unknown"}]
        t.turns.append(
            Turn(
                start,
                len(t.token_ids),
                reward=0.0,
                policy_version=number,
                images=1,
                tool_calls=calls if number == 0 else [],
                seconds={"generation": 0.5, "environment": 0.25},
                metrics={"progress": float(number)},
                retries={"timeout": 1} if number == 1 else {},
            )
        )
        t.append([4])
    t.episode.success = bool(reward)
    return t


def step() -> list[Trajectory]:
    return [
        episode("mm_gym/Geo3k-v0", reward=1.0, turns=2, stop_reason=StopReason.ENV_DONE),
        episode("mm_gym/Geo3k-v0", reward=0.0, turns=1, stop_reason=StopReason.TOKEN_BUDGET),
        episode(
            "mm_gym/Geo3k-v0",
            reward=None,
            turns=1,
            stop_reason=StopReason.ENV_FAILURE,
            failures={"server": 3},
        ),
        episode(
            "x:mine/Other-v3", reward=0.5, turns=3, stop_reason=StopReason.ENV_DONE, metrics={"drift": 2.0}
        ),
    ]


def test_each_figure_by_task_and_over_all():
    figures = rollout_metrics(step(), version=4)
    expected = {
        "Geo3k/episodes": 3.0,
        "all/episodes": 4.0,
        "Geo3k/masked": 1 / 3,
        "Geo3k/success": 0.5,
        "Geo3k/reward": 0.5,
        "Other/reward": 0.5,
        "Geo3k/turns": 4 / 3,
        "Geo3k/turns_histogram/1": 2 / 3,
        "Geo3k/turns_histogram/2": 1 / 3,
        "Geo3k/stop/env_failure": 1 / 3,
        "Geo3k/truncated": 1 / 3,
        "Geo3k/tool_calls": 2.0,
        "Geo3k/tool_calls_ok": 0.5,
        "Geo3k/tool_calls_unknown": 0.5,
        "Geo3k/failures/server": 3.0,
        "Geo3k/retries/timeout": 1.0,
        "Other/seconds_generation": 1.5,
        "Other/seconds_environment": 0.75,
        "Other/tokens_prompt": 2.0,
        "Other/tokens_sampled": 9.0,
        "Other/tokens_observation": 3.0,
        "Other/images_after_turn_1": 3.0,
        "Other/staleness": 3.0,
        "Other/staleness_max": 4.0,
        "Other/mixed_versions": 1.0,
        "Other/env/progress": 2.0,
        "Other/drift": 2.0,
    }
    assert {name: figures[f"rollout/{name}"] for name in expected} == pytest.approx(expected)
    assert all(isinstance(value, float) for value in figures.values())


def test_a_masked_episode_counts_in_neither_reward_nor_success():
    with_lost = rollout_metrics(step())
    without = rollout_metrics([t for t in step() if not t.masked])
    for name in ("reward", "reward_interval", "success", "success_low", "success_high"):
        assert with_lost[f"rollout/Geo3k/{name}"] == without[f"rollout/Geo3k/{name}"]


def test_a_small_copy_has_the_same_figures():
    small = [without_bulk(t) for t in step()]
    assert rollout_metrics(small, version=4) == rollout_metrics(step(), version=4)


def test_no_episode_at_all_gives_no_figure():
    assert rollout_metrics([]) == {}


def test_wilson_intervals_are_the_known_ones():
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson_interval(0, 0) == (0.0, 1.0)


@settings(derandomize=True, max_examples=50)
@given(st.lists(st.integers(0, 3), max_size=40))
def test_repetition_is_a_share_and_grows_when_a_sequence_is_said_twice(ids):
    assert 0.0 <= repetition(ids) < 1.0
    if len(ids) >= 4:
        assert repetition([*ids, *ids]) >= (len(ids) - 3) / (2 * len(ids) - 3) - 1e-9


def test_a_real_step_has_its_times_and_turns():
    with RolloutEngine(
        ScriptedPolicy(latency=0.01), CharRenderer(), budgets=Budgets(max_turns=3), groups=GroupPolicy()
    ) as engine:
        trajectories = engine.collect([Task(ENV_ID, {"length": 5, "latency": 0.01})] * 2)
    figures = rollout_metrics(trajectories, version=0)
    assert figures["rollout/Faulty/stop/max_turns"] == 1.0
    assert figures["rollout/Faulty/seconds_generation"] >= 0.03
    assert figures["rollout/Faulty/seconds_environment"] >= 0.03
    records = turn_records(trajectories)
    assert [r["turn"] for r in records] == [0, 1, 2] * 2
    assert all(r["seconds_environment"] >= 0.01 and r["tokens"] == 3 for r in records)
