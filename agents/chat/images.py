"""Pictures in a token stream: one placeholder each (collapsed), or one id per image feature (expanded).

What a family expands a placeholder to (pads alone, tiles with row and column marks, start and end tokens)
is read off its own processor, once per picture size, and spliced in as ids. Knows processors and ids; must
not know roles or turns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from PIL import Image

_CACHE_SIZE = 4096


def as_picture(image: Any) -> Image.Image:
    """A PIL image in RGB from a PIL image or a uint8 array of shape (H, W, 3)."""
    if isinstance(image, Image.Image):
        return image if image.mode == "RGB" else image.convert("RGB")
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        raise TypeError(
            f"a picture is a PIL image or a uint8 array of shape (H, W, 3), got {array.dtype} {array.shape}"
        )
    return Image.fromarray(array)


class ImageTokens:
    """Expands and collapses picture placeholders for one processor. Thread-safe.

    Args:
        processor: A processor with an image processor.
        placeholder: The string that the chat template writes for one picture; one special token.
    """

    def __init__(self, processor: Any, placeholder: str) -> None:
        self.processor = processor
        self.placeholder = placeholder
        self.placeholder_id: int = processor.tokenizer.convert_tokens_to_ids(placeholder)
        self.pad_id: int = getattr(processor, "image_token_id", None) or self.placeholder_id
        self._cache: OrderedDict[tuple[int, int], list[int]] = OrderedDict()
        self._lock = Lock()

    def expansion(self, image: Image.Image) -> list[int]:
        """The ids that stand for this picture; they depend on its size alone."""
        size = image.size
        with self._lock:
            if size in self._cache:
                self._cache.move_to_end(size)
                return self._cache[size]
        ids = self._expand_by_processor(Image.new("RGB", size))
        with self._lock:
            self._cache[size] = ids
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return ids

    def count(self, image: Image.Image) -> int:
        """How many image features (pads) this picture has."""
        return self.expansion(image).count(self.pad_id)

    def expand(self, ids: Sequence[int], images: Sequence[Image.Image]) -> list[int]:
        """Replace the k-th placeholder by the ids of picture k."""
        found = [i for i, token in enumerate(ids) if token == self.placeholder_id]
        if len(found) != len(images):
            raise ValueError(
                f"{len(found)} image placeholders ({self.placeholder!r}) stand in the ids for {len(images)} "
                "pictures: pass collapsed ids with the pictures of the same messages"
            )
        out: list[int] = []
        start = 0
        for at, image in zip(found, images, strict=True):
            out.extend(ids[start:at])
            out.extend(self.expansion(image))
            start = at + 1
        out.extend(ids[start:])
        return out

    def collapse(self, ids: Sequence[int]) -> list[int]:
        """Replace the ids of each picture by one placeholder."""
        out: list[int] = []
        for token in ids:
            if token != self.pad_id or not out or out[-1] != self.pad_id:
                out.append(token)
        return out

    def _expand_by_processor(self, image: Image.Image) -> list[int]:
        inputs = self.processor(text=[self.placeholder], images=[image], add_special_tokens=False)
        return [int(i) for i in inputs["input_ids"][0]]
