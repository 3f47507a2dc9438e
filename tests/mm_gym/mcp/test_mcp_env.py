"""MCP-v0 against real servers: each transport, both call forms, hud-vf-gym's exact behaviour, filters."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import mm_gym
from mm_gym.episode import expert, play
from mm_gym.mcp import load_environment
from mm_gym.mcp.client import open_connections
from mm_gym.mcp.config import BUILT_IN
from mm_gym.mcp.servers.tasks_2048 import small_tasks, tasks
from mm_gym.testing import CHECKS, VECTOR_CHECKS, many_resets_do_not_grow

SERVER = "mm_gym.mcp.servers.game_2048"
SMALL = Path(__file__).resolve().parents[3] / "configs" / "mcp" / "2048_small.yaml"
BOARD = {
    "name": "board",
    "arguments": {"tiles": [[2, 2], [0, 0]], "spawning": False, "target": 4, "image": 64},
}
ROW: dict[str, Any] = {
    "id": "pair",
    "prompt": "Join them.",
    "mcp_config": {"local": {"python": f"{SERVER}:make_server"}},
    "setup_tool": {"name": "setup", "arguments": BOARD},
    "evaluate_tool": {"name": "evaluate", "arguments": {"name": "max_tile", "arguments": {"target": 4}}},
}
CONFIG: dict[str, Any] = {
    "system_prompt": "Play.",
    "parser": {"use_thinking": False},
    "defaults": {"max_turns": 5},
    "action_mappings": {d: {"_tool": "move", "direction": d} for d in ("left", "right", "up", "down")},
}


@contextlib.contextmanager
def environment(*rows: dict[str, Any], config: Any = CONFIG, **kwargs: Any) -> Iterator[Any]:
    env = gymnasium.make("mm_gym/MCP-v0", config=config, taskset=list(rows) or [ROW], **kwargs)
    try:
        yield env
    finally:
        env.close()


def native(**kwargs: Any) -> Any:
    return environment(config=None, **kwargs)


def tool_call(tool: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': tool, 'arguments': arguments})}</tool_call>"


def settled_connections(at_most: int | None = None) -> int:
    """Open connections, once those that are closing have closed."""
    deadline = time.monotonic() + 8
    counts = [open_connections()]
    while time.monotonic() < deadline:
        time.sleep(0.1)
        counts.append(open_connections())
        if counts[-1] <= at_most if at_most is not None else len(counts) > 5 and len(set(counts[-5:])) == 1:
            break
    return counts[-1]


# -- the contract over each transport -----------------------------------------------------------------


@pytest.fixture
def make(request: Any, http_2048: str) -> Any:
    servers = {
        "stdio": {"command": "python", "args": ["-m", SERVER]},
        "http": {"url": http_2048},
    }
    config = {"local": servers[request.param]}
    return functools.partial(
        gymnasium.make,
        "mm_gym:mm_gym/MCP-v0",
        config=str(BUILT_IN),
        taskset="mm_gym.mcp.servers.tasks_2048:tasks",
        num_tasks=4,
        mcp_config=config,
        servers="shared" if request.param == "stdio" else "own",
    )


SLOW_CHECKS = {*VECTOR_CHECKS, many_resets_do_not_grow}


@pytest.mark.parametrize("make", ["stdio", "http"], indirect=True)
@pytest.mark.parametrize("check", [c for c in CHECKS if c not in SLOW_CHECKS], ids=lambda c: c.__name__)
def test_the_contract_holds(make: Any, check: Any) -> None:
    check(make)


@pytest.mark.parametrize("make", ["stdio", "http"], indirect=True)
def test_forked_vector_environments_work(make: Any) -> None:
    next(check for check in VECTOR_CHECKS if "forked" in check.__name__)(make)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["stdio", "http"], indirect=True)
@pytest.mark.parametrize("check", sorted(SLOW_CHECKS, key=lambda c: c.__name__), ids=lambda c: c.__name__)
def test_the_slow_part_of_the_contract_holds(make: Any, check: Any) -> None:
    check(make)


def solve(split: str, count: int) -> None:
    env = gymnasium.make("mm_gym/MCP-v0", config=str(BUILT_IN), taskset=tasks(split))
    with contextlib.closing(env):
        for index in range(count):
            episode = play(env, expert(env), options={"task": index})
            assert episode.success, episode.task_id
            assert episode.episode_return == pytest.approx(1.0)


def test_the_solver_solves_built_in_tasks() -> None:
    solve("train", 6)
    solve("test", 6)


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_solver_solves_every_built_in_task(split: str) -> None:
    solve(split, 64)


def test_the_small_tasks_are_solved_by_the_solver_and_rarely_by_a_constant_policy() -> None:
    rows = small_tasks("test", transport="python")
    assert len(rows) == 24
    assert len(small_tasks("train")) == 96
    kwargs = {"config": str(SMALL), "taskset": rows}
    with contextlib.closing(gymnasium.make("mm_gym/MCP-v0", **kwargs)) as env:
        solved = dict.fromkeys(("left", "right", "up", "down"), 0)
        for index in range(len(rows)):
            episode = play(env, expert(env), options={"task": index})
            assert episode.success
            assert [image.shape for image in episode.images] == [(96, 96, 3)] * 3
            for name in solved:
                constant = play(env, lambda _, name=name: f"<tool>{name}()</tool>", options={"task": index})
                solved[name] += constant.success
    assert all(count <= 6 for count in solved.values()), solved


# -- an episode ---------------------------------------------------------------------------------------


def test_an_episode_shows_text_and_picture_and_ends_when_the_server_says_done() -> None:
    with environment() as env:
        observation, info = env.reset(seed=0)
        assert observation["text"] == "Join them.\n\nScore 0, largest tile 2\n2 2\n. ."
        assert [image.shape for image in observation["images"]] == [(64, 64, 3)]
        assert (info["system_prompt"], info["tools"], info["task_id"]) == ("Play.", [], "pair")
        observation, reward, terminated, _, info = env.step("<tool>left()</tool>")
        assert terminated
        assert info["success"]
        assert info["stop_reason"] == "env_done"
        assert reward == pytest.approx(1.0)
        names = {"task_completion", "tool_execution", "format_compliance", "reward"}
        assert {name: info["metrics"][name] for name in names} == dict.fromkeys(names, 1.0)
        content = info["messages"][0]["content"]
        assert [block["type"] for block in content] == ["text", "image", "text"]
        assert content[0]["text"].startswith("<result>\n")
        assert content[2]["text"] == "\n</result>"


@pytest.mark.parametrize(
    ("response", "kind", "told", "status"),
    [
        ("go left", "missing_call", "Missing Tool Call: write <tool>name(arguments)</tool>", None),
        (
            "<tool>left</tool>",
            "malformed_call",
            "Invalid Tool Call Format: expected name(arguments)",
            "malformed",
        ),
        ("<tool>left(1)</tool>", "failed_call", "takes at most 0 arguments", "failed"),
        ("<tool>up()</tool>", "failed_call", "up moves no tile; try left, right, down", "failed"),
        ("<tool>jump()</tool>", "unknown_call", "The tools are: left, right, up, down, done", "unknown"),
        ('<tool>evaluate("max_tile")</tool>', "unknown_call", "no tool 'evaluate'", "unknown"),
        ("<tool>setup()</tool>", "unknown_call", "no tool 'setup'", "unknown"),
        ('<tool>move("left")</tool>', "unknown_call", "no tool 'move'", "unknown"),
    ],
)
def test_mistakes_are_told_and_recorded(response: str, kind: str, told: str, status: str | None) -> None:
    with environment() as env:
        env.reset(seed=0)
        observation, reward, terminated, _, info = env.step(response)
        assert (reward, terminated) == (0.0, False)
        assert told in observation["text"]
        assert info["error"]["kind"] == kind
        assert [call["status"] for call in info["tool_calls"]] == ([status] if status else [])


def test_error_texts_can_be_hidden() -> None:
    with environment(config={**CONFIG, "show_errors": False}) as env:
        env.reset(seed=0)
        texts = [env.step(response)[0]["text"] for response in ("x", "<tool>up</tool>", "<tool>up()</tool>")]
    assert texts == ["Missing Tool Call", "Invalid Tool Call Format", "Invalid Tool Call"]


def test_components_are_reported_turn_by_turn_and_the_last_turn_evaluates() -> None:
    with environment(config={**CONFIG, "defaults": {"max_turns": 3}}) as env:
        env.reset(seed=0)
        *_, first = env.step("<tool>up()</tool>")
        *_, second = env.step("hm")
        _, reward, _, truncated, last = env.step("<tool>down()</tool>")
    assert first["metrics"]["tool_execution"] == 0.0
    assert second["metrics"]["format_compliance"] == pytest.approx(0.7)
    assert (second["metrics"]["turn_format_compliance"], first["metrics"]["turn_tool_errors"]) == (0.0, 1.0)
    assert "task_completion" not in second["metrics"]
    assert truncated
    assert last["stop_reason"] == "env_truncated"
    assert last["metrics"]["task_completion"] == 0.5
    format_score = 0.6 * 2 / 3 + 0.4
    assert reward == pytest.approx(0.8 * 0.5 + 0.1 * 0.5 + 0.1 * format_score)


def test_finish_evaluates_what_the_engine_cut() -> None:
    with environment() as env:
        env.reset(seed=0)
        env.step("<tool>down()</tool>")
        reward, metrics = env.unwrapped.finish("token_budget")
        assert metrics["task_completion"] == 0.5
        assert reward == pytest.approx(0.8 * 0.5 + 0.1 + 0.1)
        assert env.unwrapped.finish("token_budget") == (0.0, {})


def test_several_calls_run_where_the_configuration_says_so() -> None:
    response = "<tool>down()</tool><tool>left()</tool><tool>up()</tool>"
    with environment() as env:
        env.reset(seed=0)
        observation, _, terminated, _, info = env.step(response)
        assert not terminated
        assert info["metrics"]["turn_ignored_calls"] == 2.0
        assert "Only 1 call of a response run" in observation["text"]
    with environment(config={**CONFIG, "parser": {"use_thinking": False, "max_calls": 3}}) as env:
        env.reset(seed=0)
        *_, terminated, _, info = env.step(response)
        assert terminated
        assert [call["name"] for call in info["tool_calls"]] == ["down", "left"]


def brevity(record: Any) -> float:
    return 1.0 / len(record.turns)


def test_own_rubric_components() -> None:
    rubric = {
        "weights": {"task_completion": 0.5},
        "components": {"brevity": {"function": f"{__name__}:brevity", "weight": 2}},
    }
    sys.modules.setdefault(__name__, sys.modules[brevity.__module__])
    with environment(config={**CONFIG, "rubric": rubric}) as env:
        env.reset(seed=0)
        _, reward, *_, info = env.step("<tool>left()</tool>")
    assert info["metrics"]["brevity"] == 1.0
    assert reward == pytest.approx(0.5 + 0.1 + 0.1 + 2.0)
    rubric["components"]["brevity"]["function"] = "mm_gym.mcp:nothing"  # type: ignore[index,call-overload]
    with pytest.raises(ValueError, match=r"mm_gym\.mcp:nothing"):
        gymnasium.make("mm_gym/MCP-v0", config={**CONFIG, "rubric": rubric}, taskset=[ROW])


def test_system_prompts_of_argument_row_agent_and_configuration() -> None:
    agent = {**ROW, "agent_config": {"system_prompt": "agent"}}
    row = {**agent, "system_prompt": "row"}
    for rows, kwargs, expected in (
        (ROW, {}, "Play."),
        (agent, {}, "agent"),
        (row, {}, "row"),
        (row, {"system_prompt": "argument"}, "argument"),
    ):
        with environment(rows, **kwargs) as env:
            assert env.reset(seed=0)[1]["system_prompt"] == expected


def test_setup_output_can_be_left_out() -> None:
    with environment({**ROW, "agent_config": {"append_setup_output": False}}) as env:
        observation, _ = env.reset(seed=0)
        assert (observation["text"], observation["images"]) == ("Join them.", ())


def test_unknown_options_and_tasks_are_told() -> None:
    with environment() as env:
        with pytest.raises(ValueError, match="unknown options"):
            env.reset(options={"tsk": 0})
        with pytest.raises(ValueError, match="no task 'other'"):
            env.reset(options={"task": "other"})
        assert env.reset(options={"task": "pair"})[1]["task_id"] == "pair"


# -- hud-vf-gym's exact behaviour ---------------------------------------------------------------------


def test_exact_texts_and_scores_of_hud_vf_gym() -> None:
    with environment(config={**CONFIG, "compat": "hud-vf-gym"}) as env:
        observation, _ = env.reset(seed=0)
        assert observation["text"] == "Join them.\n\nScore 0, largest tile 2\n2 2\n. ."
        assert observation["images"] == ()  # setup's pictures are dropped
        texts = [env.step(r)[0]["text"] for r in ("go", "<tool>up</tool>", "<tool>up()</tool>")]
        assert texts == ["Missing Tool Call", "Invalid Tool Call Format", "Invalid Tool Call"]
        observation, *_, terminated, _, _ = env.step("<tool>left()</tool>")
        assert (observation["text"], len(observation["images"])) == ("", 1)  # a picture drops the text
        assert not terminated  # the server's "done" ends nothing
        observation, reward, terminated, _, info = env.step("<tool>done()</tool>")
        assert observation["text"] == "Agent is done, Evaluating..."
        xml = (0.2 + 1 + 1 + 1 + 1) / 5
        assert info["metrics"]["format_compliance"] == pytest.approx(0.6 * xml + 0.4 * 3 / 4)
        assert info["metrics"]["tool_execution"] == pytest.approx(2 / 3)
        assert reward == pytest.approx(0.8 + 0.1 * 2 / 3 + 0.1 * (0.6 * xml + 0.3))


def test_text_results_of_hud_vf_gym_are_wrapped() -> None:
    board = {"name": "board", "arguments": {**BOARD["arguments"], "image": 0}}  # type: ignore[dict-item]
    row = {**ROW, "setup_tool": {"name": "setup", "arguments": board}}
    with environment(row, config={**CONFIG, "compat": "hud-vf-gym"}) as env:
        env.reset(seed=0)
        assert (
            env.step("<tool>down()</tool>")[0]["text"]
            == "<result>\nScore 0, largest tile 2\n. .\n2 2\n</result>"
        )


# -- native calls, filters, several servers -----------------------------------------------------------


def test_native_calls_use_the_servers_own_schemas_and_hide_setup_and_evaluation() -> None:
    with native() as env:
        _, info = env.reset(seed=0)
        (tool,) = info["tools"]
        assert tool["function"]["name"] == "move"
        assert tool["function"]["parameters"]["properties"]["direction"]["type"] == "string"
        *_, info = env.step(tool_call("evaluate", name="max_tile", arguments={"target": 2}))
        assert info["tool_calls"][0]["status"] == "unknown"
        *_, info = env.step(tool_call("move", direction="sideways"))
        assert "direction must be one of" in info["error"]["text"]
        observation, _, terminated, _, info = env.step(tool_call("move", direction="left"))
        assert terminated
        assert info["messages"][0]["role"] == "tool"
        assert (info["messages"][0]["name"], info["messages"][0]["call"]) == ("move", 0)
        assert len(observation["images"]) == 1


def test_a_native_answer_without_a_call_ends_the_episode() -> None:
    with native() as env:
        env.reset(seed=0)
        *_, terminated, _, info = env.step("I am done.")
        assert terminated
        assert info["stop_reason"] == "no_tool_call"
        assert info["metrics"]["task_completion"] == 0.5


@pytest.mark.parametrize(
    ("config", "agent", "names"),
    [
        ({}, {}, ["left", "right", "up", "down", "done"]),
        ({"allowed_tools": ["*"]}, {}, ["left", "right", "up", "down", "move", "done"]),
        ({"allowed_tools": ["m*"], "disallowed_tools": ["move"]}, {}, ["done"]),
        ({}, {"disallowed_tools": ["mo*"]}, ["done"]),
        ({"action_mappings": {}}, {}, ["move", "done"]),
        ({"action_mappings": {}}, {"allowed_tools": ["other"]}, ["done"]),
        ({"action_mappings": {}, "allowed_tools": ["setup", "evaluate", "move"]}, {}, ["move", "done"]),
    ],
)
def test_filters_of_configuration_and_agent(config: Any, agent: Any, names: list[str]) -> None:
    with environment({**ROW, "agent_config": agent}, config={**CONFIG, **config}) as env:
        env.reset(seed=0)
        assert env.unwrapped._reader.names() == names


def test_a_tool_without_a_mapping_takes_arguments_in_its_schemas_order() -> None:
    with environment(config={**CONFIG, "action_mappings": {}}) as env:
        env.reset(seed=0)
        assert env.step('<tool>move("left", 3)</tool>')[4]["tool_calls"][0]["status"] == "failed"
        assert env.step('<tool>move("left", direction="up")</tool>')[4]["tool_calls"][0]["status"] == "failed"
        assert env.step('<tool>move("down")</tool>')[4]["tool_calls"][0]["status"] == "ok"
        assert env.step('<tool>move(direction="left")</tool>')[2]


def test_several_servers_prefix_their_tools() -> None:
    server = {"python": f"{SERVER}:make_server"}
    row = {
        **ROW,
        "mcp_config": {"a": server, "b": server},
        "setup_tool": [{"name": f"{name}_setup", "arguments": BOARD} for name in "ab"],
        "evaluate_tool": {
            "name": "b_evaluate",
            "arguments": {"name": "max_tile", "arguments": {"target": 4}},
        },
    }
    with environment(row, config=None) as env:
        _, info = env.reset(seed=0)
        assert [tool["function"]["name"] for tool in info["tools"]] == ["a_move", "b_move"]
        env.step(tool_call("a_move", direction="down"))
        *_, terminated, _, info = env.step(tool_call("b_move", direction="left"))
        assert terminated
        assert info["success"]


def test_the_rows_own_solution_is_an_expert() -> None:
    row = {**ROW, "integration_test_tool": {"name": "move", "arguments": {"direction": "left"}}}
    for config in (None, {**CONFIG, "action_mappings": {}, "parser": {"use_thinking": True}}):
        with environment(row, config=config) as env:
            assert play(env, expert(env), seed=0).success


def test_a_response_tool_gets_the_final_answer() -> None:
    row = {
        **ROW,
        "agent_config": {"response_tool_name": "move"},
        "evaluate_tool": ROW["evaluate_tool"],
    }
    with environment(row, config=None) as env:
        _, info = env.reset(seed=0)
        assert info["tools"] == []  # the response tool is not the agent's to call
        *_, terminated, _, info = env.step("left, I say")
        assert terminated
        assert info["stop_reason"] == "env_done"


def test_loading_by_hud_vf_gyms_arguments(tmp_path: Path) -> None:
    taskset = tmp_path / "tasks.jsonl"
    taskset.write_text("\n".join(json.dumps({**ROW, "id": f"t{n}"}) for n in range(5)))
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({**CONFIG, "job": {"name": "run", "metadata": {"a": 1}}}))
    env = load_environment(str(taskset), str(config), num_tasks=2, max_turns=7, system_prompt="s")
    with contextlib.closing(env):
        assert len(env.unwrapped.tasks) == 2  # type: ignore[attr-defined]
        assert env.unwrapped.max_turns == 7  # type: ignore[attr-defined]
        assert env.reset(seed=0)[1]["system_prompt"] == "s"
        record = env.unwrapped.run_record()  # type: ignore[attr-defined]
        assert (record["job_name"], record["job_metadata"]) == ("run", {"a": 1})
        assert gymnasium.make(env.spec).unwrapped.max_turns == 7  # type: ignore[arg-type,attr-defined]


# -- state, processes ---------------------------------------------------------------------------------


def test_episodes_on_one_http_server_keep_their_own_state(http_2048: str) -> None:
    config = {"local": {"url": http_2048}}
    with environment(mcp_config=config) as one, environment(mcp_config=config) as two:
        one.reset(seed=0)
        two.reset(seed=0)
        one.step("<tool>down()</tool>")
        assert one.step("<tool>left()</tool>")[2]
        assert not two.step("<tool>down()</tool>")[2]
        assert two.step("<tool>left()</tool>")[2]


def test_reused_servers_serve_many_episodes_and_others_one() -> None:
    row = {**ROW, "mcp_config": {"local": {"command": "python", "args": ["-m", SERVER]}}}
    before = settled_connections()
    with environment(row, servers="reuse") as env:
        for seed in range(3):
            env.reset(seed=seed)
            env.step("<tool>left()</tool>")
        assert open_connections() == before + 1
        env.reset(seed=4)
    with environment(row, servers="reuse") as env:
        env.reset(seed=0)
        assert open_connections() == before + 1


def test_a_shared_server_serves_episodes_at_once_and_is_replaced_when_it_dies() -> None:
    row = {
        **ROW,
        "mcp_config": {"local": {"command": "python", "args": ["-m", SERVER], "env": {"SHARED": "1"}}},
    }
    before = settled_connections()
    with environment(row, servers="shared") as one, environment(row, servers="shared") as two:
        one.reset(seed=0)
        two.reset(seed=0)
        assert open_connections() == before + 1
        one.step("<tool>down()</tool>")
        assert one.step("<tool>left()</tool>")[2]
        assert not two.step("<tool>down()</tool>")[2]
        connection = two.unwrapped._servers.session.connections[0]
        os.kill(connection._stdio.process.pid, signal.SIGKILL)
        with pytest.raises(mm_gym.EnvironmentFailure):
            two.step("<tool>left()</tool>")
        two.reset(seed=0)
        assert two.step("<tool>left()</tool>")[2]


def test_servers_of_ended_episodes_are_let_go() -> None:
    before = settled_connections()
    with environment() as env:
        env.reset(seed=0)
        assert open_connections() == before + 1
        env.step("<tool>left()</tool>")
        assert settled_connections(at_most=before) == before


def test_it_works_inside_a_running_event_loop() -> None:
    import asyncio

    async def episode() -> bool:
        with environment() as env:
            env.reset(seed=0)
            return bool(env.step("<tool>left()</tool>")[2])

    assert asyncio.run(episode())


def test_it_imports_without_the_sdk_and_making_one_names_the_extra() -> None:
    script = textwrap.dedent(
        """
        import importlib.abc, sys
        class Missing(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("mcp", "mcp_types", "simpleeval", "httpx2"):
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Missing())
        import gymnasium, importlib.util, mm_gym, mm_gym.mcp
        from mm_gym.mcp import MCPEnv, ToolXMLParser, load_config, load_environment, load_taskset
        load_config(None)
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *a: None if name == "mcp" else find(name, *a)
        try:
            gymnasium.make("mm_gym/MCP-v0")
        except gymnasium.error.DependencyNotInstalled as error:
            print(error)
        try:
            load_config({"action_mappings": {"a": {"_tool": "t", "_parser": {"positional": ["x"]},
                         "x": {"from_arg": "x", "transform": "lambda x: x"}}}})
        except gymnasium.error.DependencyNotInstalled as error:
            print(error)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.count('pip install "mm-gym[mcp]"') == 2


def test_a_configuration_without_tasks_is_told() -> None:
    with pytest.raises(ValueError, match="pass taskset="):
        gymnasium.make("mm_gym/MCP-v0", config=CONFIG)


def test_a_failure_is_never_a_reward(http_2048: str) -> None:
    config = {"local": {"url": http_2048.replace("/mcp", "/nothing-here")}}
    with (
        environment(mcp_config=config) as env,
        pytest.raises(mm_gym.EnvironmentFailure, match="can't be used"),
    ):
        env.reset(seed=0)
