"""Groups for training: over-provision, carrying unfinished ones, staleness, redraws, one step ahead."""

from __future__ import annotations

import time

import pytest
from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import (
    DynamicSampling,
    GroupCollector,
    GroupPolicy,
    OneStepAhead,
    PartialRollouts,
    RetryPolicy,
    RolloutEngine,
)
from agents.types import Task

SLOW = 4
"""Every fourth task takes many turns."""


def draw(index: int) -> Task:
    return Task(ENV_ID, {"length": 40 if index % SLOW == 0 else 2, "latency": 0.005}, seed=index, group=index)


def make_engine(policy=None, **options) -> RolloutEngine:
    return RolloutEngine(policy or ScriptedPolicy(latency=0.002), CharRenderer(), **options)


def groups_of(collection) -> list[int]:
    return [t.task.group for t in collection.trajectories]


def test_without_options_it_collects_the_next_groups_in_order():
    with make_engine() as engine:
        collector = GroupCollector(engine, draw, 2, start=1, stride=2)
        first = collector.collect(2)
        assert groups_of(first) == [1, 1, 3, 3]
        assert groups_of(collector.collect(1)) == [5, 5]
        assert collector.cursor == 7
        assert first.metrics["dropped_equal"] == 0.0


def test_unfinished_groups_are_carried_and_finished_later_with_both_versions():
    policy = ScriptedPolicy(latency=0.002)
    with make_engine(policy) as engine:
        collector = GroupCollector(
            engine, draw, 2, partial=PartialRollouts(over_provision=2.0, max_staleness=1000)
        )
        seen: list[int] = []
        versions: set[int] = set()
        carried = 0
        for version in range(12):
            policy.version = version
            collection = collector.collect(2)
            assert len(collection.trajectories) == 4
            assert all(t.reward == 1.0 for t in collection.trajectories)
            seen += groups_of(collection)[::2]
            carried += collection.carried_in
            for t in collection.trajectories:
                order = [turn.policy_version for turn in t.turns]
                assert order == sorted(order)
                if t.task.group % SLOW == 0:
                    assert len(t.turns) == 40
                    versions |= {len(set(order))}
        assert carried > 0
        assert max(versions) > 1, "a long episode was sampled by more than one version"
        assert len(seen) == len(set(seen)), "no group twice"
        collector.close()
        assert engine.open_environments > 0
    assert engine.open_environments == 0


def test_the_step_does_not_wait_for_the_slowest_group():
    def slow_first(index: int) -> Task:
        return Task(ENV_ID, {"length": 2, "latency": 2.5 if index == 0 else 0.0}, seed=index, group=index)

    with make_engine() as engine:
        collector = GroupCollector(engine, slow_first, 1, partial=PartialRollouts(over_provision=2.0))
        started = time.monotonic()
        assert groups_of(collector.collect(1)) == [1]
        assert time.monotonic() - started < 2.0


def test_a_carried_group_beyond_the_staleness_cap_is_begun_afresh():
    policy = ScriptedPolicy(latency=0.002)
    with make_engine(policy) as engine:
        collector = GroupCollector(
            engine, draw, 1, partial=PartialRollouts(over_provision=2.0, max_staleness=1)
        )
        requeued = 0
        for version in range(0, 30, 2):  # each step is two versions on: what is carried is always too old
            policy.version = version
            collection = collector.collect(1)
            requeued += collection.requeued
            for t in collection.trajectories:
                assert {turn.policy_version for turn in t.turns} == {version}
        assert requeued > 0


def test_the_state_holds_the_cursor_and_requeues_what_is_unfinished():
    with make_engine() as engine:
        collector = GroupCollector(engine, draw, 2, partial=PartialRollouts(over_provision=2.0))
        collector.collect(2)
        state = collector.state_dict()
        assert state["unfinished"], "group 0 is slow"
    with make_engine() as engine:
        resumed = GroupCollector(engine, draw, 2, partial=PartialRollouts(over_provision=1.0))
        resumed.load_state_dict(state)
        assert groups_of(resumed.collect(len(state["unfinished"])))[::2] == state["unfinished"]
        assert resumed.cursor == state["cursor"]


def by_group(request) -> str:
    return "ok"


def test_groups_of_equal_reward_are_redrawn_within_the_bound():
    """Every episode of the environment earns 1.0, so no group teaches anything."""
    with make_engine() as engine:
        collector = GroupCollector(
            engine,
            lambda i: Task(ENV_ID, {"length": 1}, seed=i, group=i),
            2,
            dynamic=DynamicSampling(max_redraws=1.5),
        )
        collection = collector.collect(2)
    assert collection.dropped_equal == 3
    assert len(set(groups_of(collection))) == 2
    assert collector.cursor == 5


