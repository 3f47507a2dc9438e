"""Messages to token segments, exact to the token: `ChatRenderer`.

A prompt is rendered whole. An observation is rendered behind a fixed dummy conversation [system, user,
assistant] and cut right after the dummy's end-of-turn token, so that real history is never re-rendered. All
that differs between templates is in `Rules`. Keeps no state per episode.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from agents.chat.encoding import TextEncoder
from agents.chat.images import ImageTokens, as_picture
from agents.chat.probe import Controls, Prober
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
from agents.chat.tokens import TokenRoles, control_tokens, protected_tokens
from agents.forward import model_inputs
from agents.types import FinishReason, Segment

logger = logging.getLogger(__name__)

TOOLS_TEXT = (
    "# Tools\n\nYou may call one or more functions.\n\nYou are provided with function signatures within "
    "<tools></tools> XML tags:\n<tools>\n{schemas}\n</tools>\n\nFor each function call, return a json object "
    "with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)


class ChatRenderer:
    """Renders messages for one processor or tokenizer. Thread-safe; no state per episode.

    Messages are in transformers' form: `role` ("system", "user", "assistant" or "tool"), `content` (a string,
    or blocks `{"type": "text", "text": str}` and `{"type": "image", "image": PIL image or uint8 (H, W, 3)}`);
    a tool message may have `name` and `call`. Special-token strings in system, user and tool messages and in
    tools' schemas are rendered as text.

    Args:
        processor: A transformers processor, or a fast tokenizer for text alone. Its padding side is set to
            left, as training needs it, with a warning when it was not.
        template_kwargs: Passed to the chat template in every render (`enable_thinking`, say).
        vocab_size: Rows of the model's output layer; ids beyond the tokenizer's are then banned too.

    Raises:
        TemplateRefused: The template can't be rendered in deltas, exactly; the text says why and what to do.
    """

    rules: Rules
    """What was found about the template."""
    notes: list[str]
    """What a user should know: choices made for this template, in sentences."""

    def __init__(
        self,
        processor: Any,
        *,
        template_kwargs: Mapping[str, Any] | None = None,
        vocab_size: int | None = None,
    ) -> None:
        self.processor = processor
        self.tokenizer = getattr(processor, "tokenizer", processor)
        _check_tokenizer(processor, self.tokenizer)
        self.template = Template(processor, template_kwargs)
        controls = control_tokens(self.tokenizer)
        pictured = getattr(processor, "image_processor", None) is not None
        placeholders = _placeholders(processor) if pictured else []
        self.rules = Prober(self.template, Controls(controls), placeholders).rules()
        self.images = None
        if self.rules.image:
            self.images = ImageTokens(processor, self.rules.image, touching=self.rules.images_touch)
        self.encoder = TextEncoder(self.tokenizer, protected_tokens(self.tokenizer, self.template.source))
        roles = TokenRoles.find(self.tokenizer, processor, self.rules, self.images, vocab_size)
        self.end_of_turn_id: int = roles.end_of_turn
        self.stop_token_ids: tuple[int, ...] = roles.stops
        self.banned_token_ids: tuple[int, ...] = roles.banned
        self.vision_token_ids: frozenset[int] = roles.vision
        self.pad_id: int = roles.pad
        self.vocab_size: int = vocab_size or len(self.tokenizer)
        hard = {
            self.tokenizer.convert_ids_to_tokens(i)
            for i in (*roles.banned, *roles.stops)
            if i < len(self.tokenizer)
        }
        self._assistant_may_write = frozenset(self.encoder.protected) - hard
        self._mark = "answer" + secrets.token_hex(8)
        self._prefix = self._processor_prefix()
        self.notes = _notes(self.rules, self.images, processor)
        for note in self.notes:
            logger.info("%s: %s", type(processor).__name__, note)

    # -- messages to segments ------------------------------------------------------------------------------

    def prompt(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Segment:
        """The opening of an episode, the generation prompt included.

        Raises:
            RenderError: The template does not take these messages.
        """
        pictures = self._pictures(messages)
        return self._finish(self._prompt_text(messages, tools), messages, pictures, self._prefix)

    def delta(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Segment:
        """What follows an end-of-turn token when these messages come next, generation prompt included.

        Args:
            messages: All messages of one observation, in order.
            tools: The same as for the prompt.
        """
        if not messages:
            return Segment([], [])
        pictures = self._pictures(messages)
        text = self._ending(messages).tokens[-1] + self._delta_text(messages, tools)
        segment = self._finish(text, messages, pictures, [])
        return Segment(segment.token_ids[1:], segment.images)

    def answer(
        self,
        response_token_ids: Sequence[int],
        finish_reason: FinishReason,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Segment:
        """All that is appended with mask 0 after a response: what closes its turn, then the observation."""
        delta = self.delta(messages, tools)
        closing = self._close(response_token_ids, self._ending(messages))
        return Segment([*closing, *delta.token_ids], delta.images)

    def full(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Segment:
        """A whole conversation rendered at once, without generation prompt: to audit, never to train on."""
        pictures = self._pictures(messages)
        text = self._render_whole(messages, tools, generation_prompt=False)
        return self._finish(text, messages, pictures, self._prefix)

    # -- views of the ids ----------------------------------------------------------------------------------

    def collapse(self, token_ids: Sequence[int], images: Sequence[Any] | None = None) -> list[int]:
        """Expanded ids with one placeholder per picture; `images` as in `ImageTokens.collapse`."""
        if self.images is None:
            return list(token_ids)
        return self.images.collapse(token_ids, None if images is None else [as_picture(i) for i in images])

    def expand(self, token_ids: Sequence[int], images: Sequence[Any]) -> list[int]:
        """Collapsed ids with one id per image feature."""
        if self.images is None:
            if images:
                raise ValueError(f"{len(images)} pictures were passed, but this renderer is for text alone")
            return list(token_ids)
        return self.images.expand(token_ids, [as_picture(i) for i in images])

    def count_image_tokens(self, image: Any) -> int:
        """How many image features this picture has."""
        if self.images is None:
            raise ValueError(
                "this renderer is for text alone: it was made from a tokenizer or a text template"
            )
        return self.images.count(as_picture(image))

    def count_pads(self, token_ids: Sequence[int]) -> int:
        """How many image pads stand in these ids."""
        return self.images.count_pads(token_ids) if self.images else 0

    # -- responses -----------------------------------------------------------------------------------------

    def decode(self, token_ids: Sequence[int]) -> str:
        """The action's text: special tokens kept, trailing end tokens stripped."""
        ids = list(token_ids)
        while ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return str(self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def encode_response(self, text: str) -> list[int]:
        """A response as a model would have sampled it (for experts and warm-up), with the end of its turn."""
        safe = self.encoder.protect(text, self._assistant_may_write)
        ending = self.rules.last_ending.tokens or self.rules.ending.tokens
        return [*self.encoder.encode(safe), *map(self.tokenizer.convert_tokens_to_ids, ending)]

    def closing(self, response_token_ids: Sequence[int], finish_reason: FinishReason = "stop") -> list[int]:
        """Ids to add with mask 0 after a response so that a user's delta can follow.

        Nothing after the template's end-of-turn token; that token after another stop token, after a cut by
        length and after an empty response. `answer` knows what observation follows and is to be preferred.
        """
        return self._close(response_token_ids, self.rules.ending)

    # -- forward -------------------------------------------------------------------------------------------

    def model_inputs(self, token_ids: Sequence[int], images: Sequence[Any]) -> dict[str, Any]:
        """Processor tensors for a forward over one stream: see `agents.forward.model_inputs`."""
        return model_inputs(self.processor, token_ids, [as_picture(i) for i in images])

    # -- text ----------------------------------------------------------------------------------------------

    def _prompt_text(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None
    ) -> str:
        return self._render_whole(messages, tools, generation_prompt=True)

    def _render_whole(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        *,
        generation_prompt: bool,
    ) -> str:
        shaped = [self._safe(m) for m in messages]
        schemas = self.encoder.protect_tree(list(tools)) if tools else None
        if schemas and not self.rules.tools_listed:
            shaped = _with_tools_text(shaped, schemas)
            schemas = None
        if not self.rules.system:
            shaped = with_system_folded(shaped)
        shaped = [self._formed(m) for m in self._regrouped(shaped)]
        return self.template.render(shaped, schemas, generation_prompt=generation_prompt)

    def _delta_text(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None
    ) -> str:
        """What follows the end-of-turn token, as text."""
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

    def _ending(self, messages: Sequence[Mapping[str, Any]]) -> Ending:
        """How the turn before these messages must end."""
        shaped = self._regrouped(
            [{"role": m["role"], "content": message_blocks(m["content"])} for m in messages]
        )
        return self.rules.tool.ending if any(m["role"] == "tool" for m in shaped) else self.rules.ending

    def _regrouped(self, messages: Sequence[Message]) -> list[Message]:
        """Tool messages that the template can't carry, as user messages; those joined where it insists."""
        tool = self.rules.tool
        results = [m for m in messages if m["role"] == "tool"]
        pictured = any(count_images([m]) for m in results)
        mixed = _tool_then_user(messages)
        out = list(messages)
        if results and (not tool.own or (pictured and not tool.images) or (mixed and not tool.with_user)):
            out = [as_user(m) if m["role"] == "tool" else m for m in out]
        return out if self.rules.users_in_a_row else joined_users(out)

    def _formed(self, message: Message) -> Message:
        role = message["role"]
        form = self.rules.forms.get(role, Form.STRING)
        merge = role in self.rules.merged_text
        return {**message, "content": in_form(message["content"], form, merge=merge)}

    def _safe(self, message: Mapping[str, Any]) -> Message:
        """The message with blocks for content, and with special-token strings in it marked as text."""
        keep = self._assistant_may_write if message["role"] == "assistant" else frozenset()
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

    # -- ids -----------------------------------------------------------------------------------------------

    def _pictures(self, messages: Sequence[Mapping[str, Any]]) -> list[Image.Image]:
        pictures = [
            as_picture(block["image"])
            for message in messages
            if not isinstance(message["content"], (str, type(None)))
            for block in message["content"]
            if block["type"] == "image"
        ]
        if pictures and self.images is None:
            raise ValueError(f"{len(pictures)} picture(s) for a renderer of text alone: {_no_images(self)}")
        return pictures

    def _finish(
        self,
        text: str,
        messages: Sequence[Mapping[str, Any]],
        pictures: list[Image.Image],
        prefix: Sequence[int],
    ) -> Segment:
        if self.images is None:
            return Segment([*prefix, *self.encoder.encode(text)], [])
        written = text.count(self.images.placeholder)
        if written != len(pictures):
            raise TemplateRefused(
                f"the template wrote {written} image placeholders for {len(pictures)} pictures in roles "
                f"{[m['role'] for m in messages]}"
            )
        ids = self.encoder.encode(self.images.dress(text, pictures))
        return Segment([*prefix, *self.images.expand(ids, pictures)], pictures)

    def _close(self, response: Sequence[int], ending: Ending) -> list[int]:
        chain = [self.tokenizer.convert_tokens_to_ids(t) for t in ending.tokens]
        last = list(response[-len(chain) :])
        if last and last[-1] == chain[-1]:
            return []
        for done in range(len(chain) - 1, 0, -1):
            if last[-done:] == chain[:done]:
                return chain[done:]
        return chain[-1:] if last and last[-1] in self.stop_token_ids else chain

    def _processor_prefix(self) -> list[int]:
        """Ids that a processor puts in front of a prompt which does not start with its bos token."""
        if self.processor is self.tokenizer:
            return []
        text = self._prompt_text([{"role": "user", "content": "u"}], None)
        if self.tokenizer.bos_token and text.startswith(self.tokenizer.bos_token):
            return []
        theirs = [int(i) for i in self.processor(text=[text])["input_ids"][0]]
        ours = self.encoder.encode(text)
        if theirs[len(theirs) - len(ours) :] != ours:
            raise TemplateRefused(
                f"{type(self.processor).__name__} tokenizes text in its own way: {theirs} instead of {ours} "
                f"for {text!r}"
            )
        return theirs[: len(theirs) - len(ours)]


def _check_tokenizer(processor: Any, tokenizer: Any) -> None:
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise TemplateRefused(
            f"{type(tokenizer).__name__} is not a fast tokenizer: load one with a tokenizer.json "
            "(AutoTokenizer.from_pretrained does where the model has it)"
        )
    if tokenizer.padding_side != "left":
        logger.warning(
            "the tokenizer pads on the right, which shifts the token types of shorter rows: "
            'padding_side is set to "left"'
        )
        tokenizer.padding_side = "left"


def _placeholders(processor: Any) -> list[str]:
    names = ("image_token", "boi_token", "start_image_token")
    owners = (processor, processor.tokenizer)
    found = [getattr(owner, name, None) for name in names for owner in owners]
    return list(dict.fromkeys(t for t in found if isinstance(t, str)))


def _no_images(renderer: ChatRenderer) -> str:
    if renderer.processor is renderer.tokenizer:
        return "it was made from a tokenizer; load the model's AutoProcessor (it needs torchvision)"
    return "the processor has no image processor"


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


def _tool_then_user(messages: Sequence[Message]) -> bool:
    roles = {m["role"] for m in messages}
    return {"tool", "user"} <= roles


def _notes(rules: Rules, images: ImageTokens | None, processor: Any) -> list[str]:
    notes = []
    if not rules.system:
        notes.append(
            "the template has no system role: the system prompt goes in front of the first user message"
        )
    if not rules.tools_listed:
        notes.append("the template does not list tools: their schemas go into the system prompt")
    if not rules.tool.own:
        notes.append(f"tool results are rendered as user messages: {rules.tool.reason}")
    elif images is not None and not rules.tool.images:
        notes.append("tool results with pictures are rendered as user messages: the tool role drops them")
    if rules.start_inside_turn:
        notes.append(f"{' '.join(rules.starts)} stands inside a model's own turn and is not banned")
    if rules.dated:
        notes.append("the template writes today's date: the same episode has other prompt ids tomorrow")
    return notes
