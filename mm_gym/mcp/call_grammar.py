"""One call as text, `click(10, y=20)`: hud-vf-gym's grammar as it is, and ours.

Knows the text of one call only. Takes time linear in its length and evaluates nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
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


class CallSyntaxError(ValueError):
    """A call is malformed; the text is for the agent."""


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