def test_groups_with_different_rewards_are_kept():
    turns = {"n": 0}

    def reply(request) -> str:  # every second turn is cut: the episode earns 0.25 in place of 1.0
        turns["n"] += 1
        return "ok" if turns["n"] % 2 else "x" * 1000

    with make_engine(ScriptedPolicy(reply)) as engine:
        collector = GroupCollector(
            engine, lambda i: Task(ENV_ID, {"length": 1}, group=i), 2, dynamic=DynamicSampling()
        )
        collection = collector.collect(1)
    assert collection.dropped_equal == 0
    assert sorted(t.reward for t in collection.trajectories) == [0.25, 1.0]


def test_lost_groups_are_replaced_within_the_bound(tmp_path):
    def broken(index: int) -> Task:
        fault = {"kind": "failure", "turn": 1, "times": 1000, "ledger": str(tmp_path / str(index))}
        return Task(ENV_ID, group=index, options={"fault": fault} if index in (0, 2) else {})

    options = {"retries": RetryPolicy(max_env_retries_per_turn=0), "groups": GroupPolicy(refills=0)}
    with make_engine(**options) as engine:
        collection = GroupCollector(engine, broken, 2).collect(2)
        assert collection.dropped_lost == 2
        assert groups_of(collection) == [1, 1, 3, 3]
        assert all(t.reward == 1.0 for t in collection.trajectories)
        hopeless = GroupCollector(engine, lambda i: broken(0), 2).collect(2)
        assert hopeless.dropped_lost == 2
        assert all(t.masked and t.reward is None for t in hopeless.trajectories)


def test_a_bug_gives_up_the_carried_groups_too():
    policy = ScriptedPolicy(latency=0.002)
    with make_engine(policy) as engine:
        collector = GroupCollector(engine, draw, 1, partial=PartialRollouts(over_provision=3.0))
        collector.collect(1)

        def bug(request):
            raise KeyError("a bug")

        policy._reply = bug
        with pytest.raises(KeyError):
            collector.collect(2)
        assert engine.open_environments == 0
        policy._reply = by_group
        assert len(collector.collect(1).trajectories) == 1


def test_evaluation_does_not_wake_what_is_carried():
    policy = ScriptedPolicy(latency=0.002)
    with make_engine(policy) as engine:
        collector = GroupCollector(engine, draw, 1, partial=PartialRollouts(over_provision=2.0))
        collector.collect(1)
        before = len(policy.requests)
        engine.collect([Task(ENV_ID, {"length": 2}, seed=99, group=99)])
        assert len(policy.requests) == before + 2


def test_one_step_ahead_trains_on_rollouts_of_the_step_before():
    policy = ScriptedPolicy()
    with make_engine(policy) as engine:
        ahead = OneStepAhead(GroupCollector(engine, lambda i: Task(ENV_ID, group=i), 2))

        def push() -> None:
            assert not policy.running
            policy.version += 1

        staleness = []
        for _ in range(4):
            collection = ahead.next(1, push)
            assert len(collection.trajectories) == 2
            staleness.append(policy.version - collection.trajectories[0].turns[0].policy_version)
        ahead.close()
    assert staleness == [1, 1, 1, 1]


def test_one_step_ahead_ends_without_a_step_that_nobody_wants():
    policy = ScriptedPolicy()
    with make_engine(policy) as engine:
        collector = GroupCollector(engine, lambda i: Task(ENV_ID, group=i), 2)
        ahead = OneStepAhead(collector)
        assert groups_of(ahead.next(1)) == [0, 0]
        assert groups_of(ahead.next(1, more=False)) == [1, 1]
        assert collector.cursor == 2
        ahead.close()


def test_a_step_that_was_not_handed_out_is_drawn_again_on_resuming():
    with make_engine() as engine:
        ahead = OneStepAhead(GroupCollector(engine, lambda i: Task(ENV_ID, {"length": 1}, group=i), 2))
        assert groups_of(ahead.next(2)) == [0, 0, 1, 1]
        state = ahead.state_dict()
        ahead.settle()
        assert ahead.state_dict() == state, "the pending step is whole but was not trained on"
        assert groups_of(ahead.next(2)) == [2, 2, 3, 3]
        ahead.load_state_dict(state)
        assert groups_of(ahead.next(2, more=False)) == [2, 2, 3, 3]


def test_dropping_the_step_ahead_cancels_it_and_closes_its_environments():
    policy = ScriptedPolicy()
    with make_engine(policy) as engine:
        ahead = OneStepAhead(
            GroupCollector(engine, lambda i: Task(ENV_ID, {"length": 1 if i == 0 else 10**6}, group=i), 1)
        )
        ahead.next(1)
        ahead.close()
        assert engine.open_environments == 0
        assert not policy.running
        ahead.close()


def test_a_failure_in_the_step_ahead_surfaces_where_it_is_asked_for():
    policy = ScriptedPolicy()
    with make_engine(policy) as engine:
        ahead = OneStepAhead(GroupCollector(engine, lambda i: Task(ENV_ID, {"length": 1}, group=i), 1))
        ahead.next(1, more=False)

        def bug(request):
            raise KeyError("a bug")

        policy._reply = bug
        with pytest.raises(KeyError):
            ahead.next(1)
        assert engine.open_environments == 0
        policy._reply = by_group
        assert len(ahead.next(1, more=False).trajectories) == 1
