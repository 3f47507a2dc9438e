"""`train/grpo.py` with vLLM on the CPU: colocated, tensor parallel, and on a server."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vllm_server import SETTINGS, vllm_server

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.train,
    pytest.mark.xdist_group("vllm"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="needs vLLM: `make test` installs its CPU build where there is one",
    ),
]
ROOT = Path(__file__).resolve().parents[2]
STEPS = 2


def train(output: Path, *arguments: Any, ranks: int = 1) -> list[dict[str, float]]:
    """Run the script; returns what it logged, a step each."""
    several = ("--multi_gpu",) if ranks > 1 else ()
    command = [
        *(sys.executable, "-m", "accelerate.commands.launch", *several, "--num_processes", str(ranks)),
        *("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "train/grpo.py"),
        *("--environments", "mixed_env:test/Mixed-v0", "--eval_episodes", "4", "--max_steps", str(STEPS)),
        *("--max_tokens_per_turn", "8", "--cut_response", "step", "--num_generations", "2"),
        *("--per_device_train_batch_size", "4", "--learning_rate", "1e-2", "--bf16", "false"),
        *("--gradient_checkpointing", "false", "--report_to", "none", "--logging_steps", "1"),
        *("--use_vllm", "true", "--vllm_dtype", "float32", "--vllm_enforce_eager", "true"),
        *("--vllm_max_model_length", "1024", "--max_images", "8", "--save_strategy", "steps"),
        *("--save_steps", str(STEPS), "--output_dir", str(output), *map(str, arguments)),
    ]
    environment = {
        **os.environ,
        **SETTINGS,
        "PYTHONPATH": str(Path(__file__).parent),
        "HF_HUB_OFFLINE": "1",
        **({"ACCELERATE_USE_CPU": "true"} if ranks > 1 else {}),
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    state = json.loads((output / f"checkpoint-{STEPS}" / "trainer_state.json").read_text())
    logs = [entry for entry in state["log_history"] if "loss" in entry]
    assert len(logs) == STEPS
    return logs


def assert_sampler_is_the_trainer(logs: list[dict[str, float]]) -> None:
    """Correction is on, and finds nothing to correct: every step sampled with the weights it trains."""
    for log in logs:
        assert log["sampling/sampling_logp_difference/max"] < 1e-4
        assert log["sampling/importance_sampling_ratio/min"] == pytest.approx(1.0, abs=1e-3)
        assert log["rollout/dropped_rows"] == 0.0


def test_colocated_vllm_trains_and_follows_the_weights(tiny_folder, tmp_path):
    assert_sampler_is_the_trainer(train(tmp_path, "--model_name_or_path", tiny_folder))


@pytest.mark.slow
def test_tensor_parallel_vllm_trains_on_two_ranks(tiny_folder, tmp_path):
    logs = train(tmp_path, "--model_name_or_path", tiny_folder, "--vllm_tensor_parallel_size", 2, ranks=2)
    assert_sampler_is_the_trainer(logs)


def test_servers_train_with_weights_reloaded_from_disk(tiny_folder, tmp_path):
    with vllm_server(tiny_folder, window=1024) as url:
        logs = train(
            tmp_path,
            "--model_name_or_path",
            tiny_folder,
            "--vllm_mode",
            "server",
            "--vllm_server_base_url",
            url,
        )
    assert_sampler_is_the_trainer(logs)
    assert len(list((tmp_path / "served-weights").iterdir())) == 1, "the weights of past steps are removed"
