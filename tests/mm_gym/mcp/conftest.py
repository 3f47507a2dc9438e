"""Real servers for the tests of MCP: 2048 in each transport, and one that misbehaves on demand."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason='MCP needs pip install "mm-gym[mcp]"')

HOSTILE = Path(__file__).parent / "hostile_server.py"


@contextlib.contextmanager
def http_server(*command: str) -> Iterator[str]:
    """Run a server over HTTP on a free port; its address."""
    process = subprocess.Popen(
        [sys.executable, *command, "--http", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("listening on "):
                yield line.split()[-1]
                break
        else:
            raise AssertionError("the server ended before it listened")
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def http_2048() -> Iterator[str]:
    with http_server("-m", "mm_gym.mcp.servers.game_2048") as url:
        yield url


@pytest.fixture
def hostile_row() -> Any:
    """A HUD row whose server does what its environment variables say; see `hostile_server`."""

    def row(**behaviour: Any) -> dict[str, Any]:
        env = {key.upper(): str(value) for key, value in behaviour.items()}
        return {
            "id": "hostile",
            "prompt": "Go.",
            "mcp_config": {"bad": {"command": "python", "args": [str(HOSTILE)], "env": env}},
            "setup_tool": {"name": "setup", "arguments": {}},
            "evaluate_tool": {"name": "evaluate", "arguments": {}},
        }

    return row
