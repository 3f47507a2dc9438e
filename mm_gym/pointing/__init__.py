"""`mm_gym/Pointing-v0`: small visual tasks that a tiny model can learn and a large one can be checked on."""

from __future__ import annotations

from mm_gym.pointing.puzzles import COLORS, FAMILIES, LEVELS, SHAPES, Puzzle, make_puzzle

__all__ = ["COLORS", "FAMILIES", "LEVELS", "SHAPES", "Puzzle", "make_puzzle"]
