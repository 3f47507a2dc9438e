"""Rows from parquet files, from the hub through `datasets`, and from Geometry3K's original folders.

Knows file formats. Texts are read at once (some milliseconds), pictures at their first use.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled

from mm_gym.errors import EnvironmentFailure
from mm_gym.geo3k.rows import Row

SPLITS: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "testing"),
}
"""The splits, each with the names that files and folders give it."""


def local_rows(path: Path, split: str) -> list[Row]:
    """The rows of a parquet file, a folder of parquet files, or a folder in the original layout."""
    if path.is_file():
        return _parquet_rows(path)
    names = "|".join(SPLITS[split])
    files = sorted(path.rglob("*.parquet"))
    if files:
        wanted = re.compile(rf"(?:^|[-_/.])(?:{names})(?:[-_/.\d]|$)")
        chosen = [file for file in files if wanted.search(file.relative_to(path).as_posix())]
        if not chosen:
            raise ValueError(f"{path} has no parquet file of the split {split!r}: {_shown(files)}")
        return [row for file in chosen for row in _parquet_rows(file)]
    folders = [path / name for name in SPLITS[split] if (path / name).is_dir()]
    if not folders:
        raise ValueError(
            f"{path} holds neither parquet files nor a folder of the split {split!r} with <id>/data.json: "
            f"{_shown(sorted(path.iterdir()))}"
        )
    return _original_rows(folders[0])


def _shown(paths: Sequence[Path]) -> str:
    return "found " + (", ".join(p.name for p in paths[:8]) or "nothing")


class _ImageColumn:
    """The column `images` of a parquet file, read at its first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._column: Any = None
        self._lock = threading.Lock()

    def __call__(self, index: int) -> list[bytes]:
        import pyarrow.parquet as pq

        with self._lock:
            if self._column is None:
                # one thread: Arrow's pool does not live on in a forked worker
                self._column = pq.ParquetFile(self.path).read(columns=["images"], use_threads=False)["images"]
        return _image_bytes(self._column[index].as_py(), self.path.parent)


def _image_bytes(value: Any, folder: Path | None) -> list[bytes]:
    """The files of a row's `images`: a list of {bytes, path}, of bytes or of paths (or one of these)."""
    items = value if isinstance(value, list) else [value]
    return [_one_image(item, folder) for item in items if item is not None]


def _one_image(item: Any, folder: Path | None) -> bytes:
    if isinstance(item, dict):
        item = item.get("bytes") or item.get("path")
    if isinstance(item, str) and folder is not None:
        item = (folder / item).read_bytes()
    if not isinstance(item, bytes):
        raise OSError(f"neither bytes nor a path, but {type(item).__name__}")
    return item


def _parquet_rows(path: Path) -> list[Row]:
    import pyarrow.parquet as pq
    from pyarrow import ArrowInvalid

    try:
        file = pq.ParquetFile(path)
        _check_columns(file.schema_arrow.names, str(path))
        table = file.read(columns=["problem", "answer"], use_threads=False).to_pydict()
    except ArrowInvalid as error:
        raise ValueError(f"{path} is not a parquet file that can be read: {error}") from None
    return _table_rows(table, path.stem, str(path), _ImageColumn(path))


def _check_columns(names: Sequence[str], where: str) -> None:
    missing = {"images", "problem", "answer"} - set(names)
    if missing:
        raise ValueError(f"{where} lacks the columns {sorted(missing)}; it has {sorted(names)}")


def _table_rows(
    table: dict[str, list[Any]], name: str, where: str, images: Callable[[int], list[bytes]]
) -> list[Row]:
    return [
        Row(f"{name}/{index}", f"{where}, row {index}", problem, answer, _Bound(images, index))
        for index, (problem, answer) in enumerate(zip(table["problem"], table["answer"], strict=True))
    ]


@dataclass(frozen=True)
class _Bound:
    """The images of one row."""

    images: Callable[[int], list[bytes]]
    index: int

    def __call__(self) -> list[bytes]:
        return self.images(self.index)


def hub_rows(name: str, split: str) -> list[Row]:
    """The rows of a hub data set, read through the package `datasets`."""
    try:
        import datasets
    except ImportError:
        raise DependencyNotInstalled(
            f"data={name!r} is read through the package datasets: pip install 'mm-gym[train]'"
        ) from None
    try:
        dataset = datasets.load_dataset(name, split=split)
    except OSError as error:  # not there, or not reached
        raise EnvironmentFailure(
            f"the data set {name!r} was not loaded ({error}): check name and network, or give a folder",
            kind="data",
        ) from error
    _check_columns(dataset.column_names, name)
    rows = dataset.with_format("arrow")
    table = rows.select_columns(["problem", "answer"])[:].to_pydict()
    return _table_rows(table, split, f"{name} ({split})", _HubImages(rows))


@dataclass(frozen=True)
class _HubImages:
    """The images of a hub data set's rows, as stored."""

    rows: Any

    def __call__(self, index: int) -> list[bytes]:
        return _image_bytes(self.rows[index]["images"][0].as_py(), None)


def _original_rows(folder: Path) -> list[Row]:
    """The data set's original layout: `<split>/<id>/data.json` beside `img_diagram.png`."""
    entries = [entry for entry in folder.iterdir() if (entry / "data.json").is_file()]
    entries.sort(key=lambda entry: (len(entry.name), entry.name))
    if not entries:
        raise ValueError(f"{folder} has no <id>/data.json: {_shown(sorted(folder.iterdir()))}")
    return [_original_row(entry) for entry in entries]


def _original_row(entry: Path) -> Row:
    file = entry / "data.json"
    problem = answer = None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        problem = record.get("annotat_text") or record.get("problem_text")
        answer = record["choices"]["ABCD".index(record["answer"])]
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        pass  # reported with file and row by Row.check_text, as a missing problem or answer
    return Row(
        f"{entry.parent.name}/{entry.name}", str(file), problem, answer, _File(entry / "img_diagram.png")
    )


@dataclass(frozen=True)
class _File:
    path: Path

    def __call__(self) -> list[bytes]:
        return [self.path.read_bytes()]
