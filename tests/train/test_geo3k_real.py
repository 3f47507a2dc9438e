"""The real Geometry3K with the real Qwen3-VL tokenizer and image pipeline, and a tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.train

ROOT = Path(__file__).resolve().parents[2]
ZOOM = '<tool_call>\n{"name": "zoom", "arguments": {"bbox": [0, 0, 500, 500]}}\n</tool_call>'


@pytest.fixture(scope="module")
def full_vocabulary_folder(shared_data, tmp_path_factory):
    from train.tiny import build_tiny_vlm

    return build_tiny_vlm(
        tmp_path_factory.mktemp("full"), processor=shared_data / "qwen3-vl-processor", tied=True, layers=2,
        min_pixels=4096, max_pixels=16384,
    )  # fmt: skip


@pytest.fixture
def trainer(full_vocabulary_folder, shared_data, tmp_path):
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    from train.arguments import GymGRPOConfig
    from train.rollouts import RolloutConfig
    from train.trainer import GymGRPOTrainer

    made = GymGRPOTrainer(
        Qwen3VLForConditionalGeneration.from_pretrained(full_vocabulary_folder),
        env={"id": "mm_gym/Geo3k-v0", "kwargs": {"data": str(shared_data / "geo3k"), "zoom_size": 96}},
        args=GymGRPOConfig(
            output_dir=str(tmp_path), per_device_train_batch_size=4, num_generations=2, max_steps=1,
            bf16=False, gradient_checkpointing=False, report_to="none", disable_tqdm=True,
        ),
        processing_class=AutoProcessor.from_pretrained(full_vocabulary_folder),
        rollout=RolloutConfig(max_tokens_per_turn=8, cut_response="step"),
        eval_env={"id": "mm_gym/Geo3k-v0", "kwargs": {"data": str(shared_data / "geo3k"), "split": "test"}},
        eval_episodes=0,
        eval_ordered=True,
    )  # fmt: skip
    yield made
    made.rollouts.close()


def test_zoomed_pictures_of_later_turns_reach_the_loss(trainer, tickets):
    from agents.types import Response

    policy = trainer.rollouts.engine.policy
    sample = policy.generate

    async def zoom_first(request):
        """The first turn calls zoom; the rest is the model's own."""
        if len(request.images) > 1:
            return await sample(request)
        ids = trainer.renderer.encode_response(ZOOM)
        return Response(ids, [-1.0] * len(ids), "stop")

    policy.generate = zoom_first
    trainer.model.train()
    inputs = trainer._generate_and_score_completions(tickets(4))
    assert all(row.trajectory.turns[0].images == 1 for row in trainer._rows)
    assert inputs["num_images"] == [2, 2, 2, 2]
    pads = (
        torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1) == trainer._image_pad_token_id
    ).sum()
    assert int(pads) * 4 == len(inputs["pixel_values"])
    trainer.current_gradient_accumulation_steps = 1
    inputs["advantages"] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    trainer._compute_loss(trainer.model, inputs).backward()
    tower = [p.grad for n, p in trainer.model.named_parameters() if "visual" in n and p.grad is not None]
    assert sum(float(g.abs().sum()) for g in tower) > 0


def test_log_probs_over_the_whole_vocabulary_equal_the_rollouts(trainer, tickets):
    trainer.model.train()
    inputs = trainer._generate_and_score_completions(tickets(4))
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    trainer._row_mask = mask.long()
    pictures = {k: inputs[k] for k in ("pixel_values", "image_grid_thw", "num_images")}
    with torch.no_grad():
        ours, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids, attention, mask.shape[1], **pictures
        )
    torch.testing.assert_close(ours[mask], inputs["sampling_per_token_logps"][mask], atol=1e-4, rtol=0)


def test_ids_beyond_the_tokenizer_are_banned_and_the_test_set_is_taken_whole(trainer):
    vocabulary = trainer.policy_model.config.text_config.vocab_size
    unused = set(range(len(trainer.renderer.tokenizer), vocabulary))
    assert unused
    assert unused <= set(trainer.rollouts.banned_token_ids)
    assert trainer.eval_episodes == 601


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_smoke_configuration_samples_real_zoom_calls(shared_data, tmp_path):
    subprocess.run(
        [
            sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "1", "--num_machines", "1",
            "--mixed_precision", "no", "--dynamo_backend", "no", "train/grpo.py",
            "--config", "configs/geo3k_smoke.yaml", "--data", str(shared_data / "geo3k"),
            "--tiny_processor", str(shared_data / "qwen3-vl-processor"),
            "--output_dir", str(tmp_path / "run"),
        ],
        cwd=ROOT, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    figures = json.loads((tmp_path / "run" / "evaluation.json").read_text())["after GRPO"]
    assert figures["late_images"] > 0
    assert figures["episodes"] + figures["masked"] == 100
