"""The puzzles of Pointing-v0: what is asked, what is right, and how the picture is drawn.

Knows drawing and wording. Does not know turns, tools or rewards.
A picture is a board of 3 x 3 cells, numbered 1 to 9 row by row from the top left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

COLORS: dict[str, tuple[int, int, int]] = {
    "red": (220, 30, 30),
    "green": (20, 160, 60),
    "blue": (30, 70, 220),
    "yellow": (240, 200, 0),
    "black": (20, 20, 20),
}
SHAPES = ("square", "circle", "triangle")
LEVELS = (1, 2, 3)
CELLS = tuple(range(1, 10))

QUESTIONS: dict[str, tuple[str, ...]] = {
    "cell": ("Which cell holds the {target}?", "Where is the {target}?", "Find the {target}."),
    "click": ("Click the {target}.", "Click on the {target}.", "Point at the {target}."),
    "color": (
        "What color is the shape in cell {cell}?",
        "Name the color in cell {cell}.",
        "Color of cell {cell}?",
    ),
    "shape": ("What shape is in cell {cell}?", "Name the shape in cell {cell}.", "Shape in cell {cell}?"),
    "read": ("Which number is in cell {cell}?", "Read the number in cell {cell}.", "Number in cell {cell}?"),
    "zoom": (
        "What color is under cell {cell}?",
        "Zoom on cell {cell}: which color?",
        "Color under cell {cell}?",
    ),
}
"""The wordings of each family, one drawn by the seed. `{target}` is e.g. "red square"."""

MARKED = ("What color is under the mark?", "Zoom on the mark: which color?", "Color under the mark?")
"""Wordings of the family "zoom" from level 2 on: the cell must be found in the picture."""

FAMILIES = tuple(QUESTIONS)


@dataclass(frozen=True)
class Item:
    """Something in a cell: a coloured shape, or a number."""

    cell: int
    """1 to 9."""
    kind: str
    """One of `SHAPES`, or the digits of a number."""
    color: str
    box: tuple[float, float, float, float]
    """left, top, right, bottom as shares (0 to 1) of the board."""


@dataclass(frozen=True)
class Puzzle:
    """One puzzle. It holds the answer: do not show it to an agent."""

    family: str
    level: int
    seed: int
    question: str
    answer: str
    """A cell number, a word, a number, or "x,y" on a 0 to 1000 grid for "click"."""
    cell: int
    """The cell asked for."""
    items: tuple[Item, ...]
    covered: bool = False
    """Whether the board hides its items, so that only a zoom shows them."""
    marked: bool = False
    """Whether the asked cell carries a mark on the covered board."""

    @property
    def id(self) -> str:
        """Family, level and seed: `make_puzzle` of the three gives this puzzle again."""
        return f"{self.family}-{self.level}-{self.seed}"

    def accepts(self, answer: str) -> bool:
        """Whether an answer is right; a click is when it lies in the target's bounding box."""
        if self.family != "click":
            return answer == self.answer
        point = parse_point(answer)
        if point is None:
            return False
        left, top, right, bottom = self.target.box
        return left * 1000 <= point[0] <= right * 1000 and top * 1000 <= point[1] <= bottom * 1000

    @property
    def target(self) -> Item:
        return next(item for item in self.items if item.cell == self.cell)


def parse_point(text: str) -> tuple[int, int] | None:
    """ "x,y" with whole numbers from 0 to 1000, blanks and round brackets allowed; None for anything else.

    >>> parse_point("(500, 167)")
    (500, 167)
    """
    parts = text.strip().removeprefix("(").removesuffix(")").split(",")
    if len(parts) != 2 or not all(p.strip().isascii() and p.strip().isdigit() for p in parts):
        return None
    if any(len(p.strip()) > 4 for p in parts):
        return None
    x, y = (int(p) for p in parts)
    return (x, y) if 0 <= x <= 1000 and 0 <= y <= 1000 else None


def make_puzzle(family: str, level: int, seed: int) -> Puzzle:
    """The puzzle of this family, level and seed; the same three give the same puzzle.

    Raises:
        ValueError: The family or the level does not exist.
    """
    if family not in FAMILIES:
        raise ValueError(f"unknown task {family!r}; the tasks are {', '.join(FAMILIES)}")
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}, got {level!r}")
    rng = np.random.default_rng([FAMILIES.index(family), level, seed])
    items = _numbers(rng, level) if family == "read" else _shapes(rng, level, family)
    target = items[0]
    wordings = MARKED if family == "zoom" and level > 1 else QUESTIONS[family]
    question = wordings[rng.integers(len(wordings))].format(cell=target.cell, target=_describe(target, level))
    shuffled = tuple(sorted(items, key=lambda item: item.cell))
    return Puzzle(
        family=family,
        level=level,
        seed=seed,
        question=question,
        answer=_ANSWERS[family](target),
        cell=target.cell,
        items=shuffled,
        covered=family == "zoom",
        marked=family == "zoom" and level > 1,
    )


def cell_center(cell: int) -> tuple[int, int]:
    """The centre of a cell on the 0 to 1000 grid, as (x, y)."""
    row, column = divmod(cell - 1, 3)
    return round((column + 0.5) * 1000 / 3), round((row + 0.5) * 1000 / 3)


_ANSWERS: dict[str, Callable[[Item], str]] = {
    "cell": lambda item: str(item.cell),
    "click": lambda item: "{},{}".format(*cell_center(item.cell)),
    "color": lambda item: item.color,
    "shape": lambda item: item.kind,
    "read": lambda item: item.kind,
    "zoom": lambda item: item.color,
}


