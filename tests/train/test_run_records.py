"""What a run's environments say of themselves reaches its record and its name."""

from __future__ import annotations

import json
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
    first, second = json.loads((tmp_path / "run" / RECORD_FILE).read_text())
    assert first["job_metadata"] == {"dataset": "built-in"}
    assert first["kwargs"] == {"num_tasks": 2}
    assert second["id"] == "mm_gym/Pointing-v0"


def test_a_name_that_was_given_stays_and_only_the_main_process_writes(tmp_path: Path) -> None:
    args = SimpleNamespace(run_name="mine", output_dir=str(tmp_path / "run"))
    record_run(args, parse_members("mm_gym/Pointing-v0"), write=False)
    assert args.run_name == "mine"
    assert not (tmp_path / "run").exists()
