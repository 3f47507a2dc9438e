"""Messages to token segments, exact to the token: `ChatRenderer`.

A prompt is rendered whole. An observation is rendered behind a fixed dummy conversation [system, user,
assistant] and cut right after the dummy's end-of-turn token, so that real history is never re-rendered.
Knows the chat template (through what `probe` found) and ids; keeps no state per episode.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from agents.chat.encoding import TextEncoder
from agents.chat.images import ImageTokens, as_picture
from agents.types import FinishReason, Segment

logger = logging.getLogger(__name__)

_DUMMY = "dummy-answer-7d21"


class ChatRenderer:
    """Renders messages for one processor or tokenizer. Thread-safe; no state per episode.

    Args:
        processor: A transformers processor, or a tokenizer for text alone.
        template_kwargs: Passed to the chat template in every render (`enable_thinking`, say).
    """

    def __init__(self, processor: Any, *, template_kwargs: Mapping[str, Any] | None = None) -> None:
        self.processor = processor
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self.template_kwargs = dict(template_kwargs or {})
        if self.tokenizer.padding_side != "left":
            logger.warning("padding_side was %r; set to 'left'", self.tokenizer.padding_side)
            self.tokenizer.padding_side = "left"
        added = self.tokenizer.added_tokens_decoder
        self.encoder = TextEncoder(self.tokenizer, [t.content for t in added.values()])
        self.images = (
            ImageTokens(processor, processor.image_token) if hasattr(processor, "image_token") else None
        )
        ids = {t.content: i for i, t in added.items()}
        self.end_of_turn = "<|im_end|>"
        self.end_of_turn_id: int = ids[self.end_of_turn]
        self.stop_token_ids: tuple[int, ...] = tuple(
            sorted(
                {
                    self.end_of_turn_id,
                    self.tokenizer.eos_token_id,
                    ids.get("<|endoftext|>", self.end_of_turn_id),
                }
            )
        )
        banned = (
            "<|im_start|>",
            "<|vision_start|>",
            "<|vision_end|>",
            "<|vision_pad|>",
            "<|image_pad|>",
            "<|video_pad|>",
        )
        self.banned_token_ids: tuple[int, ...] = tuple(sorted(ids[t] for t in banned if t in ids))
        self.vision_token_ids: frozenset[int] = frozenset(
            ids[t]
            for t in ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
            if t in ids
        )
        self.pad_id: int = self.tokenizer.pad_token_id

    # -- messages to segments --------------------------------------------------------------------------

    def prompt(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[dict[str, Any]] | None = None
    ) -> Segment:
        """The opening of an episode, the generation prompt included."""
        return self._segment(self._render(messages, tools), messages)

    def delta(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[dict[str, Any]] | None = None
    ) -> Segment:
        """What follows an end-of-turn token when these messages come next, generation prompt included."""
        if not messages:
            return Segment([], [])
        base = [
            {"role": "system", "content": [{"type": "text", "text": "s"}]},
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {"role": "assistant", "content": [{"type": "text", "text": _DUMMY}]},
        ]
        text = self._render([*base, *messages], tools)
        after = text.split(_DUMMY, 1)[1]
        segment = self._segment(after, messages)
        return Segment(segment.token_ids[1:], segment.images)

    # -- views of the ids --------------------------------------------------------------------------------

    def collapse(self, token_ids: Sequence[int]) -> list[int]:
        """Expanded ids with one placeholder per picture."""
        return self.images.collapse(token_ids) if self.images else list(token_ids)

    def expand(self, token_ids: Sequence[int], images: Sequence[Any]) -> list[int]:
        """Collapsed ids with one id per image feature."""
        if self.images is None:
            return list(token_ids)
        return self.images.expand(token_ids, [as_picture(i) for i in images])

    def count_image_tokens(self, image: Any) -> int:
        """How many image features this picture has."""
        return self.images.count(as_picture(image)) if self.images else 0

    def count_pads(self, token_ids: Sequence[int]) -> int:
        """How many image pads stand in these ids."""
        return list(token_ids).count(self.images.pad_id) if self.images else 0

    # -- responses ---------------------------------------------------------------------------------------

    def decode(self, token_ids: Sequence[int]) -> str:
        """The action's text: special tokens kept, trailing end tokens stripped."""
        ids = list(token_ids)
        while ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return str(self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def encode_response(self, text: str) -> list[int]:
        """A response as a model would have sampled it (for experts and warm-up), end-of-turn included."""
        return [*self.tokenizer.encode(text, add_special_tokens=False), self.end_of_turn_id]

    def closing(self, response_token_ids: Sequence[int], finish_reason: FinishReason = "stop") -> list[int]:
        """Ids to add with mask 0 after a response so that a delta can follow."""
        if response_token_ids and response_token_ids[-1] == self.end_of_turn_id:
            return []
        return [self.end_of_turn_id]

    # -- forward -----------------------------------------------------------------------------------------

    def model_inputs(self, token_ids: Sequence[int], images: Sequence[Any]) -> dict[str, Any]:
        """Processor tensors for a forward over one stream."""
        if self.images is None:
            return {}
        out: dict[str, Any] = {
            "mm_token_type_ids": self.processor.create_mm_token_type_ids([list(token_ids)])
        }
        if images:
            pictures = [as_picture(i) for i in images]
            out.update(self.processor.image_processor(images=pictures, return_tensors="pt"))
        return out

    # -- inside ------------------------------------------------------------------------------------------

    def _render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[dict[str, Any]] | None) -> str:
        return self.processor.apply_chat_template(
            [self._safe(m) for m in messages],
            tools=self.encoder.protect_tree(list(tools)) if tools else None,
            add_generation_prompt=True,
            tokenize=False,
            **self.template_kwargs,
        )

    def _safe(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message["role"] == "assistant":
            return {**message, "content": blocks}
        return {
            **message,
            "content": [
                {"type": "image"}
                if b["type"] == "image"
                else {"type": "text", "text": self.encoder.protect(b["text"])}
                for b in blocks
            ],
        }

    def _segment(self, text: str, messages: Sequence[Mapping[str, Any]]) -> Segment:
        pictures: list[Image.Image] = [
            as_picture(b["image"])
            for m in messages
            if not isinstance(m["content"], str)
            for b in m["content"]
            if b["type"] == "image"
        ]
        ids = self.encoder.encode(text)
        return Segment(self.images.expand(ids, pictures) if self.images else ids, pictures)
