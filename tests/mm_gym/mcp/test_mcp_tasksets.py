"""HUD rows in all their spellings, where they come from, their secrets, and grades in all their spellings."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import mm_gym
from mm_gym.mcp.config import Limits
from mm_gym.mcp.results import ToolResult, find_grade, read_result
from mm_gym.mcp.tasksets import MCPCall, load_taskset

ROW: dict[str, Any] = {
    "id": "g-1",
    "prompt": "Reach 64.",
    "mcp_config": {"local": {"command": "python", "args": ["srv.py"]}},
    "setup_tool": {"name": "setup", "arguments": {"name": "board", "arguments": {"size": 4}}},
    "evaluate_tool": {"name": "evaluate", "arguments": {"name": "max_tile", "arguments": {"target": 64}}},
    "metadata": {"difficulty": 1},
}
SETUP = (MCPCall("setup", {"name": "board", "arguments": {"size": 4}}),)


def test_a_v4_row() -> None:
    (task,) = load_taskset([ROW])
    assert (task.task_id, task.prompt, task.setup) == ("g-1", "Reach 64.", SETUP)
    assert task.evaluate == (MCPCall("evaluate", {"name": "max_tile", "arguments": {"target": 64}}),)
    assert task.metadata == {"difficulty": 1}


def test_columns_may_be_json_text_as_the_hub_stores_them() -> None:
    keys = ("mcp_config", "setup_tool", "evaluate_tool", "metadata")
    row = {**ROW, **{key: json.dumps(ROW[key]) for key in keys}, "agent_config": "", "id": None}
    (task,) = load_taskset([row])
    (plain,) = load_taskset([ROW])
    assert (task.setup, task.evaluate, task.metadata) == (plain.setup, plain.evaluate, plain.metadata)
    assert task.task_id == "task_0"


@pytest.mark.parametrize(
    "setup",
    [
        {"name": "setup", "arguments": {"name": "board", "arguments": {"size": 4}}},
        {"name": "setup", "arguments": {"name": "board", "arguments": '{"size": 4}'}},
        {"name": "setup", "arguments": '{"name": "board", "arguments": {"size": 4}}'},
        {"setup": {"board": {"size": 4}}},
        {"setup": {"name": "board", "arguments": {"size": 4}}},
        ['{"name": "setup", "arguments": {"name": "board", "arguments": {"size": 4}}}'],
        [{"setup": {"board": {"size": 4}}}],
    ],
)
def test_all_spellings_of_a_dispatched_call(setup: Any) -> None:
    (task,) = load_taskset([{**ROW, "setup_tool": setup}])
    assert task.setup == SETUP


def test_the_old_dispatcher_form_is_passed_on() -> None:
    old = {"name": "setup", "arguments": {"function": "board", "args": {"size": 4}}}
    (task,) = load_taskset([{**ROW, "setup_tool": old}])
    assert task.setup == (MCPCall("setup", {"function": "board", "args": {"size": 4}}),)


def test_several_calls_and_none() -> None:
    (task,) = load_taskset([{**ROW, "setup_tool": [ROW["setup_tool"]] * 2, "evaluate_tool": None}])
    assert (len(task.setup), task.evaluate) == (2, ())


@pytest.mark.parametrize(
    "setup", ["{", {"a": 1, "b": 2}, {"name": 3}, [[1]], {"setup": 4}, {"name": "x", "arguments": [1]}]
)
def test_a_malformed_call_names_row_and_column(setup: Any) -> None:
    with pytest.raises(ValueError, match="row 1: setup_tool"):
        load_taskset([ROW, {**ROW, "id": "b", "setup_tool": setup}])


def test_agent_config_and_system_prompt() -> None:
    agent = {
        "allowed_tools": ["a*"],
        "disallowed_tools": "ab",
        "response_tool_name": "response",
        "system_prompt": "s",
        "append_setup_output": False,
        "initial_screenshot": True,
    }
    (task,) = load_taskset([{**ROW, "agent_config": json.dumps(agent), "system_prompt": "row"}])
    assert task.agent.allowed_tools == ("a*",)
    assert task.agent.disallowed_tools == ("ab",)
    assert (task.agent.response_tool, task.agent.system_prompt, task.system_prompt) == (
        "response",
        "s",
        "row",
    )
    assert (task.agent.append_setup_output, task.agent.initial_screenshot) == (False, True)


def with_env(value: str) -> dict[str, Any]:
    return {**ROW, "mcp_config": {"local": {"command": "x", "args": ["$5", "a$"], "env": {"KEY": value}}}}


def test_variables_are_resolved_at_load_and_kept_out_of_the_task(monkeypatch: Any) -> None:
    monkeypatch.setenv("MM_GYM_TEST_KEY", "s3cret-value")
    taskset = load_taskset([with_env("Bearer ${MM_GYM_TEST_KEY}")])
    (spec,) = taskset.servers(0)
    assert spec.env["KEY"] == "Bearer s3cret-value"
    assert spec.args == ("$5", "a$")
    for shown in (repr(taskset[0]), repr(taskset), repr(spec), str(taskset[0].mcp_config)):
        assert "s3cret-value" not in shown
    assert "${MM_GYM_TEST_KEY}" in repr(taskset[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [("${UNSET_X:fall back}", "fall back"), ("${UNSET_X:}", ""), ("${UNSET_X:a:b}", "a:b"), ("${5}", "${5}")],
)
def test_defaults_of_variables(text: str, value: str) -> None:
    assert load_taskset([with_env(text)]).servers(0)[0].env["KEY"] == value


def test_an_unset_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="row 0: mcp_config needs the environment variable UNSET_X"):
        load_taskset([with_env("${UNSET_X}")])


def test_secrets_do_not_reach_results() -> None:
    block = SimpleNamespace(type="text", text="your key is s3cret-value")
    raw = SimpleNamespace(content=[block], is_error=False, structured_content=None)
    assert read_result(raw, Limits(), ("s3cret-value",)).text == "your key is ***"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "mcp_config is missing"),
        ({"a": {"cmd": "x"}}, "needs one of command, url or python"),
        ({"a": {"url": "http://x", "transport": "sse"}}, "sse transport"),
        ({"a": {"url": "ftp://x"}}, "http://"),
        ({"a": {"command": "x", "arg": []}}, "unknown keys"),
        ({"a": {"python": "module"}}, "module:function"),
        ({"a": 3}, "must be a mapping"),
    ],
)
def test_malformed_servers_are_told(config: Any, told: str) -> None:
    with pytest.raises(ValueError, match="row 0") as error:
        load_taskset([{**ROW, "mcp_config": config}])
    assert told in str(error.value)


def test_fastmcps_wrapping_is_read() -> None:
    taskset = load_taskset(
        [{**ROW, "mcp_config": {"mcpServers": {"a": {"url": "https://x/mcp", "headers": {"h": "1"}}}}}]
    )
    (spec,) = taskset.servers(0)
    assert (spec.name, spec.kind, spec.url, spec.headers) == ("a", "http", "https://x/mcp", {"h": "1"})


def test_mcp_config_for_all_tasks_replaces_the_rows_own() -> None:
    taskset = load_taskset([with_env("${UNSET_X}")], mcp_config={"b": {"url": "http://localhost:1/mcp"}})
    assert taskset.servers(0)[0].name == "b"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"env": {"name": "shop"}, "scenario": "checkout", "args": {}}, "HUD v5 task"),
        ({"env": "shop", "id": "x", "slug": "x-1", "args": {}}, "HUD v6 task"),
        ({"mcp_config": ROW["mcp_config"]}, "prompt must be text"),
    ],
)
def test_rows_that_cannot_run_say_why(row: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        load_taskset([row])


def test_a_v5_row_with_a_v4_rows_fields_runs() -> None:
    (task,) = load_taskset(
        [{**ROW, "scenario": "x", "validation": [{"name": "move", "arguments": {"direction": "up"}}]}]
    )
    assert task.solution == (MCPCall("move", {"direction": "up"}),)


def test_sources(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [{**ROW, "id": f"t{n}"} for n in range(3)]
    text = [{**row, **{k: json.dumps(v) for k, v in row.items() if isinstance(v, dict)}} for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(text), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "structs.parquet")
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "splits.json").write_text(json.dumps({"train": rows[:1], "test": rows}))
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    sources: list[Any] = [
        tmp_path / n for n in ("a.parquet", "structs.parquet", "a.json", "splits.json", "test.jsonl")
    ]
    for source in [*sources, str(tmp_path), rows]:
        assert [task.task_id for task in load_taskset(source, split="test")] == ["t0", "t1", "t2"], source
        assert len(load_taskset(source, split="test", num_tasks=2)) == 2
        assert load_taskset(source, split="test")[0].setup == SETUP
    with pytest.raises(ValueError, match="from 1 to the 3 tasks"):
        load_taskset(rows, num_tasks=4)
    with pytest.raises(FileNotFoundError, match="hub name"):
        load_taskset(tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match="share the id 't0'"):
        load_taskset([rows[0], rows[0]])
    with pytest.raises(ValueError, match="no tasks"):
        load_taskset([])


def test_the_built_in_taskset_has_splits_of_its_own() -> None:
    source = "mm_gym.mcp.servers.tasks_2048:tasks"
    train, test = (load_taskset(source, split=split) for split in ("train", "test"))
    assert not {task.task_id for task in train} & {task.task_id for task in test}
    assert len(train) == len(test) == 64


def test_find_takes_a_number_or_an_id() -> None:
    taskset = load_taskset([ROW, {**ROW, "id": "other"}])
    assert (taskset.find(1), taskset.find("g-1")) == (1, 0)
    for key in (2, -1, "none", True):
        with pytest.raises(ValueError, match="no task"):
            taskset.find(key)


# -- results ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structured", "text", "grade", "hud"),
    [
        ({"grade": 0.5}, "", 0.5, 0.5),
        ({"reward": 1}, "", 1.0, 1.0),
        ({"grade": 0.25, "reward": 1.0}, "", 0.25, 0.25),
        ({"score": 0.75}, "", 0.75, None),
        ({"reward": True}, "", 1.0, 1.0),
        ({"reward": "0.5"}, "", 0.5, 0.5),
        ({"subscores": {"a": 1.0, "b": 0.5}, "weights": {"a": 0.5, "b": 0.5}}, "", 0.75, None),
        ({"subscores": {"a": 1.0, "b": 0.5}, "weights": {"a": 0.5}}, "", 0.5, None),
        ({"subscores": [{"score": 1.0, "weight": 0.25}, {"value": 0.5, "weight": 0.5}]}, "", 0.5, None),
        ({}, '{"reward": 0.5}', 0.5, None),
        ({"result": '{"grade": 0.5}'}, '{"grade": 0.5}', 0.5, None),
        ({"result": {"score": 0.5}}, "", 0.5, None),
        ({"result": 1.0}, "1.0", None, None),
        ({"reward": float("nan")}, "", None, None),
        ({"reward": 10**400}, "", None, None),
        ({"reward": [1]}, "", None, None),
        ({}, "reward 1.0", None, None),
        ({}, "[" * 100_000, None, None),
        ({}, "{" * 100_000, None, None),
        ({"subscores": {"a": "x"}}, "", None, None),
        ({"subscores": 3}, "", None, None),
    ],
)  # fmt: skip
def test_grades_in_all_spellings(structured: Any, text: str, grade: float | None, hud: float | None) -> None:
    result = ToolResult((text,) if text else (), structured=structured)
    assert find_grade(result) == grade
    assert find_grade(result, hud=True) == hud


def image_block(mime: str, kind: str) -> Any:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 3), (255, 0, 0)).save(buffer, kind, lossless=True)
    return SimpleNamespace(type="image", data=base64.b64encode(buffer.getvalue()).decode(), mime_type=mime)


def test_texts_and_pictures_keep_their_order_and_real_types() -> None:
    blocks = [
        SimpleNamespace(type="text", text="a\x07"),
        image_block("image/png", "WEBP"),
        SimpleNamespace(type="resource", resource=SimpleNamespace(text="r", uri="u://1")),
        image_block("image/jpeg", "PNG"),
        SimpleNamespace(type="resource_link", uri="file://x"),
        SimpleNamespace(type="audio", data="", mime_type="audio/wav"),
    ]
    result = read_result(SimpleNamespace(content=blocks, is_error=None, structured_content=3), Limits())
    shapes = [part if isinstance(part, str) else part.shape for part in result.content]
    assert shapes == ["a\ufffd", (3, 4, 3), "r", (3, 4, 3), "[resource_link file://x]", "[audio]"]
    assert result.mime_types == ("image/webp", "image/png")
    assert (result.images[1] == np.array([255, 0, 0])).all()
    assert (result.is_error, result.structured) == (False, {})


def test_the_texts_of_a_result_share_one_limit() -> None:
    blocks = [SimpleNamespace(type="text", text=text) for text in ("abcd", "efgh", "ij")]
    raw = SimpleNamespace(content=blocks, is_error=False, structured_content=None)
    assert read_result(raw, Limits(text_chars=6)).texts == [
        "abcd",
        "ef\n[2 more characters left out]",
        "[2 more characters left out]",
    ]


def test_the_pictures_of_a_result_share_one_limit() -> None:
    raw = SimpleNamespace(
        content=[image_block("image/png", "PNG")] * 3, is_error=False, structured_content=None
    )
    assert len(read_result(raw, Limits(image_pixels=36)).images) == 3
    with pytest.raises(mm_gym.EnvironmentFailure, match="4x3 after others of 24 pixels"):
        read_result(raw, Limits(image_pixels=35))


def test_structured_content_alone_is_a_text_like_any_other() -> None:
    raw = SimpleNamespace(content=[], is_error=False, structured_content={"key": "s3cret\x9b", "x": "y" * 99})
    result = read_result(raw, Limits(text_chars=30), ("s3cret",))
    assert result.structured_text.startswith('{"key": "***\ufffd", "x": "yy')
    assert result.structured_text.endswith("more characters left out]")
    assert not result.content


def test_other_picture_formats_are_refused() -> None:
    block = SimpleNamespace(type="image", data=base64.b64encode(b"%!PS-Adobe-3.0 EPSF\n").decode())
    with pytest.raises(mm_gym.EnvironmentFailure, match="does not decode"):
        read_result(SimpleNamespace(content=[block], is_error=False, structured_content=None), Limits())