def _describe(target: Item, level: int) -> str:
    """How the question names the target: level 1 has one shape, level 2 one of each colour."""
    return target.kind if level == 1 else f"{target.color} {target.kind}"


def _shapes(rng: np.random.Generator, level: int, family: str) -> list[Item]:
    """Coloured shapes in distinct cells, the target first; no other has its colour and shape together."""
    count = len(CELLS) if family == "zoom" else {1: 1, 2: 3, 3: 6}[level]
    cells = [int(c) for c in rng.permutation(CELLS)[:count]]
    pairs = [(color, shape) for color in COLORS for shape in SHAPES]
    if level == 1 and family in ("cell", "click"):
        pairs = [("black", shape) for shape in SHAPES]
    if level == 1 and family == "color":
        pairs = [(color, "square") for color in COLORS]
    if level == 1 and family == "shape":
        pairs = [("black", shape) for shape in SHAPES]
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[:count]]
    return [
        Item(cell, shape, color, _box(rng, cell)) for cell, (color, shape) in zip(cells, chosen, strict=True)
    ]


def _numbers(rng: np.random.Generator, level: int) -> list[Item]:
    """Numbers in distinct cells: one digit (levels 1 and 2), or two (level 3)."""
    count = {1: 1, 2: 3, 3: 6}[level]
    cells = [int(c) for c in rng.permutation(CELLS)[:count]]
    low, high = (0, 10) if level < 3 else (10, 100)
    values = [int(v) for v in rng.choice(np.arange(low, high), count, replace=False)]
    colors = (
        [list(COLORS)[i] for i in rng.integers(len(COLORS), size=count)] if level == 3 else ["black"] * count
    )
    return [
        Item(cell, str(value), color, _box(rng, cell))
        for cell, value, color in zip(cells, values, colors, strict=True)
    ]


def _box(rng: np.random.Generator, cell: int) -> tuple[float, float, float, float]:
    """A box in the cell, 60 to 80% of its side, that always holds the cell's centre."""
    row, column = divmod(cell - 1, 3)
    side = float(rng.uniform(0.6, 0.8))
    x, y = (float(v) for v in rng.uniform(0.08, 0.92 - side, 2))
    left, top = (column + x) / 3, (row + y) / 3
    return (left, top, left + side / 3, top + side / 3)


# -- pictures ----------------------------------------------------------------------------------------------

_BACKGROUND = (255, 255, 255)
_LINE = (205, 205, 205)
_COVER = (150, 150, 158)


def draw_board(puzzle: Puzzle, size: int) -> np.ndarray:
    """The picture that the agent sees first: uint8 of shape (size, size, 3)."""
    image = Image.new("RGB", (size, size), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    if puzzle.covered:
        _draw_covers(draw, puzzle, size)
    else:
        _draw_grid(draw, size)
        for item in puzzle.items:
            _draw_item(draw, item, size, (0.0, 0.0, 1.0))
    return np.array(image, dtype=np.uint8)


def draw_cell(puzzle: Puzzle, cell: int, size: int) -> np.ndarray:
    """One cell enlarged to the whole picture, uncovered: uint8 of shape (size, size, 3)."""
    image = Image.new("RGB", (size, size), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    row, column = divmod(cell - 1, 3)
    for item in puzzle.items:
        if item.cell == cell:
            _draw_item(draw, item, size, (column / 3, row / 3, 3.0))
    return np.array(image, dtype=np.uint8)


def _draw_grid(draw: ImageDraw.ImageDraw, size: int) -> None:
    for i in (1, 2):
        at = round(i * size / 3)
        draw.line((at, 0, at, size), fill=_LINE)
        draw.line((0, at, size, at), fill=_LINE)


def _draw_covers(draw: ImageDraw.ImageDraw, puzzle: Puzzle, size: int) -> None:
    """A grey card on each cell. It looks the same whatever lies under it."""
    side, gap = size / 3, size / 48
    for cell in CELLS:
        row, column = divmod(cell - 1, 3)
        x, y = column * side, row * side
        draw.rectangle((x + gap, y + gap, x + side - gap, y + side - gap), fill=_COVER)
        if puzzle.marked and cell == puzzle.cell:
            draw.ellipse(
                (x + side * 0.3, y + side * 0.3, x + side * 0.7, y + side * 0.7), fill=(255, 255, 255)
            )


def _draw_item(draw: ImageDraw.ImageDraw, item: Item, size: int, view: tuple[float, float, float]) -> None:
    """Draw the item as seen from `view`: left, top (shares of the board) and enlargement."""
    left, top, scale = view
    x0, y0, x1, y1 = (
        (value - origin) * scale * size
        for value, origin in zip(item.box, (left, top, left, top), strict=True)
    )
    fill = COLORS[item.color]
    if item.kind == "square":
        draw.rectangle((x0, y0, x1, y1), fill=fill)
    elif item.kind == "circle":
        draw.ellipse((x0, y0, x1, y1), fill=fill)
    elif item.kind == "triangle":
        draw.polygon(((x0, y1), (x1, y1), ((x0 + x1) / 2, y0)), fill=fill)
    else:
        font = ImageFont.load_default(size=(y1 - y0) * (1.0 if len(item.kind) == 1 else 0.85))
        draw.text(((x0 + x1) / 2, (y0 + y1) / 2), item.kind, fill=fill, font=font, anchor="mm")
