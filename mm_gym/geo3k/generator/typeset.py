"""Short labels set in the bundled font: italic letters, upright digits, roots with their bar.

Knows the font files and Pillow. Knows nothing of figures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FONTS = Path(__file__).resolve().parents[1] / "fonts"
_TOKEN = re.compile(r"√\d+|(?<=\d )[a-z]+\.?²?|[A-Za-zℓθ]|[^A-Za-zℓθ√]+")


@dataclass(frozen=True)
class Run:
    """Text of one slant, at a horizontal offset from the label's origin; `bar` spans a root's radicand."""

    text: str
    italic: bool
    x: float
    bar: tuple[float, float, float] | None = None  # left, right, height above the baseline


@dataclass(frozen=True)
class Setting:
    """A label ready to draw: its runs and its ink box, relative to the baseline's start (y downwards)."""

    runs: tuple[Run, ...]
    size: int
    box: tuple[float, float, float, float]

    @property
    def width(self) -> float:
        """Width of the ink in pixels."""
        return self.box[2] - self.box[0]

    @property
    def height(self) -> float:
        """Height of the ink in pixels."""
        return self.box[3] - self.box[1]


@cache
def font(size: int, italic: bool = False) -> ImageFont.FreeTypeFont:
    """The bundled font at a size in pixels, laid out by Pillow itself, whatever the system has."""
    name = "DejaVuSans-Oblique.ttf" if italic else "DejaVuSans.ttf"
    return ImageFont.truetype(str(FONTS / name), size, layout_engine=ImageFont.Layout.BASIC)


def typeset(text: str, size: int) -> Setting:
    """Set a label's text.

    Args:
        text: Unicode text; `√` before digits draws the bar over them; a lone Latin letter is a variable.
        size: Font size in pixels.
    """
    runs: list[Run] = []
    boxes: list[tuple[float, float, float, float]] = []
    x = 0.0
    for token in _TOKEN.findall(text):
        italic = (
            len(token) == 1
            and (token.isascii() or token in "ℓθ")
            and token.isalpha()
            and not _unit(text, token)
        )
        face = font(size, italic)
        left, top, right, bottom = face.getbbox(token, anchor="ls")
        bar = None
        if token[0] == "√" and len(token) > 1:
            bar = (x + face.getlength("√") - 1, x + right, -top)
            top -= 1
        runs.append(Run(token, italic, x, bar))
        if token.strip():
            boxes.append((x + left, top, x + right, bottom))
        x += face.getlength(token)
    box = (
        min(b[0] for b in boxes),
        min(b[1] for b in boxes),
        max(b[2] for b in boxes),
        max(b[3] for b in boxes),
    )
    return Setting(tuple(runs), size, box)


def draw_setting(
    image: Image.Image, setting: Setting, left: float, top: float, colour: tuple[int, int, int]
) -> None:
    """Draw a label with its ink box's corner at (left, top) pixels."""
    draw = ImageDraw.Draw(image)
    x, y = round(left - setting.box[0]), round(top - setting.box[1])
    for run in setting.runs:
        draw.text((x + run.x, y), run.text, fill=colour, font=font(setting.size, run.italic), anchor="ls")
        if run.bar:
            bar_left, bar_right, height = run.bar
            draw.line([(x + bar_left, y - height), (x + bar_right, y - height)], fill=colour, width=1)


def _unit(text: str, token: str) -> bool:
    """Whether a lone letter is a unit (the m of `12 m`), which stands upright."""
    return re.search(rf"\d {token}\b", text) is not None
