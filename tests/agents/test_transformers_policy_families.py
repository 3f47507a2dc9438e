"""The transformers policy on other families, tiny and random: log-probs are those of one whole forward."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers
from PIL import Image

from agents import TransformersPolicy
from agents.types import Request, SamplingParams

TEXT = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 96,
    "max_position_embeddings": 2048,
}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5]}


def text_only(vocabulary: int, ids: dict[str, int]):
    config = transformers.Qwen3Config(**TEXT, vocab_size=vocabulary, head_dim=32)
    return transformers.Qwen3ForCausalLM(config)


def qwen2_5_vl(vocabulary: int, ids: dict[str, int]):
    config = transformers.Qwen2_5_VLConfig(
        text_config={**TEXT, "vocab_size": vocabulary, "rope_parameters": MROPE},
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "num_heads": 2,
            "intermediate_size": 48,
            "out_hidden_size": 64,
            "patch_size": 16,
            "window_size": 64,
            "fullatt_block_indexes": [1],
        },
        **ids,
    )
    return transformers.Qwen2_5_VLForConditionalGeneration(config)


def qwen3_5(vocabulary: int, ids: dict[str, int]):
    """Three of four layers keep a state in place of keys and values: computed alone, from the first token."""
    config = transformers.Qwen3_5Config(
        text_config={
            **TEXT,
            "vocab_size": vocabulary,
            "head_dim": 32,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "rope_parameters": {**MROPE, "partial_rotary_factor": 1.0, "mrope_interleaved": True},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "num_heads": 2,
            "intermediate_size": 48,
            "out_hidden_size": 64,
            "num_position_embeddings": 64,
        },
        **ids,
    )
    return transformers.Qwen3_5ForConditionalGeneration(config)


def special_ids(tokenizer) -> dict[str, int]:
    names = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return {key: tokenizer.convert_tokens_to_ids(token) for key, token in names.items()}


def content(text: str, images: int, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    pictures = [Image.fromarray(rng.integers(0, 255, (64, 96, 3), dtype=np.uint8)) for _ in range(images)]
    return [*({"type": "image", "image": p} for p in pictures), {"type": "text", "text": text}]


def whole_forward(policy, ids, images, sampled, banned) -> list[float]:
    made = policy.renderer.model_inputs(ids, images)
    inputs = {k: torch.as_tensor(v) for k, v in made.items() if k != "mm_token_type_ids" or images}
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([ids]), **inputs).logits[0].float()
    logits[:, list(banned)] = float("-inf")
    logprobs = logits.log_softmax(-1)
    return [float(logprobs[i - 1, ids[i]]) for i in sampled]


@pytest.mark.parametrize("build", [text_only, qwen2_5_vl, qwen3_5])
def test_two_turns_of_a_batch_have_the_logprobs_of_one_whole_forward(tiny_vlm, build):
    _, processor = tiny_vlm
    torch.manual_seed(0)
    model = build(len(processor.tokenizer), special_ids(processor.tokenizer)).eval()
    policy = TransformersPolicy(model, processor)
    banned = policy.renderer.banned_token_ids
    with_images = build is not text_only

    async def episode(number: int):
        images = (number % 3) * with_images
        messages = [{"role": "user", "content": content("word " * number, images, number)}]
        segment = policy.renderer.prompt(messages)
        ids, pictures, logprobs, sampled = list(segment.token_ids), list(segment.images), [], []
        for turn in range(2):
            request = Request(
                str(number),
                list(ids),
                list(pictures),
                3 + number,
                turn,
                SamplingParams(banned_token_ids=banned),
            )
            response = await policy.generate(request)
            sampled += range(len(ids), len(ids) + len(response.token_ids))
            ids += response.token_ids
            logprobs += response.logprobs
            answer = [{"role": "user", "content": content("next", int(with_images), 10 + number)}]
            delta = policy.renderer.answer(response.token_ids, "length", answer)
            ids += delta.token_ids
            pictures += delta.images
        return ids, pictures, sampled, logprobs

    async def main():
        await policy.start()
        try:
            return await asyncio.gather(*(episode(n) for n in range(4)))
        finally:
            await policy.stop()

    for ids, pictures, sampled, logprobs in asyncio.run(main()):
        assert logprobs == pytest.approx(whole_forward(policy, ids, pictures, sampled, banned), abs=1e-4)
    if build is qwen3_5:
        assert policy.max_batch == 1
    else:
        assert policy.stats.reused_tokens > 0
