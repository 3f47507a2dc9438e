"""2048 as an MCP server: text and board picture, with HUD's setup and evaluate convention.

    python -m mm_gym.mcp.servers.game_2048            # over stdin and stdout
    python -m mm_gym.mcp.servers.game_2048 --http     # streamable HTTP on port 8765

The game's state is kept by the episode id in a call's `_meta`, so that one server can serve many episodes at
once. Tasks for it and the solver as an agent are in `tasks_2048`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from mm_gym.mcp.servers.board_2048 import DIRECTIONS, Board, Game, as_text, draw, max_tile, moves
from mm_gym.mcp.servers.common import Context, Episodes, MCPServer, ToolError, content, dispatch, serve


def make_server() -> Any:
    """A server object, for in-process use or `run`."""
    server = MCPServer("mm-gym-2048", log_level="WARNING")
    games: Episodes[_Table] = Episodes()
    setups = {"board": _Table}
    grades = {"max_tile": grade_max_tile, "max_number": grade_max_tile, "score": grade_score}

    @server.tool(structured_output=False)
    def setup(
        ctx: Context,
        name: str = "board",
        arguments: dict[str, Any] | str | None = None,
        function: str | None = None,
        args: dict[str, Any] | str | None = None,
    ) -> Any:
        """Start a game. Functions: board(size, seed, tiles, target, max_moves, spawning, image, text)."""
        table = dispatch("setup", setups, name, arguments, function, args)
        games[ctx] = table
        return content(*table.show(), structured=table.state())

    @server.tool(structured_output=False)
    def evaluate(
        ctx: Context,
        name: str = "max_tile",
        arguments: dict[str, Any] | str | None = None,
        function: str | None = None,
        args: dict[str, Any] | str | None = None,
    ) -> Any:
        """Grade the game. Functions: max_tile(target, partial), score(target)."""
        game = games[ctx].game
        bound = {key: _with_game(grade, game) for key, grade in grades.items()}
        reward = dispatch("evaluate", bound, name, arguments, function, args)
        structured = {"reward": reward, "done": True, "info": games[ctx].state()}
        return content(json.dumps({"reward": reward}), structured=structured)

    @server.tool(structured_output=False)
    def move(direction: str, ctx: Context) -> Any:
        """Slide all tiles: left, right, up or down."""
        table = games[ctx]
        if direction not in DIRECTIONS:
            raise ToolError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
        if table.game.over:
            raise ToolError("the game is over")
        if not table.game.move(direction):
            raise ToolError(f"{direction} moves no tile; try {', '.join(moves(table.game.board))}")
        return content(*table.show(), structured=table.state())

    @server.resource("setup://functions")
    def setup_functions() -> str:
        """The functions that `setup` can call."""
        return json.dumps(sorted(setups))

    @server.resource("evaluate://functions")
    def evaluate_functions() -> str:
        """The functions that `evaluate` can call."""
        return json.dumps(sorted(grades))

    return server


class _Table:
    """A game and how it is shown; the arguments of `setup`."""

    def __init__(
        self,
        size: int = 4,
        seed: int = 0,
        tiles: list[list[int]] | None = None,
        target: int | None = None,
        max_moves: int | None = None,
        spawning: bool = True,
        image: int = 320,
        text: bool = True,
        board_size: int | None = None,
    ) -> None:
        board = _checked(tiles) if tiles else None
        cells = len(board) if board else int(board_size or size)
        if not 2 <= cells <= 8:
            raise ValueError(f"size must be from 2 to 8, got {cells}")
        if image and not 32 <= int(image) <= 2_048:
            raise ValueError(f"image must be 0 for none, or 32 to 2048 pixels, got {image}")
        self.game = Game(cells, int(seed), board, target, max_moves, bool(spawning))
        self.image = int(image)
        self.text = text

    def show(self) -> list[Any]:
        """Text and picture of the board."""
        game = self.game
        shown: list[Any] = []
        if self.text:
            end = "\nYou won." if game.won else "\nThe game is over." if game.over else ""
            shown.append(
                f"Score {game.score}, largest tile {max_tile(game.board)}\n{as_text(game.board)}{end}"
            )
        if self.image:
            shown.append(draw(game.board, self.image))
        return shown

    def state(self) -> dict[str, Any]:
        game = self.game
        return {
            "board": [list(row) for row in game.board],
            "score": game.score,
            "max_tile": max_tile(game.board),
            "target": game.target,
            "done": game.over,
        }


def _checked(tiles: list[list[int]]) -> Board:
    board = tuple(tuple(int(tile) for tile in row) for row in tiles)
    if any(len(row) != len(board) for row in board):
        raise ValueError("tiles must be a square of numbers")
    for row in board:
        for tile in row:
            if tile and (tile < 2 or tile & (tile - 1) or tile > 1 << 17):
                raise ValueError(f"a tile is 0 or a power of two, got {tile}")
    return board


def _with_game(grade: Any, game: Game) -> Any:
    return lambda **arguments: grade(game, **arguments)


def grade_max_tile(game: Game, target: int | None = None, partial: bool = True) -> float:
    """1.0 where the largest tile reaches `target`; else the share of the way there, if `partial`."""
    reached, wanted = max_tile(game.board), target or game.target or 2048
    if reached >= wanted:
        return 1.0
    return math.log2(reached) / math.log2(wanted) if partial and reached else 0.0


def grade_score(game: Game, target: int = 2_000) -> float:
    """The share of `target` points that were made, at most 1.0."""
    return min(1.0, game.score / target)


def main() -> None:
    serve(make_server, "2048 as an MCP server")


if __name__ == "__main__":
    main()
