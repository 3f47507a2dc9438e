"""Problems, and a finite list of them: what a row must hold, and what happens to a bad one.

Knows rows, not the files they come from (`readers`). Pictures are decoded when a problem is drawn.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from PIL import Image, UnidentifiedImageError

from mm_gym.errors import EnvironmentFailure
from mm_gym.messages import rgb

OnBadRow = Literal["raise", "skip"]

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


class BadRow(Exception):  # noqa: N818  (becomes an EnvironmentFailure, or a warning)
    """A row that is no problem: what is wrong with it, and where it stands."""


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
