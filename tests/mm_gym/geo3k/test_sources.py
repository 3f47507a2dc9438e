"""Where Geo3k's problems come from: the real set, own parquet, the original layout, the generator."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mm_gym
from mm_gym.geo3k.readers import hub_rows
from mm_gym.geo3k.sources import SPLITS, GeneratorSource, RowSource, open_source


def png(color: str = "red", size: tuple[int, int] = (40, 30), mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, color).save(buffer, "png")
    return buffer.getvalue()


def row(
    problem: Any = "<image>Find x.", answer: Any = "5", images: Sequence[Any] | None = None
) -> dict[str, Any]:
    default = [{"bytes": png(), "path": None}]
    return {"images": default if images is None else list(images), "problem": problem, "answer": answer}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("images", pa.list_(image)), ("problem", pa.string()), ("answer", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


def make(**kwargs: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("mm_gym/Geo3k-v0", **kwargs)


# -- the real set ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("split", "count"), [("train", 2014), ("validation", 280), ("test", 601)])
def test_the_real_set_opens_in_under_a_second(shared_data: Path, split: str, count: int) -> None:
    start = time.perf_counter()
    env = make(data=shared_data / "geo3k", split=split)
    observation, info = env.reset(seed=0)
    assert time.perf_counter() - start < 1.0
    assert len(env.unwrapped.task_ids) == count
    assert len(observation["images"]) == 1
    assert info["task_id"].startswith(f"{split}/")


def test_a_thousand_environments_share_the_data(shared_data: Path) -> None:
    start = time.perf_counter()
    envs = [make(data=str(shared_data / "geo3k"), split="test") for _ in range(1000)]
    assert time.perf_counter() - start < 10
    assert len({id(env.unwrapped.source) for env in envs}) == 1
    assert envs[7].reset(seed=1)[1]["task_id"] == envs[900].reset(seed=1)[1]["task_id"]


@pytest.mark.parametrize("split", SPLITS)
def test_every_real_row_is_good_and_its_text_has_no_image_mark(shared_data: Path, split: str) -> None:
    source = open_source(shared_data / "geo3k", split)
    step = 1 if split == "test" else 10
    for index in range(0, len(source), step):
        problem = source.get(index)
        assert "<image>" not in problem.task.problem
        assert [isinstance(part, str) for part in problem.content] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
def test_check_reads_every_row(shared_data: Path, split: str) -> None:
    assert open_source(shared_data / "geo3k", split).check() == []


def test_a_task_is_picked_by_id_or_number(shared_data: Path) -> None:
    env = make(data=shared_data / "geo3k", split="test")
    by_number = env.reset(seed=0, options={"task": 17})
    by_id = env.reset(seed=5, options={"task": "test/17"})
    assert by_number[1]["task_id"] == by_id[1]["task_id"] == "test/17"
    assert np.array_equal(by_number[0]["images"][0], by_id[0]["images"][0])
    for task in ("test/601", 601, -1, "train/1", "nonsense"):
        with pytest.raises(ValueError, match="there is no task"):
            env.reset(options={"task": task})


def test_the_original_layout_holds_the_same_problems(shared_data: Path) -> None:
    original = open_source(shared_data / "geo3k-original-sample", "test")
    assert len(original) == 20
    lines = (shared_data / "geo3k-meta" / "test_meta.jsonl").read_text().splitlines()
    answers = {str(record["id"]): record["answer"] for record in map(json.loads, lines)}
    for task_id in original.ids or ():
        problem = original.get(task_id)
        assert problem.task.answer == answers[task_id.removeprefix("test/")]
        assert len(problem.pictures) == 1


def test_datasets_reads_the_same_rows(shared_data: Path, tmp_path: Path) -> None:
    """What is done with a hub name, on a local folder that `datasets` reads the same way."""
    pytest.importorskip("datasets")
    (tmp_path / "data").mkdir()
    shutil.copy(shared_data / "geo3k" / "validation.parquet", tmp_path / "data" / "validation.parquet")
    hub = RowSource(hub_rows(str(tmp_path), "validation"), "raise")
    local = open_source(shared_data / "geo3k", "validation")
    assert hub.ids == local.ids
    for index in (0, 99, 279):
        assert hub.get(index).task == local.get(index).task
        assert np.array_equal(hub.get(index).pictures[0], local.get(index).pictures[0])


def test_a_hub_name_that_is_not_reached_is_named() -> None:
    pytest.importorskip("datasets")  # offline by tests/conftest.py
    with pytest.raises(mm_gym.EnvironmentFailure, match="the data set 'nobody/nothing' was not loaded"):
        make(data="nobody/nothing")


# -- rows --------------------------------------------------------------------------------------------------


def test_images_stand_where_the_text_marks_them_and_unmarked_ones_first(tmp_path: Path) -> None:
    red, blue = ({"bytes": png(c), "path": None} for c in ("red", "blue"))
    path = write(
        tmp_path / "a.parquet",
        [row("First <image> then <image> end.", images=[red, blue]), row("No mark.", images=[red, blue])],
    )
    marked, unmarked = (open_source(path, "train").get(i) for i in range(2))
    kinds = [part if isinstance(part, str) else tuple(part[0, 0]) for part in marked.content]
    assert kinds == ["First", (255, 0, 0), "then", (0, 0, 255), "end."]
    assert marked.task.problem == "First then end."
    assert [isinstance(part, str) for part in unmarked.content] == [False, False, True]


def test_transparency_is_laid_on_white_and_paths_are_read(tmp_path: Path) -> None:
    (tmp_path / "clear.png").write_bytes(png("#00000000", mode="RGBA"))
    path = write(tmp_path / "a.parquet", [row(images=[{"bytes": None, "path": "clear.png"}])])
    assert open_source(path, "train").get(0).pictures[0].min() == 255


BAD_ROWS = {
    "no answer": row(answer=None),
    "blank answer": row(answer="  "),
    "no problem": row(problem=""),
    "unreadable image": row(images=[{"bytes": b"no image", "path": None}]),
    "cut image": row(images=[{"bytes": png()[:60], "path": None}]),
    "missing file": row(images=[{"bytes": None, "path": "not_there.png"}]),
    "empty image": row(images=[{"bytes": None, "path": None}]),
    "a mark without image": row("<image><image>Find x."),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_row_is_named_with_file_and_row(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "train.parquet", [row(), BAD_ROWS[kind]])
    with pytest.raises(mm_gym.EnvironmentFailure, match=r"train\.parquet, row 1: ") as failure:
        make(data=path).reset(options={"task": 1})
    assert failure.value.kind == "data"


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_row_is_skipped_when_asked(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "train.parquet", [BAD_ROWS[kind], row(), BAD_ROWS[kind]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = make(data=path, on_bad_row="skip")
        seen = [env.reset(seed=seed)[1]["task_id"] for seed in range(20)]
    assert set(seen) == {"train/1"}
    said = sorted(str(w.message) for w in caught if "skipped a bad row" in str(w.message))
    assert len(said) == 2
    assert all(f"train.parquet, row {index}: " in text for index, text in zip((0, 2), said, strict=True))
    assert [env.reset(seed=seed)[1]["task_id"] for seed in range(20)] == seen


def test_check_names_unreadable_images(tmp_path: Path) -> None:
    path = write(tmp_path / "train.parquet", [row(), BAD_ROWS["cut image"]])
    found = open_source(path, "train").check()
    assert len(found) == 1
    assert "train.parquet, row 1: image 1 not readable" in found[0]


def test_data_without_a_usable_row_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "train.parquet", [BAD_ROWS["no answer"]])
    with (
        pytest.warns(UserWarning, match="row 0"),
        pytest.raises(mm_gym.EnvironmentFailure, match="no usable"),
    ):
        make(data=path, on_bad_row="skip")


def test_a_bad_record_of_the_original_layout_is_named(tmp_path: Path) -> None:
    for name, text in (("1", '{"choices": ["1"], "answer": "D", "annotat_text": "Find x."}'), ("2", "{")):
        (tmp_path / "test" / name).mkdir(parents=True)
        (tmp_path / "test" / name / "data.json").write_text(text)
        (tmp_path / "test" / name / "img_diagram.png").write_bytes(png())
    for name in ("1", "2"):
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        shutil.copytree(tmp_path / "test" / name, tmp_path / "one" / "test" / name)
        with pytest.raises(mm_gym.EnvironmentFailure, match=rf"{name}/data\.json: no (answer|problem)"):
            make(data=tmp_path / "one", split="test")


# -- finding the data --------------------------------------------------------------------------------------


def test_splits_are_found_by_any_usual_name(tmp_path: Path) -> None:
    write(tmp_path / "hub/data/train-00000-of-00002.parquet", [row(answer="1")])
    write(tmp_path / "hub/data/train-00001-of-00002.parquet", [row(answer="2")])
    write(tmp_path / "hub/data/val-00000-of-00001.parquet", [row(answer="3")])
    write(tmp_path / "folders/test/0.parquet", [row(answer="4")])
    assert len(open_source(tmp_path / "hub", "train")) == 2
    assert open_source(tmp_path / "hub", "validation").get(0).task.answer == "3"
    assert open_source(tmp_path / "folders", "test").get(0).task.answer == "4"
    with pytest.raises(ValueError, match="no parquet file of the split 'test': found train"):
        open_source(tmp_path / "hub", "test")


def test_a_file_changed_on_disk_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [row(answer="1")])
    assert open_source(path, "train").get(0).task.answer == "1"
    time.sleep(0.02)
    write(path, [row(answer="2")])
    assert open_source(path, "train").get(0).task.answer == "2"


def test_wrong_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("no parquet")
    pq.write_table(pa.table({"question": ["x"]}), tmp_path / "columns.parquet")
    for data, says in (
        (tmp_path / "nowhere", "nowhere"),
        (tmp_path / "empty", "found nothing"),
        (tmp_path / "text.parquet", "not a parquet file"),
        (tmp_path / "columns.parquet", r"lacks the columns \['answer', 'images', 'problem'\]; it has"),
    ):
        with pytest.raises(ValueError, match=says):
            make(data=data)


# -- the generator -----------------------------------------------------------------------------------------


def test_the_generators_tasks_come_back_by_id_and_splits_differ() -> None:
    ids = {}
    for split in SPLITS:
        env = make(split=split)
        observation, info = env.reset(seed=3)
        again, info_again = env.reset(seed=99, options={"task": info["task_id"]})
        assert info["task_id"] == info_again["task_id"]
        assert info["task"] == info_again["task"]
        assert np.array_equal(observation["images"][0], again["images"][0])
        ids[split] = info["task_id"]
    assert len(set(ids.values())) == 3


def test_families_and_level_of_the_generator() -> None:
    from mm_gym.geo3k.generator import FAMILIES

    env = make(families=FAMILIES[:2], level=2)
    tasks = [env.reset(seed=seed)[1]["task"] for seed in range(12)]
    assert {task.family for task in tasks} == set(FAMILIES[:2])
    assert {task.level for task in tasks} == {2}
    for kwargs in ({"families": ("no_family",)}, {"families": ()}, {"level": 9}, {"families": FAMILIES[0]}):
        with pytest.raises(ValueError, match="must be"):
            make(**kwargs)
    for task in (
        "generator/train/x",
        f"generator/no/{FAMILIES[0]}/1/2",
        f"generator/train/{FAMILIES[0]}/9/2",
        4,
    ):
        with pytest.raises(ValueError, match=r"a task is|unknown"):
            env.reset(options={"task": task})


def test_tasks_are_frozen_and_pickle() -> None:
    task = GeneratorSource("train").draw(np.random.default_rng(0)).task
    assert pickle.loads(pickle.dumps(task)) == task
    with pytest.raises(AttributeError):
        task.answer = "1"  # type: ignore[misc]
