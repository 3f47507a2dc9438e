"""hud-vf-gym's entry point: a taskset and a configuration in, an environment out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium

import mm_gym


def load_environment(
    taskset: str | Path | Sequence[Mapping[str, Any]],
    config_path: str | Path,
    num_tasks: int | None = None,
    split: str = "train",
    max_turns: int | None = None,
    system_prompt: str | None = None,
    **kwargs: Any,
) -> gymnasium.Env[dict[str, Any], str]:
    """An environment over all tasks of a taskset, with hud-vf-gym's arguments.

    It is `gymnasium.make("mm_gym/MCP-v0", ...)`: `reset(options={"task": i})` picks a task,
    `env.unwrapped.tasks` lists them, and the trainer takes the environment as it is (by its `spec`, which
    also makes copies).

    >>> from mm_gym.mcp import load_environment
    >>> from mm_gym.mcp.config import BUILT_IN
    >>> env = load_environment("mm_gym.mcp.servers.tasks_2048:tasks", BUILT_IN, num_tasks=3)
    >>> len(env.unwrapped.tasks)
    3

    Args:
        taskset: A hub name, a file, a folder, `module:function`, or rows.
        config_path: The adapter's YAML.
        num_tasks: The first so many.
        split: Of the taskset.
        max_turns: In place of the YAML's.
        system_prompt: In place of the rows' and the YAML's.
        kwargs: More of `MCPEnv`'s: mcp_config, servers, render_mode.
    """
    mm_gym.register_all()
    return gymnasium.make(
        "mm_gym/MCP-v0",
        config=str(config_path),
        taskset=str(taskset) if isinstance(taskset, Path) else taskset,
        num_tasks=num_tasks,
        split=split,
        max_turns=max_turns,
        system_prompt=system_prompt,
        **kwargs,
    )
