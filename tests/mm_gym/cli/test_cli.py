"""`mm-gym`: list, doctor, play, and commands that are not there."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
from typer.testing import CliRunner

import mm_gym
from mm_gym.cli import _load, build
from mm_gym.cli.picture import half_blocks

runner = CliRunner()


def invoke(*arguments: str, **kwargs):
    return runner.invoke(build(), list(arguments), **kwargs)


def test_version_is_printed():
    assert invoke("--version").stdout.strip() == f"mm-gym {mm_gym.__version__}"


def test_list_names_every_id_and_what_is_missing():
    rows = {row["id"]: row for row in json.loads(invoke("list", "--json").stdout)}
    assert set(rows) == set(mm_gym.registry.IDS)
    assert rows["mm_gym/Pointing-v0"]["ready"]
    assert all(row["ready"] or "pip install" in row["missing"] for row in rows.values())


def test_doctor_finds_base_and_checkout_in_order():
    result = invoke("doctor", "--json")
    findings = json.loads(result.stdout)
    by_name = {(f["area"], f["name"]): f["state"] for f in findings}
    assert by_name["base", "gymnasium"] == "ok"
    assert by_name["checkout", "agents"] == "ok"
    assert result.exit_code == int(any(f["state"] == "broken" for f in findings))
    assert all(f["remedy"] for f in findings if f["state"] == "broken")


def test_play_shows_the_solver_and_writes_a_page(tmp_path):
    page = tmp_path / "page.html"
    result = invoke(
        *("play", "mm_gym/Pointing-v0", "--env-args", '{"tasks": ["zoom"]}', "--seed", "1"),
        *("--expert", "--page", str(page)),
    )
    assert result.exit_code == 0, result.output
    assert "<tool_call>" in result.stdout
    assert "solved, return 1" in result.stdout
    assert page.read_text().count("data:image/png") == 2


def test_play_takes_responses_from_the_keyboard(tmp_path, monkeypatch):
    lines = ":image\nI will\\\nguess\n:expert\n"
    monkeypatch.chdir(tmp_path)
    result = invoke("play", "mm_gym/Pointing-v0", "--env-args", '{"tasks": ["cell"]}', input=lines)
    assert result.exit_code == 0, result.output
    assert "saved picture.png" in result.stdout
    assert "I will\nguess" in result.stdout
    assert "solved, return 1" in result.stdout


def test_an_environment_of_a_module_in_the_folder_is_found(tmp_path):
    code = (
        "import gymnasium\nfrom mm_gym.pointing.env import PointingEnv\n"
        "gymnasium.register('Mine-v0', PointingEnv)\n"
    )
    (tmp_path / "mine_here.py").write_text(code)
    main = "import sys; del sys.path[0]; from mm_gym.cli import main; main()"
    command = [sys.executable, "-c", main, "play", "mine_here:Mine-v0", "--expert"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "solved, return 1" in result.stdout


@pytest.mark.parametrize("ending", [":quit\n", ""])
def test_play_can_be_left(ending: str):
    assert invoke("play", "mm_gym/Pointing-v0", input=ending).exit_code == 130


def test_play_says_what_is_wrong_with_env_args():
    result = invoke("play", "mm_gym/Pointing-v0", "--env-args", "[1]")
    assert result.exit_code == 2
    assert "JSON object" in result.output


def test_command_of_a_missing_checkout_says_so():
    entry = metadata.EntryPoint("eval", "no_such_package.cli:command", "mm_gym.commands")
    app = build()
    app.command("absent")(_load(entry))
    result = runner.invoke(app, ["absent"])
    assert result.exit_code == 2
    assert "checkout" in result.output


def test_the_checkouts_agents_win_over_an_installed_namesake(tmp_path):
    """openai-agents imports as `agents` too, and site-packages come before the checkout's own entry."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").touch()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from mm_gym.cli import main; main()"
    command = [sys.executable, "-c", code, "audit", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "what earns reward" in result.stdout


def test_half_blocks_keep_the_aspect_ratio():
    image = np.zeros((40, 80, 3), np.uint8)
    image[:20] = 255
    rows = [row for row in "".join(s.text for s in half_blocks(image, 20).segments).split("\n") if row]
    assert [len(row) for row in rows] == [20] * 5


def test_view_writes_a_page_of_a_run(tmp_path):
    store = pytest.importorskip("agents.store")
    from agents.types import Trajectory

    record = mm_gym.Episode(env_id="mm_gym/Pointing-v0", task_id="t", actions=[], success=True)
    with store.TrajectoryStore(tmp_path / "run" / "rollouts") as written:
        written.append(Trajectory(episode=record, reward=1.0))
    result = invoke("view", str(tmp_path / "run"), "--no-browser")
    assert result.exit_code == 0, result.output
    assert "1 episodes" in result.stdout
    assert (tmp_path / "run" / "rollouts.html").is_file()


def test_view_says_where_no_trajectories_are(tmp_path):
    result = invoke("view", str(tmp_path), "--no-browser")
    assert result.exit_code == 2
    assert "holds no trajectories" in result.output
