"""Calls written as text in tags: `<think>...</think><tool>click(10, 20)</tool>`.

`ToolXMLParser(hud=True)` finds and scores exactly as hud-vf-gym does, with its traps, so that its numbers can be
reproduced; the default repairs them. The grammars of a single call are in `call_grammar`.

Knows text only: not which tools exist, nor what their arguments must be. Never raises for what a text says,
takes time linear in its length, and evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mm_gym.mcp.call_grammar import CallSyntaxError, TextCall, parse_call, parse_hud_call


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
