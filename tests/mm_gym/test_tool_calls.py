"""The tool-call parser on what models write."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mm_gym import ToolCall, parse_tool_calls
from mm_gym.tool_calls import MAX_MALFORMED, without_thinking


def call(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def argument(text: str) -> Any:
    """The argument `x` of a call whose JSON string is written exactly so."""
    parse = parse_tool_calls(call('{"name": "t", "arguments": {"x": "' + text + '"}}'))
    assert parse.error is None, parse.error
    return parse.calls[0].arguments["x"]


def test_a_call_and_the_text_around_it() -> None:
    parse = parse_tool_calls("I look.\n" + call('{"name": "zoom", "arguments": {"cell": 5}}') + "\nDone.")
    assert parse.calls == (ToolCall("zoom", {"cell": 5}),)
    assert parse.error is None


def test_several_calls_in_order() -> None:
    text = (
        call('{"name": "a", "arguments": {}}')
        + call('{"name": "b"}')
        + '<tool_call>{"name": "c"}</tool_call>'
    )
    assert [c.name for c in parse_tool_calls(text).calls] == ["a", "b", "c"]


def test_no_call_is_no_error() -> None:
    for text in ("", "just text", '{"name": "zoom", "arguments": {}}', "```json\n{}\n```"):
        assert parse_tool_calls(text) == parse_tool_calls("")
    assert parse_tool_calls("").calls == ()
    assert parse_tool_calls("").error is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"\\frac{1}{2}", r"\frac{1}{2}"),
        (r"\boxed{5}", r"\boxed{5}"),
        (r"\\boxed{5}", r"\boxed{5}"),
        (r"5\sqrt{3}", r"5\sqrt{3}"),
        (r"5 \\sqrt{3}", r"5 \sqrt{3}"),
        (r"\sqrt3 \cdot \pi", r"\sqrt3 \cdot \pi"),
        (r"\theta \times \tan \text{ cm} \triangle ABC", r"\theta \times \tan \text{ cm} \triangle ABC"),
        (r"x \neq 5, \nabla", r"x \neq 5, \nabla"),
        (r"\right) \rho \beta \bar \forall \phi", r"\right) \rho \beta \bar \forall \phi"),
        (r"\angle \underline{x} \( \) \, \;", r"\angle \underline{x} \( \) \, \;"),
        (r"\uparrow", r"\uparrow"),
        (r"line one\nline two", "line one\nline two"),
        (r"a\tb\tthe end", "a\tb\tthe end"),
        (r"x = 1\ny = 2\nnew = 3", "x = 1\ny = 2\nnew = 3"),
        (r"one\r\ntwo", "one\r\ntwo"),
        (r"say \"hi\" \/ \\ done", 'say "hi" / \\ done'),
        (r"\u00e9\u221a2 \u00e9clair", "é√2 éclair"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud800", "\ufffd"),
        ("a\nraw\tbreak", "a\nraw\tbreak"),
        (r"C:\\Users\\name", r"C:\Users\name"),
    ],
)
def test_strings_mean_what_the_model_meant(written: str, meant: str) -> None:
    assert argument(written) == meant


def test_complete_json_in_a_call_that_was_never_closed_counts() -> None:
    for tail in ("", "\n", " I wait for the result.", '\n<tool_call>{"name": "b"}</tool_call>'):
        parse = parse_tool_calls('<tool_call>\n{"name": "a", "arguments": {"x": "}"}}' + tail)
        assert parse.calls[0] == ToolCall("a", {"x": "}"})
        assert parse.error is None


def test_calls_in_thinking_do_not_count() -> None:
    inside = call('{"name": "a"}')
    for text in (
        f"<think>{inside}</think>",
        f"<think>{inside}",
        f"so {inside} hm</think>",  # the template opened the thinking
        f"<think>{call('{broken')}</think>fine",
    ):
        assert parse_tool_calls(text) == parse_tool_calls("")
    outside = call('{"name": "b"}')
    parse = parse_tool_calls(f"<think>{inside}</think>{outside}<think>{inside}</think>")
    assert [c.name for c in parse.calls] == ["b"]


def test_marks_inside_a_string_are_text() -> None:
    text = "</tool_call><tool_call></think><think>"
    assert argument(text) == text


def test_arguments_as_a_json_string() -> None:
    parse = parse_tool_calls(call(json.dumps({"name": "a", "arguments": '{"x": 1}'})))
    assert parse.calls == (ToolCall("a", {"x": 1}),)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "empty call"),
        ("zoom(5)", "a JSON object must follow"),
        ('["a"]', "a JSON object must follow"),
        ("{}", '"name" must be'),
        ('{"arguments": {}}', '"name" must be the tool\'s name as a string, got nothing'),
        ('{"name": 5}', "got 5"),
        ('{"name": ""}', '"name" must be'),
        ('{"name": "a", "arguments": [1]}', '"arguments" must be a JSON object'),
        ('{"name": "a", "arguments": null}', '"arguments" must be a JSON object'),
        ('{"name": "a", "arguments": "x"}', '"arguments" must be a JSON object'),
        ('{"name": "a", "parameters": {}}', "unknown keys parameters"),
        ('{"name": "a", "arguments": {"x": NaN}}', "NaN is not a JSON value"),
        ('{"name": "a", "arguments": {"x": -Infinity}}', "-Infinity is not a JSON value"),
        ('{"name": "a", "arguments": {"x": 1e999}}', "too large"),
        ('{"name": "a", "arguments": {"x": ' + "9" * 5000 + "}}", "too many digits"),
        ("{'name': 'a'}", "not valid JSON"),
        ('{"name": "a",}', "not valid JSON"),
        ('{"name": "a" "arguments": {}}', "not valid JSON"),
        ('{"name": "a", "arguments": {}', "not complete"),
        ('{"name": "a', "no closing quote"),
        ('{"name": "a"} }', "text after the JSON object"),
        ('{"name": "a", "arguments": {"x": ' + "[" * 100 + "]" * 100 + "}}", "nested deeper"),
    ],
)
def test_what_is_malformed_says_what_was_wrong_and_how_it_should_look(body: str, says: str) -> None:
    parse = parse_tool_calls(call(body))
    assert parse.calls == ()
    assert parse.error is not None
    assert says in parse.error
    assert '{"name": "<tool>", "arguments": {<arguments>}}' in parse.error


def test_a_good_call_beside_a_broken_one_is_kept() -> None:
    for text in (call("{") + call('{"name": "a"}'), call('{"name": "a"}') + call("{")):
        parse = parse_tool_calls(text)
        assert [c.name for c in parse.calls] == ["a"]
        assert parse.error


def test_a_closing_mark_alone_is_an_error() -> None:
    assert "without <tool_call>" in (parse_tool_calls('{"name": "a"}\n</tool_call>').error or "")


def test_an_unknown_format_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="unknown tool-call format 'xml'; known are hermes"):
        parse_tool_calls("", format="xml")


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 20_000,
        "<tool_call>{" * 20_000,
        '<tool_call>{"' * 20_000,
        "<tool_call>" + "{" * 200_000,
        "<tool_call>" + '{"a":' * 50_000,
        "<think>" * 30_000,
        "</think>" * 30_000,
        "</tool_call>" * 20_000,
        call('{"name": "a", "arguments": {"x": "' + "\\" * 100_000 + '"}}'),
        call('{"name": "a"}') * 5_000,
    ],
    ids=range(10),
)
def test_long_hostile_text_is_parsed_at_once(text: str) -> None:
    start = time.perf_counter()
    parse = parse_tool_calls(text)
    without_thinking(text)
    assert time.perf_counter() - start < 2
    assert len(parse.error or "") < 600 * MAX_MALFORMED


def test_without_thinking() -> None:
    assert without_thinking("<think>a</think>b<think>c</think>d") == "bd"
    assert without_thinking("a</think>b") == "b"
    assert without_thinking("a<think>b</think>c</think>d<think>e</think>f<think>g<think>h") == "df"
    assert without_thinking("") == ""
    assert without_thinking("a<think>b") == "a"


PIECES = [
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    '{"name": "a", "arguments": {',
    '"x": ',
    "}",
    "}}",
]
PIECES += [
    '"',
    "\\",
    "\\frac",
    "\\u",
    "\\ud800",
    "NaN",
    "1e999",
    "[",
    "]",
    ",",
    "null",
    "\n",
    "é",
    "\ud800",
    "text",
]


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=60))
def test_nothing_raises_and_calls_are_plain_json(text: str) -> None:
    parse = parse_tool_calls(text)
    for made in parse.calls:
        assert made.name
        json.dumps([made.name, made.arguments], allow_nan=False, ensure_ascii=False).encode()


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.dictionaries(
        st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(10**9), 10**9)
            | st.floats(-1e6, 1e6)
            | st.text("ab {}[]<>é\"'"),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz"), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_any_arguments_come_back_as_written(arguments: dict[str, Any]) -> None:
    body = json.dumps({"name": "a", "arguments": arguments}, ensure_ascii=False)
    if "\\b" in body or "\\f" in body or "\\r" in body:
        return  # read as LaTeX, on purpose
    assert parse_tool_calls(call(body)).calls == (ToolCall("a", arguments),)
