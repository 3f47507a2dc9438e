"""Pictures in the stream: counts and layouts against each family's real image processor."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("trl")

from agents.chat import ChatRenderer, TemplateRefused
from agents.chat.families import processor_for, trl_templates
from agents.chat.images import ImageTokens, as_picture

SIZES = ((1, 1), (29, 31), (224, 224), (500, 333), (333, 700), (1000, 90))  # (width, height)


@functools.cache
def renderer_for(name: str) -> ChatRenderer:
    return ChatRenderer(processor_for(name, trl_templates()[name]))


def picture(size: tuple[int, int], seed: int = 0) -> Image.Image:
    width, height = size
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def qwen_count(processor, image):
    grid = processor.image_processor(images=[image], return_tensors="pt")["image_grid_thw"]
    return int(grid.prod()) // processor.image_processor.merge_size**2


def tile_count(processor, image):
    tiles = processor.image_processor(images=[[image]], return_tensors="pt")["pixel_values"].shape[1]
    return tiles * processor.image_seq_len


def gemma4_count(processor, image):
    return int(processor.image_processor(images=[image])["num_soft_tokens_per_image"][0])


def gemma3_count(processor, image):
    return processor.image_seq_length * len(processor.image_processor(images=[image])["pixel_values"])


def lfm2_count(processor, image):
    made = processor.image_processor(images=[[image]], return_tensors="pt")
    patches = made["pixel_attention_mask"].sum().item()
    return patches // processor.image_processor.downsample_factor**2


def llava_next_count(processor, image):
    """Features of the unpadded tiles, a newline per row, and the base view, as the model packs them."""
    import torch
    from transformers.models.llava_next.modeling_llava_next import get_anyres_image_grid_shape, unpad_image

    made = processor.image_processor(images=[image], return_tensors="pt")
    side = made["pixel_values"].shape[-1] // processor.patch_size
    tile = made["pixel_values"].shape[-1]
    pins = processor.image_processor.image_grid_pinpoints
    rows, cols = get_anyres_image_grid_shape(made["image_sizes"][0], pins, tile)
    unpadded = unpad_image(torch.zeros(1, rows * side, cols * side), made["image_sizes"][0])
    return unpadded.shape[1] * (unpadded.shape[2] + 1) + side * side


COUNTS = {
    "qwen2_5_vl": qwen_count,
    "qwen3_vl": qwen_count,
    "qwen3_6": qwen_count,
    "muse_glimmer": qwen_count,
    "idefics3": tile_count,
    "smolvlm": tile_count,
    "gemma3": gemma3_count,
    "gemma4_v5": gemma4_count,
    "lfm2_2_5_vl": lfm2_count,
    "llava_next": llava_next_count,
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_those_of_the_familys_real_image_processor(name):
    renderer = renderer_for(name)
    for size in SIZES[1:]:
        image = picture(size)
        assert renderer.count_image_tokens(image) == COUNTS[name](renderer.processor, image), size


@pytest.mark.parametrize("name", COUNTS)
def test_expanded_ids_are_those_of_the_processor_for_several_pictures_in_one_turn(name):
    renderer = renderer_for(name)
    images = [picture(size, i) for i, size in enumerate(SIZES[1:4])]
    blocks = [{"type": "image", "image": i} for i in images]
    messages = [{"role": "user", "content": [*blocks, {"type": "text", "text": "Compare them."}]}]
    segment = renderer.prompt(messages)
    shown = [{"role": "user", "content": [*({"type": "image"} for _ in images), messages[0]["content"][-1]]}]
    text = renderer.tokenizer.apply_chat_template(
        shown, chat_template=renderer.template.source, add_generation_prompt=True, tokenize=False
    )
    theirs = renderer.processor(text=[text], images=[images], add_special_tokens=False)["input_ids"][0]
    assert segment.token_ids == [int(i) for i in theirs]
    assert renderer.expand(renderer.collapse(segment.token_ids), images) == segment.token_ids
    assert renderer.collapse(segment.token_ids).count(renderer.images.placeholder_id) == 3


def test_pictures_side_by_side_without_a_mark_between_them_need_the_pictures_to_be_collapsed():
    """As in LLaVA's own templates; TRL's writes a line break."""
    source = trl_templates()["llava_next"].replace("<image>\n", "<image>")
    renderer = ChatRenderer(processor_for("llava_next", source))
    images = [picture((300, 200)), picture((64, 64))]
    segment = renderer.prompt([{"role": "user", "content": [{"type": "image", "image": i} for i in images]}])
    collapsed = renderer.collapse(segment.token_ids, images)
    assert collapsed.count(renderer.images.placeholder_id) == 2
    assert renderer.expand(collapsed, images) == segment.token_ids
    with pytest.raises(ValueError, match="pass the pictures"):
        renderer.collapse(segment.token_ids)
    assert renderer.collapse(renderer.encode_response("Four.")) == renderer.encode_response("Four.")


def test_expanding_with_the_wrong_number_of_pictures_says_what_to_pass():
    renderer = renderer_for("qwen3_vl")
    segment = renderer.prompt([{"role": "user", "content": [{"type": "image", "image": picture((64, 64))}]}])
    with pytest.raises(ValueError, match=r"1 image placeholders .* for 2 pictures"):
        renderer.expand(renderer.collapse(segment.token_ids), [picture((64, 64))] * 2)


def test_a_family_whose_pictures_depend_on_each_other_is_refused():
    """LLaVA-OneVision cuts a picture into tiles only when it is alone."""
    import transformers

    tokenizer = processor_for("qwen2_5", trl_templates()["qwen2_5"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>", "<video>"]})
    processor = transformers.LlavaOnevisionProcessor(
        image_processor=transformers.LlavaOnevisionImageProcessor(),
        tokenizer=tokenizer,
        video_processor=transformers.LlavaOnevisionVideoProcessor(),
        num_image_tokens=729,
        vision_feature_select_strategy="full",
    )
    with pytest.raises(TemplateRefused, match="a later picture would change earlier tokens"):
        ImageTokens(processor, "<image>")


@pytest.mark.parametrize(
    "bad", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)]
)
def test_a_bad_picture_is_named(bad):
    with pytest.raises(TypeError, match="uint8 array of shape"):
        as_picture(bad)
