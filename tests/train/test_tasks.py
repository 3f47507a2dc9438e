"""Which tasks a run draws, and what is said of held-out episodes."""

from __future__ import annotations

import json
import math

import gymnasium
import pytest

import mm_gym
from train.tasks import EVALUATION, TRAIN, EnvMember, TaskSource, name_of, parse_members

pytestmark = pytest.mark.train

POINTING = "mm_gym/Pointing-v0"


def test_an_id_a_mapping_json_an_environment_and_a_list_are_read_alike():
    made = gymnasium.make(POINTING, level=2)
    member = EnvMember(POINTING, kwargs={"level": 2})
    assert parse_members({"id": POINTING, "kwargs": {"level": 2}}) == [member]
    assert parse_members(json.dumps({"id": POINTING, "kwargs": {"level": 2}})) == [member]
    assert parse_members([POINTING]) == parse_members(POINTING) == [EnvMember(POINTING)]
    assert parse_members(made)[0].kwargs["level"] == 2


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"name": POINTING}, "id is required"),
        ({"id": POINTING, "wieght": 2}, "wieght"),
        ({"id": POINTING, "weight": -1}, "must not be negative"),
        ([], "at least one environment"),
    ],
)
def test_a_wrong_specification_is_named(spec, words):
    with pytest.raises(ValueError, match=words):
        parse_members(spec)


def test_an_environment_that_was_not_made_by_gymnasium_is_refused():
    class Own(mm_gym.ChatEnv):
        pass

    with pytest.raises(ValueError, match="register it and pass its id"):
        parse_members(Own())


def test_tasks_are_a_function_of_seed_and_number():
    source = TaskSource([{"id": POINTING, "weight": 3}, "mm_gym/Geo3k-v0"], seed=1)
    again = TaskSource([{"id": POINTING, "weight": 3}, "mm_gym/Geo3k-v0"], seed=1)
    drawn = [source.task(i) for i in range(400)]
    assert [again.task(i) for i in (7, 399, 0)] == [drawn[7], drawn[399], drawn[0]]
    share = sum(task.env_id == POINTING for task in drawn) / len(drawn)
    assert 0.68 < share < 0.82


def test_streams_share_no_task_and_a_group_shares_one():
    train, held = (TaskSource(POINTING, seed=0, stream=stream) for stream in (TRAIN, EVALUATION))
    seeds = {train.task(i).seed for i in range(500)}
    assert not seeds & {held.task(i).seed for i in range(500)}
    group = train.tasks(3, 2, copies=4)
    assert [t.group for t in group] == [3] * 4 + [4] * 4
    assert len({t.seed for t in group}) == 2


def test_a_fixed_set_is_taken_once_in_order(shared_data):
    data = str(shared_data / "geo3k")
    member = {"id": "mm_gym/Geo3k-v0", "kwargs": {"data": data, "split": "test"}}
    source = TaskSource(member, ordered=True)
    assert len(source) == 601
    ids = [source.task(i).options["task"] for i in range(601)]
    assert len(set(ids)) == 601
    with pytest.raises(ValueError, match="no fixed set of tasks"):
        TaskSource(POINTING, ordered=True)
    with pytest.raises(TypeError, match="how many tasks"):
        len(TaskSource(POINTING))


def test_a_short_name_for_tables():
    task = TaskSource("mixed_env:test/Mixed-v0").task(0)
    assert name_of(task) == "Mixed"


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"), [(0, 10, 0.0, 0.278), (8, 10, 0.490, 0.943), (10, 10, 0.722, 1.0)]
)
def test_wilsons_interval(successes, n, low, high):
    from train.evaluation import wilson

    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-3)
    assert wilson(0, 0) == (0.0, 1.0)


def test_masked_episodes_count_in_nothing_but_masked():
    from agents.types import Task, Trajectory, Turn
    from mm_gym import Episode, StopReason
    from train.evaluation import record_of, summarize

    solved = Trajectory(
        task=Task(POINTING), reward=1.0, stop_reason=StopReason.ENV_DONE, episode=Episode(success=True)
    )
    solved.turns = [Turn(0, 1, images=1, tool_calls=[{"name": "zoom", "status": "ok"}]), Turn(2, 3)]
    graded_at_the_cut = Trajectory(
        task=Task(POINTING), reward=1.0, stop_reason=StopReason.TOKEN_BUDGET, metrics={"success": 1.0}
    )
    lost = Trajectory(task=Task(POINTING), masked=True, stop_reason=StopReason.ENV_FAILURE)
    figures = summarize([record_of(t) for t in (solved, graded_at_the_cut, lost)])
    assert (figures.episodes, figures.successes, figures.masked) == (2, 2, 1)
    assert (figures.turns, figures.tool_calls, figures.late_images) == (1.0, 0.5, 1)
    assert figures.stop_reasons == {"env_done": 1, "token_budget": 1}
    assert math.isnan(summarize([]).success)


def test_a_failed_call_and_a_turn_without_one_count_once_each():
    from agents.types import Trajectory, Turn
    from train.evaluation import record_of, summarize

    failed = Turn(0, 1, error="failed_call", tool_calls=[{"name": "zoom", "status": "failed"}])
    missing = Turn(1, 2, error="missing_call")
    fine = Turn(2, 3, tool_calls=[{"name": "zoom", "status": "ok"}])
    figures = summarize([record_of(Trajectory(reward=0.0, turns=[failed, missing, fine]))])
    assert (figures.tool_calls, figures.failed_calls) == (2.0, 2)
