"""Processor tensors for forward passes over streams: pictures processed once, keys merged once.

Keys of two kinds: per token (`mm_token_type_ids`), built once from the final ids; and per picture, whose
layout a family chooses: one entry per picture or patch along the first axis (Qwen, LLaVA: they slice per
picture), or one row per conversation with its tiles along the second (SmolVLM, Idefics3). `find_layout` sees
which by processing pictures together and apart. Knows processors; must not know templates, policies or
trainers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

TOKEN_KEYS = ("mm_token_type_ids", "token_type_ids")


@dataclass(frozen=True)
class Layout:
    """How a processor lays out the tensors of several pictures."""

    axes: dict[str, int]
    """By key, the axis along which pictures follow one another."""
    row_per_picture: bool = True
    """Each picture is one entry along its axis."""

    @property
    def slices_per_picture(self) -> bool:
        """Whether rows of a batch can be cut out picture by picture, as TRL's trainer does."""
        along_first = all(axis == 0 for axis in self.axes.values())
        return along_first and (self.row_per_picture or "image_grid_thw" in self.axes)


def model_inputs(processor: Any, token_ids: Sequence[int], images: Sequence[Image.Image]) -> dict[str, Any]:
    """The tensors that a model takes beside `input_ids` for one stream.

    Args:
        processor: The processor of the model; a tokenizer gives {}.
        token_ids: The stream, expanded.
        images: All its pictures, in order.

    Returns:
        The image processor's tensors for all pictures together (none without pictures), and the per-token key
        that the family has, int64 of shape (1, len(token_ids)).
    """
    if getattr(processor, "image_processor", None) is None:
        return {}
    out = _picture_tensors(processor, images) if images else {}
    key = _token_key(processor)
    if key is not None:
        import torch

        out[key] = torch.from_numpy(_token_types(processor, token_ids))[None]
    return out


def merge_rows(rows: Sequence[Mapping[str, Any]], layout: Layout, *, width: int) -> dict[str, Any]:
    """One batch from the `model_inputs` of several streams.

    Args:
        rows: One per stream, in order.
        layout: Of the processor that made them.
        width: The batch's width in tokens; per-token keys are padded on the left.
    """
    import torch

    out: dict[str, Any] = {}
    for key in sorted({key for row in rows for key in row}):
        parts = [row[key] for row in rows if key in row]
        if key in TOKEN_KEYS:
            out[key] = torch.cat([torch.nn.functional.pad(p, (width - p.shape[1], 0)) for p in parts])
        elif layout.axes.get(key, 0) == 0:
            out[key] = _padded_cat(parts)
        else:  # a row per conversation: one without pictures gets a row of zeros, which such models skip
            blank = torch.zeros_like(parts[0][:, :1])
            out[key] = _padded_cat([row.get(key, blank) for row in rows])
    return out


def find_layout(processor: Any) -> Layout:
    """See how the processor lays out pictures.

    Raises:
        ValueError: Its tensors for several pictures are not those of the single ones put together.
    """
    if getattr(processor, "image_processor", None) is None:
        return Layout({})
    noise = np.random.default_rng(0)
    sizes = ((64, 48), (700, 1100), (90, 70))  # the second is cut into tiles where a family has them
    pictures = [Image.fromarray(noise.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]
    apart = [_picture_tensors(processor, [picture]) for picture in pictures]
    together = _picture_tensors(processor, pictures)
    axes = {key: _axis(key, [a[key] for a in apart], together[key]) for key in together}
    single = all(a[key].shape[axis] == 1 for a in apart for key, axis in axes.items())
    return Layout(axes, row_per_picture=single)


def training_refusal(processor: Any) -> str | None:
    """Why a trainer that slices picture by picture can't train this family; None when it can."""
    try:
        layout = find_layout(processor)
    except ValueError as error:
        return str(error)
    if layout.slices_per_picture:
        return None
    return (
        f"{type(processor).__name__} makes {', '.join(layout.axes)} that can't be cut picture by picture: "
        "build forwards with agents.forward.merge_rows, or train a family with image_grid_thw (Qwen2.5-VL, "
        "Qwen3-VL, Qwen3.5)"
    )


def _picture_tensors(processor: Any, images: Sequence[Image.Image]) -> dict[str, Any]:
    """Tensors of all pictures of one conversation, those left out that serve the processor alone."""
    made = processor.image_processor(images=[list(images)], return_tensors="pt")
    unused = set(getattr(processor, "unused_input_names", ()))
    return {key: value for key, value in made.items() if key not in unused and hasattr(value, "shape")}


def _token_key(processor: Any) -> str | None:
    """Under which name the family takes the kind of each token."""
    names = getattr(processor, "model_input_names", ())
    return next((key for key in TOKEN_KEYS if key in names), None)


def _token_types(processor: Any, token_ids: Sequence[int]) -> np.ndarray:
    """0 for text, 1 for an image feature: int64 of shape (tokens,)."""
    (types,) = processor.create_mm_token_type_ids([list(token_ids)])
    return np.asarray(types, dtype=np.int64)


def _padded_cat(parts: Sequence[Any]) -> Any:
    """Concatenated along the first axis; shorter other axes are filled with zeros at the end."""
    import torch

    target = [max(p.shape[axis] for p in parts) for axis in range(parts[0].dim())]
    padded = []
    for part in parts:
        widths = [n for axis in range(part.dim() - 1, 0, -1) for n in (0, target[axis] - part.shape[axis])]
        padded.append(torch.nn.functional.pad(part, widths))
    return torch.cat(padded)


def _axis(key: str, apart: Sequence[Any], together: Any) -> int:
    """Along which axis the single tensors make up the joint one (zeros fill the rest)."""
    import torch

    if torch.equal(_padded_cat(apart), together):
        return 0
    if together.dim() > 1 and together.shape[0] == 1:
        joint = _padded_cat([part[0] for part in apart])[None]
        if torch.equal(joint, together):
            return 1
    raise ValueError(
        f"the image processor's {key} for three pictures, of shape {tuple(together.shape)}, is not made up "
        f"of those for one, {[tuple(part.shape) for part in apart]}: later pictures would change earlier ones"
    )
