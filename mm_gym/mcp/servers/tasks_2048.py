"""Tasks for the 2048 server as HUD v4 rows, and its solver as an agent. Does not need the SDK."""

from __future__ import annotations

from random import Random
from typing import Any

from mm_gym.mcp.servers.board_2048 import DIRECTIONS, Board, best_move, max_tile, slide

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


def small_tasks(split: str = "train", count: int = 256, transport: str = "stdio") -> list[dict[str, Any]]:
    """Rows for tiny models: one move on a 96-pixel 3x3 board joins the two tiles of the target; no text."""
    setup = {"spawning": False, "max_moves": 1, "image": 96, "text": False, "target": 16}
    random = Random(f"small-{split}")
    rows: list[dict[str, Any]] = []
    seen: set[tuple[Board, str]] = set()
    while len(rows) < count:
        board, direction = _one_merge(random)
        if (board, direction) in seen:
            continue
        seen.add((board, direction))
        arguments = {**setup, "tiles": [list(row) for row in board]}
        rows.append(
            _row(f"merge-{split}-{len(rows)}", "Join the two 8s.", arguments, transport, partial=False)
        )
    return rows


def _one_merge(random: Random) -> tuple[Board, str]:
    """A board with one pair of 8s that exactly one or two moves join, among other tiles."""
    while True:
        cells = [0, 0, 0, 2, 2, 4, 4, 8, 8]
        random.shuffle(cells)
        board = tuple(tuple(cells[3 * y : 3 * y + 3]) for y in range(3))
        good = [d for d in DIRECTIONS if max_tile(slide(board, d)[0]) == 16]
        if len(good) == 2:
            return board, good[0]


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
