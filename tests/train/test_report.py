"""What the scripts read and print."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.train

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def figures():
    from train.evaluation import Evaluation

    return Evaluation(
        episodes=10, successes=8, masked=1, reward=0.8, turns=2.0, tool_calls=1.0, failed_calls=1,
        late_images=9, sampled_tokens=20.0, stop_reasons={"env_done": 9, "generation_length": 1},
    )  # fmt: skip


def test_stages_are_printed_with_their_interval_and_survive_a_restart(figures, tmp_path, capsys):
    from train.report import Report

    Report(tmp_path).add("after warm-up", figures)
    assert not Report(tmp_path).stages, "another run's figures"
    again = Report(tmp_path, resume=True)
    again.add("after GRPO", figures)
    again.table("held-out episodes")
    said = capsys.readouterr().out
    assert "held-out success after warm-up: 80.0% (49.0% to 94.3%, 10 episodes" in said
    assert "pictures after turn 1" in said
    assert "stop: generation_length" in said
    assert list(again.stages) == ["after warm-up", "after GRPO"]


def test_other_ranks_print_and_write_nothing(figures, tmp_path, capsys):
    from train.report import Report

    report = Report(tmp_path / "run", main=False)
    report.add("after GRPO", figures)
    report.table("held-out episodes")
    assert report.page([], 3, "nothing") is None
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "run").exists()


def test_data_goes_to_geo3k_environments_alone_and_their_own_wins():
    from train.arguments import ScriptArguments

    script = ScriptArguments(
        environments=[
            "mm_gym/Pointing-v0",
            {"id": "mm_gym/Geo3k-v0"},
            {"id": "mm_gym/Geo3k-v0", "kwargs": {"data": None}},
        ],
        data="somewhere",
    )
    assert [member.kwargs for member in script.members()] == [{}, {"data": "somewhere"}, {"data": None}]
    assert script.members("eval_environments") == script.members()


@pytest.mark.parametrize("name", ["quickstart", "geo3k_smoke"])
def test_the_configurations_are_read_whole(name, tmp_path):
    from trl import ModelConfig, TrlParser

    from train.arguments import GymGRPOConfig, ScriptArguments
    from train.rollouts import RolloutConfig

    path = ROOT / "configs" / f"{name}.yaml"
    parser = TrlParser([ScriptArguments, RolloutConfig, ModelConfig, GymGRPOConfig])
    script, rollout, model, args = parser.parse_args_and_config(
        ["--config", str(path), "--output_dir", str(tmp_path), "--max_steps", "7"]
    )
    written = yaml.safe_load(path.read_text())
    assert args.max_steps == 7, "the command line wins"
    assert args.num_generations == written["num_generations"]
    assert rollout.max_tokens_per_turn == written["max_tokens_per_turn"]
    assert model.model_name_or_path == "tiny"
    assert script.members()[0].kwargs == written["environments"][0]["kwargs"]
    assert args.vllm_importance_sampling_mode == "token_truncate"
