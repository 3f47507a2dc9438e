"""Every limit ends an episode with its own stop reason, never inside an observation."""

from __future__ import annotations

import pytest
from faulty_env import ENV_ID
from scripted import IMAGE, STOP, CharRenderer, ScriptedPolicy

from agents.engine import Budgets, RolloutEngine
from agents.engine.seeds import turn_seed
from agents.types import SamplingParams, Task
from mm_gym import StopReason


def run(budgets: Budgets, length: int = 10, reply: str = "ok", **env_kwargs):
    with RolloutEngine(ScriptedPolicy(lambda r: reply), CharRenderer(), budgets=budgets) as engine:
        return engine.collect([Task(ENV_ID, {"length": length, **env_kwargs})])[0]


def test_the_environment_ends_its_own_episode_and_is_not_asked_to_settle():
    trajectory = run(Budgets(), length=3)
    assert trajectory.stop_reason == StopReason.ENV_DONE
    assert trajectory.reward == 1.0
    assert "finish_calls" not in trajectory.metrics
    assert len(trajectory.turns) == 3


def test_the_environments_own_cap_truncates():
    assert run(Budgets(), max_turns=2).stop_reason == StopReason.ENV_TRUNCATED


@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        (Budgets(max_tokens_per_episode=60), StopReason.TOKEN_BUDGET),
        (Budgets(max_context=60), StopReason.CONTEXT_FULL),
        (Budgets(max_context=70, max_tokens_per_episode=60), StopReason.TOKEN_BUDGET),
        (Budgets(max_tokens_per_turn=2), StopReason.GENERATION_LENGTH),
    ],
)
def test_a_spent_budget_has_its_reason_and_the_environment_settles_once(budgets, reason):
    trajectory = run(budgets)
    assert trajectory.stop_reason == reason
    assert trajectory.reward == 0.25
    assert trajectory.metrics["finish_calls"] == 1.0
    assert not trajectory.masked
    assert trajectory.token_ids.count(IMAGE) == 4 * len(trajectory.images)
    limit = min(budgets.max_context or 10**9, budgets.max_tokens_per_episode or 10**9)
    assert len(trajectory.token_ids) <= limit


@pytest.mark.parametrize("limit", range(30, 90))
def test_no_budget_cuts_inside_an_observation(limit):
    """A picture is four ids: an observation is there whole or not at all, whatever the limit."""
    trajectory = run(Budgets(max_tokens_per_episode=limit))
    assert len(trajectory.token_ids) <= limit
    assert trajectory.token_ids.count(IMAGE) == 4 * len(trajectory.images)
    tail = trajectory.token_ids[trajectory.turns[-1].end :]
    assert CharRenderer().decode(tail) in ("", f"Turn {len(trajectory.turns)}. ")


def test_the_engines_turn_cap_reaches_the_environment_first():
    """Its own cap is the lower of the two, so that reminders fire; the engine's holds where it is ignored."""
    trajectory = run(Budgets(max_turns=2))
    assert trajectory.stop_reason == StopReason.MAX_TURNS
    assert len(trajectory.turns) == 2
    assert trajectory.episode.rewards == [0.0, 0.25]


def test_a_prompt_that_does_not_fit_ends_the_episode_before_the_first_turn():
    trajectory = run(Budgets(max_context=8))
    assert trajectory.stop_reason == StopReason.CONTEXT_FULL
    assert trajectory.turns == []
    assert trajectory.reward == 0.25


def test_a_cut_response_may_go_to_the_environment_with_its_turn_closed():
    trajectory = run(Budgets(max_tokens_per_turn=2, cut_response="step"), length=2)
    assert trajectory.stop_reason == StopReason.ENV_DONE
    first = trajectory.turns[0]
    assert first.finish_reason == "length"
    assert trajectory.token_ids[first.end] == STOP
    assert trajectory.loss_mask[first.end] == 0


def test_the_mask_is_one_exactly_on_what_was_sampled():
    trajectory = run(Budgets(), length=4)
    assert trajectory.sampled_tokens == 4 * 3
    for turn in trajectory.turns:
        assert trajectory.loss_mask[turn.start : turn.end] == [1, 1, 1]
        assert trajectory.logprobs[turn.start : turn.end] == [-0.5] * 3
    assert trajectory.loss_mask[: trajectory.prompt_length] == [0] * trajectory.prompt_length


def test_requests_carry_the_renderers_stops_and_bans_and_leave_room():
    policy = ScriptedPolicy()
    budgets = Budgets(max_tokens_per_turn=50, max_context=100)
    with RolloutEngine(policy, CharRenderer(), budgets=budgets) as engine:
        engine.collect([Task(ENV_ID, {"length": 3})])
    for request in policy.requests:
        assert request.sampling == SamplingParams(stop_token_ids=(STOP,), banned_token_ids=(IMAGE,))
        assert request.max_tokens == min(50, 100 - len(request.token_ids))


def test_each_sample_and_turn_has_a_random_stream_of_its_own():
    policy = ScriptedPolicy()
    tasks = [Task(ENV_ID, seed=g, group=g) for g in range(3) for _ in range(4)]
    with RolloutEngine(policy, CharRenderer(), seed=1) as engine:
        engine.collect(tasks)
    seeds = [r.seed for r in policy.requests]
    assert len(set(seeds)) == len(seeds) == 36
    assert set(seeds) == {
        turn_seed(1, tasks[4 * g], s, 0, t) for g in range(3) for s in range(4) for t in range(3)
    }
    assert all(0 <= s < 2**63 for s in seeds)


def test_twenty_turns_and_32000_tokens_grow_the_stream_alone():
    trajectory = run(Budgets(max_context=40_000), length=20, text="x" * 1640)
    assert len(trajectory.token_ids) > 32_000
    assert len(trajectory.turns) == 20
    assert trajectory.stop_reason == StopReason.ENV_DONE
    assert len(trajectory.token_ids) == len(trajectory.loss_mask) == len(trajectory.logprobs)
