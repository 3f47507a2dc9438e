"""Where labels go: every candidate is tested against all ink and all labels placed before.

Knows boxes and strokes in pixels. A label never touches a stroke or another label; where an angle or a
segment leaves no room for its label, the label stands outside with a leader, as in textbooks.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mm_gym.geo3k.generator.ink import HEAD, Ink, Shade, Stroke, Style
from mm_gym.geo3k.generator.typeset import Setting

CLEAR = 2.0  # pixels between a label and a stroke
APART = 4.0  # pixels between two labels
CROWD, CROWDING = 22.0, 18.0  # labels nearer than that many pixels cost up to that much
NEAR = 1.5  # a stroke closer than that to a point passes through it
OWN = 0.8  # an angle's label is at most that share as far from its vertex as from another
CORNER = 5.0  # pixels between a leader and the end of any stroke
LEADER_REACHES = (30.0, 42.0, 56.0, 72.0)


class NoRoom(Exception):  # noqa: N818 - the layout is tried again, larger
    """A label fits nowhere at this scale."""


@dataclass(frozen=True)
class Placed:
    """A label with its ink box (left, top, right, bottom) in pixels."""

    kind: str
    at: tuple[str, ...]
    text: str
    setting: Setting
    box: tuple[float, float, float, float]


@dataclass
class Board:
    """The ink so far and the labels placed on it."""

    ink: Ink
    style: Style
    edges: np.ndarray = field(init=False)
    corners: np.ndarray = field(init=False)
    placed: list[Placed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.edges = self.ink.edges()
        ends = [stroke.points for stroke in self.ink.lines if len(stroke.points) == 2]
        self.corners = np.concatenate(ends) if ends else np.array([complex(np.inf)])

    def put(self, kind: str, at: tuple[str, ...], text: str, setting: Setting, spots: Spots) -> bool:
        """Place a label at the cheapest of its free spots; False where none is free."""
        boxes = spots.boxes(setting)
        free = ~touches(boxes, self.edges, CLEAR) & np.isfinite(spots.costs)
        costs = spots.costs
        for other in self.placed:
            free &= ~overlaps(boxes, np.array(other.box), APART)
            costs = costs + CROWDING * np.maximum(0, 1 - gaps(boxes, np.array(other.box)) / CROWD)
        if not free.any():
            return False
        best = int(np.argmin(np.where(free, costs, np.inf)))
        left, top, right, bottom = (float(v) for v in boxes[best])
        self.placed.append(Placed(kind, at, text, setting, (left, top, right, bottom)))
        return True

    def add_mark(self, stroke: Stroke) -> None:
        """Draw one more mark, which labels placed from now on keep clear of."""
        self.ink.marks.append(stroke)
        self.edges = np.concatenate([self.edges, np.stack([stroke.points[:-1], stroke.points[1:]], axis=1)])

    def put_with_leader(
        self, kind: str, at: tuple[str, ...], text: str, setting: Setting, target: complex
    ) -> bool:
        """Place a label away from its element with a thin arrow to `target`; False where none is free."""
        directions = np.exp(2j * math.pi * np.arange(32) / 32)
        centres = np.concatenate(
            [target + directions * (reach + setting.width / 2) for reach in LEADER_REACHES]
        )
        boxes = Spots(centres, np.zeros(len(centres))).boxes(setting)
        free = ~touches(boxes, self.edges, CLEAR + 2)
        for other in self.placed:
            free &= ~overlaps(boxes, np.array(other.box), APART)
        best: tuple[float, int] | None = None
        for index in np.flatnonzero(free):
            start = _exit(centres[index], target, setting)
            crossed = self._crossings(start, target)
            if crossed is not None and abs(target - start) > HEAD + 4:
                cost = crossed * 25 + abs(target - start)
                best = min(best, (cost, int(index))) if best else (cost, int(index))
        if best is None:
            return False
        left, top, right, bottom = (float(v) for v in boxes[best[1]])
        self.placed.append(Placed(kind, at, text, setting, (left, top, right, bottom)))
        self._draw_leader(_exit(centres[best[1]], target, setting), target)
        return True

    def _crossings(self, start: complex, target: complex) -> int | None:
        """How many strokes a leader crosses; None: more than one, or a label or a corner is in its way."""
        leader = np.array([[start, target]])
        if any(touches(np.array([other.box]), leader, CLEAR)[0] for other in self.placed):
            return None
        if _nearest(self.corners, start, target) < CORNER:
            return None
        crossed = _crosses(start, target, self.edges)
        return crossed if crossed <= 1 else None

    def _draw_leader(self, start: complex, target: complex) -> None:
        unit = (target - start) / abs(target - start)
        tip = np.array([target, target - unit * 6 * (1 + 0.35j), target - unit * 6 * (1 - 0.35j)])
        self.ink.heads.append(Shade(tip, self.style.text))
        self.add_mark(Stroke(np.array([start, target]), 1.0, self.style.text))


@dataclass(frozen=True, eq=False)
class Spots:
    """Candidate centres of a label's box, complex (K,), and what each costs, (K,)."""

    centres: np.ndarray
    costs: np.ndarray

    def boxes(self, setting: Setting) -> np.ndarray:
        """The boxes at all centres, whole pixels, shape (K, 4)."""
        left = np.round(self.centres.real - setting.width / 2)
        top = np.round(self.centres.imag - setting.height / 2)
        return np.stack([left, top, left + setting.width, top + setting.height], axis=1)


