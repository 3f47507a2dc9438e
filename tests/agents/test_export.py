"""Exports of real stored episodes, opened with `datasets` and taken by TRL."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("datasets")

import datasets

from agents import Task, Trajectory
from agents.engine import RolloutEngine
from agents.export import ALL, Selection, export
from agents.policies.solver import SolverPolicy
from agents.store import TrajectoryStore, read_trajectories
from mm_gym.cli import build
from mm_gym.episode import Episode


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of solved episodes that zoom, unsolved ones, and a lost one."""
    path = tmp_path_factory.mktemp("run") / "rollouts"
    kwargs = {"tasks": ["zoom"]}
    tasks = [Task("mm_gym/Pointing-v0", kwargs, seed, group=seed) for seed in range(3)]
    with TrajectoryStore(path) as store:
        for kind in ("expert", "random"):
            with RolloutEngine(SolverPolicy(kind)) as engine:
                store.append(engine.collect(tasks))
        store.append(Trajectory(task=tasks[0], masked=True))
    return path.parent


def opened(path: Path) -> object:
    return datasets.load_dataset(str(path), split="train", cache_dir=str(path.parent / "cache"))


def invoke(*arguments: object) -> dict:
    result = CliRunner().invoke(build(), [str(a) for a in ("export", *arguments, "--json")])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_hf_keeps_every_episode_with_its_pictures(folder, tmp_path):
    told = invoke(folder, "--to", "hf", "-o", tmp_path / "hf")
    assert (told["episodes"], told["kept"], told["rows"]) == (6, 6, 6)
    rows = opened(tmp_path / "hf")
    kept = [t for t in read_trajectories(folder / "rollouts") if not t.masked]
    for row, trajectory in zip(rows, kept, strict=True):
        assert row["success"] == trajectory.success
        assert row["task_id"] == trajectory.episode.task_id
        pictures = [np.array(image) for image in row["images"]]
        assert all(np.array_equal(a, b) for a, b in zip(pictures, trajectory.episode.images, strict=True))
        indices = [b["index"] for m in row["messages"] for b in m["content"] if b["type"] == "image"]
        assert indices == list(range(len(pictures)))


def test_sft_keeps_the_solved_and_trl_takes_them(folder, tmp_path):
    told = invoke(folder, "--to", "sft", "-o", tmp_path / "sft")
    assert told["kept"] == 3
    trl = pytest.importorskip("trl")
    for row in opened(tmp_path / "sft"):
        assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "user", "assistant"]
        filled = trl.data_utils.prepare_multimodal_messages(row["messages"], images=row["images"])
        shown = [b["image"] for m in filled for b in m["content"] if b["type"] == "image"]
        assert shown == row["images"]
        assert len(shown) == 2
        assert "<tool_response>" in row["messages"][3]["content"][0]["text"]
        assert json.loads(row["tools"])[0]["function"]["name"] == "zoom"


def test_trl_has_a_row_a_turn_whose_completion_the_model_said(folder, tmp_path):
    told = invoke(folder, "--to", "trl", "-o", tmp_path / "trl")
    assert (told["kept"], told["rows"]) == (3, 6)
    trl = pytest.importorskip("trl")
    actions = [a for t in read_trajectories(folder / "rollouts") if t.success for a in t.episode.actions]
    rows = list(opened(tmp_path / "trl"))
    assert [row["completion"][0]["content"][0]["text"] for row in rows] == actions
    assert [row["turn"] for row in rows] == [0, 1] * 3
    for row in rows:
        assert len(row["completion"]) == 1
        assert row["prompt"][-1]["role"] == "user"
        trl.data_utils.prepare_multimodal_messages(row["prompt"], images=row["images"])
        assert len(row["images"]) == row["turn"] + 1


def test_answers_to_several_calls_are_one_message(tmp_path):
    results = [
        {"role": "tool", "name": "look", "call": i, "content": [{"type": "text", "text": f"r{i}"}]}
        for i in range(2)
    ]
    ask = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    episode = Episode(observations=[ask, results], actions=["calls", "done"], success=True)
    export([Trajectory(episode=episode, reward=1.0)], "sft", tmp_path / "out")
    (row,) = opened(tmp_path / "out")
    assert [m["role"] for m in row["messages"]] == ["user", "assistant", "user", "assistant"]
    text = "".join(b["text"] for b in row["messages"][2]["content"])
    wrapped = "<tool_response>\nr{}\n</tool_response>"
    assert text == f"{wrapped.format(0)}\n{wrapped.format(1)}"


def trajectory(task: str, said: str, reward: float, **changes) -> Trajectory:
    episode = Episode(task_id=task, actions=[said], success=reward >= 1.0)
    return Trajectory(episode=episode, reward=reward, **changes)


def test_rejection_sampling_keeps_what_was_asked_for():
    episodes = [
        trajectory("a", "long and right", 1.0),
        trajectory("a", "right", 1.0),
        trajectory("a", "right", 1.0),
        trajectory("b", "half", 0.5),
        trajectory("b", "wrong", 0.0),
        trajectory("c", "lost", 1.0, masked=True),
        trajectory("d", "graded at the end", 0.9, metrics={"success": 1.0}),
    ]
    assert Selection().choose(episodes) == [0, 1, 6]
    assert Selection(dedupe=False).choose(episodes) == [0, 1, 2, 6]
    assert Selection(per_task=1).choose(episodes) == [1, 6]  # of equal ones the shortest
    assert Selection(min_reward=0.5).choose(episodes) == [0, 1, 3, 6]
    assert ALL.choose(episodes) == [0, 1, 2, 3, 4, 6]


def test_a_form_or_folder_that_cannot_be_is_refused(folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is not empty"):
        export([], "sft", tmp_path)
    with pytest.raises(ValueError, match="--to must be one of"):
        export([], "csv", tmp_path / "new")
    result = CliRunner().invoke(build(), ["export", str(tmp_path), "-o", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "holds no trajectories" in result.stderr
