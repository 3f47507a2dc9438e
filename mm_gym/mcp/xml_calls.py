"""Calls written as text in tags: `<think>...</think><tool>click(10, 20)</tool>`.

Two grammars stand side by side. `HUD` reads exactly what hud-vf-gym reads, with its traps, so that its
numbers can be reproduced. `EXTENDED`, the default, reads all well-formed calls of the first and adds keyword
arguments, escapes, booleans, null, lists, objects and line breaks, and says what is wrong where it refuses.

Knows text only: not which tools exist, nor what their arguments must be. Never raises for what a text says,
takes time linear in its length, and evaluates nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mm_gym.text import scalar_text

MAX_CALL = 65_536
"""Characters of one call."""
MAX_DEPTH = 16
"""Nesting of lists and objects in an argument."""


@dataclass(frozen=True)
class TextCall:
    """One call as written: arguments in order, and those given by name."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def arguments(self, positional: Sequence[str] = ()) -> dict[str, Any]:
        """All arguments by name: slot i takes `positional[i]`, a surplus one `"arg{i}"`."""
        named = {
            positional[slot] if slot < len(positional) else f"arg{slot}": value
            for slot, value in enumerate(self.args)
        }
        return {**named, **self.kwargs}


@dataclass(frozen=True)
class ParsedResponse:
    """What a response holds. `action` and `action_error` are as in hud-vf-gym."""

    think: str | None = None
    tool: str | None = None
    """Text of the first tool tag; None without one."""
    action: dict[str, Any] | None = None
    """`{"name": str, "arguments": dict}` of the first call, None where it is malformed or absent."""
    action_error: str | None = None
    """What is wrong with the first call."""
    calls: tuple[TextCall | str, ...] = ()
    """Every tool tag in order: a call, or the text of what is wrong with it."""


@dataclass(frozen=True)
class Form:
    """How a response is formed."""

    xml: float
    """Score of its tags, 0 to 1."""
    call: bool | None = None
    """Whether its first call is well formed; None without a call."""


@dataclass
class Forms:
    """How many responses are formed, summed up."""

    count: int = 0
    xml: float = 0.0
    calls: int = 0
    """Responses with a call."""
    valid: int = 0
    """Of those, the ones whose first call is well formed."""

    def add(self, form: Form) -> None:
        """Take in one response."""
        self.count += 1
        self.xml += form.xml
        self.calls += form.call is not None
        self.valid += form.call is True


class CallSyntaxError(ValueError):
    """A call is malformed; the text is for the agent."""


