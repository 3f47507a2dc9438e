"""Builds a tiny Qwen3-VL: config, random weights, tokenizer, processor and chat template, in one folder.

The folder loads with `from_pretrained` and runs the real code path (`Qwen3VLForConditionalGeneration`),
so tests and the quickstart need neither the hub nor a GPU. It knows nothing of training. The numbers
that make such a model learn on a CPU (init std, position embedding) were found by running it.

    python train/tiny.py OUT                        # trimmed vocabulary, from the embedded tasks' texts
    python train/tiny.py OUT --processor PATH       # the tokenizer and image pipeline of a real Qwen3-VL
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout, not this folder

import gymnasium
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoProcessor,
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

import mm_gym
from train.tasks import EnvSpec, parse_members

TEMPLATE = Path(__file__).with_name("tiny_chat_template.jinja")
"""Qwen's turn, tool-call and tool-response format; tools are listed by name only, to keep prompts short."""

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
MARKUP_TOKENS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""One id each, as in Qwen's tokenizer, but text: they survive decoding."""


def build_tiny_vlm(
    directory: str | Path,
    *,
    processor: str | Path | None = None,
    texts: Iterable[str] = (),
    vocab_size: int = 512,
    tied: bool = False,
    seed: int = 0,
    hidden_size: int = 128,
    layers: int = 4,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> Path:
    """Write a tiny Qwen3-VL into `directory`. Same arguments, same bytes of weights.

    Args:
        directory: Made when missing.
        processor: A folder with a real Qwen3-VL processor: its tokenizer (full vocabulary), chat
            template and image pipeline are kept. None makes a trimmed byte-level tokenizer, which still
            covers any text without loss.
        texts: What the trimmed tokenizer's merges are learnt from; without any, one byte is one token.
        vocab_size: Of the trimmed tokenizer, special tokens not counted; at least 256.
        tied: Share input and output embeddings. vLLM's weight reload on a CPU wants untied ones.
        seed: Of the weights.
        hidden_size: Of the language model; a multiple of 64, for heads of 64.
        layers: Of the language model. The vision tower has two layers of 64.
        min_pixels: Smallest picture area after resizing; default 32 * 32, or the given processor's.
        max_pixels: Largest picture area after resizing; default 256 * 256, or the given processor's.

    Returns:
        `directory`. About one million parameters besides the embeddings.
    """
    directory = Path(directory)
    if hidden_size % 64:
        raise ValueError(f"hidden_size must be a multiple of 64 (heads of 64), got {hidden_size}")
    if processor is None:
        made = _trimmed_processor(texts, vocab_size, min_pixels or 32 * 32, max_pixels or 256 * 256)
    else:
        made = AutoProcessor.from_pretrained(processor)
        size = dict(made.image_processor.size)
        size["shortest_edge"] = min_pixels or size["shortest_edge"]
        size["longest_edge"] = max_pixels or size["longest_edge"]
        made.image_processor.size = size
    model = _random_model(_config(made.tokenizer, hidden_size, layers, tied), seed)
    model.save_pretrained(directory)
    made.save_pretrained(directory)
    return directory


def episode_texts(environments: EnvSpec, episodes: int = 60) -> list[str]:
    """What environments and their solvers write, for the trimmed tokenizer's merges.

    Args:
        environments: See `train.tasks.EnvSpec`.
        episodes: Of each environment, seeds 0 to `episodes` - 1.
    """
    texts: list[str] = []
    for member in parse_members(environments):
        env = gymnasium.make(member.id, **member.kwargs)
        for seed in range(episodes):
            episode = mm_gym.play(env, mm_gym.expert(env), seed=seed, options=dict(member.options))
            for message in episode.messages:
                texts.extend(block["text"] for block in message["content"] if block["type"] == "text")
        env.close()
    return texts


def _trimmed_processor(
    texts: Iterable[str], vocab_size: int, min_pixels: int, max_pixels: int
) -> Qwen3VLProcessor:
    if vocab_size < 256:
        raise ValueError(f"vocab_size must be at least 256 (one id per byte), got {vocab_size}")
    size = {"shortest_edge": min_pixels, "longest_edge": max_pixels}
    pipeline = {
        "size": size,
        "patch_size": 16,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**pipeline),
        tokenizer=_trimmed_tokenizer(texts, vocab_size),
        video_processor=Qwen3VLVideoProcessor(**pipeline),
        chat_template=TEMPLATE.read_text(encoding="utf-8"),
    )


