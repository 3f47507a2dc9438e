"""Rows lost to failures of ours change neither gradient nor baseline of the others, under any loss."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.train


def gradient(trainer, trajectories, tickets):
    """The gradient of one generation batch of these trajectories, and its inputs."""
    trainer._collect = lambda groups: trajectories
    trainer.model.train()
    inputs = trainer._generate_and_score_completions(tickets(len(trajectories)))
    trainer.model.zero_grad()
    trainer.current_gradient_accumulation_steps = 1
    trainer._compute_loss(trainer.model, inputs).backward()
    flat = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
    return flat, inputs


def lose(trajectory):
    trajectory.masked, trajectory.reward = True, None


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo", "bnpo", "sapo", "cispo", "luspo", "vespo"])
def test_the_gradient_equals_that_of_a_run_without_the_dropped_group(make_trainer, tickets, loss_type):
    trainer = make_trainer(loss_type=loss_type, entropy_coef=0.01, beta=0.0)
    trajectories = trainer._collect(2)
    for i, trajectory in enumerate(trajectories):
        trajectory.reward = float(i % 3)
    reference, _ = gradient(trainer, trajectories[:4], tickets)
    lose(trajectories[5])  # one is lost, its whole group is dropped
    with_dead, inputs = gradient(trainer, trajectories, tickets)
    assert float(inputs["live_share"]) == 0.5
    assert inputs["advantages"][4:].abs().max() == 0
    assert reference.norm() > 1e-4
    torch.testing.assert_close(with_dead, reference, atol=1e-6, rtol=1e-4)


def test_survivors_are_kept_only_by_option(make_trainer, tickets):
    trainer = make_trainer(rollout={"keep_survivors": True})
    trajectories = trainer._collect(2)
    lose(trajectories[5])
    _, inputs = gradient(trainer, trajectories, tickets)
    assert float(inputs["live_share"]) == 7 / 8
    assert (inputs["completion_mask"] * inputs["tool_mask"])[5].sum() == 0


def test_a_batch_of_dead_rows_alone_trains_nothing_and_does_not_crash(make_trainer, tickets):
    trainer = make_trainer()
    trajectories = trainer._collect(2)
    for trajectory in trajectories:
        lose(trajectory)
    flat, _ = gradient(trainer, trajectories, tickets)
    assert flat.abs().max() == 0


def test_equal_rewards_have_exactly_no_advantage(make_trainer, tickets):
    trainer = make_trainer()
    trajectories = trainer._collect(2)
    for trajectory in trajectories[:4]:
        trajectory.reward = 0.1
    for i, trajectory in enumerate(trajectories[4:]):
        trajectory.reward = float(i == 0)
    _, inputs = gradient(trainer, trajectories, tickets)
    assert inputs["advantages"][:4].tolist() == [0.0] * 4
    assert inputs["advantages"][4] > 1


def test_an_empty_response_is_a_row_without_loss(make_trainer, tickets):
    from train.rows import row_of

    trainer = make_trainer()
    trajectory = trainer._collect(1)[0]
    cut = trajectory.prompt_length
    for stream in (trajectory.token_ids, trajectory.loss_mask, trajectory.logprobs):
        del stream[cut:]
    trajectory.images[:] = trajectory.images[
        : len(trajectory.images) - sum(t.images for t in trajectory.turns)
    ]
    row = row_of(trajectory, trainer.renderer)
    assert row.completion_ids == [trainer.renderer.end_of_turn_id]
    assert row.mask == [0]
    assert row.live
