"""A figure laid out on its canvas: scale, strokes, labels without overlaps, size in pixels.

Knows the order in which labels are placed and the limits of an image's size. Raises `NoRoom` where a
figure's labels do not fit; the generator then draws another figure.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np

from mm_gym.geo3k.generator.figure import Arc, Figure, Label, Mark
from mm_gym.geo3k.generator.ink import Ink, Style, draw_mark, lay_ink
from mm_gym.geo3k.generator.placement import (
    Board,
    NoRoom,
    Placed,
    angle_spots,
    arc_spots,
    point_spots,
    segment_spots,
)
from mm_gym.geo3k.generator.typeset import typeset

SMALLEST, LARGEST = 200, 600  # pixels a side
GROWTH = (1.0, 1.18, 1.4, 1.65)
WIDEST_SPAN = 520.0


@dataclass(frozen=True, eq=False)
class Layout:
    """What is drawn, in pixels, before it is shifted by `origin`, onto a canvas of `width` by `height`."""

    width: int
    height: int
    origin: complex
    scale: float
    ink: Ink
    labels: tuple[Placed, ...]
    style: Style


def lay_out(figure: Figure, style: Style) -> Layout:
    """Lay a figure out, larger where its labels find no room.

    Raises:
        NoRoom: The labels fit at no allowed size.
    """
    spread = _spread(figure)
    last: NoRoom | None = None
    for attempt, growth in enumerate(GROWTH):
        span = min(style.span * growth, WIDEST_SPAN)
        try:
            return _at_scale(figure, style, span / spread, leaders=attempt > 0)
        except NoRoom as problem:
            last = problem
        if span == WIDEST_SPAN:
            break
    raise last or NoRoom("the figure has no size")


def _spread(figure: Figure) -> float:
    """The longer side of the figure's bounding box, in its own units."""
    drawn = {name for s in figure.segments for name in (s.a, s.b)}
    points = [np.array([figure.points[name] for name in figure.points if name in drawn])]
    points += [figure.trace(arc, 64) for arc in figure.arcs]
    every = np.concatenate(points)
    return float(max(np.ptp(every.real), np.ptp(every.imag)))


def _at_scale(figure: Figure, style: Style, scale: float, leaders: bool) -> Layout:
    board = Board(lay_ink(figure, style, scale), style)
    pixels = {name: z.conjugate() * scale for name, z in figure.points.items()}
    lines = np.concatenate([np.stack([s.points[:-1], s.points[1:]], axis=1) for s in board.ink.lines])
    middle = complex(np.mean(lines))
    labels = [label for label in figure.labels if label.drawn]
    for label in sorted(labels, key=lambda label: _ORDER[label.kind]):
        _place(board, figure, label, pixels, lines, middle, leaders)
    if figure.letters:
        for name in figure.points:
            if not name.startswith("_"):
                _place(board, figure, Label("text", (name,), name), pixels, lines, middle, leaders)
    return _canvas(board, style, scale)


_ORDER = {"angle": 0, "length": 1, "arc": 2, "text": 3}


def _place(
    board: Board,
    figure: Figure,
    label: Label,
    pixels: dict[str, complex],
    lines: np.ndarray,
    middle: complex,
    leaders: bool,
) -> None:
    """Place one label; with `leaders`, away from its element where that leaves no room."""
    setting = typeset(label.text, board.style.size)
    at = [pixels[name] for name in label.at]
    target: complex | None = None
    if label.kind == "angle":
        others = [pixels[o.at[1]] for o in figure.labels if o.kind == "angle" and o.at[1] != label.at[1]]
        spots = angle_spots(at[0], at[1], at[2], others, setting)
        target = _angle_target(at[0], at[1], at[2])
    elif label.kind == "length":
        spots = segment_spots(at[0], at[1], _nearby(figure, label, pixels, middle), setting)
        target = (at[0] + at[1]) / 2
    elif label.kind == "arc":
        scale = abs(at[1] - at[0]) / figure.length(label.at[0], label.at[1])
        spots = arc_spots(_arc_points(figure, label).conj() * scale, at[0], setting)
    else:
        dot = 3.0 if label.at[0] in figure.dots else 0.0
        spots = point_spots(at[0], lines, dot, setting)
    if board.put(label.kind, label.at, label.text, setting, spots):
        return
    if target is not None and leaders:
        if label.kind == "angle" and not board.style.arcs:  # a leader needs something to point at
            arc = Ink()
            draw_mark(arc, Mark("arc", label.at), pixels, board.style)
            board.add_mark(arc.marks[0])
        if board.put_with_leader(label.kind, label.at, label.text, setting, target):
            return
    raise NoRoom(f"no room for the {label.kind} label {label.text!r} at {label.at}")


def _nearby(figure: Figure, label: Label, pixels: dict[str, complex], middle: complex) -> complex:
    """The middle of the points joined to a segment's ends, else the figure's middle."""
    ends = set(label.at)
    joined = {b for s in figure.segments for a, b in ((s.a, s.b), (s.b, s.a)) if a in ends} - ends
    if not joined:
        return middle
    near = sorted(ends | joined)
    return sum((pixels[name] for name in near), 0j) / len(near)


def _angle_target(a: complex, vertex: complex, b: complex) -> complex:
    """Where a leader into an angle ends: on the bisector, far enough out that the angle is open there."""
    to_a = (a - vertex) / abs(a - vertex)
    half = cmath.phase((b - vertex) / (a - vertex)) / 2
    radius = max(24.0, 7.0 / math.sin(max(abs(half), 0.1)))
    return complex(
        vertex + to_a * cmath.exp(1j * half) * min(radius, 0.7 * abs(a - vertex), 0.7 * abs(b - vertex))
    )


def _arc_points(figure: Figure, label: Label) -> np.ndarray:
    """Points along the arc that a label of kind `arc` names, in the figure's units."""
    centre, a, b = label.at[:3]
    if len(label.at) == 4:
        return figure.trace(Arc(centre, figure.length(centre, a), a, b, label.at[3]), 96)
    middle, start = figure.points[centre], figure.points[a] - figure.points[centre]
    sweep = cmath.phase((figure.points[b] - middle) / start)
    return middle + start * np.exp(1j * np.linspace(0, sweep, 97))


def _canvas(board: Board, style: Style, scale: float) -> Layout:
    """The canvas around everything drawn.

    Raises:
        NoRoom: The canvas would be larger than an image may be.
    """
    strokes = [s.points for s in (*board.ink.lines, *board.ink.marks)] + [h.points for h in board.ink.heads]
    corners = [complex(*corner) for label in board.placed for corner in (label.box[:2], label.box[2:])]
    points = np.concatenate([*strokes, np.array(corners, dtype=complex)])
    left, right = float(points.real.min()) - style.pad, float(points.real.max()) + style.pad
    top, bottom = float(points.imag.min()) - style.pad, float(points.imag.max()) + style.pad
    width, height = max(SMALLEST, math.ceil(right - left)), max(SMALLEST, math.ceil(bottom - top))
    if max(width, height) > LARGEST:
        raise NoRoom(
            f"the figure would take {width} x {height} pixels; an image has at most {LARGEST} a side"
        )
    origin = complex(round(left - (width - (right - left)) / 2), round(top - (height - (bottom - top)) / 2))
    return Layout(width, height, origin, scale, board.ink, tuple(board.placed), style)
