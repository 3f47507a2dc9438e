"""Where problems come from: `open_source` for data of your own, `GeneratorSource` for the embedded generator.

Knows how a source is opened and shared. Does not know turns, tools or grading. An opened source is kept for
the life of the process: all environments on the same data share it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mm_gym.errors import EnvironmentFailure
from mm_gym.geo3k.readers import SPLITS, hub_rows, local_rows
from mm_gym.geo3k.rows import Geo3kTask, OnBadRow, Problem, RowSource
from mm_gym.messages import rgb

__all__ = [
    "SPLITS",
    "GeneratorSource",
    "Geo3kTask",
    "OnBadRow",
    "Problem",
    "RowSource",
    "Source",
    "open_source",
]


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
            rows = local_rows(path, split) if path.exists() else hub_rows(str(data), split)
            _SOURCES[key] = RowSource(rows, on_bad_row)
        return _SOURCES[key]


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
