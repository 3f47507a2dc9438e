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


@pytest.fixture
def no_memory_left_over():
    """A tensor-parallel run that was killed leaves shared memory, under the name of every such run."""
    for left in Path("/dev/shm").glob("-tp:*cpushm*"):
        left.unlink()


@pytest.mark.slow
@pytest.mark.usefixtures("no_memory_left_over")
def test_tensor_parallel_vllm_trains_on_two_ranks(tiny_folder, tmp_path):
    logs = train(tmp_path, "--model_name_or_path", tiny_folder, "--vllm_tensor_parallel_size", 2, ranks=2)
    assert_sampler_is_the_trainer(logs)


@pytest.mark.slow
@pytest.mark.usefixtures("no_memory_left_over")
def test_tensor_parallel_vllm_carries_and_redraws_groups_through_its_leader(tiny_folder, tmp_path):
    schedule = ("--over_provision", 2, "--max_staleness", 2, "--redraws", 1)
    model = ("--model_name_or_path", tiny_folder, "--vllm_tensor_parallel_size", 2)
    logs = train(tmp_path, *model, *schedule, ranks=2)
    assert sum(log["rollout/groups_carried_out"] for log in logs) > 0
    assert all(log["rollout/all/episodes"] == 8 for log in logs), "each rank has its rows"
    state = json.loads((tmp_path / f"checkpoint-{STEPS}" / "gym_state.json").read_text())
    leader, follower = state["groups"]
    assert leader["cursor"] >= 4 * STEPS
    assert not follower["unfinished"]


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


@pytest.mark.slow
def test_servers_collect_a_step_ahead_and_its_staleness_is_corrected(tiny_folder, tmp_path):
    with vllm_server(tiny_folder, window=1024) as url:
        server = ("--vllm_mode", "server", "--vllm_server_base_url", url)
        logs = train(
            tmp_path, "--model_name_or_path", tiny_folder, *server, "--one_step_ahead", "true", ranks=2
        )
    assert [log["rollout/Mixed/staleness"] for log in logs] == [0.0, 1.0]
    first, second = (log["sampling/sampling_logp_difference/max"] for log in logs)
    assert first < 1e-4
    assert second > 1e-4, "sampled by the weights of the step before, and measured against them"
    assert len(list((tmp_path / "served-weights").iterdir())) == 1
