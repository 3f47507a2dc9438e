"""Pictures in a terminal: Kitty's and iTerm's protocols where they are spoken, else coloured half blocks."""

from __future__ import annotations

import base64
import io
import os

import numpy as np
from PIL import Image
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

_CHUNK = 4096  # bytes that Kitty takes at a time


def show(console: Console, image: np.ndarray) -> None:
    """Show a uint8 picture (H, W, 3) as well as the terminal can."""
    if not console.is_terminal:
        console.print(f"(picture, {image.shape[1]} x {image.shape[0]})")
    elif os.environ.get("KITTY_WINDOW_ID") or "kitty" in os.environ.get("TERM", ""):
        console.file.write(_kitty(image) + "\n")
    elif os.environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm"):
        console.file.write(_iterm(image) + "\n")
    else:
        console.print(half_blocks(image, min(console.width, 100)))


def half_blocks(image: np.ndarray, width: int) -> Segments:
    """The picture as rows of "▀", two pixels a character, at most `width` characters wide."""
    picture = Image.fromarray(image)
    scale = min(1.0, width / picture.width)
    columns, rows = max(1, round(picture.width * scale)), max(2, round(picture.height * scale / 2) * 2)
    pixels = np.asarray(picture.resize((columns, rows)))
    segments = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        for top, bottom in zip(upper, lower, strict=True):
            style = Style(color=_hex(top), bgcolor=_hex(bottom))
            segments.append(Segment("▀", style))
        segments.append(Segment.line())
    return Segments(segments)


def _hex(pixel: np.ndarray) -> str:
    return "#{:02x}{:02x}{:02x}".format(*pixel)


def _png(image: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _iterm(image: np.ndarray) -> str:
    return f"\x1b]1337;File=inline=1;width=auto:{_png(image)}\a"


def _kitty(image: np.ndarray) -> str:
    data = _png(image)
    chunks = [data[i : i + _CHUNK] for i in range(0, len(data), _CHUNK)]
    parts = []
    for number, chunk in enumerate(chunks):
        control = "a=T,f=100," if number == 0 else ""
        parts.append(f"\x1b_G{control}m={int(number < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(parts)
