"""From a layout to pixels: shapes drawn four times too large and averaged down, text set sharp on top.

Knows Pillow. Knows nothing of what is drawn.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from mm_gym.geo3k.generator.ink import Stroke
from mm_gym.geo3k.generator.layout import Layout
from mm_gym.geo3k.generator.typeset import draw_setting

OVERSAMPLE = 4
DASH, DASH_GAP = 6.0, 4.0


def render(layout: Layout) -> np.ndarray:
    """Draw a layout; uint8 (height, width, 3) on white."""
    big = Image.new("RGB", (layout.width * OVERSAMPLE, layout.height * OVERSAMPLE), (255, 255, 255))
    draw = ImageDraw.Draw(big)
    for shade in layout.ink.shades:
        draw.polygon(_pairs(shade.points, layout.origin), fill=shade.colour)
    for stroke in (*layout.ink.lines, *layout.ink.marks):
        for piece in _dashes(stroke.points) if stroke.dashed else [stroke.points]:
            _draw_stroke(draw, Stroke(piece, stroke.width, stroke.colour), layout.origin)
    for head in layout.ink.heads:
        draw.polygon(_pairs(head.points, layout.origin), fill=head.colour)
    for centre, radius in layout.ink.dots:
        _disc(draw, centre, radius, layout.style.ink, layout.origin)
    small = big.reduce(OVERSAMPLE)
    for label in layout.labels:
        left, top = label.box[0] - layout.origin.real, label.box[1] - layout.origin.imag
        draw_setting(small, label.setting, left, top, layout.style.text)
    return np.asarray(small, dtype=np.uint8).copy()


def _pairs(points: np.ndarray, origin: complex) -> list[tuple[float, float]]:
    shifted = (points - origin) * OVERSAMPLE
    return list(zip(shifted.real.tolist(), shifted.imag.tolist(), strict=True))


def _draw_stroke(draw: ImageDraw.ImageDraw, stroke: Stroke, origin: complex) -> None:
    """A polyline with round ends and joints."""
    draw.line(
        _pairs(stroke.points, origin),
        fill=stroke.colour,
        width=round(stroke.width * OVERSAMPLE),
        joint="curve",
    )
    for end in (stroke.points[0], stroke.points[-1]):
        _disc(draw, complex(end), stroke.width / 2, stroke.colour, origin)


def _disc(
    draw: ImageDraw.ImageDraw, centre: complex, radius: float, colour: tuple[int, int, int], origin: complex
) -> None:
    x, y = (centre - origin).real * OVERSAMPLE, (centre - origin).imag * OVERSAMPLE
    r = radius * OVERSAMPLE
    draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)


def _dashes(points: np.ndarray) -> list[np.ndarray]:
    """Cut a polyline into dashes."""
    lengths = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(points)))])
    dashes = []
    for start in np.arange(0.0, lengths[-1], DASH + DASH_GAP):
        stops = np.array([start, min(start + DASH, lengths[-1])])
        inside = lengths[(lengths > stops[0]) & (lengths < stops[1])]
        marks = np.concatenate([stops[:1], inside, stops[1:]])
        dashes.append(np.interp(marks, lengths, points.real) + 1j * np.interp(marks, lengths, points.imag))
    return dashes
