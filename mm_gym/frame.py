"""Frames of constant size for `render`: a picture, letterboxed, and a strip of text below it."""

from __future__ import annotations

import textwrap

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_STRIP = 0.22  # share of the height that the text takes
_OVERSAMPLED = 3
_USUAL = "abcdefghijklmnopqrstuvwxyz {0_0},"  # whose letters are as wide as a line's on average


def frame(picture: np.ndarray | None, text: str, size: tuple[int, int]) -> np.ndarray:
    """Draw `picture` over `text` on white.

    Args:
        picture: uint8 of shape (H, W, 3), or None.
        text: Cut to what fits.
        size: (height, width) in pixels.

    Returns:
        uint8 of shape (height, width, 3).
    """
    height, width = size
    canvas = Image.new("RGB", (width, height), "white")
    strip = int(height * _STRIP)
    room = (width - 8, height - strip - 8)
    if picture is not None:
        image = Image.fromarray(picture)
        scale = min(room[0] / image.width, room[1] / image.height, 8.0)
        shape = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        canvas.paste(image.resize(shape), ((width - shape[0]) // 2, (room[1] - shape[1]) // 2 + 4))
    canvas.paste(_words(text, (width, strip)), (0, height - strip))
    return np.asarray(canvas, dtype=np.uint8).copy()


def _words(text: str, size: tuple[int, int]) -> Image.Image:
    """The text's first lines on white; drawn large and reduced, since small letters come out uneven."""
    width, height = size[0] * _OVERSAMPLED, size[1] * _OVERSAMPLED
    points = max(10 * _OVERSAMPLED, height // 8)
    font = ImageFont.load_default(size=points)
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    draw.line((0, 0, width, 0), fill=(200, 200, 200), width=_OVERSAMPLED)
    margin = 6 * _OVERSAMPLED
    per_line = max(8, int((width - 2 * margin) / font.getlength(_USUAL) * len(_USUAL)))
    lines = [part for line in text.splitlines() for part in (textwrap.wrap(line, per_line) or [""])]
    draw.multiline_text((margin, margin), "\n".join(lines[:6]), fill=(20, 20, 20), font=font)
    return image.resize(size, Image.Resampling.LANCZOS)
