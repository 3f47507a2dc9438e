"""Trajectories on disk: what is read is what was written, pictures once, whole after a crash."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import RolloutEngine
from agents.store import IMAGES, TRAJECTORIES, TrajectoryStore, image_digest, read_trajectories
from agents.types import Task, Trajectory

DOCS = Path(__file__).resolve().parents[2] / "docs" / "trajectories.md"


@pytest.fixture(scope="module")
def episodes() -> list[Trajectory]:
    with RolloutEngine(ScriptedPolicy(), CharRenderer()) as engine:
        return engine.collect([Task(ENV_ID, {"length": 2 + i}, seed=i, group=i) for i in range(4)])


def files(folder: Path, table: str) -> list[str]:
    return sorted(p.name for p in (folder / table).iterdir())


def same(a: Trajectory, b: Trajectory) -> None:
    for name in ("task", "token_ids", "loss_mask", "logprobs", "prompt_length", "turns", "reward", "masked"):
        assert getattr(a, name) == getattr(b, name), name
    assert (a.stop_reason, a.failures, a.metrics) == (b.stop_reason, b.failures, b.metrics)
    assert [np.array(i).tolist() for i in a.images] == [np.array(i).tolist() for i in b.images]
    assert a.episode.messages == b.episode.messages
    assert a.episode.infos == b.episode.infos
    assert all(np.array_equal(x, y) for x, y in zip(a.episode.images, b.episode.images, strict=True))


def test_what_is_read_is_what_was_written(tmp_path, episodes):
    with TrajectoryStore(tmp_path) as store:
        store.append(episodes[:3], step=1)
        store.append(episodes[3], step=2)
    back = list(read_trajectories(tmp_path))
    assert len(back) == 4
    for a, b in zip(episodes, back, strict=True):
        same(a, b)


def test_a_masked_trajectory_has_no_reward_on_disk_either(tmp_path, episodes):
    lost = Trajectory(task=episodes[0].task, masked=True, failures={"timeout": 2})
    with TrajectoryStore(tmp_path) as store:
        store.append(lost)
    (back,) = read_trajectories(tmp_path)
    assert back.masked
    assert back.reward is None
    assert back.failures == {"timeout": 2}


def test_pictures_are_kept_once_by_content(tmp_path, episodes):
    pictures = {image_digest(i) for t in episodes for i in t.episode.images}
    for _ in range(2):
        with TrajectoryStore(tmp_path) as store:
            store.append(episodes)
    import datasets

    table = datasets.load_dataset(
        "parquet", data_dir=str(tmp_path / "images"), split="train", cache_dir=tmp_path
    )
    assert sorted(table["digest"]) == sorted(pictures)
    picture = table[0]["image"]
    assert image_digest(np.array(picture.convert("RGB"))) == table[0]["digest"]
    rows = datasets.load_dataset(
        "parquet", data_dir=str(tmp_path / "trajectories"), split="train", cache_dir=tmp_path
    )
    assert len(rows) == 8
    assert rows[0]["token_ids"] == episodes[0].token_ids


def test_small_files_are_merged_when_they_add_up(tmp_path, episodes):
    store = TrajectoryStore(tmp_path, rotate_bytes=100_000)
    for _ in range(10):
        store.append(episodes[0])
    sizes = [(p.name, p.stat().st_size) for p in (tmp_path / "trajectories").iterdir()]
    assert all(size < 200_000 for _, size in sizes)
    store.close()
    assert len(list(read_trajectories(tmp_path, images=False))) == 10
    assert len(files(tmp_path, "trajectories")) < 10


def test_ranks_share_a_folder(tmp_path, episodes):
    for rank in range(2):
        with TrajectoryStore(tmp_path, rank=rank) as store:
            store.append(episodes[rank])
    assert len(list(read_trajectories(tmp_path))) == 2


def test_what_a_crash_in_a_merge_leaves_twice_is_read_once_and_removed(tmp_path, episodes):
    with TrajectoryStore(tmp_path) as store:
        for t in episodes:
            store.append(t)
        before = {p.name: p.read_bytes() for p in (tmp_path / "trajectories").iterdir()}
    for name, content in before.items():  # as if the merged file had been renamed and nothing removed yet
        (tmp_path / "trajectories" / name).write_bytes(content)
    (tmp_path / "trajectories" / "rank0-000000004-000000004.parquet.tmp").write_bytes(b"PAR1 cut")
    assert len(list(read_trajectories(tmp_path))) == 4
    with TrajectoryStore(tmp_path) as store:
        store.append(episodes[0])
    assert files(tmp_path, "trajectories") in (
        ["rank0-000000000-000000003.parquet", "rank0-000000004-000000004.parquet"],
        ["rank0-000000000-000000004.parquet"],
    )
    assert len(list(read_trajectories(tmp_path))) == 5


def _write_for_ever(folder: str, episodes: list[Trajectory]) -> None:
    store = TrajectoryStore(folder, rotate_bytes=60_000)
    while True:
        for t in episodes:
            store.append(t)


def test_a_killed_writer_leaves_every_whole_episode_readable(tmp_path, episodes):
    process = multiprocessing.get_context("fork").Process(
        target=_write_for_ever, args=(str(tmp_path), episodes), daemon=True
    )
    process.start()
    deadline = time.monotonic() + 90
    while len(list((tmp_path / "trajectories").glob("*.parquet"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    back = list(read_trajectories(tmp_path))
    assert len(back) >= 3
    for number, t in enumerate(back):
        same(episodes[number % 4], t)
    with TrajectoryStore(tmp_path) as store:
        store.append(episodes[len(back) % 4])
    assert len(list(read_trajectories(tmp_path))) == len(back) + 1


def test_the_documented_schema_is_the_schema():
    text = DOCS.read_text()
    documented = re.findall(r"^\| `(\w+)` \| ([\w<>]+) \|", text, flags=re.M)
    actual = [(f.name, re.sub(r"<.*", lambda m: _item(m[0]), str(f.type))) for f in [*TRAJECTORIES, *IMAGES]]
    assert documented == actual
    for field in TRAJECTORIES.field("turns").type.value_type:
        assert f"`{field.name}`" in text


def _item(rest: str) -> str:
    """`<element: int32>` as `<int32>`, a struct without its fields."""
    if rest.startswith("<bytes"):
        return ""
    return "<struct>" if "struct" in rest else "<" + rest.split(": ")[1]
