"""A byte-level tokenizer that carries a template's own control tokens, where the family's is not at hand.

It joins bytes to words as a real one does (a small BPE trained on the template's own text), so that joins at
block boundaries matter. Used by the report on a bare `.jinja` file, by the tests and by the docs' table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# How control tokens look, over all families.
_CONTROL = re.compile(
    r"<\|[^<>|\s]{1,40}\|?>|<[a-z_]{1,40}\|>|<｜[^<>｜\s]{1,40}｜>|<\|\"\|>|\[gMASK\]|<sop>"
    r"|<(?:start|end)_of_[a-z]+>|<image>|<fake_token_around_image>"
)
_PLAIN = re.compile(r"</?(?:think|tool_call|tool_response|arg_key|arg_value)>")
_TEXT = (
    "The quick brown fox. An answer, a question? 0123456789 the and that with result image\n\n"
    'you are a helpful assistant system user tool calls {"name": "value"}\n'
)


def control_tokens(template: str) -> list[str]:
    """The control tokens that stand in a template's source, in order of first use."""
    return list(dict.fromkeys(_CONTROL.findall(template)))


def byte_tokenizer(
    template: str,
    *,
    eos: str,
    bos: str | None = None,
    extra: Sequence[str] = (),
    named: Mapping[str, str] | None = None,
    rstrip: bool = False,
) -> Any:
    """A fast tokenizer with this chat template and its control tokens.

    Args:
        template: Jinja source.
        eos: The end-of-turn or end-of-text token; added when the template does not name it.
        bos: The token that templates know as `bos_token`.
        extra: Further control tokens (pads, picture marks).
        named: Control tokens that a processor looks up by attribute (`boi_token`).
        rstrip: Control tokens swallow the blanks behind them.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        [_TEXT * 4, re.sub(r"[<>|]", " ", template)],
        trainers.BpeTrainer(vocab_size=640, initial_alphabet=alphabet, show_progress=False),
    )
    controls = [*([bos] if bos else []), eos, "<|pad|>", *control_tokens(template), *extra]
    backend.add_special_tokens(
        [AddedToken(t, special=True, normalized=False, rstrip=rstrip) for t in dict.fromkeys(controls)]
    )
    plain = dict.fromkeys(_PLAIN.findall(template))
    backend.add_tokens([AddedToken(t, special=False, normalized=False) for t in plain])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=eos,
        pad_token="<|pad|>",
        bos_token=bos,
        padding_side="left",
        extra_special_tokens=dict(named or {}),
    )
    tokenizer.chat_template = template
    return tokenizer
