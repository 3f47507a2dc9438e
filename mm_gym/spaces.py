"""Gymnasium spaces for text-and-image observations.

`UnicodeText` holds any string of Unicode scalar values, `Image` any uint8 picture up to a size. Both
sample, contain, seed, compare, serialise to JSON and batch in `SyncVectorEnv` and in
`AsyncVectorEnv(shared_memory=False)`. Shared memory cannot carry them (Gymnasium reads it through numpy
views made once), so no `create_shared_memory` is registered for them, on purpose.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_differing_spaces

# What `sample` draws from: plain letters, and what breaks naive code (roots, angles, CJK, an astral
# character, and special-token strings that must stay text).
_SAMPLE_CHARS = "abcxyz ABC 0123456789.,?√∠π△²½°\n日本語é𝑥<>{}\\"


def _is_scalar(text: str) -> bool:
    return text.isascii() or not any(0xD800 <= ord(c) <= 0xDFFF for c in text)


class UnicodeText(spaces.Space[str]):
    """All strings of Unicode scalar values with at most `max_length` characters.

    A lone surrogate is not contained. `sample` draws short strings.

    >>> space = UnicodeText(max_length=8)
    >>> "∠A = 60°" in space, "\\ud800" in space
    (True, False)
    """

    def __init__(self, max_length: int = 1 << 20, *, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        self.max_length = int(max_length)
        super().__init__(shape=(), dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random string of 1 to 32 characters (masks are not supported)."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample takes no mask or probability; call sample() without them")
        length = int(self.np_random.integers(1, min(self.max_length, 32) + 1))
        return "".join(_SAMPLE_CHARS[i] for i in self.np_random.integers(0, len(_SAMPLE_CHARS), length))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length and _is_scalar(x)

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        return [str(x) for x in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]  # spaces are mutable (their generator), as in Gymnasium

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"


class Image(spaces.Space[np.ndarray]):
    """All uint8 RGB pictures, shape (H, W, 3), with 1 <= H, W <= `max_side`.

    `sample` draws small ones (at most 32 pixels a side).

    >>> np.zeros((20, 30, 3), np.uint8) in Image()
    True
    """

    def __init__(self, max_side: int = 16_384, *, seed: int | np.random.Generator | None = None) -> None:
        if max_side < 1:
            raise ValueError(f"max_side must be at least 1, got {max_side}")
        self.max_side = int(max_side)
        super().__init__(shape=None, dtype=np.uint8, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """A random picture (masks are not supported)."""
        if mask is not None or probability is not None:
            raise ValueError("Image.sample takes no mask or probability; call sample() without them")
        height, width = self.np_random.integers(1, min(self.max_side, 32) + 1, 2)
        return self.np_random.integers(0, 256, (height, width, 3), dtype=np.uint8)

    def contains(self, x: Any) -> bool:
        return (
            isinstance(x, np.ndarray)
            and x.dtype == np.uint8
            and x.ndim == 3
            and x.shape[2] == 3
            and 1 <= x.shape[0] <= self.max_side
            and 1 <= x.shape[1] <= self.max_side
        )

    def to_jsonable(self, sample_n: Iterable[np.ndarray]) -> list[dict[str, Any]]:
        return [
            {
                "shape": list(x.shape),
                "data": base64.b64encode(np.ascontiguousarray(x).tobytes()).decode("ascii"),
            }
            for x in sample_n
        ]

    def from_jsonable(self, sample_n: list[Any]) -> list[np.ndarray]:
        return [
            np.frombuffer(base64.b64decode(x["data"]), np.uint8).reshape(x["shape"]).copy() for x in sample_n
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.max_side == other.max_side

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Image({self.max_side})"


def observation_space() -> spaces.Dict:
    """The observation space of every environment here: `{"text": str, "images": tuple of (H, W, 3)}`."""
    return spaces.Dict(text=UnicodeText(), images=spaces.Sequence(Image()))


def _batch_differing(differing: Sequence[spaces.Space[Any]]) -> spaces.Tuple:
    return spaces.Tuple(tuple(differing))


def _equivalent(space_1: spaces.Space[Any], space_2: spaces.Space[Any]) -> bool:
    return type(space_1) is type(space_2)


for _space in (UnicodeText, Image):
    batch_differing_spaces.register(_space, _batch_differing)  # type: ignore[call-overload]  # keyed by element type
    is_space_dtype_shape_equiv.register(_space, _equivalent)