def _trimmed_tokenizer(texts: Iterable[str], vocab_size: int) -> Qwen2Tokenizer:
    # Merges must be learnt on the pieces that Qwen's own pre-tokenizer makes, so it is borrowed from an
    # empty Qwen tokenizer; a merge across pieces would never apply.
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = Qwen2Tokenizer().backend_tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train_from_iterator(_without_markup(texts), trainer)
    learnt = json.loads(learner.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=learnt["vocab"],
        merges=[tuple(merge) for merge in learnt["merges"]],  # type: ignore[misc]
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,  # type: ignore[arg-type]
        padding_side="left",
        extra_special_tokens=list(SPECIAL_TOKENS[1:]),
        model_max_length=32768,
    )
    tokenizer.add_tokens(list(MARKUP_TOKENS))
    return tokenizer


def _without_markup(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        for token in (*SPECIAL_TOKENS, *MARKUP_TOKENS):
            text = text.replace(token, "\n")
        yield text


def _config(tokenizer: Any, hidden_size: int, layers: int, tied: bool) -> Qwen3VLConfig:
    def id_of(token: str) -> int:
        return int(tokenizer.convert_tokens_to_ids(token))

    return Qwen3VLConfig(
        text_config={
            "vocab_size": -(-len(tokenizer) // 64) * 64,
            "hidden_size": hidden_size,
            "intermediate_size": 3 * hidden_size,
            "num_hidden_layers": layers,
            "num_attention_heads": hidden_size // 64,
            "num_key_value_heads": hidden_size // 64,
            "head_dim": 64,  # the smallest head that vLLM's CPU attention takes
            "max_position_embeddings": 32768,
            "initializer_range": 0.1,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [12, 10, 10],
                "mrope_interleaved": True,
            },
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": None,
            "tie_word_embeddings": tied,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 192,
            "num_heads": 2,
            "out_hidden_size": hidden_size,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "num_position_embeddings": 2304,
            "deepstack_visual_indexes": [0],
            "initializer_range": 0.1,
        },
        image_token_id=id_of("<|image_pad|>"),
        video_token_id=id_of("<|video_pad|>"),
        vision_start_token_id=id_of("<|vision_start|>"),
        vision_end_token_id=id_of("<|vision_end|>"),
        tie_word_embeddings=tied,
    )


def _random_model(config: Qwen3VLConfig, seed: int) -> Qwen3VLForConditionalGeneration:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3VLForConditionalGeneration(config).float()
        # With the default init the tower's position embedding is lost in its input and "where" is
        # not learnt for a thousand steps.
        torch.nn.init.normal_(model.model.visual.pos_embed.weight, std=0.5)
    text = config.get_text_config()
    model.generation_config.eos_token_id = text.eos_token_id
    model.generation_config.pad_token_id = text.pad_token_id
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a tiny Qwen3-VL with random weights.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--processor", type=Path, help="keep this real processor's tokenizer and images")
    parser.add_argument("--tied", action="store_true", help="share input and output embeddings")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    texts = [] if args.processor else episode_texts(["mm_gym/Pointing-v0", "mm_gym/Geo3k-v0"])
    build_tiny_vlm(args.out, processor=args.processor, texts=texts, tied=args.tied, seed=args.seed)
    print(f"tiny Qwen3-VL with random weights (seed {args.seed}) in {args.out}")


if __name__ == "__main__":
    main()
