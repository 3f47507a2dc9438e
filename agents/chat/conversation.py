"""Messages to text by a template's rules: whole conversations, and observations behind a dummy answer.

Knows the template, its `Rules` and what must be protected in data. Must not know ids or pictures' features.
"""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from agents.chat.encoding import TextEncoder
from agents.chat.rules import DummyCall, Ending, Form, Rules
from agents.chat.shape import (
    Message,
    as_user,
    call_id,
    count_images,
    dummy_turn,
    in_form,
    joined_users,
    message_blocks,
    text_block,
    with_system_folded,
)
from agents.chat.template import Template, TemplateRefused

TOOLS_TEXT = (
    "# Tools\n\nYou may call one or more functions.\n\nYou are provided with function signatures within "
    "<tools></tools> XML tags:\n<tools>\n{schemas}\n</tools>\n\nFor each function call, return a json object "
    "with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)


class TextRenderer:
    """Renders messages as text, special-token strings in data marked by the encoder.

    Args:
        template: Renders what this shapes.
        rules: What was found about it.
        encoder: Marks what must stay text.
        assistant_may_write: Special-token strings that are the model's own to write (`<think>`).
    """

    def __init__(
        self, template: Template, rules: Rules, encoder: TextEncoder, assistant_may_write: frozenset[str]
    ) -> None:
        self.template = template
        self.rules = rules
        self.encoder = encoder
        self.assistant_may_write = assistant_may_write
        self._mark = "answer" + secrets.token_hex(8)

    def whole(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        *,
        generation_prompt: bool,
    ) -> str:
        """A conversation from its beginning."""
        shaped = [self._safe(m) for m in messages]
        schemas = self.encoder.protect_tree(list(tools)) if tools else None
        if schemas and not self.rules.tools_listed:
            shaped = _with_tools_text(shaped, schemas)
            schemas = None
        if not self.rules.system:
            shaped = with_system_folded(shaped)
        turns = itertools.groupby(shaped, key=lambda m: m["role"] in ("user", "tool"))
        shaped = [m for given, run in turns for m in (self._regrouped([*run]) if given else run)]
        shaped = [self._formed(m) for m in shaped]
        return self.template.render(shaped, schemas, generation_prompt=generation_prompt)

    def delta(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> str:
        """What follows an end-of-turn token when these messages come next, generation prompt included."""
        new = self._regrouped([self._safe(m) for m in messages])
        results = [m for m in new if m["role"] == "tool"]
        if len(results) < 2 or not self.rules.tool.one_by_one:
            return self._behind_dummy(new, tools)
        texts = [self._behind_dummy([m], tools) for m in results]
        rest = [m for m in new if m["role"] != "tool"]
        if rest:
            texts.append(self._behind_dummy(rest, tools))
        prompt = self.rules.generation_prompt
        return "".join([*(t.removesuffix(prompt) for t in texts[:-1]), texts[-1]])

    def ending(self, messages: Sequence[Mapping[str, Any]]) -> Ending:
        """How the turn before these messages must end."""
        shaped = self._regrouped(
            [{"role": m["role"], "content": message_blocks(m["content"])} for m in messages]
        )
        return self.rules.tool.ending if any(m["role"] == "tool" for m in shaped) else self.rules.ending

    def _behind_dummy(self, new: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None) -> str:
        names = [m.get("name") or "tool" for m in new if m["role"] == "tool"]
        dummy = self.rules.tool.dummy if names else DummyCall.NONE
        ending = self.rules.tool.ending if names else self.rules.ending
        system = [{"role": "system", "content": [text_block("s")]}] if self.rules.system else []
        opening = [*system, {"role": "user", "content": [text_block("u")]}]
        turn = dummy_turn(dummy, self._mark, names, self.rules.forms["assistant"])
        numbered = _with_call_ids(new)
        rendered = self.template.render(
            [*map(self._formed, opening), turn, *map(self._formed, numbered)],
            self.encoder.protect_tree(list(tools)) if tools and self.rules.delta_reads_tools else None,
        )
        _, mark, after = rendered.rpartition(self._mark)
        _, cut, text = after.partition(ending.tokens[-1])
        if not (mark and cut):
            raise TemplateRefused(
                f"the dummy answer's end ({ending.tokens[-1]}) is missing in what the template made of roles "
                f"{[m['role'] for m in new]}: {self.encoder.reveal(after)!r}"
            )
        return text

    def _regrouped(self, messages: Sequence[Message]) -> list[Message]:
        """One observation: results that the template can't carry as user messages, those joined if need be."""
        tool = self.rules.tool
        results = [m for m in messages if m["role"] == "tool"]
        pictured = any(count_images([m]) for m in results)
        out = list(messages)
        if results and (
            not tool.own
            or (pictured and not tool.images)
            or (len(results) < len(messages) and not tool.with_user)
            or results != out[: len(results)]  # a result stands right behind the turn that called for it
        ):
            out = [as_user(m) if m["role"] == "tool" else m for m in out]
        return out if self.rules.users_in_a_row else joined_users(out)

    def _formed(self, message: Message) -> Message:
        role = message["role"]
        form = self.rules.forms.get(role, Form.STRING)
        merge = role in self.rules.merged_text
        return {**message, "content": in_form(message["content"], form, merge=merge)}

    def _safe(self, message: Mapping[str, Any]) -> Message:
        """The message with blocks for content, and with special-token strings in it marked as text."""
        keep = self.assistant_may_write if message["role"] == "assistant" else frozenset()
        content = [
            text_block(self.encoder.protect(b["text"], keep)) if b["type"] == "text" else b
            for b in message_blocks(message["content"])
        ]
        out: Message = {"role": message["role"], "content": content}
        if message.get("name"):
            out["name"] = self.encoder.protect(str(message["name"]))
        for key in ("tool_calls", "tool_call_id"):
            if message.get(key):
                out[key] = message[key]
        return out


def _with_tools_text(messages: Sequence[Message], schemas: Sequence[Any]) -> list[Message]:
    """The tools in the system prompt, for templates that do not list them."""
    text = TOOLS_TEXT.format(schemas="\n".join(json.dumps(s, ensure_ascii=False) for s in schemas))
    if messages and messages[0]["role"] == "system":
        content = [*messages[0]["content"], text_block("\n\n" + text)]
        return [{**messages[0], "content": content}, *messages[1:]]
    return [{"role": "system", "content": [text_block(text)]}, *messages]


def _with_call_ids(messages: Sequence[Message]) -> list[Message]:
    out, index = [], 0
    for message in messages:
        if message["role"] == "tool":
            message = {**message, "name": message.get("name") or "tool", "tool_call_id": call_id(index)}
            index += 1
        out.append(message)
    return out
