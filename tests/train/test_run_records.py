"""What a run's environments say of themselves reaches its record and its name."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("trl")

from train.records import RECORD_FILE, record_run
from train.tasks import parse_members

MCP = {"id": "mm_gym/MCP-v0", "kwargs": {"num_tasks": 2}}


def test_the_job_of_an_mcp_configuration_names_the_run(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    args = SimpleNamespace(run_name=None, output_dir=str(tmp_path / "run"))
    record_run(args, parse_members([MCP, "mm_gym/Pointing-v0"]))
    assert args.run_name == "2048"
    assert args.job == {"name": "2048", "dataset": "built-in"}
    first, second = json.loads((tmp_path / "run" / RECORD_FILE).read_text())
    assert first["job_metadata"] == {"dataset": "built-in"}
    assert first["kwargs"] == {"num_tasks": 2}
    assert second["id"] == "mm_gym/Pointing-v0"


def test_a_name_that_was_given_stays_and_only_the_main_process_writes(tmp_path: Path) -> None:
    args = SimpleNamespace(run_name="mine", output_dir=str(tmp_path / "run"))
    record_run(args, parse_members("mm_gym/Pointing-v0"), write=False)
    assert args.run_name == "mine"
    assert args.job is None
    assert not (tmp_path / "run").exists()


def test_the_job_reaches_a_tracker_with_its_metadata(make_trainer, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("mcp")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "tracked"))
    config = {
        "job": {"name": "pantry night", "metadata": {"team": "blue", "since": date(2026, 11, 30)}},
        "parser": {"use_thinking": False},
        "action_mappings": {"left": {"_tool": "move", "direction": "left"}},
    }
    row = {
        "prompt": "Go.",
        "mcp_config": {"2048": {"command": "python", "args": ["-m", "mm_gym.mcp.servers.game_2048"]}},
    }
    trainer = make_trainer(report_to="tensorboard", max_steps=1, rollout={"store": False})
    members = parse_members([{"id": "mm_gym/MCP-v0", "kwargs": {"config": config, "taskset": [row]}}])
    record_run(trainer.args, members)
    trainer.train()
    events = EventAccumulator(str(tmp_path / "tracked"))
    events.Reload()
    (said,) = events.Tensors("args/text_summary")
    arguments = json.loads(said.tensor_proto.string_val[0])
    assert arguments["run_name"] == "pantry night"
    assert arguments["job"] == {"name": "pantry night", "team": "blue", "since": "2026-11-30"}
    assert "train/reward" in events.Tags()["scalars"]
