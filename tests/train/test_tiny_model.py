"""The tiny model: made here, deterministic, loadable, and its tokenizer covers any text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def tokenizer(tiny_folder):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_folder)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_survives_the_trimmed_vocabulary(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    # Qwen's tokenizer normalises to NFC, this one as well
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)


def test_words_of_the_corpus_are_short_and_special_tokens_single(tokenizer):
    assert len(tokenizer.encode(" red green blue mark color")) == 5
    for token in ("<|im_start|>", "<|im_end|>", "<|image_pad|>", "<tool_call>", "</think>"):
        assert len(tokenizer.encode(token)) == 1
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.padding_side == "left"
    assert len(tokenizer) < 330


def test_the_same_arguments_give_the_same_weights_and_another_seed_others(tmp_path):
    from train.tiny import build_tiny_vlm

    texts = ["one two three"] * 5
    paths = [
        build_tiny_vlm(tmp_path / name, texts=texts, vocab_size=260, layers=1, seed=seed)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    first, same, other = ((path / "model.safetensors").read_bytes() for path in paths)
    assert first == same != other
    assert (paths[0] / "tokenizer.json").read_bytes() == (paths[1] / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("tied", [True, False])
def test_tied_and_untied(tmp_path, tied):
    from transformers import Qwen3VLForConditionalGeneration

    from train.tiny import build_tiny_vlm

    model = Qwen3VLForConditionalGeneration.from_pretrained(
        build_tiny_vlm(tmp_path, vocab_size=256, layers=1, tied=tied)
    )
    shared = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert shared is tied


def test_its_template_makes_what_qwens_own_makes_of_turns_and_tools(tiny_folder, qwen3_vl_processor):
    from transformers import AutoProcessor

    conversation = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Which?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}]},
        {"role": "tool", "content": [{"type": "text", "text": "here"}, {"type": "image"}]},
        {"role": "tool", "content": [{"type": "text", "text": "and here"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "red"}]},
        {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
    ]
    ours = AutoProcessor.from_pretrained(tiny_folder)
    rendered = [
        processor.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        for processor in (ours, qwen3_vl_processor)
    ]
    assert rendered[0] == rendered[1]


def test_sizes_that_do_not_fit_are_named(tmp_path):
    from train.tiny import build_tiny_vlm

    with pytest.raises(ValueError, match="multiple of 64"):
        build_tiny_vlm(tmp_path, hidden_size=100)
    with pytest.raises(ValueError, match="at least 256"):
        build_tiny_vlm(tmp_path, vocab_size=100)
