"""Pictures in a token stream: one placeholder each (collapsed), or one id per image feature (expanded).

What a family expands a placeholder to (pads alone, tiles with row and column marks, start and end tokens) is
read off its own processor, once per picture size, and spliced in as ids. Knows processors and ids; must not
know roles or turns.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from PIL import Image

from agents.chat.template import TemplateRefused

_CACHE_SIZE = 4096
# (width, height): small and large, wide and tall, odd; enough to see each token of a family's layout.
PROBE_SIZES = ((64, 64), (37, 91), (300, 200), (640, 480), (333, 1001), (1280, 340), (1500, 1400))


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


@dataclass(frozen=True)
class Expansion:
    """What stands for one picture in the expanded stream."""

    before: str
    """Plain text that the family puts in front (Gemma 3's blank line): joins with the text around it."""
    ids: tuple[int, ...]
    """From the first to the last control token."""
    after: str
    """Plain text behind."""
    features: int
    """How many of `ids` are pads, one per image feature."""


class ImageTokens:
    """Expands and collapses picture placeholders for one processor. Thread-safe.

    Args:
        processor: A processor with an image processor.
        placeholder: The string that the chat template writes for one picture; one control token.
        touching: The template writes nothing between two neighbouring pictures.

    Raises:
        TemplateRefused: The expansion of a picture depends on more than its own size.
    """

    def __init__(self, processor: Any, placeholder: str, *, touching: bool = False) -> None:
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.placeholder = placeholder
        self.placeholder_id: int = self.tokenizer.convert_tokens_to_ids(placeholder)
        self.pad_ids = frozenset(i for i in self._pad_ids() if i is not None)
        self._controls = {i for i, t in self.tokenizer.added_tokens_decoder.items() if t.content.strip()}
        self._cache: OrderedDict[tuple[int, int], Expansion] = OrderedDict()
        self._lock = Lock()
        self._fast = False
        self._learn_layout()
        self.collapse_needs_pictures = touching and self._runs_on
        """Neighbouring pictures can't be told apart by their ids."""

    # -- one picture ---------------------------------------------------------------------------------------

    def expansion(self, image: Image.Image) -> Expansion:
        """What stands for this picture; it depends on the picture's size alone."""
        size = image.size
        with self._lock:
            if size in self._cache:
                self._cache.move_to_end(size)
                return self._cache[size]
        fast = self._pads_alone(size) if self._fast else None
        expansion = fast or self._ask_processor(size)
        with self._lock:
            self._cache[size] = expansion
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return expansion

    def count(self, image: Image.Image) -> int:
        """How many image features (pads) this picture has."""
        return self.expansion(image).features

    def count_pads(self, ids: Sequence[int]) -> int:
        """How many pads stand in these ids."""
        return sum(token in self.pad_ids for token in ids)

    # -- streams -------------------------------------------------------------------------------------------

    def dress(self, rendered: str, images: Sequence[Image.Image]) -> str:
        """Rendered text with the plain text that the family puts around each placeholder."""
        if not any(self._dressed):
            return rendered
        parts = rendered.split(self.placeholder)
        out = [parts[0]]
        for part, image in zip(parts[1:], images, strict=True):
            e = self.expansion(image)
            out += [e.before, self.placeholder, e.after, part]
        return "".join(out)

    def expand(self, ids: Sequence[int], images: Sequence[Image.Image]) -> list[int]:
        """Replace the k-th placeholder by the ids of picture k.

        Raises:
            ValueError: The number of placeholders is not the number of pictures.
        """
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
            out.extend(self.expansion(image).ids)
            start = at + 1
        out.extend(ids[start:])
        return out

    def collapse(self, ids: Sequence[int], images: Sequence[Image.Image] | None = None) -> list[int]:
        """Replace the ids of each picture by one placeholder.

        Args:
            ids: Expanded ids.
            images: The pictures; needed only where two pictures stand side by side in a family that puts
                nothing between them.

        Raises:
            ValueError: The ids are not what `expand` makes.
        """
        if images is None and self.collapse_needs_pictures and self.pad_ids.intersection(ids):
            raise ValueError("this family puts nothing between neighbouring pictures: pass the pictures too")
        out: list[int] = []
        at = seen = 0
        while at < len(ids):
            if ids[at] not in self._first:
                out.append(ids[at])
                at += 1
                continue
            if images is None:
                at = self._end_of_picture(ids, at)
            else:
                if seen == len(images):
                    raise ValueError(f"the ids hold more than the {len(images)} pictures passed")
                wanted = self.expansion(images[seen]).ids
                if tuple(ids[at : at + len(wanted)]) != wanted:
                    raise ValueError(
                        f"picture {seen} of size {images[seen].size} does not match the ids at {at}: "
                        "pass expanded ids with the pictures of the same messages"
                    )
                at += len(wanted)
            out.append(self.placeholder_id)
            seen += 1
        return out

    # -- the family's layout -------------------------------------------------------------------------------

    def _pad_ids(self) -> list[int | None]:
        ids = getattr(self.processor, "image_token_ids", None)
        return list(ids) if ids else [getattr(self.processor, "image_token_id", self.placeholder_id)]

    def _learn_layout(self) -> None:
        """Which tokens start a picture and which may follow which, over pictures of many sizes."""
        expansions = [self._ask_processor(size) for size in PROBE_SIZES]
        self._dressed = {e.before + e.after for e in expansions}
        self._first = {e.ids[0] for e in expansions}
        self._classes: dict[int, str | int] = {}
        self._follows = {
            (self._class(a), self._class(b))
            for e in expansions
            for a, b in zip(e.ids, e.ids[1:], strict=False)
        }
        self._runs_on = any(
            (self._class(e.ids[-1]), self._class(e.ids[0])) in self._follows for e in expansions
        )
        classes = {self._class(i) for e in expansions for i in e.ids if i in self._controls}
        self.vision_ids = frozenset(
            i for i in self._controls if self._class(i) in classes or i == self.placeholder_id
        )
        self._fast = all(
            not (e.before or e.after) and set(e.ids) == self.pad_ids and e == self._pads_alone(size)
            for e, size in zip(expansions, PROBE_SIZES, strict=True)
        )
        self._check_independence(expansions)

    def _class(self, token: int) -> str | int:
        """`<row_1_col_2>` and `<row_3_col_1>` are one class."""
        if token not in self._classes:
            text = self.tokenizer.convert_ids_to_tokens(token)
            self._classes[token] = re.sub(r"\d+", "#", text) if token in self._controls else token
        return self._classes[token]

    def _end_of_picture(self, ids: Sequence[int], at: int) -> int:
        end = at + 1
        while end < len(ids) and (self._class(ids[end - 1]), self._class(ids[end])) in self._follows:
            end += 1
        return end

    def _ask_processor(self, size: tuple[int, int]) -> Expansion:
        return self._parse(self._process([size]), size)

    def _process(self, sizes: Sequence[tuple[int, int]]) -> list[int]:
        pictures = [Image.new("RGB", size) for size in sizes]
        text = self.placeholder * len(sizes)
        try:
            inputs = self.processor(text=[text], images=[pictures], add_special_tokens=False)
        except Exception as error:  # a processor can fail with any error that Python has
            raise TemplateRefused(
                f"{type(self.processor).__name__} fails on {len(sizes)} picture(s) of size (width, height) "
                f"{sizes}: {error}"
            ) from error
        return [int(i) for i in inputs["input_ids"][0]]

    def _parse(self, ids: Sequence[int], size: tuple[int, int]) -> Expansion:
        marks = [i for i, token in enumerate(ids) if token in self._controls]
        if not marks or not self.pad_ids.intersection(ids):
            raise TemplateRefused(
                f"{type(self.processor).__name__} expands a picture of size {size} to no image token at all"
            )
        core = tuple(ids[marks[0] : marks[-1] + 1])
        before, after = (
            self.tokenizer.decode(list(part), skip_special_tokens=False)
            for part in (ids[: marks[0]], ids[marks[-1] + 1 :])
        )
        return Expansion(before, core, after, self.count_pads(core))

    def _pads_alone(self, size: tuple[int, int]) -> Expansion | None:
        """By the processor's own arithmetic, without making a picture; None where it has none."""
        arithmetic = getattr(self.processor, "_get_num_multimodal_tokens", None)
        if arithmetic is None or len(self.pad_ids) != 1:
            return None
        (count,) = arithmetic(image_sizes=[(size[1], size[0])]).num_image_tokens
        return Expansion("", tuple(self.pad_ids) * int(count), "", int(count))

    def _check_independence(self, expansions: Sequence[Expansion]) -> None:
        sizes = PROBE_SIZES[1:4]
        together = self._process(sizes)
        pads = sum(e.features for e in expansions[1:4])
        if self.count_pads(together) != pads:
            raise TemplateRefused(
                f"{type(self.processor).__name__} expands {len(sizes)} pictures together to "
                f"{self.count_pads(together)} image tokens, one at a time to {pads}: a later picture would "
                "change earlier tokens, so episodes with more than one picture can't be appended to"
            )
