"""From a model's raw response to tool calls. Nothing here raises for what the text says.

Knows the call syntax and JSON as models write it. Must not know which tools exist: names and arguments
are checked against the tools by `mm_gym.tools`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mm_gym.text import scalar_text

MAX_DEPTH = 32
"""Deepest nesting of a call's JSON; deeper is malformed."""
MAX_MALFORMED = 8
"""Malformed calls after which the rest of a response is not looked at (bounds the time)."""

HERMES_FORM = '<tool_call>\n{"name": "<tool>", "arguments": {<arguments>}}\n</tool_call>'


@dataclass(frozen=True)
class ToolCall:
    """One call that a response makes."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolParse:
    """The calls of a response, and what was wrong with it."""

    calls: tuple[ToolCall, ...] = ()
    error: str | None = None
    """None, or text for the agent: what was wrong and how it should look."""


def parse_tool_calls(text: str, format: str = "hermes") -> ToolParse:
    r"""Find the tool calls in a response.

    >>> parse_tool_calls('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>').calls
    (ToolCall(name='add', arguments={'a': 1}),)

    Several calls are kept in order; calls inside `<think>` do not count; complete JSON in a call that was
    never closed does. A backslash that starts a LaTeX command inside a JSON string stays one
    (`"\frac{1}{2}"`), although JSON would read a form feed there.

    Args:
        text: The model's response.
        format: The call syntax, one of `FORMATS`.

    Returns:
        Well-formed calls, and an error text when something was malformed (both are possible at once).

    Raises:
        ValueError: The format is unknown.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown tool-call format {format!r}; known are {', '.join(sorted(FORMATS))}")
    return FORMATS[format](text)


def without_thinking(text: str) -> str:
    """The response without thinking: an open `<think>` takes all that follows, a lone `</think>` all before.

    >>> without_thinking("<think>x is 3?</think>x is 4")
    'x is 4'
    """
    kept: list[str] = []
    position = 0
    while mark := _THINK_MARK.search(text, position):
        kept.append(text[position : mark.start()])
        position = mark.end()
        if mark[0] == "</think>":
            kept.clear()
            continue
        end = text.find("</think>", position)
        if end < 0:
            return "".join(kept)
        position = end + len("</think>")
    return "".join(kept) + text[position:]


class _Malformed(Exception):  # noqa: N818  (not an error of ours)
    """What is wrong with one call, as text for the agent."""


_THINK_MARK = re.compile(r"</?think>")
_MARK = re.compile(r"<think>|</think>|<tool_call>|</tool_call>")
_STRUCTURE = re.compile(r'["\\{}\[\]]')
_STRING_END = re.compile(r'["\\]')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[A-Za-z]+|.|$)", re.DOTALL)
_SPACE = re.compile(r"\s*")

# JSON's own one-letter escapes that also begin LaTeX commands. A form feed, a backspace or a lone carriage
# return before a letter is never meant; a line break or a tab may be, so those need a whole known command.
_ALWAYS_LATEX = "bfr"
_LATEX_COMMANDS = frozenset(
    (  # noqa: SIM905  (a list of 40 lines says no more)
        "tan tanh tau tbinom text textbf textit textrm texttt textsf textstyle textdegree tfrac therefore "
        "theta thickapprox tilde times top triangle triangledown triangleleft triangleright nabla natural "
        "ncong nearrow neg neq nexists ngeq nleq nmid not notin nparallel nsim nsubseteq nwarrow"
    ).split()
)


def _parse_hermes(text: str) -> ToolParse:
    calls: list[ToolCall] = []
    errors: list[str] = []
    position = 0
    while len(errors) < MAX_MALFORMED and (mark := _MARK.search(text, position)):
        position = mark.end()
        if mark[0] == "<think>":
            end = text.find("</think>", position)
            if end < 0:
                break  # the rest is thinking
            position = end + len("</think>")
        elif mark[0] == "</think>":  # the template opened it: all so far was thinking
            calls.clear()
            errors.clear()
        elif mark[0] == "</tool_call>":
            errors.append("</tool_call> without <tool_call> before it")
        else:
            try:
                call, position = _read_call(text, position)
                calls.append(call)
            except _Malformed as malformed:
                errors.append(str(malformed))
                position = _after_malformed(text, position)
    if not errors:
        return ToolParse(tuple(calls))
    return ToolParse(tuple(calls), f"Malformed tool call: {'; '.join(errors)}. Expected form:\n{HERMES_FORM}")


