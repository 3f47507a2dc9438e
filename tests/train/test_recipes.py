"""Recipes parse, hold whole groups, and name real arguments; `--dry-run` finds what would not work."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
import yaml
from trl import ModelConfig, TrlParser

import mm_gym  # noqa: F401
from train import checks
from train.arguments import GymGRPOConfig, ScriptArguments
from train.rollouts import RolloutConfig

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "configs/recipes").glob("*.yaml"))
BACK_ENDS = sorted((ROOT / "configs/accelerate").glob("*.yaml"))


def parsed(path: Path):
    parser = TrlParser([ScriptArguments, RolloutConfig, ModelConfig, GymGRPOConfig])
    return parser.parse_args_and_config(["--config", str(path), "--bf16", "false", "--use_cpu", "true"])


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipe_parses_holds_whole_groups_and_names_real_arguments(path: Path):
    script, rollout, _, args = parsed(path)
    checks.refuse_unsupported(args)
    checks.groups_on_one_rank(args)
    prompts = args.per_device_train_batch_size * args.steps_per_generation // args.num_generations
    assert prompts == 8, "64 prompts on 8 GPUs"
    assert args.vllm_max_model_length >= args.max_completion_length
    for member in script.members():
        maker = gymnasium.envs.registration.load_env_creator(gymnasium.spec(member.id).entry_point)
        inspect.signature(maker).bind(**member.kwargs)
    assert rollout.max_tokens_per_turn < args.max_completion_length


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipe_says_how_to_run_it_and_what_was_not_run(path: Path):
    text = path.read_text()
    assert "NOT RUN" in text
    assert f"--config configs/recipes/{path.name}" in text
    back_end = text.split("configs/accelerate/")[1].split()[0]
    assert (ROOT / "configs/accelerate" / back_end).is_file()


@pytest.mark.parametrize("path", BACK_ENDS, ids=lambda p: p.stem)
def test_accelerate_reads_each_back_end(path: Path):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(path))
    assert config.num_processes == yaml.safe_load(path.read_text())["num_processes"]


def dry_run(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        *(sys.executable, "train/grpo.py", "--config", "configs/quickstart.yaml", "--dry-run", "true"),
        *("--output_dir", str(output), *arguments),
    ]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False
    )


@pytest.mark.train
def test_dry_run_checks_batches_template_prompts_and_memory(tmp_path: Path):
    done = dry_run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    for said in ("groups of 8 a rollout", "prompts of 16 tasks", "parameters", "template"):
        assert said in done.stdout


@pytest.mark.train
def test_dry_run_finds_what_would_not_work(tmp_path: Path):
    done = dry_run(
        tmp_path, "--environments", '[{"id": "mm_gym/Pointing-v0", "kwargs": {"tasks": ["nothing"]}}]',
        "--expert_environments", "mm_gym/Pointing-v0",
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr[-2000:]
    assert "does not start: tasks must be some of" in done.stdout
