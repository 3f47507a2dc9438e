"""Messages to token segments, exact to the token: `ChatRenderer`.

A prompt is rendered whole. An observation is rendered behind a fixed dummy conversation [system, user,
assistant] and cut right after the dummy's end-of-turn token, so that real history is never re-rendered. All
that differs between templates is in `Rules`. Keeps no state per episode.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from agents.chat.conversation import TextRenderer
from agents.chat.encoding import TextEncoder
from agents.chat.images import ImageTokens, as_picture
from agents.chat.probe import Controls, Prober
from agents.chat.rules import Ending, Rules
from agents.chat.template import Template, TemplateRefused
from agents.chat.tokens import TokenRoles, control_tokens, protected_tokens
from agents.forward import Layout, find_layout, merge_rows, model_inputs
from agents.types import FinishReason, Segment

logger = logging.getLogger(__name__)


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
        own = frozenset(self.encoder.protected) - hard
        self._text = TextRenderer(self.template, self.rules, self.encoder, own)
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
        text = self._text.whole(messages, tools, generation_prompt=True)
        return self._finish(text, messages, pictures, self._prefix)

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
        end = self._text.ending(messages).tokens[-1]
        text = end + self._text.delta(messages, tools)
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
        closing = self._close(response_token_ids, self._text.ending(messages))
        return Segment([*closing, *delta.token_ids], delta.images)

    def full(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Segment:
        """A whole conversation rendered at once, without generation prompt: to audit, never to train on."""
        pictures = self._pictures(messages)
        text = self._text.whole(messages, tools, generation_prompt=False)
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
        safe = self.encoder.protect(text, self._text.assistant_may_write)
        head = self.encoder.encode(self.rules.generation_prompt)
        ids = self.encoder.encode(self.rules.generation_prompt + safe)
        # some tokenizers put a blank before the first word of a text, and not behind a prompt
        body = ids[len(head) :] if ids[: len(head)] == head else self.encoder.encode(safe)
        ending = self.rules.last_ending.tokens or self.rules.ending.tokens
        return [*body, *map(self.tokenizer.convert_tokens_to_ids, ending)]

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

    def merge_inputs(self, rows: Sequence[Mapping[str, Any]], *, width: int) -> dict[str, Any]:
        """One batch of several streams' `model_inputs`: see `agents.forward.merge_rows`."""
        return merge_rows(rows, self._layout, width=width)

    @cached_property
    def _layout(self) -> Layout:
        return find_layout(self.processor)

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
        text = self._text.whole([{"role": "user", "content": "u"}], None, generation_prompt=True)
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
