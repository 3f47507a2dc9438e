"""Processor tensors of whole streams: the processor's own, made once; batches that score like single rows."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("trl")
import torch

from agents.chat import ChatRenderer
from agents.chat.families import processor_for, trl_templates
from agents.forward import Layout, find_layout, merge_rows, model_inputs, training_refusal

TEMPLATES = trl_templates()
SLICED = ("qwen2_5_vl", "qwen3_vl", "qwen3_6", "muse_glimmer", "gemma3", "gemma4_v5", "llava_next")
PER_ROW = ("smolvlm", "idefics3")


def picture(width: int, height: int) -> Image.Image:
    noise = np.random.default_rng(width * height)
    return Image.fromarray(noise.integers(0, 256, (height, width, 3), dtype=np.uint8))


def prompt(renderer: ChatRenderer, *images: Image.Image):
    blocks = [{"type": "image", "image": image} for image in images]
    return renderer.prompt([{"role": "user", "content": [*blocks, {"type": "text", "text": "Compare."}]}])


@pytest.mark.parametrize("name", [*SLICED, *PER_ROW, "lfm2_2_5_vl"])
def test_the_tensors_of_a_stream_are_those_of_the_processor(name):
    renderer = ChatRenderer(processor_for(name, TEMPLATES[name]))
    segment = prompt(renderer, picture(90, 60), picture(64, 64))
    made = renderer.model_inputs(segment.token_ids, segment.images)
    content = [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "Compare."}]
    text = renderer.template.render([{"role": "user", "content": content}])
    theirs = renderer.processor(
        text=[text], images=[segment.images], return_tensors="pt", add_special_tokens=False
    )
    assert theirs.pop("input_ids").tolist() == [segment.token_ids]
    theirs.pop("attention_mask")
    assert set(theirs) <= set(made)
    for key, value in theirs.items():
        assert torch.equal(made[key], value), key


@pytest.mark.parametrize("name", SLICED)
def test_families_whose_pictures_can_be_cut_apart_may_be_trained(name):
    processor = processor_for(name, TEMPLATES[name])
    assert find_layout(processor).slices_per_picture
    assert training_refusal(processor) is None


@pytest.mark.parametrize("name", [*PER_ROW, "lfm2_2_5_vl"])
def test_families_whose_pictures_can_not_be_cut_apart_are_refused_for_training(name):
    processor = processor_for(name, TEMPLATES[name])
    assert "can't be cut picture by picture" in training_refusal(processor)
    axes = {1} if name in PER_ROW else {0}
    assert set(find_layout(processor).axes.values()) == axes


def test_a_tokenizer_has_no_picture_tensors():
    tokenizer = processor_for("qwen3", TEMPLATES["qwen3"])
    assert model_inputs(tokenizer, [1, 2], []) == {}
    assert find_layout(tokenizer) == Layout({})


def tiny_smolvlm(tokenizer):
    """A SmolVLM of random weights that takes tiles of 384 pixels as 81 tokens, as the real one does."""
    import transformers

    torch.manual_seed(0)
    config = transformers.SmolVLMConfig(
        vision_config={
            **{"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2},
            **{"image_size": 384, "patch_size": 14},
        },
        text_config={
            **{"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2},
            **{"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(tokenizer)},
            "pad_token_id": tokenizer.pad_token_id,
        },
        scale_factor=3,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    return transformers.SmolVLMForConditionalGeneration(config).eval()


def logits_of_batch(model, renderer, layout, segments):
    width = max(len(s.token_ids) for s in segments)
    ids = torch.full((len(segments), width), renderer.pad_id)
    mask = torch.zeros_like(ids)
    for row, segment in enumerate(segments):
        ids[row, width - len(segment.token_ids) :] = torch.tensor(segment.token_ids)
        mask[row, width - len(segment.token_ids) :] = 1
    rows = [renderer.model_inputs(s.token_ids, s.images) for s in segments]
    extra = merge_rows(rows, layout, width=width)
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=mask, **extra).logits
    return [logits[row, width - len(s.token_ids) :] for row, s in enumerate(segments)]


def check_batch(model, renderer, atol):
    layout = find_layout(renderer.processor)
    segments = [
        prompt(renderer, picture(500, 200), picture(64, 64)),
        prompt(renderer),
        prompt(renderer, picture(120, 333)),
    ]
    together = logits_of_batch(model, renderer, layout, segments)
    for segment, logits in zip(segments, together, strict=True):
        (alone,) = logits_of_batch(model, renderer, layout, [segment])
        torch.testing.assert_close(logits, alone, atol=atol, rtol=0)
    blank = Image.new("RGB", (120, 333))
    (dark,) = logits_of_batch(model, renderer, layout, [prompt(renderer, blank)])
    assert (dark - together[2]).abs().max() > 10 * atol  # the pictures are seen


def test_a_batch_of_smolvlm_rows_with_two_none_and_one_picture_scores_like_the_single_rows():
    renderer = ChatRenderer(processor_for("smolvlm", TEMPLATES["smolvlm"]))
    check_batch(tiny_smolvlm(renderer.tokenizer), renderer, atol=1e-5)


def test_a_batch_of_qwen3_vl_rows_with_two_none_and_one_picture_scores_like_the_single_rows(tiny_vlm):
    model, processor = tiny_vlm
    check_batch(model, ChatRenderer(processor), atol=1e-5)


@pytest.mark.parametrize("turns", [20, 64])
def test_each_picture_is_processed_once_however_many_turns(turns):
    """Re-rendering each turn processes 10.5 and 32.5 times as many pictures."""
    processor = processor_for("qwen3_vl", TEMPLATES["qwen3_vl"])
    renderer = ChatRenderer(processor)
    seen = []
    real = processor.image_processor

    class Counting(type(real)):
        def __call__(self, images, **kwargs):
            seen.extend(image for row in images for image in (row if isinstance(row, list) else [row]))
            return real(images, **kwargs)

    processor.image_processor = Counting()
    ids, images = list(prompt(renderer).token_ids), []
    for _ in range(turns):
        segment = renderer.delta([{"role": "user", "content": [{"type": "image", "image": picture(64, 64)}]}])
        ids += segment.token_ids
        images += segment.images
    made = renderer.model_inputs(ids, images)
    assert len(seen) == turns == len(made["image_grid_thw"])
    assert made["mm_token_type_ids"].shape == (1, len(ids))
    assert int(made["mm_token_type_ids"].sum()) == renderer.count_pads(ids)
