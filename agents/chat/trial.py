"""Small conversations with marked words, rendered to see what a template does with them.

Knows templates and control tokens; draws no conclusions: `probe` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.chat.rules import DummyCall, Ending, Form
from agents.chat.shape import Message, call_id, dummy_turn, in_form, text_block
from agents.chat.template import RenderError, Template, TemplateRefused

# Words that no template writes itself, and that trimming, capitalising and JSON leave as they are.
SYSTEM, USER, ANSWER, RESULT, THOUGHT = "Sysmark1", "Usermark1", "Answermark1", "Resultmark1", "Thoughtmark1"
TOOL_NAMES = ("toolmark_a", "toolmark_b")
RAW_BLOCK = re.compile(r"""['"]type['"]: ?['"](text|image)['"]""")


def probe_tools() -> list[dict[str, Any]]:
    """Two function tools for probing and examples."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f"Descmark of {name}.",
                "parameters": {
                    "type": "object",
                    "properties": {"value": {"type": "string", "description": "A value."}},
                    "required": ["value"],
                },
            },
        }
        for name in TOOL_NAMES
    ]


class Controls:
    """Splits text at control tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = frozenset(tokens)
        ordered = sorted(self.tokens, key=lambda s: (-len(s), s))
        self._split = re.compile("(" + "|".join(map(re.escape, ordered)) + ")") if ordered else None

    def pieces(self, text: str) -> list[str]:
        """Control tokens and the text between them, in order, nothing lost."""
        return [p for p in self._split.split(text) if p] if self._split else [text]

    def common_prefix(self, a: str, b: str) -> str:
        """The longest common start that cuts no control token in two."""
        out = []
        for x, y in zip(self.pieces(a), self.pieces(b), strict=False):
            if x == y:
                out.append(x)
                continue
            if x not in self.tokens and y not in self.tokens:
                n = next(
                    (i for i, (c, d) in enumerate(zip(x, y, strict=False)) if c != d), min(len(x), len(y))
                )
                out.append(x[:n])
            break
        return "".join(out)

    def inside(self, text: str) -> list[str]:
        return [p for p in self.pieces(text) if p in self.tokens]


class Trial:
    """One template under trial, with the forms of content that it takes.

    Args:
        template: What is tried.
        controls: The tokenizer's control tokens.
    """

    def __init__(self, template: Template, controls: Controls) -> None:
        self.template = template
        self.controls = controls
        self.forms: dict[str, Form] = {}
        self.system = True

    def message(self, role: str, text: str, **extra: Any) -> Message:
        return {"role": role, "content": in_form([text_block(text)], self.forms[role]), **extra}

    def opening(self) -> list[Message]:
        system = [self.message("system", SYSTEM)] if self.system else []
        return [*system, self.message("user", USER)]

    def tool(self, text: str, index: int = 0) -> Message:
        return self.message("tool", text, name=TOOL_NAMES[index], tool_call_id=call_id(index))

    def delta(self, new: Sequence[Message], dummy: DummyCall, names: Sequence[str] = TOOL_NAMES[:1]) -> str:
        """The text after the dummy answer when `new` comes next, generation prompt included."""
        turn = dummy_turn(dummy, ANSWER, names, self.forms["assistant"])
        return self.after(self.render([*self.opening(), turn, *new]), ANSWER)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        generation_prompt: bool = True,
    ) -> str:
        """The template's text of these messages, which are in its form already."""
        return self.template.render(messages, tools, generation_prompt=generation_prompt)

    @staticmethod
    def after(text: str, mark: str) -> str:
        return text.rpartition(mark)[2]

    def find_ending(self, new: Sequence[Message], dummy: DummyCall) -> tuple[Ending, Ending]:
        """Where a delta is cut: after the last control token that a turn has with and without `new`."""
        turn = dummy_turn(dummy, ANSWER, TOOL_NAMES[:1], self.forms["assistant"])
        last = self.after(self.render([*self.opening(), turn], generation_prompt=False), ANSWER)
        following = list(new) or [self.message("user", USER + "2")]
        more = self.after(self.render([*self.opening(), turn, *following]), ANSWER)
        common = self._ending_in(self.controls.common_prefix(last, more))
        if common.tokens:
            return common, common
        first = next(iter(self.controls.inside(more)), None)
        if first is None:
            raise TemplateRefused(
                "no control token follows an assistant's turn: there is nowhere to cut a delta"
            )
        following_end = self._ending_in(more[: more.index(first) + len(first)])
        return following_end, self._ending_in(last)

    def _ending_in(self, text: str) -> Ending:
        """The last run of control tokens without text between them, and what stands before it."""
        pieces = self.controls.pieces(text)
        while pieces and pieces[-1] not in self.controls.tokens:
            pieces.pop()
        first = len(pieces)
        while first and pieces[first - 1] in self.controls.tokens:
            first -= 1
        return Ending(tuple(pieces[first:]), "".join(pieces[:first]))

    def cut(self, delta: str, ending: Ending) -> str:
        """What follows the end-of-turn token."""
        return delta.partition(ending.tokens[-1])[2]

    def tools_listed(self) -> bool:
        try:
            text = self.render(self.opening(), probe_tools())
        except RenderError:
            return False
        return all(name in text for name in TOOL_NAMES) and "Descmark" in text
