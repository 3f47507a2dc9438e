"""Any environment of this package as an MCP server, with HUD's setup and evaluate convention.

    python -m mm_gym.mcp.serve mm_gym/Pointing-v0                    # over stdin and stdout
    python -m mm_gym.mcp.serve mm_gym/Geo3k-v0 --kwargs '{"split": "test"}' --http --port 8765
    python -m mm_gym.mcp.serve mm_gym/Pointing-v0 --rows 16          # HUD v4 task rows, one a line

`setup(name="reset", arguments={"seed": 3})` starts an episode and returns the first observation;
`evaluate()` ends it and returns `{"reward": ...}`. In between the environment's own tools can be called, and
`respond(text)` takes a whole response, as the environment's action. Episodes are kept apart by the episode id
in a call's `_meta` (key `mm-gym/episode`), else by session.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
import gymnasium
from PIL import Image

import mm_gym
from mm_gym.errors import EnvironmentFailure
from mm_gym.mcp.servers.common import (
    Episodes,
    ToolError,
    add_transport_arguments,
    content,
    dispatch,
    run_server,
)
from mm_gym.stop import StopReason

OWN_TOOLS = ("setup", "evaluate", "respond")


class Served:
    """One episode of an environment, driven by tool calls."""

    def __init__(self, env: gymnasium.Env[dict[str, Any], str]) -> None:
        self.env = env
        self.lock = threading.Lock()
        self.earned = 0.0
        self.ended = False
        self.info: dict[str, Any] = {}

    def reset(self, seed: int | None = None, task: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode; its first observation, with system prompt and task id as structured content."""
        chosen = {**(options or {}), **({} if task is None else {"task": task})}
        observation, info = self.env.reset(seed=seed, options=chosen)
        self.earned, self.ended, self.info = 0.0, False, {}
        structured = {"task_id": info["task_id"], "system_prompt": info["system_prompt"]}
        return _content(observation, info, structured)

    def step(self, action: str) -> Any:
        """One action; what the environment answers."""
        if self.ended:
            raise ToolError("the episode has ended: call setup to start another")
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.earned += float(reward)
        self.ended, self.info = terminated or truncated, info
        return _content(observation, info, {"done": self.ended})

    def grade(self) -> Any:
        """End the episode where it has not ended; the sum of its rewards."""
        if not self.ended:
            reward, _ = self.env.unwrapped.finish(StopReason.MAX_TURNS)  # type: ignore[attr-defined]
            self.earned += reward
            self.ended = True
        success = bool(self.info.get("success", False))
        structured = {"reward": self.earned, "done": True, "info": {"success": success}}
        return content(json.dumps({"reward": self.earned}), structured=structured)

    def close(self) -> None:
        self.env.close()


def make_server(env_id: str, **kwargs: Any) -> Any:
    """A server of `env_id`, for in-process use or `run`. It makes an environment for each episode.

    Raises:
        gymnasium.error.Error: There is no such environment.
    """
    import mcp_types as types
    from mcp.server import Server
    from mcp.shared.exceptions import MCPError

    mm_gym.register_all()
    gymnasium.spec(env_id)
    episodes: Episodes[Served] = Episodes(limit=64, on_drop=Served.close)
    listing: list[dict[str, Any]] = []

    def own_tools() -> list[dict[str, Any]]:
        """The environment's tools, as a first reset tells them."""
        if not listing:
            env = gymnasium.make(env_id, **kwargs)
            try:
                listing.append({"tools": env.reset(seed=0)[1]["tools"]})
            finally:
                env.close()
        return [tool["function"] for tool in listing[0]["tools"] if tool["function"]["name"] not in OWN_TOOLS]

    def call(ctx: Any, name: str, arguments: Mapping[str, Any]) -> Any:
        scope = _Scope(ctx)
        if name == "setup":
            return _setup(episodes, scope, arguments, lambda: Served(gymnasium.make(env_id, **kwargs)))
        served = episodes[scope]
        with served.lock:
            if name == "evaluate":
                return dispatch("evaluate", {"reward": served.grade}, **_dispatched(arguments, "reward"))
            if name == "respond":
                return served.step(str(arguments.get("text", "")))
            if name not in {tool["name"] for tool in own_tools()}:
                raise ToolError(f"there is no tool {name!r}")
            body = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
            return served.step(f"<tool_call>\n{body}\n</tool_call>")

    async def on_list_tools(ctx: Any, params: Any) -> Any:
        tools = await anyio.to_thread.run_sync(own_tools)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool["name"], description=tool["description"], input_schema=tool["parameters"]
                )
                for tool in (*_own_schemas(), *tools)
            ]
        )

    async def on_call_tool(ctx: Any, params: Any) -> Any:
        try:
            return await anyio.to_thread.run_sync(call, ctx, params.name, params.arguments or {})
        except ToolError as error:
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=str(error))], is_error=True
            )
        except EnvironmentFailure as failure:  # our side is broken: no result, so that nobody scores it
            raise MCPError(
                types.INTERNAL_ERROR, f"environment failure ({failure.kind}): {failure}"
            ) from failure

    return Server(f"mm-gym {env_id}", on_list_tools=on_list_tools, on_call_tool=on_call_tool)


