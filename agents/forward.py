"""Processor tensors for a forward pass over one finished stream.

Pictures of all turns are processed once: one concatenation per key, time and memory linear in turns. Keys with
a value per token (`mm_token_type_ids`) are built once from the final ids. Knows processors; must not know
templates, policies or trainers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image


def model_inputs(processor: Any, token_ids: Sequence[int], images: Sequence[Image.Image]) -> dict[str, Any]:
    """The tensors that a model takes beside `input_ids` for one stream; {} for a tokenizer."""
    if getattr(processor, "image_processor", None) is None:
        return {}
    out: dict[str, Any] = {}
    if images:
        out.update(processor.image_processor(images=list(images), return_tensors="pt"))
    import torch

    types = processor.create_mm_token_type_ids([list(token_ids)])
    out["mm_token_type_ids"] = torch.tensor(types)
    return out
