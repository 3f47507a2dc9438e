"""From a figure in true units to strokes, shades and marks in pixels.

Knows pixels and how textbooks draw right angles, ticks, arcs and arrows. Knows nothing of text: `placement`
puts labels where this ink leaves room. Pixel positions are complex numbers, x to the right, y downwards.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass, field

import numpy as np

from mm_gym.geo3k.generator.figure import Figure, Mark

Colour = tuple[int, int, int]

TICK = 5.0  # half a tick's length, pixels
CIRCLE_EDGES = 96
SQUARE = 10.0  # side of a right angle's mark
ARC_RADIUS = 17.0
ARC_GAP = 4.0
SHORTEST_ARC = 9.0
HEAD = 9.0  # length of an arrowhead


@dataclass(frozen=True)
class Style:
    """How one diagram looks.

    size: text height in pixels. span: the longer side of the line work in pixels. arcs: whether angle
    labels get an arc.
    """

    size: int = 16
    span: float = 300.0
    ink: Colour = (0, 0, 0)
    mark: Colour = (0, 0, 0)
    fill: Colour = (200, 222, 238)
    text: Colour = (0, 0, 0)
    width: float = 1.6
    arcs: bool = True
    pad: int = 12


@dataclass(frozen=True, eq=False)
class Stroke:
    """A polyline: complex pixel positions of shape (N,)."""

    points: np.ndarray
    width: float
    colour: Colour
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Shade:
    """A filled polygon: complex pixel positions of shape (N,)."""

    points: np.ndarray
    colour: Colour


@dataclass
class Ink:
    """All that is drawn but text: `lines` are the figure's own strokes, `marks` what is put on them."""

    shades: list[Shade] = field(default_factory=list)
    lines: list[Stroke] = field(default_factory=list)
    marks: list[Stroke] = field(default_factory=list)
    heads: list[Shade] = field(default_factory=list)
    dots: list[tuple[complex, float]] = field(default_factory=list)

    def edges(self) -> np.ndarray:
        """All strokes and outlines as straight edges, shape (N, 2), complex: what a label must not touch."""
        parts = [np.stack([s.points[:-1], s.points[1:]], axis=1) for s in (*self.lines, *self.marks)]
        for head in self.heads:
            parts.append(np.stack([head.points, np.roll(head.points, -1)], axis=1))
        for centre, radius in self.dots:
            parts.append(
                np.array([[centre - radius, centre + radius], [centre - radius * 1j, centre + radius * 1j]])
            )
        return np.concatenate(parts)


def lay_ink(figure: Figure, style: Style, scale: float) -> Ink:
    """Draw the figure's lines and marks at `scale` pixels per unit."""
    pixels = {name: z.conjugate() * scale for name, z in figure.points.items()}
    ink = Ink()
    for outline, white in figure.fills:
        colour = (255, 255, 255) if white else style.fill
        ink.shades.append(Shade(figure.outline(outline).conj() * scale, colour))
    for segment in figure.segments:
        a, b = pixels[segment.a], pixels[segment.b]
        colour = style.mark if segment.dashed else style.ink
        ink.lines.append(Stroke(np.array([a, b]), style.width, colour, segment.dashed))
        if segment.arrow_a:
            ink.heads.append(_head(a, a - b, style.ink))
        if segment.arrow_b:
            ink.heads.append(_head(b, b - a, style.ink))
    for arc in figure.arcs:
        points = figure.trace(arc, CIRCLE_EDGES).conj() * scale
        ink.lines.append(Stroke(points, style.width, style.mark if arc.dashed else style.ink, arc.dashed))
    for name in figure.dots:
        ink.dots.append((pixels[name], 2.0 + style.width / 2))
    for mark in (*figure.marks, *_label_arcs(figure, style)):
        draw_mark(ink, mark, pixels, style)
    return ink


def draw_mark(ink: Ink, mark: Mark, pixels: dict[str, complex], style: Style) -> None:
    """Add one mark to the ink."""
    _DRAW[mark.kind](ink, mark, [pixels[name] for name in mark.at], style)


