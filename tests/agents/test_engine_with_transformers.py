"""The engine on real parts: Pointing-v0, the tiny Qwen3-VL, the transformers policy."""

from __future__ import annotations

import asyncio
import copy

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


def interrupted_episode(engine, policy, after: int, meanwhile=lambda: None):
    """An episode whose first turn is stopped after `after` tokens; `meanwhile` happens before it goes on."""
    gate = engine.new_gate()
    (task,) = group_tasks(1, 1)
    before = policy.stats.decoded_tokens

    async def first_part():
        episode = engine.begin(task, 0, gate)
        while policy.stats.decoded_tokens - before < after:
            await asyncio.sleep(0.001)
        gate.clear()
        engine.interrupt(gate)
        return episode

    async def the_rest(episode):
        gate.set()
        return await episode

    episode = engine.wait(engine.run_exclusively(first_part))
    meanwhile()
    return engine.wait(engine.run_exclusively(lambda: the_rest(episode)))


INTERRUPTED = Budgets(max_turns=1, max_tokens_per_turn=120, cut_response="step")


def test_an_interrupted_turn_goes_on_exactly_where_it_stood(tiny_vlm):
    policy = TransformersPolicy(*tiny_vlm)
    with RolloutEngine(policy, budgets=INTERRUPTED, seed=3) as engine:
        (whole,) = engine.collect(group_tasks(1, 1))
        before = policy.stats.decoded_tokens
        parted = interrupted_episode(engine, policy, after=10)
        sampled_again = policy.stats.decoded_tokens - before - parted.sampled_tokens
    assert whole.sampled_tokens > 20
    assert parted.token_ids == whole.token_ids
    assert parted.logprobs == pytest.approx(whole.logprobs, abs=1e-4)
    assert sampled_again <= 2, "a token that was being computed at the interruption"


def test_each_part_of_an_interrupted_turn_has_the_logprobs_of_the_policy_that_sampled_it(tiny_vlm):
    model, processor = tiny_vlm
    old = copy.deepcopy(model)
    policy = TransformersPolicy(model, processor)

    def train() -> None:
        with torch.no_grad():
            model.get_output_embeddings().weight.mul_(1.5)
        policy.version = 1

    with RolloutEngine(policy, budgets=INTERRUPTED, seed=3) as engine:
        try:
            t = interrupted_episode(engine, policy, after=10, meanwhile=train)
            banned = engine.sampling.banned_token_ids
            ((_, first), (version, rest)) = t.turns[0].pieces
            kept = [p for p, sampled in zip(t.logprobs, t.loss_mask, strict=True) if sampled]
            by_old = recomputed_logprobs(old, policy.renderer, t, banned)
            by_new = recomputed_logprobs(model, policy.renderer, t, banned)
        finally:
            model.load_state_dict(old.state_dict())
    assert version == 1
    assert first >= 10
    assert first + rest == t.sampled_tokens
    assert kept[:first] == pytest.approx(by_old[:first], abs=1e-4)
    assert kept[first:] == pytest.approx(by_new[first:], abs=1e-4)
    assert kept[first:] != pytest.approx(by_old[first:], abs=1e-2)
