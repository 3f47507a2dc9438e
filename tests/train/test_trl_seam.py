"""What the trainer relies on in TRL's private code; each test names what to look at when TRL changes it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.train

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trl_trainer():
    from trl import GRPOTrainer

    return GRPOTrainer


def source(function) -> str:
    return inspect.getsource(inspect.unwrap(function))


def test_the_pinned_version_is_installed():
    assert version("trl").startswith("1.16."), "check every override in train/trainer.py, then move the pin"


def test_only_one_module_knows_trls_private_names():
    private = re.compile(
        r"_generate_and_score_completions|_get_per_token_logps|_compute_loss|_calculate_rewards|\b_metrics\b"
        r"|trl\.trainer\.|_image_pad_token_id"
    )
    knowing = [p.name for p in (ROOT / "train").glob("*.py") if private.search(p.read_text())]
    assert knowing == ["trainer.py"]


def test_generate_still_returns_the_eight_values_in_this_order(trl_trainer):
    tree = ast.parse(textwrap.dedent(source(trl_trainer._generate)))
    returned = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return)][-1]
    names = [element.id for element in returned.elts]
    assert names == [
        "prompt_ids", "completion_ids", "tool_mask", "completions", "logprobs", "extra_fields", "images",
        "tool_images",
    ]  # fmt: skip


def test_pictures_anywhere_in_the_stream_are_taken_where_tools_are_truthy(trl_trainer):
    text = source(trl_trainer._generate_and_score_completions)
    assert "if self.tools and any(imgs for imgs in tool_images) and self._is_vlm:" in text
    assert "self.processing_class.image_processor(images=flat_images" in text


def test_scoring_is_called_with_the_arguments_that_are_overridden(trl_trainer):
    stock = inspect.signature(trl_trainer._get_per_token_logps_and_entropies).parameters
    for name in (
        "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy",
        "compute_aux_loss", "pixel_values", "image_grid_thw", "num_images",
    ):  # fmt: skip
        assert name in stock


def test_correction_is_still_switched_by_use_vllm_at_the_time_of_the_call(trl_trainer):
    gate = "self.use_vllm and self.vllm_importance_sampling_correction"
    assert source(trl_trainer._generate_and_score_completions).count(gate) >= 3
    assert gate in source(trl_trainer._compute_loss)


def test_unscorable_rows_still_leave_the_baseline(trl_trainer):
    text = source(trl_trainer._generate_and_score_completions)
    assert "unscorable_mask = torch.isnan(rewards_per_func).all(dim=1)" in text
    assert "torch.nanmean(rewards.view(-1, num_generations), dim=1)" in text


def test_the_loss_reads_advantages_and_beta_where_they_are_scaled(trl_trainer):
    text = source(trl_trainer._compute_loss)
    assert 'advantages = inputs["advantages"]' in text
    assert "self.beta * per_token_kl" in text


def test_zero_dimensional_values_go_with_every_micro_batch():
    import torch
    from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict

    share = torch.tensor(0.5)
    parts = split_tensor_dict(shuffle_sequence_dict({"x": torch.arange(4), "live_share": share}), 2)
    assert [float(part["live_share"]) for part in parts] == [0.5, 0.5]


def test_the_loss_takes_advantages_of_tokens_and_reads_old_log_probs_after_scoring(trl_trainer):
    text = source(trl_trainer._compute_loss)
    assert "if advantages.dim() == 1:" in text
    scoring = text.index("self._get_per_token_logps_and_entropies(")
    assert scoring < text.index('inputs.get("old_per_token_logps")')
    assert "log_ratio = per_token_logps - old_per_token_logps" in text


def test_what_ratios_of_turns_replace_is_still_there(trl_trainer):
    text = source(trl_trainer._generate_and_score_completions)
    assert 'output["importance_sampling_ratio"] = vllm_importance_sampling_ratio' in text
    assert 'per_token_loss * inputs["importance_sampling_ratio"]' in source(trl_trainer._compute_loss)
    for name in ("min", "mean", "max"):
        assert f'"sampling/importance_sampling_ratio/{name}"' in text