class _Scope:
    """What `Episodes` reads of a context, for the SDK's low-level handlers."""

    def __init__(self, ctx: Any) -> None:
        self.request_context = ctx


def _setup(episodes: Episodes[Served], scope: Any, arguments: Mapping[str, Any], make: Any) -> Any:
    try:
        served = episodes[scope]
    except ToolError:
        served = make()
        episodes[scope] = served
    with served.lock:
        return dispatch("setup", {"reset": served.reset}, **_dispatched(arguments, "reset"))


def _dispatched(arguments: Mapping[str, Any], default: str) -> dict[str, Any]:
    known = {key: arguments[key] for key in ("name", "arguments", "function", "args") if key in arguments}
    return {"name": default, "arguments": None, **known}


def _own_schemas() -> list[dict[str, Any]]:
    inner = {"type": "object", "description": "Arguments of the function."}
    return [
        {
            "name": "setup",
            "description": "Start an episode. Functions: reset(seed, task, options).",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": ["reset"]}, "arguments": inner},
            },
        },
        {
            "name": "evaluate",
            "description": "End the episode and grade it. Functions: reward().",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": ["reward"]}, "arguments": inner},
            },
        },
        {
            "name": "respond",
            "description": "Give the environment a whole response: its action, as a model would write it.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        },
    ]


def _content(observation: dict[str, Any], info: dict[str, Any], structured: dict[str, Any]) -> Any:
    """The turn's messages as texts and pictures, in order."""
    parts: list[Any] = []
    for message in info["messages"]:
        for block in message["content"]:
            if block["type"] == "image":
                parts.append(Image.fromarray(observation["images"][block["index"]]))
            else:
                parts.append(block["text"])
    return content(*parts, structured=structured)


def rows(env_id: str, count: int, kwargs: Mapping[str, Any], first_seed: int = 0) -> list[dict[str, Any]]:
    """HUD v4 rows that run `env_id` through this server, one a seed."""
    args = ["-m", "mm_gym.mcp.serve", env_id, "--kwargs", json.dumps(dict(kwargs))]
    env = gymnasium.make(env_id, **kwargs)
    try:
        made = []
        for seed in range(first_seed, first_seed + count):
            info = env.reset(seed=seed)[1]
            made.append(
                {
                    "id": f"{info['task_id']}-{seed}",
                    "prompt": "Solve this task.",
                    "system_prompt": info["system_prompt"],
                    "mcp_config": {"env": {"command": "python", "args": args}},
                    "setup_tool": {
                        "name": "setup",
                        "arguments": {"name": "reset", "arguments": {"seed": seed}},
                    },
                    "evaluate_tool": {"name": "evaluate", "arguments": {"name": "reward", "arguments": {}}},
                }
            )
        return made
    finally:
        env.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve an environment over MCP.")
    parser.add_argument("env_id")
    parser.add_argument("--kwargs", type=json.loads, default={}, help="JSON for gymnasium.make")
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="print N HUD v4 rows and leave")
    add_transport_arguments(parser)
    arguments = parser.parse_args()
    if arguments.rows:
        for row in rows(arguments.env_id, arguments.rows, arguments.kwargs):
            sys.stdout.write(json.dumps(row) + "\n")
        return
    run_server(make_server(arguments.env_id, **arguments.kwargs), arguments)


if __name__ == "__main__":
    main()
