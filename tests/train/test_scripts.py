"""The scripts as people run them: launched by accelerate, killed and resumed, on two ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.train

ROOT = Path(__file__).resolve().parents[2]
MIXED = "mixed_env:test/Mixed-v0"
SMALL = [
    "--environments", MIXED, "--eval_episodes", "8", "--max_tokens_per_turn", "8", "--cut_response", "step",
    "--num_generations", "2", "--per_device_train_batch_size", "4", "--learning_rate", "1e-3",
    "--bf16", "false",
    "--gradient_checkpointing", "false", "--report_to", "none", "--logging_steps", "1",
    "--disable_tqdm", "true",
]  # fmt: skip


def command(script, *arguments, launch=()):
    return [
        sys.executable, "-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no",
        "--dynamo_backend", "no", *(launch or ("--num_processes", "1")), f"train/{script}.py", *SMALL,
        *map(str, arguments),
    ]  # fmt: skip


def environment(**more):
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **more}


def run(arguments, **more):
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment(**more), capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.timeout(600)
def test_a_run_killed_in_the_middle_goes_on_and_ends_at_the_same_step(tiny_folder, tmp_path):
    output = tmp_path / "run"
    arguments = command(
        "grpo", "--model_name_or_path", tiny_folder, "--output_dir", output, "--max_steps", 6,
        "--expert_steps", 2, "--expert_batch_size", 4, "--save_strategy", "steps", "--save_steps", 1,
    )  # fmt: skip
    victim = subprocess.Popen(
        arguments, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 270
        while not (output / "checkpoint-2" / "gym_state.json").is_file():
            assert victim.poll() is None, victim.stdout.read()[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        os.killpg(victim.pid, signal.SIGKILL)
        victim.communicate()
    assert not (output / "checkpoint-6").exists()

    said = run([*arguments, "--resume_from_checkpoint", "last"])
    assert "warm-up is done" in said
    state = json.loads((output / "checkpoint-6" / "trainer_state.json").read_text())
    assert state["global_step"] == 6
    cursor = json.loads((output / "checkpoint-6" / "gym_state.json").read_text())["task_cursor"]
    assert cursor == 6 * 2, "two groups a step, none twice and none left out"
    stages = json.loads((output / "evaluation.json").read_text())
    assert list(stages) == ["before warm-up", "after warm-up", "after GRPO"]
    assert "Held-out episodes after GRPO" in (output / "rollouts.html").read_text()

    from transformers import AutoModelForImageTextToText, AutoProcessor

    AutoModelForImageTextToText.from_pretrained(output / "model")
    AutoProcessor.from_pretrained(output / "model")


@pytest.mark.timeout(600)
def test_two_ranks_one_of_which_sees_no_picture(tiny_folder, tmp_path):
    # ACCELERATE_USE_CPU with --multi_gpu is what really starts two gloo ranks on a CPU. Without unused
    # parameters being searched for, a vision tower that runs on one rank only hangs or aborts the step.
    mix = json.dumps({"id": MIXED, "kwargs": {"text_rank": 1}})
    said = run(
        command(
            "grpo", "--environments", mix, "--model_name_or_path", tiny_folder,
            "--output_dir", tmp_path / "two",
            "--max_steps", 2, "--gradient_accumulation_steps", 2, "--ddp_find_unused_parameters", "false",
            "--save_strategy", "no", launch=("--multi_gpu", "--num_processes", "2"),
        ),
        ACCELERATE_USE_CPU="true",
    )  # fmt: skip
    assert "GRPO: 2 process(es), 16 episodes a rollout" in said
    assert "step 2; model saved" in said


@pytest.mark.timeout(600)
def test_supervised_training_on_solved_episodes_learns_what_they_say(tiny_folder, tmp_path):
    output = tmp_path / "sft"
    said = run(
        command(
            "sft", "--model_name_or_path", tiny_folder, "--output_dir", output, "--expert_steps", 40,
            "--expert_batch_size", 4, "--expert_learning_rate", 3e-3, "--eval_temperature", 0,
        )
    )  # fmt: skip
    assert "after warm-up" in said
    page = (output / "rollouts.html").read_text()
    assert "a word or two" in page
