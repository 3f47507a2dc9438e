"""Both grammars and both scores against a table, the examples in hud-vf-gym's description, and fuzzing.

`response_table.jsonl`: a response, the format score and the first call by hud-vf-gym's rules and by ours, and
why they differ. Its hud values come from a separate reading of the rules, by regular expressions.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mm_gym.mcp.call_grammar import TextCall
from mm_gym.mcp.config import RubricConfig
from mm_gym.mcp.rubric import CallRecord, Rubric, RubricRecord, TurnRecord, tool_execution
from mm_gym.mcp.tasksets import MCPTask
from mm_gym.mcp.xml_calls import Form, Forms, ToolXMLParser
from mm_gym.text import scalar_text

TABLE = [
    json.loads(line)
    for line in Path(__file__).with_name("response_table.jsonl").read_text(encoding="utf-8").splitlines()
]


def read(row: dict[str, Any], hud: bool) -> list[Any]:
    parser = ToolXMLParser(use_thinking=row["thinking"], hud=hud)
    calls = parser.parse(row["response"]).calls
    call: Any = calls[0] if calls else None
    if isinstance(call, str):
        call = "INVALID"
    elif call is not None:
        call = {
            "name": call.name,
            "args": list(call.args),
            **({"kwargs": call.kwargs} if call.kwargs else {}),
        }
    return [round(parser.format_score([row["response"]]), 4), call]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: repr(row["response"])[:40])
def test_the_table_of_responses(row: dict[str, Any]) -> None:
    assert repr(read(row, hud=True)) == repr(row["hud"])
    assert repr(read(row, hud=False)) == repr(row["ours"])


def test_the_table_is_large_and_explains_every_difference() -> None:
    assert len({(row["response"], row["thinking"]) for row in TABLE}) >= 150
    for row in TABLE:
        assert ("why" in row) == (repr(row["hud"]) != repr(row["ours"])), row


@pytest.mark.parametrize(
    ("thinking", "responses", "score"),
    [
        (False, ["<tool>up()</tool>"], 1.0),
        (False, ["<tool>up</tool>"], 0.6),
        (False, ["go up"], 0.2),
        (True, ["<tool>up()</tool>"], 0.76),
        (False, ["<tool>up()</tool>", "go up"], 0.6 * 0.6 + 0.4),
        (False, [], 0.0),
    ],
)
def test_format_scores_of_hud_vf_gym(thinking: bool, responses: list[str], score: float) -> None:
    assert ToolXMLParser(use_thinking=thinking, hud=True).format_score(responses) == pytest.approx(score)


def test_the_parsers_interface_of_hud_vf_gym() -> None:
    parser = ToolXMLParser(["tool"], xml_weight=0.6, action_weight=0.4, hud=True)
    reward = parser.get_format_reward_func()
    messages = [{"role": "assistant", "content": "<tool>up</tool>"}, {"role": "user", "content": "x"}]
    assert reward(messages, parser=parser) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="fields"):
        ToolXMLParser(["answer"])


def test_weights_are_normalised() -> None:
    parser = ToolXMLParser(use_thinking=False, xml_weight=3, action_weight=1)
    assert (parser.xml_weight, parser.action_weight) == (0.75, 0.25)
    assert parser.format_score(["<tool>up</tool>"]) == 0.75
    with pytest.raises(ValueError, match="weights"):
        ToolXMLParser(xml_weight=0, action_weight=0)


def record(statuses: list[str], score: float | None) -> RubricRecord:
    made = RubricRecord(MCPTask("t", "p", {}), task_score=score)
    for status in statuses:
        made.add(TurnRecord("", (CallRecord("up", {}, status),), Form(0.9)))
    return made


def mean(forms: Forms) -> float:
    return forms.xml / forms.count if forms.count else 0.0


def test_the_reward_of_hud_vf_gyms_example() -> None:
    rubric = Rubric(RubricConfig(), mean, hud=True)
    scores = rubric.scores(record(["ok", "ok", "failed", "ok", "done"], 0.5))
    assert scores == pytest.approx({"task_completion": 0.5, "tool_execution": 0.8, "format_compliance": 0.9})
    assert rubric.reward(scores) == pytest.approx(0.57)


def test_a_raw_tile_as_score_is_clipped_here_and_not_in_hud_vf_gym() -> None:
    for hud, expected in ((True, 2048.0), (False, 1.0)):
        scores = Rubric(RubricConfig(), mean, hud).scores(record(["ok"], 2048.0))
        assert scores["task_completion"] == expected


@pytest.mark.parametrize(
    ("statuses", "ours", "hud"),
    [
        (["done"], 0.0, 1.0),
        ([], 0.0, 0.0),
        (["malformed"], 0.0, 0.0),
        (["ok", "malformed", "done"], 1.0, 1.0),
        (["ok", "unknown"], 0.5, 0.5),
        (["ok", "failed", "done"], 0.5, 2 / 3),
    ],
)
def test_tool_execution(statuses: list[str], ours: float, hud: float) -> None:
    assert tool_execution(Counter(statuses)) == pytest.approx(ours)
    assert tool_execution(Counter(statuses), hud=True) == pytest.approx(hud)


PIECES = [
    "<tool>", "</tool>", "<think>", "</think>", "(", ")", "[", "]", "{", "}", ",", '"', "'", "\\", "\\u", "=",
    ":", "click", "up()", "x=1", "1e9", "-", ".", "0", "9" * 30, "true", "null", "None", " ", "\n", "\t",
    "\x00", "\ud800", "∠", "😀", "__class__", "__import__('os')", "<|im_end|>", "done()", "a" * 200,
    "\\ud800", "٣",
]  # fmt: skip


def fuzz(count: int, seed: int) -> None:
    """Random and mutated responses: every parse ends, gives plain data, and scores lie in 0..1."""
    source = random.Random(seed)
    parsers = [ToolXMLParser(use_thinking=t, hud=h) for t in (True, False) for h in (True, False)]
    for number in range(count):
        if number % 2:
            text = "".join(source.choices(PIECES, k=source.randint(0, 24)))
        else:
            text = source.choice(TABLE)["response"]
            for _ in range(source.randint(1, 4)):
                at = source.randint(0, len(text))
                text = text[:at] + source.choice(PIECES) + text[at + source.randint(0, 3) :]
        parser = parsers[number % 4]
        parsed, forms = parser.parse(text), Forms()
        forms.add(parser.form(text, parsed))
        assert all(isinstance(call, (str, TextCall)) for call in parsed.calls), text
        assert 0.0 <= parser.score(forms) <= 1.0 + 1e-9, text
        if not parser.hud:
            for call in parsed.calls:
                if isinstance(call, TextCall):
                    json.dumps([call.args, call.kwargs], allow_nan=False)
                    assert repr(call.args) == scalar_text(repr(call.args)) or "\ud800" in text


def test_parsers_withstand_fuzzing() -> None:
    fuzz(20_000, seed=0)


@pytest.mark.slow
def test_parsers_withstand_a_million() -> None:
    fuzz(1_000_000, seed=1)


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("hud", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "<tool>" * 30_000,
        "<think>" * 30_000,
        "<think></think>" * 20_000,
        "<tool>f(" + "(" * 200_000,
        "<tool>f(" + "[" * 30_000 + "</tool>",
        "<tool>f(" + '"' * 65_001 + ")</tool>",
        "<tool>f(" + "1," * 30_000 + ")</tool>",
        "<tool>" + " " * 300_000,
        "<tool>f(" + "x=" * 30_000 + ")</tool>",
        "<tool>f(" + "\\u" * 30_000 + ")</tool>",
        '<tool>f("' + "\\" * 60_000 + '")</tool>',
        "<tool>f(" + " " * 60_000 + "1)</tool>",
    ],
    ids=lambda text: text[:14],
)
def test_long_responses_take_linear_time(text: str, hud: bool, thinking: bool) -> None:
    parser = ToolXMLParser(use_thinking=thinking, hud=hud)
    start = time.process_time()
    parser.form(text)
    assert time.process_time() - start < 1.0


def test_several_calls_of_a_response_are_all_found() -> None:
    parsed = ToolXMLParser(use_thinking=False).parse("<tool>a(1)</tool> and <tool>b(</tool><tool>c()</tool>")
    assert [call if isinstance(call, str) else call.name for call in parsed.calls][::2] == ["a", "c"]
    assert isinstance(parsed.calls[1], str)


def test_attributes_are_those_of_hud_vf_gym() -> None:
    parser = ToolXMLParser(positional={"click": ["x", "y"]})
    parsed = parser.parse("<think>there</think><tool>click(1, 2)</tool>")
    assert (parsed.think, parsed.tool) == ("there", "click(1, 2)")
    assert parsed.action == {"name": "click", "arguments": {"x": 1, "y": 2}}
    bad = parser.parse("<tool>click 1</tool>")
    assert bad.action is None
    assert "click 1" in (bad.action_error or "")
