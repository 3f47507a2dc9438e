"""A tiny Qwen3-VL made here: its weights are random."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).resolve().parent)
if HERE not in sys.path:  # so that child processes import `faulty_env` by name
    sys.path.insert(0, HERE)


@pytest.fixture(scope="session")
def tiny_vlm_dir(tmp_path_factory: pytest.TempPathFactory):
    """A folder with a random tiny Qwen3-VL, its processor and chat template."""
    pytest.importorskip("transformers")
    from train.tiny import build_tiny_vlm

    return build_tiny_vlm(tmp_path_factory.mktemp("tiny-vlm"), max_pixels=96 * 96)


@pytest.fixture(scope="session")
def tiny_vlm(tiny_vlm_dir):
    """`(model, processor)`; the model in eval mode. Tests must not change its weights."""
    import torch
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    torch.set_num_threads(1)
    model = Qwen3VLForConditionalGeneration.from_pretrained(tiny_vlm_dir).eval()
    return model, AutoProcessor.from_pretrained(tiny_vlm_dir)
