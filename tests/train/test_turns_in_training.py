"""Credit, correction and clipping by turn in real training steps of the tiny model."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.train

MIXED = "mixed_env:test/Mixed-v0"
STEPS = "steps_env:test/Steps-v0"
LOSSES = ("grpo", "dapo", "dr_grpo", "bnpo", "sapo", "cispo", "luspo", "vespo")


def batch_of(trainer, tickets, trajectories=None):
    """A generation batch, of these trajectories where given."""
    if trajectories is not None:
        trainer._collect = lambda groups: trajectories
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer._generate_and_score_completions(tickets(8))


def token_gradient(trainer, inputs):
    """The loss's gradient with respect to each log-prob of the completions: (rows, width)."""
    seen = []
    scorer = trainer._scorer

    def recording(*args, **kwargs):
        logprobs, entropies, aux = scorer(*args, **kwargs)
        logprobs.retain_grad()
        seen.append(logprobs)
        return logprobs, entropies, aux

    trainer._scorer = recording
    try:
        trainer._compute_loss(trainer.model, inputs).backward()
    finally:
        trainer._scorer = scorer
    return seen[0].grad[:, -inputs["completion_ids"].shape[1] :]


def test_a_run_with_credit_by_turn(make_trainer):
    trainer = make_trainer(STEPS, turn_credit="turn", turn_discount=0.9, max_steps=2, beta=0.05)
    batches = []
    score = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: batches.append(score(inputs)) or batches[-1]
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.train()
    assert trainer.state.global_step == 2
    assert any(not torch.equal(before[name], p) for name, p in trainer.model.named_parameters())
    batch = batches[0]
    turns, advantages = batch["turns"], batch["advantages"]
    assert advantages.shape == batch["completion_ids"].shape
    assert int(turns.max()) == 3
    torch.testing.assert_close(turns > 0, (batch["completion_mask"] * batch["tool_mask"]).bool())
    assert not advantages[turns == 0].any()
    by_turn = [[float(a[t == k].unique()) for k in (1, 2, 3)] for a, t in zip(advantages, turns, strict=True)]
    assert len({round(value, 4) for values in by_turn for value in values}) > 6, "turns differ in credit"


def test_what_each_turn_paid_reaches_the_batch(make_trainer, tickets):
    trainer = make_trainer(STEPS, turn_credit="turn")
    batch_of(trainer, tickets)
    for row in trainer._rows:
        assert row.turn_rewards == row.trajectory.episode.rewards
        assert len(row.turns) == 3
        assert sum(row.turn_rewards) == pytest.approx(row.reward)
    assert len({tuple(row.turn_rewards) for row in trainer._rows}) > 2


def test_with_rewards_at_the_end_alone_it_is_the_episodes_credit(make_trainer, tickets):
    trainer = make_trainer(MIXED, turn_credit="turn")
    trajectories = trainer._collect(2)
    for i, trajectory in enumerate(trajectories):
        trajectory.reward = trajectory.turns[-1].reward = float(i % 3)
    assert len({len(t.turns) for t in trajectories}) > 1
    by_turn = batch_of(trainer, tickets, trajectories)
    trainer.credit = None
    by_episode = batch_of(trainer, tickets, trajectories)
    everywhere = by_episode["advantages"][:, None].expand_as(by_turn["advantages"])
    sampled = by_turn["turns"] > 0
    torch.testing.assert_close(by_turn["advantages"][sampled], everywhere[sampled])
    assert by_episode["advantages"].abs().max() > 0.5


def test_under_every_loss_the_gradient_reaches_the_turns_own_tokens_alone(make_trainer, tickets):
    trainer = make_trainer(STEPS, turn_credit="turn", entropy_coef=0.0, beta=0.0)
    trajectories = trainer._collect(2)
    for i, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            turn.reward = float(i % 2) if k == 1 else 0.0
        trajectory.reward = float(i % 2)
    trainer.credit = type(trainer.credit)(discount=0.0)  # each turn earns its own reward and no later one
    inputs = batch_of(trainer, tickets, trajectories)
    second = inputs["turns"] == 2
    for loss in LOSSES:
        trainer.loss_type = loss
        gradient = token_gradient(trainer, inputs)
        assert gradient[second].ne(0).all(), loss
        assert not gradient[~second].any(), loss


def test_a_long_episode_survives_small_noise_by_turn_and_not_as_a_sequence(make_trainer, tickets):
    trainer = make_trainer(
        {"id": STEPS, "kwargs": {"turns": 20}},
        rollout={"correct_sampler": True, "max_tokens_per_turn": 8},
        max_completion_length=512,
        vllm_importance_sampling_mode="turn_mask",
    )
    trajectories = trainer._collect(2)
    assert all(len(t.turns) == 20 for t in trajectories)
    for trajectory in trajectories:
        trajectory.logprobs = [
            p - 0.02 * m for p, m in zip(trajectory.logprobs, trajectory.loss_mask, strict=True)
        ]
    spoilt = trajectories[3].turns[6]
    for i in range(spoilt.start, spoilt.end):
        trajectories[3].logprobs[i] -= 1.0
    batch = batch_of(trainer, tickets, trajectories)
    ratio, turns = batch["importance_sampling_ratio"], batch["turns"]
    gone = torch.zeros_like(turns, dtype=torch.bool)
    gone[3] = turns[3] == 7
    assert gone.sum() >= 2
    assert ratio[gone].eq(0).all()
    assert ratio[~gone].gt(0.9).all()
    assert trainer._metrics["train"]["sampling/importance_sampling_ratio/min"][-1] == 0
    assert torch.isfinite(trainer._compute_loss(trainer.model, batch))

    trainer.turn_mode, trainer.vllm_importance_sampling_mode = False, "sequence_mask"
    whole = batch_of(trainer, tickets, trajectories)["importance_sampling_ratio"]
    assert whole.eq(0).all(), "the noise of 20 turns masks every episode out"


def test_clipping_by_turn_is_trls_by_sequence_where_an_episode_is_one_turn(make_trainer, tickets):
    one_turn = {"id": STEPS, "kwargs": {"turns": 1}}
    settings = {"num_iterations": 2, "loss_type": "grpo", "beta": 0.0, "epsilon": 0.05}
    gradients = []
    trajectories = old = None
    for level in ("turn", "sequence"):
        trainer = make_trainer(one_turn, importance_sampling_level=level, **settings)
        trajectories = trajectories or trainer._collect(2)
        inputs = batch_of(trainer, tickets, trajectories)
        if old is None:
            noise = torch.randn(
                inputs["old_per_token_logps"].shape, generator=torch.Generator().manual_seed(0)
            )
            old = inputs["old_per_token_logps"] + 0.2 * noise
        inputs["old_per_token_logps"] = old.clone()
        gradients.append(token_gradient(trainer, inputs))
        torch.testing.assert_close(inputs["old_per_token_logps"], old)  # the batch is used again
    rows = gradients[0].ne(0).any(1)
    assert rows.any()
    assert not rows.all(), "some turns are clipped whole"
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-4)


def test_unknown_levels_and_modes_are_refused_at_the_start(make_trainer):
    for config, words in (
        ({"importance_sampling_level": "word"}, "token, turn, sequence"),
        ({"vllm_importance_sampling_mode": "turn"}, "turn_truncate, turn_mask"),
        (
            {"loss_type": "vespo", "vllm_importance_sampling_mode": "turn_mask"},
            "token_truncate or token_mask",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            make_trainer(**config)
