"""The engine mends an MCP episode whose server is killed: a new server, the same actions, the same stream."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil
import pytest
from scripted import CharRenderer, ScriptedPolicy

pytest.importorskip("mcp")

from agents.engine import RolloutEngine
from agents.types import Request, Task, Trajectory
from mm_gym.mcp.config import BUILT_IN
from mm_gym.mcp.servers.tasks_2048 import tasks

MOVES = ("left", "up", "left", "down", "right", "up")


def servers() -> list[int]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any("game_2048" in argument for argument in process.cmdline()):
                found.append(process.pid)
    return found


def play(kill_in_turn: int | None) -> Trajectory:
    turns: list[int] = []

    def reply(request: Request) -> str:
        turn = len(turns)
        turns.append(turn)
        if turn == kill_in_turn:
            for pid in servers():
                os.kill(pid, signal.SIGKILL)
        return f"<tool>{MOVES[turn]}()</tool>"

    kwargs = {
        "config": str(BUILT_IN),
        "taskset": tasks("train", 2, "stdio"),
        "servers": "own",
        "max_turns": 5,
    }
    with RolloutEngine(ScriptedPolicy(reply), CharRenderer()) as engine:
        return engine.collect([Task("mm_gym/MCP-v0", kwargs, options={"task": 0})])[0]


def test_an_episode_whose_server_is_killed_is_replayed_on_a_new_one() -> None:
    clean, mended = play(None), play(3)
    assert not mended.masked
    assert mended.token_ids == clean.token_ids
    assert mended.reward == clean.reward
    assert mended.failures.get("server", 0) >= 1
    assert not clean.failures
