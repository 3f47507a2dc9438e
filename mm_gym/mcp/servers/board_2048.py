"""The game 2048: its rules, its picture and a solver. Knows nothing of MCP.

A board is a tuple of rows of tile values, 0 for empty: hashable, never changed in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from random import Random

from PIL import Image, ImageDraw, ImageFont

Board = tuple[tuple[int, ...], ...]

DIRECTIONS = ("left", "right", "up", "down")


def slide(board: Board, direction: str) -> tuple[Board, int]:
    """The board after a move, before a new tile appears, and the points gained.

    >>> slide(((2, 2), (0, 4)), "left")
    (((4, 0), (4, 0)), 4)
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
    lines = board if direction in ("left", "right") else tuple(zip(*board, strict=True))
    backwards = direction in ("right", "down")
    moved, gained = [], 0
    for line in lines:
        merged, points = _merge(line[::-1] if backwards else line)
        moved.append(merged[::-1] if backwards else merged)
        gained += points
    rows = moved if direction in ("left", "right") else list(zip(*moved, strict=True))
    return tuple(tuple(row) for row in rows), gained


@lru_cache(maxsize=1 << 16)
def _merge(line: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    tiles = [tile for tile in line if tile]
    merged: list[int] = []
    gained = 0
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile:
            tile += tiles.pop(0)
            gained += tile
        merged.append(tile)
    return (*merged, *[0] * (len(line) - len(merged))), gained


def moves(board: Board) -> list[str]:
    """Directions that change the board."""
    return [direction for direction in DIRECTIONS if slide(board, direction)[0] != board]


def empty_cells(board: Board) -> list[tuple[int, int]]:
    return [(y, x) for y, row in enumerate(board) for x, tile in enumerate(row) if not tile]


def place(board: Board, cell: tuple[int, int], tile: int) -> Board:
    """The board with one tile put down."""
    y, x = cell
    row = board[y]
    return (*board[:y], (*row[:x], tile, *row[x + 1 :]), *board[y + 1 :])


def spawn(board: Board, random: Random) -> Board:
    """The board with a new tile, 2 nine times of ten and else 4, on an empty cell."""
    cells = empty_cells(board)
    if not cells:
        return board
    return place(board, cells[random.randrange(len(cells))], 4 if random.random() < 0.1 else 2)


def max_tile(board: Board) -> int:
    return max(tile for row in board for tile in row)


class Game:
    """One game: a board, a score, and a random stream of its own.

    Args:
        size: Cells a side, 2 to 8.
        seed: Of the tiles that appear.
        tiles: The first board; None for an empty one with two new tiles.
        target: The tile that ends the game as won.
        max_moves: Moves after which the game ends.
        spawning: New tiles appear after moves.
    """

    def __init__(
        self,
        size: int = 4,
        seed: int = 0,
        tiles: Board | None = None,
        target: int | None = None,
        max_moves: int | None = None,
        spawning: bool = True,
    ) -> None:
        self.random = Random(seed)
        self.target = target
        self.max_moves = max_moves
        self.spawning = spawning
        self.score = 0
        self.moves_made = 0
        empty: Board = ((0,) * size,) * size
        self.board = tiles or spawn(spawn(empty, self.random), self.random)

    def move(self, direction: str) -> bool:
        """Make a move; False where it changes nothing."""
        board, gained = slide(self.board, direction)
        if board == self.board:
            return False
        self.score += gained
        self.moves_made += 1
        self.board = spawn(board, self.random) if self.spawning else board
        return True

    @property
    def won(self) -> bool:
        return self.target is not None and max_tile(self.board) >= self.target

    @property
    def over(self) -> bool:
        """Won, out of moves, or stuck."""
        spent = self.max_moves is not None and self.moves_made >= self.max_moves
        return self.won or spent or not moves(self.board)


# -- pictures and text --------------------------------------------------------------------------------

_COLORS = {
    0: (205, 193, 180), 2: (238, 228, 218), 4: (237, 207, 114), 8: (242, 140, 70), 16: (214, 60, 60),
    32: (200, 60, 160), 64: (120, 70, 200), 128: (50, 100, 220), 256: (30, 160, 210), 512: (30, 170, 120),
    1024: (100, 160, 40), 2048: (20, 20, 20),
}  # fmt: skip


def draw(board: Board, side: int = 320) -> Image.Image:
    """The board as an RGB picture of `side` x `side` pixels; each value has a colour of its own."""
    image = Image.new("RGB", (side, side), (160, 146, 132))
    pen = ImageDraw.Draw(image)
    gap = max(1, side // 40)
    cells = len(board)
    for y, row in enumerate(board):
        for x, tile in enumerate(row):
            left, top = (gap + (side - gap) * at // cells for at in (x, y))
            right, bottom = ((side - gap) * (at + 1) // cells - 1 for at in (x, y))
            color = _COLORS.get(tile, (60, 58, 50))
            pen.rectangle((left, top, right, bottom), fill=color)
            if tile:
                dark = sum(color) > 480
                size = max(8, int((right - left) * (0.55 if tile < 100 else 0.4)))
                font = ImageFont.load_default(size=size)
                middle = ((left + right) / 2, (top + bottom) / 2)
                ink = (60, 50, 40) if dark else (255, 255, 255)
                pen.text(middle, str(tile), font=font, anchor="mm", fill=ink)
    return image


def as_text(board: Board) -> str:
    """The board as lines of numbers, a dot for an empty cell."""
    width = max(len(str(tile)) for row in board for tile in row)
    return "\n".join(" ".join(f"{tile or '.':>{width}}" for tile in row) for row in board)


# -- solver -------------------------------------------------------------------------------------------


def best_move(board: Board, target: int | None = None, depth: int = 1) -> str | None:
    """A good move by expectimax over `depth` answers; None where nothing moves. Deterministic."""
    if not moves(board):
        return None
    return max(moves(board), key=lambda direction: _after(slide(board, direction)[0], target, depth))


def _after(board: Board, target: int | None, depth: int) -> float:
    """Value once the player has moved: the mean over the tiles that may appear."""
    if target is not None and max_tile(board) >= target:
        return 1e6 + depth
    if depth == 0:
        return _value(board)
    cells = _some_cells(board)
    if not cells:
        return _before(board, target, depth)
    return sum(_before(place(board, cell, 2), target, depth) for cell in cells) / len(cells)


def _before(board: Board, target: int | None, depth: int) -> float:
    options = [slide(board, direction)[0] for direction in moves(board)]
    if not options:
        return -1e4
    return max(_after(option, target, depth - 1) for option in options)


def _some_cells(board: Board, limit: int = 4) -> list[tuple[int, int]]:
    cells = empty_cells(board)
    return cells[:: max(1, len(cells) // limit)][:limit]


def _value(board: Board) -> float:
    """Empty cells, equal neighbours, and large tiles in rows that fall or rise."""
    score = 12.0 * len(empty_cells(board))
    for line in _lines(board):
        logs = [math.log2(tile) if tile else 0.0 for tile in line]
        score += 4.0 * sum(a == b and a > 0 for a, b in pairwise(logs))
        falls = sum(max(0.0, b - a) for a, b in pairwise(logs))
        rises = sum(max(0.0, a - b) for a, b in pairwise(logs))
        score -= 3.0 * min(falls, rises)
    return score + max_tile(board) / 16


def _lines(board: Board) -> Iterator[tuple[int, ...]]:
    yield from board
    yield from zip(*board, strict=True)
