"""Where problems come from: the embedded generator, parquet, a hub data set, the original folder layout.

Knows file formats and rows. Does not know turns, tools or grading. An opened source is kept for the life of
the process and shared by all environments on the same data; pictures are decoded when a problem is drawn.
"""

from __future__ import annotations

import io
import json
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium.error import DependencyNotInstalled
from PIL import Image, UnidentifiedImageError

from mm_gym.errors import EnvironmentFailure
from mm_gym.messages import rgb

OnBadRow = Literal["raise", "skip"]

SPLITS: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid", "dev"),
    "test": ("test", "testing"),
}
"""The splits, each with the names that files and folders give it."""

IMAGE_MARK = "<image>"


@dataclass(frozen=True)
class Geo3kTask:
    """One problem. It holds the answer: do not show it to an agent."""

    id: str
    problem: str
    """The text, without image marks."""
    answer: str
    family: str = ""
    """The generator's family; "" for other sources."""
    level: int = 0
    """The generator's level; 0 for other sources."""


@dataclass(frozen=True)
class Problem:
    """A problem ready to show."""

    task: Geo3kTask
    content: tuple[str | np.ndarray, ...]
    """Texts and pictures, uint8 (H, W, 3), in order."""

    @property
    def pictures(self) -> list[np.ndarray]:
        return [part for part in self.content if not isinstance(part, str)]


class Source(Protocol):
    """What an environment needs of its data."""

    ids: tuple[str, ...] | None
    """The names of all problems; None where there is no end of them."""

    def draw(self, rng: np.random.Generator) -> Problem:
        """A problem by chance."""
        ...

    def get(self, task: str | int) -> Problem:
        """The problem of this name (or of this number, where problems are numbered).

        Raises:
            ValueError: There is none.
        """
        ...


class BadRow(Exception):  # noqa: N818  (becomes an EnvironmentFailure, or a warning)
    """A row that is no problem: what is wrong with it, and where it stands."""


# -- rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row of a finite source, its pictures not yet read."""

    id: str
    where: str
    """File and row, for messages."""
    problem: Any
    answer: Any
    read_images: Callable[[], Sequence[bytes]] = field(repr=False)

    def check_text(self) -> None:
        """Raise `BadRow` when problem or answer is missing."""
        for name, value in (("problem", self.problem), ("answer", self.answer)):
            if not isinstance(value, str) or not value.strip():
                raise BadRow(f"{self.where}: no {name} (found {value!r})")

    def load(self) -> Problem:
        """Decode the pictures and put them where the text marks them; unmarked ones come first."""
        self.check_text()
        try:
            data = self.read_images()
        except OSError as error:
            raise BadRow(f"{self.where}: image not readable ({error})") from None
        pictures = [self._decode(number, item) for number, item in enumerate(data, 1)]
        texts = self.problem.split(IMAGE_MARK)
        marks = len(texts) - 1
        if marks > len(pictures):
            raise BadRow(f"{self.where}: {marks} {IMAGE_MARK} marks in the text, {len(pictures)} images")
        unmarked = len(pictures) - marks
        content: list[str | np.ndarray] = list(pictures[:unmarked])
        for text, picture in zip(texts, [*pictures[unmarked:], None], strict=True):
            content.extend([text.strip()] if text.strip() else [])
            content.extend([picture] if picture is not None else [])
        problem = " ".join(text.strip() for text in texts if text.strip())
        return Problem(Geo3kTask(self.id, problem, self.answer.strip()), tuple(content))

    def _decode(self, number: int, data: bytes) -> np.ndarray:
        try:
            with Image.open(io.BytesIO(data)) as image:
                return rgb(image)
        except UnidentifiedImageError:
            raise BadRow(f"{self.where}: image {number} is no picture ({len(data)} bytes)") from None
        except (OSError, ValueError, SyntaxError, TypeError, Image.DecompressionBombError) as error:
            raise BadRow(f"{self.where}: image {number} not readable ({error})") from None


class RowSource:
    """A finite list of rows, shared by all environments on the same data.

    Args:
        rows: All rows.
        on_bad_row: "raise" an `EnvironmentFailure` on a bad row, or "skip" it with a warning. Missing texts
            are found at once, unreadable pictures when their problem is drawn (or by `check`).
    """

    def __init__(self, rows: Sequence[Row], on_bad_row: OnBadRow) -> None:
        self.on_bad_row = on_bad_row
        self._warned: set[str] = set()
        self._rows: list[Row] = []
        for row in rows:
            try:
                row.check_text()
                self._rows.append(row)
            except BadRow as bad:
                self._complain(bad)
        if not self._rows:
            raise EnvironmentFailure("the data holds no usable problem", kind="data")
        self.ids: tuple[str, ...] | None = tuple(row.id for row in self._rows)
        self._index = {row.id: index for index, row in enumerate(self._rows)}

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, rng: np.random.Generator) -> Problem:
        """A row by chance; where bad ones are skipped, the next that chance gives."""
        for _ in range(100):
            try:
                return self._rows[int(rng.integers(len(self._rows)))].load()
            except BadRow as bad:
                self._complain(bad)
        raise EnvironmentFailure("100 rows drawn in a row were bad; see the warnings", kind="data")

    def get(self, task: str | int) -> Problem:
        """The row of this id, or of this number from 0."""
        index = task if isinstance(task, int) else self._index.get(task, -1)
        if not 0 <= index < len(self._rows):
            assert self.ids is not None
            raise ValueError(
                f"there is no task {task!r}: a task is a number below {len(self._rows)} or an id such as "
                f"{self.ids[0]!r}"
            )
        try:
            return self._rows[index].load()
        except BadRow as bad:
            raise EnvironmentFailure(str(bad), kind="data") from None

    def check(self) -> list[str]:
        """Read every row and name the bad ones (takes some milliseconds a row)."""
        found = []
        for row in self._rows:
            try:
                row.load()
            except BadRow as bad:
                found.append(str(bad))
        return found

    def _complain(self, bad: BadRow) -> None:
        if self.on_bad_row == "raise":
            text = f'{bad}. Mend the row, or pass on_bad_row="skip"'
            raise EnvironmentFailure(text, kind="data") from None
        if str(bad) not in self._warned:
            self._warned.add(str(bad))
            warnings.warn(f"skipped a bad row: {bad}", stacklevel=3)


