"""Tools: what the agent is told about a call that does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mm_gym import Tool, ToolCall, ToolError, run_tools
from mm_gym.messages import flatten


def divide(a: float, b: float = 2) -> Any:
    if b == 0:
        raise ToolError("divide: b must not be 0")
    return f"{a / b:g}"


DIVIDE = Tool(
    "divide",
    "Divide.",
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a"],
    },
    divide,
)
PICTURE = Tool(
    "picture",
    "Show.",
    {"type": "object", "properties": {}},
    lambda: ["Look:", np.zeros((5, 7, 3), np.uint8)],
)


def run(*calls: ToolCall, limit: int = 16) -> tuple[list[str], list[str]]:
    """The texts and the statuses of running calls."""
    result = run_tools(calls, [DIVIDE, PICTURE], limit)
    texts = [flatten([message])[1] for message in result.messages]
    return texts, [record["status"] for record in result.records]


def test_results_in_order() -> None:
    texts, statuses = run(ToolCall("divide", {"a": 3}), ToolCall("divide", {"a": 9, "b": 3}))
    assert (texts, statuses) == (["1.5", "3"], ["ok", "ok"])


def test_a_result_may_hold_pictures() -> None:
    messages, text, images = flatten(run_tools([ToolCall("picture")], [PICTURE]).messages)
    assert (text, images[0].shape, messages[0]["name"], messages[0]["call"]) == (
        "Look:",
        (5, 7, 3),
        "picture",
        0,
    )


@pytest.mark.parametrize(
    ("call", "status", "says"),
    [
        (ToolCall("halve", {"a": 1}), "unknown", "there is no tool 'halve'. The tools are: divide, picture."),
        (ToolCall("divide", {}), "failed", "'a' is a required property"),
        (ToolCall("divide", {"a": "3"}), "failed", "['a']: '3' is not of type 'number'"),
        (ToolCall("divide", {"a": True}), "failed", "is not of type 'number'"),
        (ToolCall("divide", {"a": 1, "c": 2}), "failed", "'c' was unexpected"),
        (ToolCall("divide", {"a": 1, "b": 0}), "failed", "b must not be 0"),
    ],
)
def test_a_mistake_is_explained(call: ToolCall, status: str, says: str) -> None:
    texts, statuses = run(call)
    assert statuses == [status]
    assert says in texts[0]
    assert texts[0].startswith("Error: ")


def test_a_wrong_call_is_shown_the_right_form() -> None:
    assert run(ToolCall("divide", {}))[0][0].endswith(
        'Expected {"name": "divide", "arguments": {"a": <number>}}'
    )


def test_a_mistake_does_not_stop_the_other_calls() -> None:
    _, statuses = run(ToolCall("no"), ToolCall("divide", {"a": 1}), ToolCall("divide"))
    assert statuses == ["unknown", "ok", "failed"]


def test_calls_beyond_the_limit_are_not_run_and_one_message_says_so() -> None:
    texts, statuses = run(*[ToolCall("divide", {"a": 1})] * 5, limit=2)
    assert statuses == ["ok", "ok", "failed", "failed", "failed"]
    assert texts == ["0.5", "0.5", "Error: only the first 2 calls of a response are run, not these 3."]


def test_the_schema_is_what_chat_templates_take() -> None:
    assert DIVIDE.schema["type"] == "function"
    assert DIVIDE.schema["function"]["parameters"]["required"] == ["a"]


def test_a_fault_of_the_tool_itself_is_not_hidden() -> None:
    broken = Tool("broken", "", {"type": "object", "properties": {}}, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_tools([ToolCall("broken")], [broken])


def test_huge_arguments_give_a_short_error() -> None:
    (text,), _ = run(ToolCall("divide", {"a": "x" * 100_000}))
    assert len(text) < 1_000
    assert "is not of type 'number'" in text
    (text,), _ = run(ToolCall("y" * 100_000))
    assert len(text) < 300
