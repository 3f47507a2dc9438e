"""Messages in the form that one template takes: blocks or strings, roles that it knows, dummy turns.

Knows `Rules`. Must not know ids or the processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.chat.rules import DummyCall, Form

Message = dict[str, Any]
Block = dict[str, Any]


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def message_blocks(content: Any) -> list[Block]:
    """A message's content as blocks; a picture's block holds no picture any more, only its place."""
    if content is None:
        return []
    if isinstance(content, str):
        return [text_block(content)]
    out = []
    for block in content:
        if block["type"] == "text":
            out.append(text_block(block["text"]))
        elif block["type"] == "image":
            out.append({"type": "image"})
        else:
            raise ValueError(f'a content block has type "text" or "image", got {block["type"]!r}')
    return out


def count_images(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(
        block["type"] == "image"
        for message in messages
        if not isinstance(message["content"], (str, type(None)))
        for block in message["content"]
    )


def in_form(blocks: Sequence[Block], form: Form, *, merge: bool = False) -> str | list[Block]:
    """Blocks as the template takes them.

    Raises:
        ValueError: A picture in a role that takes a string.
    """
    if form is Form.STRING:
        if any(b["type"] == "image" for b in blocks):
            raise ValueError(
                "the chat template takes this role's content as one string, which holds no picture"
            )
        return "\n".join(b["text"] for b in blocks)
    if not merge:
        return list(blocks)
    out: list[Block] = []
    for block in blocks:
        if out and block["type"] == out[-1]["type"] == "text":
            out[-1] = text_block(out[-1]["text"] + "\n" + block["text"])
        else:
            out.append(block)
    return out


def dummy_turn(dummy: DummyCall, mark: str, names: Sequence[str], form: Form) -> Message:
    """The dummy assistant turn; `mark` is the last thing that the "model" wrote in it."""
    if dummy is DummyCall.NONE:
        return {"role": "assistant", "content": in_form([text_block(mark)], form)}
    calls = []
    for index, name in enumerate(names):
        arguments: Any = {"value": mark if index == len(names) - 1 else "x"}
        if dummy is DummyCall.STRING:
            arguments = f'{{"value": "{arguments["value"]}"}}'
        function = {"name": name, "arguments": arguments}
        calls.append({"id": call_id(index), "type": "function", "function": function})
    return {"role": "assistant", "content": "", "tool_calls": calls}


def call_id(index: int) -> str:
    """An id of nine letters and digits (Mistral's templates insist)."""
    return f"call{index:05d}"


def joined_users(messages: Sequence[Message]) -> list[Message]:
    """Neighbouring user messages as one."""
    out: list[Message] = []
    for message in messages:
        if out and message["role"] == out[-1]["role"] == "user":
            out[-1] = {
                "role": "user",
                "content": [*out[-1]["content"], text_block("\n"), *message["content"]],
            }
        else:
            out.append(message)
    return out


def as_user(message: Message) -> Message:
    """A tool message as a user message, in the tags that most families know."""
    content = [text_block("<tool_response>\n"), *message["content"], text_block("\n</tool_response>")]
    return {"role": "user", "content": content}


def with_system_folded(messages: Sequence[Message]) -> list[Message]:
    """The system prompt in front of the first user message, for templates without a system role."""
    system = [b for m in messages if m["role"] == "system" for b in m["content"]]
    rest = [m for m in messages if m["role"] != "system"]
    if not system:
        return rest
    for index, message in enumerate(rest):
        if message["role"] == "user":
            content = [*system, text_block("\n\n"), *message["content"]]
            return [*rest[:index], {**message, "content": content}, *rest[index + 1 :]]
    return [{"role": "user", "content": system}, *rest]