def _after_malformed(text: str, position: int) -> int:
    closing = text.find("</tool_call>", position)
    opening = text.find("<tool_call>", position)
    if closing >= 0 and (opening < 0 or closing < opening):
        return closing + len("</tool_call>")
    return opening if opening >= 0 else len(text)


def _read_call(text: str, position: int) -> tuple[ToolCall, int]:
    """The call whose body starts at `position`, and where the scan goes on."""
    start = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # \s* matches everywhere
    if not text.startswith("{", start):
        found = text[start : start + 20].partition("<")[0].strip()
        raise _Malformed(f"a JSON object must follow <tool_call>, found {found!r}" if found else "empty call")
    end = _object_end(text, start)
    call = _call_of(_loads(text[start:end]))
    rest = _SPACE.match(text, end).end()  # type: ignore[union-attr]
    if text.startswith("</tool_call>", rest):
        return call, rest + len("</tool_call>")
    closing = text.find("</tool_call>", rest)
    opening = text.find("<tool_call>", rest)
    if closing >= 0 and (opening < 0 or closing < opening):
        extra = text[rest : min(closing, rest + 20)]
        raise _Malformed(f"text after the JSON object, before </tool_call>: {extra!r}")
    return call, end  # never closed, but complete


def _object_end(text: str, start: int) -> int:
    """One past the object that starts at `start`; strings and brackets matched without recursion."""
    depth, position = 0, start
    while found := _STRUCTURE.search(text, position):
        position = found.end()
        if found[0] == '"':
            position = _string_end(text, position)
        elif found[0] in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise _Malformed(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        elif found[0] in "}]":
            depth -= 1
            if depth == 0:
                return position
    raise _Malformed("the JSON object is not complete (a closing } or quote is missing)")


def _string_end(text: str, position: int) -> int:
    while found := _STRING_END.search(text, position):
        if found[0] == '"':
            return found.end()
        position = found.end() + 1  # skip what the backslash escapes
    raise _Malformed("a string in the JSON has no closing quote")


def _loads(body: str) -> Any:
    try:
        return _clean(
            json.loads(
                _ESCAPE.sub(_keep_latex, body), strict=False, parse_constant=_no_constant, parse_float=_finite
            )
        )
    except json.JSONDecodeError as error:
        near = body[max(0, error.pos - 10) : error.pos + 10]
        raise _Malformed(f"not valid JSON: {error.msg} near {near!r}") from None
    except ValueError:  # an integer of more digits than Python reads
        raise _Malformed("a number in the JSON has too many digits") from None


def _keep_latex(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5 and escaped[0] == "u" and not escaped.isalpha():
        return match[0]
    if escaped in ("", '"', "\\", "/"):
        return match[0]
    first = escaped[0]
    if first in _ALWAYS_LATEX:
        latex = len(escaped) > 1
    elif first in "nt":
        latex = escaped in _LATEX_COMMANDS
    elif first == "u":
        latex = not re.fullmatch(r"u[0-9a-fA-F]{4}.*", escaped)
    else:
        latex = True  # not an escape that JSON knows
    return "\\" + match[0] if latex else match[0]


def _no_constant(name: str) -> Any:
    raise _Malformed(f"{name} is not a JSON value; write a finite number")


def _finite(number: str) -> float:
    value = float(number)
    if value in (float("inf"), float("-inf")):
        raise _Malformed(f"the number {number[:20]} is too large")
    return value


def _clean(value: Any) -> Any:
    """The value with lone surrogates replaced (depth is bounded by `MAX_DEPTH`)."""
    if isinstance(value, str):
        return scalar_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {scalar_text(key): _clean(item) for key, item in value.items()}
    return value


def _call_of(value: dict[str, Any]) -> ToolCall:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise _Malformed(f'"name" must be the tool\'s name as a string, got {_short(name)}')
    arguments = value.get("arguments", {})
    if isinstance(arguments, str):  # the OpenAI form: the arguments as a JSON string
        try:
            arguments = _loads(arguments) if arguments.strip() else {}
        except (_Malformed, RecursionError):
            raise _Malformed(
                f'"arguments" must be a JSON object, got the string {_short(arguments)}'
            ) from None
    if not isinstance(arguments, dict):
        raise _Malformed(f'"arguments" must be a JSON object, got {_short(arguments)}')
    extra = sorted(set(value) - {"name", "arguments", "id", "type"})
    if extra:
        raise _Malformed(f'unknown keys {", ".join(extra)[:60]} beside "name" and "arguments"')
    return ToolCall(name, arguments)


def _short(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:40]


FORMATS: dict[str, Callable[[str], ToolParse]] = {"hermes": _parse_hermes}
"""The known call syntaxes by name."""
