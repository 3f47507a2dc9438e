"""Which ids end a turn, which must never be sampled, and which strings must stay text in data.

Knows the tokenizer's special tokens and `Rules`. Must not know messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agents.chat.images import ImageTokens
from agents.chat.rules import Rules

# Ends of text in the vocabularies of open models, besides the tokenizer's own `eos_token`.
_ENDS = ("<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<eos>", "</s>", "<|im_end|>")
_MARKUP = re.compile(r"^(<\|.*\|?>|<.*\|>|<｜.*｜>|\[[A-Z_/]+\])$", re.DOTALL)


def control_tokens(tokenizer: Any) -> list[str]:
    """The tokens that the tokenizer itself calls special."""
    return [t.content for t in tokenizer.added_tokens_decoder.values() if t.special and t.content.strip()]


def protected_tokens(tokenizer: Any, template: str) -> list[str]:
    """Strings that must be plain text when they come from data.

    Special tokens, and further added tokens that the template writes (`<tool_response>`) or that look like
    control tokens; not the blanks and words that some tokenizers add for economy.
    """
    return [
        t.content
        for t in tokenizer.added_tokens_decoder.values()
        if t.content.strip() and (t.special or t.content in template or _MARKUP.match(t.content))
    ]


@dataclass(frozen=True)
class TokenRoles:
    """Ids by what they mean for sampling."""

    end_of_turn: int
    """What ends an assistant's turn in the history."""
    stops: tuple[int, ...]
    """All that end a turn when sampled."""
    banned: tuple[int, ...]
    """Never to be sampled."""
    vision: frozenset[int]
    """Pads, marks and placeholders of pictures and videos."""
    pad: int

    @classmethod
    def find(
        cls,
        tokenizer: Any,
        processor: Any,
        rules: Rules,
        images: ImageTokens | None,
        vocab_size: int | None,
    ) -> TokenRoles:
        """Sort the special tokens by role."""
        special = set(control_tokens(tokenizer))
        ids = {token: tokenizer.convert_tokens_to_ids(token) for token in special}
        last = (rules.last_ending.tokens or rules.ending.tokens)[-1]
        tool = rules.tool.ending.tokens[-1:] if rules.tool.own else ()
        names = {last, *tool, tokenizer.eos_token, *_ENDS} & special
        inner = rules.ending.tokens[-1] if rules.ending.tokens[-1] != last else None
        stops = {ids[t] for t in names if t != inner}
        vision = _vision_ids(tokenizer, processor, rules, images)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        banned = set(vision) | {pad}
        if not rules.start_inside_turn:
            banned |= {ids[t] for t in rules.starts if t in ids}
        if tokenizer.bos_token_id is not None:
            banned.add(tokenizer.bos_token_id)
        if vocab_size is not None:
            banned |= set(range(len(tokenizer), vocab_size))
        return cls(
            end_of_turn=ids[rules.ending.tokens[-1]],
            stops=tuple(sorted(stops)),
            banned=tuple(sorted(banned - stops)),
            vision=vision,
            pad=int(pad),
        )


def _vision_ids(tokenizer: Any, processor: Any, rules: Rules, images: ImageTokens | None) -> frozenset[int]:
    """Of pictures and videos, as far as the processor, the template and the picture's layout name them."""
    found = set(images.vision_ids) if images else set()
    added = {t.content: i for i, t in tokenizer.added_tokens_decoder.items()}
    for owner in (processor, tokenizer):
        for name in (
            "image",
            "video",
            "audio",
            "vision_start",
            "vision_end",
            "boi",
            "eoi",
            "image_start",
            "image_end",
        ):
            token = getattr(owner, f"{name}_token", None)
            if isinstance(token, str) and token in added:
                found.add(added[token])
    found |= {i for token, i in added.items() if token.strip() and token in rules.image_text}
    found |= {
        i for token, i in added.items() if re.fullmatch(r"<\|?(image|video|vision|audio)_\w+\|?>", token)
    }
    return frozenset(found)