def angle_spots(
    a: complex, vertex: complex, b: complex, others: Sequence[complex], setting: Setting
) -> Spots:
    """Spots inside an angle, near its vertex and near its bisector, clearly nearer than to the `others`."""
    to_a, to_b = (a - vertex) / abs(a - vertex), (b - vertex) / abs(b - vertex)
    half = cmath.phase(to_b / to_a) / 2
    reach = min(0.62 * min(abs(a - vertex), abs(b - vertex)), 34 + 0.8 * setting.width)
    radii = np.arange(8.0, max(reach, 9.0), 2.0)
    leans = np.array([0.0, 0.12, -0.12, 0.25, -0.25, 0.4, -0.4])
    directions = to_a * np.exp(1j * half * (1 + leans))
    centres = vertex + (radii[:, None] * directions[None, :]).ravel()
    costs = (radii[:, None] + 22 * np.abs(leans)[None, :]).ravel()
    for other in others:
        costs = np.where(np.abs(centres - vertex) > OWN * np.abs(centres - other), np.inf, costs)
    return Spots(centres, costs)


def segment_spots(a: complex, b: complex, middle: complex, setting: Setting) -> Spots:
    """Spots beside a segment, near its middle, rather on the side away from the figure's `middle`."""
    unit = (b - a) / abs(b - a)
    normal = unit * 1j
    if ((normal * ((a + b) / 2 - middle).conjugate()).real) < 0:
        normal = -normal
    centres, costs = [], []
    for side, side_cost in ((1, 0.0), (-1, 6.0)):
        reach = setting.width / 2 * abs(normal.real) + setting.height / 2 * abs(normal.imag)
        for gap in (4.0, 7.0, 10.0):
            for t in (0.5, 0.45, 0.55, 0.4, 0.6, 0.34, 0.66, 0.28, 0.72):
                centres.append(a + (b - a) * t + normal * side * (reach + gap))
                costs.append(side_cost + gap + 40 * abs(t - 0.5))
    return Spots(np.array(centres), np.array(costs))


def arc_spots(points: np.ndarray, centre: complex, setting: Setting) -> Spots:
    """Spots beside an arc given by points along it, near its middle, rather outside."""
    centres, costs = [], []
    for share in (0.5, 0.44, 0.56, 0.38, 0.62, 0.3, 0.7):
        on = points[round(share * (len(points) - 1))]
        out = (on - centre) / abs(on - centre)
        reach = setting.width / 2 * abs(out.real) + setting.height / 2 * abs(out.imag)
        for side, side_cost in ((1, 0.0), (-1, 6.0)):
            for gap in (4.0, 7.0, 11.0):
                centres.append(on + out * side * (reach + gap))
                costs.append(side_cost + gap + 40 * abs(share - 0.5))
    return Spots(np.array(centres), np.array(costs))


