"""Partial rollouts and redraws in training, what is logged of a step, and what is kept of it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("trl")

from agents.store import read_trajectories

pytestmark = pytest.mark.train


def logged(trainer, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_partial_rollouts_train_on_carried_groups_with_the_samplers_logprobs(make_trainer, tmp_path):
    trainer = make_trainer(
        max_steps=4,
        save_strategy="steps",
        save_steps=4,
        output_dir=str(tmp_path / "run"),
        rollout={"over_provision": 2.0, "max_staleness": 2},
    )
    trainer.train()
    assert trainer.state.global_step == 4
    assert sum(logged(trainer, "rollout/groups_carried_out")) > 0
    state = json.loads((tmp_path / "run" / "checkpoint-4" / "gym_state.json").read_text())
    (groups,) = state["groups"]
    assert groups["cursor"] >= 8
    assert groups == trainer._collector.state_dict()
    resumed = make_trainer(
        max_steps=5, output_dir=str(tmp_path / "run"), rollout={"over_provision": 2.0, "max_staleness": 2}
    )
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-4"))
    assert resumed.state.global_step == 5


def test_groups_of_equal_reward_are_redrawn(make_trainer):
    trainer = make_trainer(max_steps=1, rollout={"redraws": 1.0})
    trainer.train()
    (dropped,) = logged(trainer, "rollout/groups_dropped_equal")
    assert 0 <= dropped <= 2
    assert trainer._collector.cursor == 2 + dropped


def test_a_step_is_logged_by_task_and_kept_with_its_tokens(make_trainer, tmp_path):
    trainer = make_trainer(max_steps=2, output_dir=str(tmp_path / "run"), rollout={"audit_share": 1.0})
    trainer.train()
    names = set().union(*trainer.state.log_history)
    for metric in (
        "reward",
        "success_low",
        "turns",
        "tokens_sampled",
        "repetition",
        "staleness",
        "drift_tokens",
    ):
        assert f"rollout/Mixed/{metric}" in names
    kept = list(read_trajectories(tmp_path / "run" / "rollouts"))
    assert len(kept) == 16
    assert all(t.sampled_tokens for t in kept)


def test_the_store_can_be_left_off(make_trainer, tmp_path):
    trainer = make_trainer(max_steps=1, output_dir=str(tmp_path / "run"), rollout={"store": False})
    trainer.train()
    assert not (tmp_path / "run" / "rollouts").exists()