def _label_arcs(figure: Figure, style: Style) -> list[Mark]:
    """The arcs of labelled angles that no other mark shows yet."""
    if not style.arcs:
        return []
    shown = {frozenset((m.at[0], m.at[2])) | {m.at[1]} for m in figure.marks if len(m.at) == 3}
    angles = [label for label in figure.labels if label.kind == "angle" and label.drawn and label.states]
    return [Mark("arc", a.at) for a in angles if frozenset((a.at[0], a.at[2])) | {a.at[1]} not in shown]


def _head(tip: complex, direction: complex, colour: Colour) -> Shade:
    unit = direction / abs(direction)
    return Shade(np.array([tip, tip - unit * HEAD * (1 + 0.4j), tip - unit * HEAD * (1 - 0.4j)]), colour)


def _right(ink: Ink, mark: Mark, at: list[complex], style: Style) -> None:
    a, vertex, b = at
    side = min(SQUARE, 0.35 * abs(a - vertex), 0.35 * abs(b - vertex))
    u, w = (a - vertex) / abs(a - vertex) * side, (b - vertex) / abs(b - vertex) * side
    ink.marks.append(Stroke(np.array([vertex + u, vertex + u + w, vertex + w]), 1.2, style.mark))


def _rings(ink: Ink, at: list[complex], style: Style, rings: int) -> float:
    """Arcs across an angle, wider out where it is narrow; the radius of the middle of them."""
    a, vertex, b = at
    sweep = cmath.phase((b - vertex) / (a - vertex))
    steps = np.exp(1j * np.linspace(0, sweep, max(4, math.ceil(abs(sweep) * 6))))
    inner = min(max(ARC_RADIUS, SHORTEST_ARC / abs(sweep)), 0.45 * min(abs(a - vertex), abs(b - vertex)))
    for ring in range(rings):
        radius = inner + ARC_GAP * ring
        ink.marks.append(Stroke(vertex + (a - vertex) / abs(a - vertex) * radius * steps, 1.2, style.mark))
    return inner + ARC_GAP * (rings - 1) / 2


def _arc(ink: Ink, mark: Mark, at: list[complex], style: Style) -> None:
    _rings(ink, at, style, 1)


def _equal(ink: Ink, mark: Mark, at: list[complex], style: Style) -> None:
    """As many arcs as the group's number, crossed by a tick."""
    radius = _rings(ink, at, style, mark.group)
    a, vertex, b = at
    half = cmath.phase((b - vertex) / (a - vertex)) / 2
    ray = (a - vertex) / abs(a - vertex) * cmath.exp(1j * half)
    reach = 3.5 + ARC_GAP * (mark.group - 1) / 2
    crossing = np.array([vertex + ray * (radius - reach), vertex + ray * (radius + reach)])
    ink.marks.append(Stroke(crossing, 1.2, style.mark))


def _ticks(ink: Ink, mark: Mark, at: list[complex], style: Style) -> None:
    a, b = at
    unit = (b - a) / abs(b - a)
    for index in range(mark.group):
        middle = (a + b) / 2 + unit * ARC_GAP * (index - (mark.group - 1) / 2)
        ink.marks.append(
            Stroke(np.array([middle - unit * 1j * TICK, middle + unit * 1j * TICK]), 1.2, style.mark)
        )


def _parallel(ink: Ink, mark: Mark, at: list[complex], style: Style) -> None:
    a, b = at
    if ((b - a) * cmath.exp(-0.3j)).real < 0:  # parallel segments of one group point the same way
        a, b = b, a
    unit = (b - a) / abs(b - a)
    for index in range(mark.group):
        tip = (a + b) / 2 + unit * HEAD * (0.5 + 0.8 * (index - (mark.group - 1) / 2))
        ink.heads.append(_head(tip, unit, style.mark))


_DRAW = {"right": _right, "arc": _arc, "equal": _equal, "ticks": _ticks, "parallel": _parallel}
