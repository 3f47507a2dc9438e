"""Tasks for the 2048 server as HUD v4 rows, and its solver as an agent. Does not need the SDK."""

from __future__ import annotations

import functools
from itertools import permutations
from random import Random
from typing import Any

from mm_gym.mcp.servers.board_2048 import Board, best_move, max_tile, slide

SERVER = "mm_gym.mcp.servers.game_2048"


def tasks(split: str = "train", count: int = 64, transport: str = "python") -> list[dict[str, Any]]:
    """HUD v4 rows: reach 16 on a 3x3 board, which the solver does in 6 to 11 moves.

    Args:
        split: "train" or "test": boards of their own.
        count: How many.
        transport: "python" for a server in this process, "stdio" for a process of its own.
    """
    first = {"train": 1, "test": 1_000_001}[split]
    setup = {"size": 3, "target": 16, "image": 192}
    return [
        _row(f"reach-{split}-{seed}", "Reach the tile 16.", {**setup, "seed": seed}, transport)
        for seed in range(first, first + count)
    ]


def small_tasks(split: str = "train", transport: str = "stdio") -> list[dict[str, Any]]:
    """Rows for tiny models: two moves join 4, 4 and 8 into 16 on a picture of 96 x 96 pixels, without text.

    All such boards that the solver solves, 96 for training and 24 of others for testing. Moves at random
    succeed in a quarter of them.
    """
    setup = {"target": 16, "max_moves": 2, "spawning": False, "image": 96, "text": False}
    boards = _boards_joined_in_two()
    chosen = {"train": boards[:96], "test": boards[96:]}[split]
    return [
        _row(
            f"join-{split}-{number}",
            "Join all.",
            {**setup, "tiles": [list(row) for row in board]},
            transport,
            partial=False,
        )
        for number, board in enumerate(chosen)
    ]


@functools.cache  # every environment of a rollout asks for its tasks, and the solver takes its time
def _boards_joined_in_two() -> tuple[Board, ...]:
    boards = [board for board in _three_tiles() if _joined_in_two(board)]
    Random(0).shuffle(boards)
    return tuple(boards)


def _three_tiles() -> list[Board]:
    """All 3x3 boards that hold 4, 4 and 8 only."""
    boards = set()
    for places in permutations(range(9), 3):
        cells = [0] * 9
        for place, tile in zip(places, (4, 4, 8), strict=True):
            cells[place] = tile
        boards.add(tuple(tuple(cells[3 * y : 3 * y + 3]) for y in range(3)))
    return sorted(boards)


def _joined_in_two(board: Board) -> bool:
    for _ in range(2):
        board = slide(board, best_move(board, 16) or "left")[0]
    return max_tile(board) == 16


def _row(
    task_id: str, prompt: str, arguments: dict[str, Any], transport: str, partial: bool = True
) -> dict[str, Any]:
    servers = {
        "python": {"python": f"{SERVER}:make_server"},
        "stdio": {"command": "python", "args": ["-m", SERVER]},
    }
    grade = {"target": arguments["target"], "partial": partial}
    return {
        "id": task_id,
        "prompt": prompt,
        "mcp_config": {"local": servers[transport]},
        "setup_tool": {"name": "setup", "arguments": {"name": "board", "arguments": arguments}},
        "evaluate_tool": {"name": "evaluate", "arguments": {"name": "max_tile", "arguments": grade}},
    }


def expert(view: Any) -> str:
    """The solver as the agent: reads the board from the last result, writes the next response."""
    state = view.structured
    board = tuple(tuple(row) for row in state["board"])
    direction = best_move(board, state.get("target"))
    if state.get("done") or direction is None:
        return view.call("done")
    return view.call(direction) if direction in view.actions else view.call("move", direction)
