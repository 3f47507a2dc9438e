"""Environments served over MCP and played through MCP, and the servers run by themselves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import mm_gym
from mm_gym.mcp.serve import make_server, rows

EXAMPLES = Path(__file__).resolve().parents[3] / "configs" / "mcp"


def call(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Results of calls on one connection."""
    from mcp import Client

    async def run() -> list[Any]:
        async with Client(server) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


def setup(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return "setup", {"name": "reset", "arguments": arguments}


def test_an_environment_is_set_up_driven_and_graded_by_tools() -> None:
    with contextlib.closing(gymnasium.make("mm_gym/Pointing-v0")) as env:
        observation, info = env.reset(seed=3)
        action = env.unwrapped.expert_action()  # type: ignore[attr-defined]
    first, acted, graded, after = call(
        make_server("mm_gym/Pointing-v0"),
        setup(seed=3),
        ("respond", {"text": action}),
        ("evaluate", {}),
        ("respond", {"text": action}),
    )
    assert first.structured_content["task_id"] == info["task_id"]
    assert first.structured_content["system_prompt"] == info["system_prompt"]
    assert [block.type for block in first.content].count("image") == len(observation["images"])
    assert not acted.is_error
    assert graded.structured_content["reward"] > 0
    assert after.is_error


def test_mistakes_are_results_with_an_error() -> None:
    no_setup, bad_seed, unknown, twice = call(
        make_server("mm_gym/Pointing-v0"),
        ("respond", {"text": "x"}),
        setup(sed=1),
        ("nothing", {}),
        ("evaluate", {"name": "other"}),
    )
    assert [result.is_error for result in (no_setup, bad_seed, unknown, twice)] == [True] * 4
    assert "call setup first" in no_setup.content[0].text


def test_an_environments_own_tools_are_listed() -> None:
    from mcp import Client

    async def names() -> list[str]:
        async with Client(make_server("mm_gym/Pointing-v0")) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    with contextlib.closing(gymnasium.make("mm_gym/Pointing-v0")) as env:
        own = [tool["function"]["name"] for tool in env.reset(seed=0)[1]["tools"]]
    assert asyncio.run(names()) == ["setup", "evaluate", "respond", *own]


def test_a_served_environment_is_played_through_mcp() -> None:
    taskset = rows("mm_gym/Pointing-v0", 3, {})
    with (
        contextlib.closing(gymnasium.make("mm_gym/MCP-v0", taskset=taskset, servers="reuse")) as served,
        contextlib.closing(gymnasium.make("mm_gym/Pointing-v0")) as direct,
    ):
        for seed in range(3):
            _, info = served.reset(options={"task": seed})
            assert {"setup", "evaluate"}.isdisjoint(tool["function"]["name"] for tool in info["tools"])
            direct.reset(seed=seed)
            terminated = False
            while not terminated:
                response = direct.unwrapped.expert_action()  # type: ignore[attr-defined]
                _, _, ended, truncated, direct_info = direct.step(response)
                call = json.dumps({"name": "respond", "arguments": {"text": response}})
                *_, terminated, _, info = served.step(f"<tool_call>{call}</tool_call>")
                assert terminated == (ended or truncated)
            assert direct_info["success"]
            assert info["metrics"]["task_completion"] == pytest.approx(1.0)


class Broken(mm_gym.ChatEnv):
    """Its server side breaks at the first step."""

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        return mm_gym.Opening([mm_gym.user("Go.")], task_id="go")

    def respond(self, action: str) -> mm_gym.Reply:
        raise mm_gym.EnvironmentFailure("the disk is full", kind="data")


def test_a_failure_of_the_served_environment_stays_a_failure() -> None:
    if "test/Broken-v0" not in gymnasium.registry:
        gymnasium.register("test/Broken-v0", entry_point=Broken)
    row = {
        "prompt": "Go.",
        "mcp_config": {
            "env": {"python": "mm_gym.mcp.serve:make_server", "kwargs": {"env_id": "test/Broken-v0"}}
        },
        "setup_tool": {"name": "setup", "arguments": {}},
    }
    with contextlib.closing(gymnasium.make("mm_gym/MCP-v0", taskset=[row])) as env:
        env.reset(seed=0)
        call = '<tool_call>{"name": "respond", "arguments": {"text": "x"}}</tool_call>'
        with pytest.raises(mm_gym.EnvironmentFailure, match="the disk is full"):
            env.step(call)


def test_rows_are_printed_for_a_taskset_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mm_gym.mcp.serve", "mm_gym/Pointing-v0", "--rows", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (tmp_path / "tasks.jsonl").write_text(done.stdout)
    with contextlib.closing(gymnasium.make("mm_gym/MCP-v0", taskset=str(tmp_path / "tasks.jsonl"))) as env:
        assert len(env.unwrapped.tasks) == 2  # type: ignore[attr-defined]


@pytest.mark.browser
def test_the_computer_server_with_its_example_configuration() -> None:
    from mm_gym.mcp.servers.computer import tasks

    config = EXAMPLES / "computer.yaml"
    with contextlib.closing(
        gymnasium.make("mm_gym/MCP-v0", config=str(config), taskset=tasks(count=1), servers="reuse")
    ) as env:
        observation, _ = env.reset(seed=0)
        assert observation["images"][0].shape == (800, 1280, 3)
        for action in (
            "screenshot()",
            'key("tab")',
            'scroll("down", 1)',
            "wait(0.1)",
            'type("hello")',
            "click(640, 400)",
        ):
            observation, _, ended, _, info = env.step(f"<think>t</think><tool>{action}</tool>")
            assert info["tool_calls"][0]["status"] == "ok", (action, observation["text"])
            assert ended or observation["images"][-1].shape == (800, 1280, 3)
            if ended:
                return
        *_, info = env.step("<think>t</think><tool>click(1280, 5)</tool>")
        assert info["tool_calls"][0]["status"] == "failed"
        *_, terminated, _, info = env.step("<think>t</think><tool>done()</tool>")
        assert terminated
        assert info["metrics"]["task_completion"] < 1.0
        assert info["metrics"]["tool_execution"] == pytest.approx(6 / 7)


@pytest.mark.browser
def test_the_computer_server_grades_a_solved_task() -> None:
    """The solver's own actions, sent as native calls of HUD's tool."""
    from mm_gym.mcp.servers.computer import tasks

    (row,) = tasks(count=1)
    arguments = row["setup_tool"]["arguments"]["arguments"]
    kwargs = {"dialect": "hud", "screen_size": (1280, 800)}
    with (
        contextlib.closing(gymnasium.make("mm_gym/MCP-v0", taskset=[row], max_turns=40)) as served,
        contextlib.closing(gymnasium.make("mm_gym/ComputerUse-v0", max_turns=40, **kwargs)) as direct,
    ):
        served.reset(seed=0)
        direct.reset(seed=arguments["seed"], options={"task": arguments["task"], **arguments["options"]})
        done = False
        while not done:
            response = direct.unwrapped.expert_action()  # type: ignore[attr-defined]
            direct.step(response)
            *_, terminated, truncated, info = served.step(response)
            done = terminated or truncated
        assert info["metrics"]["task_completion"] == pytest.approx(1.0)
