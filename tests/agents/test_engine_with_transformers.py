"""The engine on real parts: Pointing-v0, the tiny Qwen3-VL, the transformers policy."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

import torch

from agents import RolloutEngine, Task, TransformersPolicy
from agents.engine import Budgets
from agents.metrics import rollout_metrics


def group_tasks(groups: int, size: int, **kwargs) -> list[Task]:
    return [
        Task("mm_gym/Pointing-v0", kwargs, seed=group, group=group)
        for group in range(groups)
        for _ in range(size)
    ]


def recomputed_logprobs(model, renderer, trajectory, banned) -> list[float]:
    """Log-probs of the sampled ids by one forward over the whole stream."""
    ids = torch.tensor([trajectory.token_ids])
    inputs = {
        key: torch.as_tensor(value)
        for key, value in renderer.model_inputs(trajectory.token_ids, trajectory.images).items()
    }
    with torch.no_grad():
        logits = model(input_ids=ids, **inputs).logits[0].float()
    logits[:, list(banned)] = float("-inf")
    logprobs = torch.log_softmax(logits, -1)
    return [
        float(logprobs[i - 1, trajectory.token_ids[i]])
        for i, sampled in enumerate(trajectory.loss_mask)
        if sampled
    ]


def test_rollouts_with_images_have_the_logprobs_of_one_forward(tiny_vlm):
    model, processor = tiny_vlm
    policy = TransformersPolicy(model, processor)
    budgets = Budgets(max_tokens_per_turn=12, cut_response="step")
    with RolloutEngine(policy, budgets=budgets, audit_share=0.5) as engine:
        trajectories = engine.collect(group_tasks(3, 2))
        banned = engine.sampling.banned_token_ids
    assert len(trajectories) == 6
    assert policy.stats.reused_tokens > 0
    for t in trajectories:
        assert not t.masked
        assert t.stop_reason == "env_truncated"
        assert len(t.images) >= 1
        kept = [p for p, sampled in zip(t.logprobs, t.loss_mask, strict=True) if sampled]
        assert kept == pytest.approx(recomputed_logprobs(model, policy.renderer, t, banned), abs=1e-4)
    assert engine.open_environments == 0
    audited = [t for t in trajectories if "drift_join" in t.metrics]
    assert 0 < len(audited) < 6
    assert rollout_metrics(audited)["rollout/Pointing/drift_unrenderable"] == 0.0