# -- opening -----------------------------------------------------------------------------------------------

_SOURCES: dict[Any, RowSource] = {}
_LOCK = threading.Lock()


def open_source(data: str | Path, split: str, on_bad_row: OnBadRow = "raise") -> RowSource:
    """The rows of a parquet file or folder, of the original Geometry3K folder, or of a hub data set.

    Args:
        data: A path that exists, else the hub's "owner/name" (needs the package `datasets`).
        split: One of `SPLITS`; not looked at when `data` is a single file.
        on_bad_row: See `RowSource`.

    Raises:
        ValueError: No such data or split; names what was found.
        EnvironmentFailure: A bad row, where it is to be raised, or a hub that is not reached; kind "data".
        DependencyNotInstalled: A hub name without `datasets`.
    """
    path = Path(data).expanduser()
    if path.exists():
        key: Any = (str(path.resolve()), path.stat().st_mtime_ns, split, on_bad_row)
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", str(data)):
        key = (str(data), split, on_bad_row)
    else:
        raise ValueError(f'data must be a file, a folder or a hub name "owner/name"; {str(data)!r} is none')
    with _LOCK:
        if key not in _SOURCES:
            rows = _local_rows(path, split) if path.exists() else _hub_rows(str(data), split)
            _SOURCES[key] = RowSource(rows, on_bad_row)
        return _SOURCES[key]


def _local_rows(path: Path, split: str) -> list[Row]:
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


def _hub_rows(name: str, split: str) -> list[Row]:
    try:
        import datasets
    except ImportError:
        raise DependencyNotInstalled(
            f"data={name!r} is read through the package datasets: pip install 'mm-gym[train]'"
        ) from None
    try:
        dataset = datasets.load_dataset(name, split=split)
    except OSError as error:  # not there, or not reached
        text = f"the data set {name!r} was not loaded ({error}): check the name and the network, or give a folder"
        raise EnvironmentFailure(text, kind="data") from error
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


# -- the generator -----------------------------------------------------------------------------------------


class GeneratorSource:
    """Problems without end from the embedded generator; the splits draw from disjoint streams.

    Args:
        split: One of `SPLITS`.
        families: Some of `mm_gym.geo3k.generator.FAMILIES`; None for all.
        level: One of `mm_gym.geo3k.generator.LEVELS`; None for all.
    """

    ids: tuple[str, ...] | None = None

    def __init__(self, split: str, families: Sequence[str] | None = None, level: int | None = None) -> None:
        from mm_gym.geo3k.generator import FAMILIES, LEVELS

        self.split = split
        self.families = tuple(FAMILIES) if families is None else tuple(families)
        unknown = [family for family in self.families if family not in FAMILIES]
        if unknown or not self.families or isinstance(families, str):
            raise ValueError(f"families must be some of {', '.join(FAMILIES)}; got {families!r}")
        if level is not None and level not in LEVELS:
            raise ValueError(f"level must be one of {LEVELS} or None, got {level!r}")
        self.levels = tuple(LEVELS) if level is None else (level,)

    def draw(self, rng: np.random.Generator) -> Problem:
        family = self.families[int(rng.integers(len(self.families)))]
        level = self.levels[int(rng.integers(len(self.levels)))]
        return self._make(family, level, self.split, int(rng.integers(2**31)))

    def get(self, task: str | int) -> Problem:
        """The problem of a task id of an earlier draw: "generator/<split>/<family>/<level>/<seed>"."""
        parts = str(task).split("/")
        if len(parts) != 5 or parts[0] != "generator" or parts[1] not in SPLITS or not parts[4].isdecimal():
            raise ValueError(f'a task is "generator/<split>/<family>/<level>/<seed>", got {task!r}')
        return self._make(parts[2], int(parts[3]) if parts[3].isdecimal() else -1, parts[1], int(parts[4]))

    def _make(self, family: str, level: int, split: str, seed: int) -> Problem:
        from mm_gym.geo3k.generator import generate

        name = f"generator/{split}/{family}/{level}/{seed}"
        try:
            made = generate(np.random.default_rng([list(SPLITS).index(split), seed]), family, level)
        except RuntimeError as error:
            raise EnvironmentFailure(f"{name}: {error}", kind="generator") from error
        task = Geo3kTask(name, made.problem, made.answer, family, level)
        return Problem(task, (rgb(made.image), made.problem))
