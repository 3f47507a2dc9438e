"""`mm-gym plot` on files as transformers' trainers write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from mm_gym.cli import build
from mm_gym.cli.plot import _interval, read_run

pytest.importorskip("matplotlib")


def state(folder: Path, steps: int, **more: float) -> None:
    history = [
        {"step": s, "reward": s / 10, "loss": -0.1, "rollout/success": 0.1 * s, **more} for s in range(steps)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))


def invoke(*arguments: object):
    return CliRunner().invoke(build(), ["plot", *map(str, arguments)])


def test_a_finished_run_is_drawn_with_its_held_out_stages(tmp_path):
    state(tmp_path, 8)
    stages = {"before": {"episodes": 20, "successes": 0}, "after": {"episodes": 20, "successes": 20}}
    (tmp_path / "evaluation.json").write_text(json.dumps(stages))
    result = invoke(tmp_path)
    assert result.exit_code == 0, result.output
    picture = Image.open(tmp_path / "curves.png")
    assert picture.width > 1000  # three panels a row, and a fourth below
    assert picture.height > 500
    assert len(picture.convert("L").getcolors(256) or []) > 10


def test_an_unfinished_run_is_read_from_its_newest_checkpoint(tmp_path):
    for number in (2, 9, 10):
        state(tmp_path / f"checkpoint-{number}", number)
    assert read_run(tmp_path).curve("reward")[-1] == (9, 0.9)
    state(tmp_path, 12)
    assert read_run(tmp_path).curve("reward")[-1] == (11, 1.1)


def test_runs_are_drawn_together_and_metrics_chosen(tmp_path):
    state(tmp_path / "a", 5, mine=1.0)
    state(tmp_path / "b", 7)
    listed = invoke(tmp_path / "a", "--list").stdout.split()
    assert listed == ["loss", "mine", "reward", "rollout/success"]
    result = invoke(tmp_path / "a", tmp_path / "b", "--metric", "mine", "-o", tmp_path / "out" / "x.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "x.png").is_file()


def test_a_run_has_one_color_in_every_panel(tmp_path):
    (tmp_path / "first").mkdir()
    stages = {"before": {"episodes": 20, "successes": 3}}
    (tmp_path / "first" / "evaluation.json").write_text(json.dumps(stages))
    state(tmp_path / "second", 6)
    assert invoke(tmp_path / "first", tmp_path / "second", "-o", tmp_path / "x.png").exit_code == 0
    picture = Image.open(tmp_path / "x.png").convert("RGB")
    curves = picture.crop((picture.width // 3, 0, picture.width, picture.height))
    colors = {color: count for count, color in curves.getcolors(1 << 20) or []}
    assert colors.get((255, 127, 14), 0) > 300, "the second run's, though it is alone in these panels"
    assert colors.get((31, 119, 180), 0) < 300, "the first run's: the legend at most"


def test_what_is_not_there_is_said(tmp_path):
    result = invoke(tmp_path)
    assert result.exit_code == 2
    assert "logging_steps" in result.output
    state(tmp_path, 3)
    result = invoke(tmp_path, "--metric", "rewrad")
    assert result.exit_code == 2
    assert "rewrad" in result.output


def test_the_interval_is_wilsons():
    assert _interval(8, 10) == pytest.approx((0.490, 0.943), abs=1e-3)
    assert _interval(0, 20)[0] == 0.0
    assert _interval(0, 0) == (0.0, 1.0)