def point_spots(point: complex, lines: np.ndarray, dot: float, setting: Setting) -> Spots:
    """Spots around a point, rather in the widest gap between the strokes that meet there."""
    favourite = _widest_gap(point, lines)
    directions = np.exp(1j * (favourite + 2 * math.pi * np.arange(24) / 24))
    turn = np.minimum(np.arange(24), 24 - np.arange(24)) * 15.0
    reach = np.hypot(setting.width / 2 * directions.real, setting.height / 2 * directions.imag)
    support = setting.width / 2 * abs(directions.real) + setting.height / 2 * abs(directions.imag)
    centres, costs = [], []
    for gap in (3.0, 5.0, 8.0, 11.0):
        centres.append(point + directions * ((reach + support) / 2 + gap + dot))
        costs.append(turn * 0.12 + gap)
    return Spots(np.concatenate(centres), np.concatenate(costs))


def touches(boxes: np.ndarray, edges: np.ndarray, margin: float) -> np.ndarray:
    """Which boxes (K, 4), grown by a margin, any edge (N, 2) passes through; bool (K,)."""
    start, step = edges[:, 0], edges[:, 1] - edges[:, 0]
    enter = np.zeros((len(boxes), len(edges)))
    leave = np.ones_like(enter)
    for low, high, s, d in (
        (boxes[:, 0], boxes[:, 2], start.real, step.real),
        (boxes[:, 1], boxes[:, 3], start.imag, step.imag),
    ):
        d = np.where(np.abs(d) < 1e-9, 1e-9, d)
        first = (low[:, None] - margin - s) / d
        second = (high[:, None] + margin - s) / d
        enter = np.maximum(enter, np.minimum(first, second))
        leave = np.minimum(leave, np.maximum(first, second))
    return np.any(enter <= leave, axis=1)


def overlaps(boxes: np.ndarray, other: np.ndarray, margin: float) -> np.ndarray:
    """Which boxes (K, 4) come within a margin of another box (4,); bool (K,)."""
    return (
        (boxes[:, 0] < other[2] + margin)
        & (other[0] < boxes[:, 2] + margin)
        & (boxes[:, 1] < other[3] + margin)
        & (other[1] < boxes[:, 3] + margin)
    )


def gaps(boxes: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distance of boxes (K, 4) from another box (4,), 0 where they overlap; (K,)."""
    across = np.maximum(np.maximum(boxes[:, 0] - other[2], other[0] - boxes[:, 2]), 0)
    down = np.maximum(np.maximum(boxes[:, 1] - other[3], other[1] - boxes[:, 3]), 0)
    return np.hypot(across, down)


def _widest_gap(point: complex, lines: np.ndarray) -> float:
    """Direction (radians) of the middle of the widest angle that the strokes through a point leave free."""
    along = lines[:, 1] - lines[:, 0]
    share = ((point - lines[:, 0]) * along.conj()).real / np.maximum(np.abs(along) ** 2, 1e-12)
    nearest = lines[:, 0] + along * np.clip(share, 0, 1)
    through = lines[np.abs(nearest - point) < NEAR]
    ends = through.ravel() - point
    angles = np.sort(np.angle(ends[np.abs(ends) > NEAR]))
    if len(angles) == 0:
        return -math.pi / 4
    gaps = np.diff(np.append(angles, angles[0] + 2 * math.pi))
    widest = int(np.argmax(np.round(gaps, 6)))
    return float(angles[widest] + gaps[widest] / 2)


def _exit(centre: complex, target: complex, setting: Setting) -> complex:
    """Where the line from a box's centre to a target leaves the box."""
    way = target - centre
    shares = [
        (half + 3) / abs(part)
        for half, part in ((setting.width / 2, way.real), (setting.height / 2, way.imag))
        if abs(part) > 1e-9
    ]
    return complex(centre + way * min(1.0, *shares))


def _nearest(points: np.ndarray, start: complex, end: complex) -> float:
    """The least distance of any of the points from a segment."""
    along = end - start
    share = np.clip(((points - start) * along.conjugate()).real / abs(along) ** 2, 0, 1)
    return float(np.min(np.abs(points - start - along * share)))


def _crosses(start: complex, target: complex, edges: np.ndarray) -> int:
    """How many edges a segment properly crosses."""

    def side(p: complex, q: complex, r: np.ndarray) -> np.ndarray:
        return np.sign(((q - p).conjugate() * (r - p)).imag)

    a, b = edges[:, 0], edges[:, 1]
    across = side(start, target, a) != side(start, target, b)
    ab = (b - a).conj()
    between = np.sign((ab * (start - a)).imag) != np.sign((ab * (target - a)).imag)
    return int(np.sum(across & between))
