"""A computer as an MCP server: HUD's `computer` tool over the browser and web apps of `mm_gym.computer`.

    python -m mm_gym.mcp.servers.computer                  # over stdin and stdout
    python -m mm_gym.mcp.servers.computer --http --port 8766

It is `mm_gym.mcp.serve` on `mm_gym/ComputerUse-v0` with HUD's dialect: `setup(name="reset",
arguments={"task": "mail/delete", "seed": 3})` opens a task's app, `computer(action="click", x=..., y=...)`
acts and returns the screen, `evaluate()` reads the app's state. Needs Chromium (`mm_gym.computer.install`).
"""

from __future__ import annotations

import argparse
from typing import Any

from mm_gym.mcp.serve import make_server as serve_environment
from mm_gym.mcp.servers.common import add_transport_arguments, run_server

SCREEN = (1280, 800)
MAX_TURNS = 1_000
"""The client decides when to stop; this only bounds one that never does."""


def make_server(width: int = SCREEN[0], height: int = SCREEN[1], **kwargs: Any) -> Any:
    """A server object, for in-process use or `run`.

    Args:
        width: Of the screen, in pixels.
        height: Of the screen, in pixels.
        kwargs: More for `mm_gym/ComputerUse-v0`.
    """
    return serve_environment(
        "mm_gym/ComputerUse-v0",
        dialect="hud",
        screen_size=(width, height),
        **{"max_turns": MAX_TURNS, **kwargs},
    )


def tasks(split: str = "train", count: int = 20, level: int = 1) -> list[dict[str, Any]]:
    """HUD v4 rows over all apps' tasks in turn, for this server as a process; seeds of the splits differ."""
    from mm_gym.computer.tasks import builtin_apps

    first = {"train": 0, "test": 1_000_000}[split]
    names = sorted(spec.full_name for app in builtin_apps() for spec in app.tasks if level in spec.levels)
    return [
        {
            "id": f"{names[n % len(names)]}-{split}-{n}",
            "prompt": "Do this task on the computer.",
            "mcp_config": {"computer": {"command": "python", "args": ["-m", "mm_gym.mcp.servers.computer"]}},
            "setup_tool": {
                "name": "setup",
                "arguments": {
                    "name": "reset",
                    "arguments": {
                        "seed": first + n,
                        "task": names[n % len(names)],
                        "options": {"level": level},
                    },
                },
            },
            "evaluate_tool": {"name": "evaluate", "arguments": {"name": "reward", "arguments": {}}},
        }
        for n in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="A computer as an MCP server.")
    parser.add_argument("--width", type=int, default=SCREEN[0])
    parser.add_argument("--height", type=int, default=SCREEN[1])
    add_transport_arguments(parser)
    arguments = parser.parse_args()
    run_server(make_server(arguments.width, arguments.height), arguments)


if __name__ == "__main__":
    main()
