"""A table in a folder of parquet files that can be read at any moment, also after a crash.

Every append writes a whole small file under a temporary name and renames it; when the small ones add up
to `rotate_bytes` they are merged into one. A file's name says which rows it holds, so what a crash leaves
twice is recognised and removed. Knows pyarrow and files; not what the rows mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_NAME = re.compile(r"^(?P<stem>.+)-(?P<first>\d{9})-(?P<last>\d{9})\.parquet$")


@dataclass(frozen=True)
class _Shard:
    path: Path
    first: int
    last: int

    @property
    def bytes(self) -> int:
        return self.path.stat().st_size


class ShardedTable:
    """Appends rows to a folder of parquet files.

    Args:
        folder: Made when missing.
        schema: Of the rows.
        stem: Start of the file names; each writing process needs its own.
        rotate_bytes: Size from which small files are merged into one.
        group_rows: Rows of a row group in a merged file.
    """

    def __init__(
        self,
        folder: str | Path,
        schema: pa.Schema,
        stem: str,
        rotate_bytes: int = 64 * 2**20,
        group_rows: int = 64,
    ) -> None:
        self.folder = Path(folder)
        self.schema = schema
        self.stem = stem
        self.rotate_bytes = rotate_bytes
        self.group_rows = group_rows
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(f"{stem}-*.parquet.tmp"):
            leftover.unlink()
        shards = self._repair()
        self.rows = shards[-1].last + 1 if shards else 0
        """Rows so far."""
        self._loose = [s for s in shards if s.bytes < rotate_bytes]
        while self._loose and self._loose[0].last + 1 != (
            self._loose[1].first if self._loose[1:] else self.rows
        ):
            self._loose.pop(0)  # only the unbroken tail can be merged

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows; they are on disk when this returns."""
        if not rows:
            return
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=self.schema)
        shard = self._write(table, self.rows, self.rows + len(rows) - 1)
        self.rows = shard.last + 1
        self._loose.append(shard)
        if sum(s.bytes for s in self._loose) >= self.rotate_bytes:
            self.merge()

    def merge(self) -> None:
        """Merge the small files into one."""
        if len(self._loose) < 2:
            self._loose = []
            return
        table = pa.concat_tables([pq.read_table(s.path, schema=self.schema) for s in self._loose])
        self._write(table, self._loose[0].first, self._loose[-1].last)
        for shard in self._loose:
            shard.path.unlink()
        self._loose = []

    def _write(self, table: pa.Table, first: int, last: int) -> _Shard:
        path = self.folder / f"{self.stem}-{first:09d}-{last:09d}.parquet"
        temporary = path.with_suffix(".parquet.tmp")
        with open(temporary, "wb") as file:
            pq.write_table(table, file, row_group_size=self.group_rows, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        return _Shard(path, first, last)

    def _repair(self) -> list[_Shard]:
        """The files in order, without those whose rows a merged file holds too."""
        kept: list[_Shard] = []
        for shard in sorted(_shards(self.folder, self.stem), key=lambda s: (s.first, -s.last)):
            if kept and shard.last <= kept[-1].last:
                shard.path.unlink()
            else:
                kept.append(shard)
        return kept


def read_rows(folder: str | Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """All rows of a folder, file by file in the order of their names, each row once.

    Reads what other processes are writing as well. A file that disappears meanwhile was merged: read again.
    """
    last: dict[str, int] = {}
    shards = [s for stem in _stems(folder) for s in _shards(Path(folder), stem)]
    for shard in sorted(shards, key=lambda s: (_stem(s.path), s.first, -s.last)):
        stem = _stem(shard.path)
        if shard.last <= last.get(stem, -1):
            continue
        last[stem] = shard.last
        with pq.ParquetFile(shard.path) as file:
            for batch in file.iter_batches(batch_size=64, columns=columns):
                yield from batch.to_pylist()


def _stem(path: Path) -> str:
    match = _NAME.match(path.name)
    return match["stem"] if match else ""


def _stems(folder: str | Path) -> list[str]:
    return sorted({_stem(p) for p in Path(folder).glob("*.parquet") if _stem(p)})


def _shards(folder: Path, stem: str) -> list[_Shard]:
    shards = []
    for path in folder.glob(f"{stem}-*.parquet"):
        match = _NAME.match(path.name)
        if match and match["stem"] == stem:
            shards.append(_Shard(path, int(match["first"]), int(match["last"])))
    return shards