class ToolXMLParser:
    """Finds the calls in a response and scores its form.

    Args:
        fields: hud-vf-gym's way to say `use_thinking`: `["think", "tool"]` or `["tool"]`.
        use_thinking: The response has a think field before its tool field; what is inside is not a call.
        xml_weight: Share of the tags in the format score (both weights are normalised to sum 1).
        action_weight: Share of the calls' syntax.
        hud: Read and score exactly as hud-vf-gym 0.1.1 does.
        positional: Names of positional arguments, by action, for `ParsedResponse.action`.

    >>> ToolXMLParser(use_thinking=False).parse("<tool>tap(3, y=4)</tool>").action
    {'name': 'tap', 'arguments': {'arg0': 3, 'y': 4}}
    """

    def __init__(
        self,
        fields: Sequence[str] | None = None,
        *,
        use_thinking: bool = True,
        xml_weight: float = 0.6,
        action_weight: float = 0.4,
        hud: bool = False,
        positional: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        total = xml_weight + action_weight
        if xml_weight < 0 or action_weight < 0 or total <= 0:
            raise ValueError(f"parser weights must be positive, got xml {xml_weight}, action {action_weight}")
        if fields is not None:
            if tuple(fields) not in (("think", "tool"), ("tool",)):
                raise ValueError(f'fields must be ["think", "tool"] or ["tool"], got {list(fields)}')
            use_thinking = len(fields) == 2
        self.fields = ("think", "tool") if use_thinking else ("tool",)
        self.use_thinking = use_thinking
        self.xml_weight = xml_weight / total
        self.action_weight = action_weight / total
        self.hud = hud
        self.positional = dict(positional or {})

    def parse(self, text: str) -> ParsedResponse:
        """What the response holds; never raises for what it says."""
        think = _first_tag(text, "think") if self.use_thinking else None
        outside = self._outside_thinking(text)
        bodies = _tags(outside, "tool", only_first=self.hud)
        calls = tuple(self._call(body) for body in bodies if body or not self.hud)
        tool = bodies[0] if bodies else None
        first = calls[0] if calls else None
        action = None
        if isinstance(first, TextCall):
            names = self.positional.get(first.name, ())
            action = {"name": first.name, "arguments": first.arguments(names)}
        error = first if isinstance(first, str) else None
        return ParsedResponse(think, tool, action, error, calls)

    def _call(self, body: str) -> TextCall | str:
        try:
            return parse_hud_call(body) if self.hud else parse_call(body)
        except CallSyntaxError as error:
            return str(error)

    def xml_score(self, text: str) -> float:
        """How well the tags of one response are formed, from 0 to 1.

        0.4 for the share of fields present, 0.2 for spacing, 0.2 each for starting with the first field's
        tag and ending with the last one's. In hud-vf-gym spacing counts without any tag, and a half-open tag
        as a field; here neither does.
        """
        outside = self._outside_thinking(text)
        where = {"think": text, "tool": outside}
        whole = [_first_tag(where[name], name) is not None for name in self.fields]
        if self.hud:
            half = [f"<{name}>" in text or f"</{name}>" in text for name in self.fields]
            present = sum(w or h for w, h in zip(whole, half, strict=True)) if any(whole) else 0
            spacing = 0.2
        else:
            present = sum(whole)
            spacing = 0.2 if present else 0.0
        body = text.strip()
        score = 0.4 * present / len(self.fields) + spacing
        if self.hud or present:
            score += 0.2 * body.startswith(f"<{self.fields[0]}>")
            score += 0.2 * body.endswith(f"</{self.fields[-1]}>")
        return score

    def _outside_thinking(self, text: str) -> str:
        if not self.use_thinking:
            return text
        return _without_think_pairs(text) if self.hud else _without_thinking(text)

    def form(self, text: str, parsed: ParsedResponse | None = None) -> Form:
        """How one response is formed."""
        parsed = parsed or self.parse(text)
        valid = isinstance(parsed.calls[0], TextCall) if parsed.calls else None
        return Form(self.xml_score(text), valid)

    def score(self, forms: Forms) -> float:
        """The format score of many responses, from 0 to 1: tags and call syntax, weighted."""
        if not forms.count:
            return 0.0
        xml = forms.xml / forms.count
        if not forms.calls:
            return xml
        return self.xml_weight * xml + self.action_weight * forms.valid / forms.calls

    def format_score(self, responses: Sequence[str]) -> float:
        """`score` of the responses' forms."""
        forms = Forms()
        for text in responses:
            forms.add(self.form(text))
        return self.score(forms)

    def get_format_reward_func(self) -> Callable[..., float]:
        """hud-vf-gym's way to `format_score`: a function of a completion's chat messages."""

        def combined_format_reward_func(completion: Sequence[Mapping[str, Any]], **_: Any) -> float:
            responses = [message["content"] for message in completion if message["role"] == "assistant"]
            return self.format_score([text for text in responses if isinstance(text, str)])

        return combined_format_reward_func


# -- tags ---------------------------------------------------------------------------------------------


def _tags(text: str, name: str, only_first: bool = False) -> list[str]:
    """Trimmed texts of the complete tags, in order. Found by `str.find`: a pattern could go quadratic."""
    found: list[str] = []
    opening, closing = f"<{name}>", f"</{name}>"
    start = text.find(opening)
    while start >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        found.append(text[start + len(opening) : end].strip())
        if only_first:
            break
        start = text.find(opening, end + len(closing))
    return found


def _first_tag(text: str, name: str) -> str | None:
    found = _tags(text, name, only_first=True)
    return found[0] if found else None


def _without_think_pairs(text: str) -> str:
    kept: list[str] = []
    at = 0
    while (start := text.find("<think>", at)) >= 0:
        end = text.find("</think>", start)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len("</think>")
    return "".join([*kept, text[at:]])


def _without_thinking(text: str) -> str:
    """The text outside thinking, read from left to right, so that a tag in a call's quotes is not one.

    A think tag left open takes all that follows; a closing one that nothing opened (the template did) all
    before.
    """
    closing, opening = text.find("</think>"), text.find("<think>")
    if closing >= 0 and not 0 <= opening < closing:
        before = text[:closing]
        if before.count("<tool>") == before.count("</tool>"):
            text = text[closing + len("</think>") :]
    kept: list[str] = []
    at = 0
    while (start := text.find("<think>", at)) >= 0:
        call = text.find("<tool>", at, start)
        call_end = text.find("</tool>", call) if call >= 0 else -1
        if call_end >= 0:
            kept.append(text[at : call_end + len("</tool>")])
            at = call_end + len("</tool>")
            continue
        kept.append(text[at:start])
        end = text.find("</think>", start)
        if end < 0:
            return "".join(kept)
        at = end + len("</think>")
    return "".join([*kept, text[at:]])


# -- hud-vf-gym's grammar -----------------------------------------------------------------------------


def parse_hud_call(body: str) -> TextCall:
    """One call as hud-vf-gym reads it: anchored at the start only, positional arguments, no escapes.

    Raises:
        CallSyntaxError: It is not `name(...)` on one line.
    """
    match = re.match(r"(\w+)\((.*)\)", body)
    if match is None:
        raise CallSyntaxError(f"Invalid function call syntax: {_short(body)}")
    return TextCall(match[1], tuple(_hud_value(part) for part in _hud_split(match[2])))


def _hud_split(text: str) -> list[str]:
    """Split at commas outside quotes and parentheses; a quote opened inside parentheses never closes."""
    parts: list[str] = []
    start = depth = 0
    quote = ""
    for index, char in enumerate(text):
        if quote:
            if char == quote and depth == 0:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _hud_value(text: str) -> Any:
    if len(text) >= 2 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


# -- our grammar --------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "/": "/"}


def parse_call(body: str) -> TextCall:
    """One call: `name(1, "two", [3, 4], key=true)`, over several lines if need be.

    Values are numbers, quoted text with `\\n \\t \\r \\" \\' \\\\ \\uXXXX` (a backslash before anything else
    stays), true, false, null (Python's spellings too), lists, objects, and bare words, which are text.

    Raises:
        CallSyntaxError: It is not one call; the text says where and how it should look.
    """
    if len(body) > MAX_CALL:
        raise CallSyntaxError(f"a call has at most {MAX_CALL} characters, this one has {len(body)}")
    return _Reader(body).call()


class _Reader:
    """Reads one call from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def call(self) -> TextCall:
        match = _NAME.match(self.text)
        if match is None or self.text[match.end() : match.end() + 1] != "(":
            raise CallSyntaxError(f"expected name(arguments), got {_short(self.text)}")
        self.at = match.end() + 1
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        while not self._take(")"):
            self._argument(args, kwargs)
            if not self._take(","):
                self._expect(")")
                break
        rest = self.text[self.at :].strip()
        if rest:
            raise CallSyntaxError(f"one call stands alone in its tag, but {_short(rest)} follows it")
        return TextCall(match.group(), tuple(args), kwargs)

    def _argument(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        self._skip()
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword is None:
            if kwargs:
                raise CallSyntaxError(
                    f"an argument without a name follows {list(kwargs)[-1]}=...: name it too"
                )
            args.append(self._value(0))
            return
        name = keyword[1]
        if name in kwargs:
            raise CallSyntaxError(f"argument {name} is given twice")
        self.at = keyword.end()
        kwargs[name] = self._value(0)

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise CallSyntaxError(f"an argument is nested more than {MAX_DEPTH} deep")
        self._skip()
        char = self._peek()
        if char in ('"', "'"):
            return self._string(char)
        if char == "[":
            return self._list(depth)
        if char == "{":
            return self._object(depth)
        return self._bare()

    def _list(self, depth: int) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while not self._take("]"):
            items.append(self._value(depth + 1))
            if not self._take(","):
                self._expect("]")
                break
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        items: dict[str, Any] = {}
        while not self._take("}"):
            self._skip()
            char = self._peek()
            key = self._string(char) if char in ('"', "'") else self._key()
            self._expect(":")
            items[key] = self._value(depth + 1)
            if not self._take(","):
                self._expect("}")
                break
        return items

    def _key(self) -> str:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise CallSyntaxError(f"expected a key, got {_short(self.text[self.at :])}")
        self.at = match.end()
        return match.group()

    def _string(self, quote: str) -> str:
        start = self.at
        parts: list[str] = []
        self.at += 1
        while True:
            stop = self.at
            while stop < len(self.text) and self.text[stop] not in (quote, "\\"):
                stop += 1
            parts.append(self.text[self.at : stop])
            self.at = stop + 1
            if stop >= len(self.text):
                raise CallSyntaxError(f"the text {_short(self.text[start:])} lacks its closing {quote}")
            if self.text[stop] == quote:
                return scalar_text("".join(parts))  # an escape may have written half a surrogate pair
            parts.append(self._escape())

    def _escape(self) -> str:
        char = self._peek()
        if char == "u":
            digits = self.text[self.at + 1 : self.at + 5]
            if re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                self.at += 5
                return chr(int(digits, 16))
        if char in _ESCAPES:
            self.at += 1
            return _ESCAPES[char]
        return "\\"  # LaTeX and Windows paths keep their backslashes

    def _bare(self) -> Any:
        """A number or word: up to the next comma or closing bracket outside parentheses of its own."""
        start, depth = self.at, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "(":
                depth += 1
            elif char == ")" and depth:
                depth -= 1
            elif char in ",)]}" and not depth:
                break
            self.at += 1
        word = self.text[start : self.at].strip()
        if not word:
            raise CallSyntaxError(f"an argument is missing before {_short(self.text[start:]) or 'the end'}")
        if self.at >= len(self.text):
            raise CallSyntaxError(f"the call lacks its closing parenthesis after {_short(word)}")
        return _literal(word)

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, char: str) -> bool:
        self._skip()
        if self._peek() != char:
            return False
        self.at += 1
        return True

    def _expect(self, char: str) -> None:
        if not self._take(char):
            got = _short(self.text[self.at :]) or "the end of the call"
            raise CallSyntaxError(f"expected {char} but got {got}")


def _literal(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        if len(word) > 18:
            raise CallSyntaxError(f"the number {_short(word)} is out of range")
        return int(word)
    if _FLOAT.fullmatch(word):
        number = float(word) if len(word) <= 64 else math.inf
        if not math.isfinite(number):
            raise CallSyntaxError(f"the number {_short(word)} is out of range")
        return number
    return word


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
