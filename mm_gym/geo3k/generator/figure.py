"""A plane figure to scale: points in true units, what is drawn between them, and what its labels state.

Knows coordinates (complex numbers, y upwards) and how to measure them. Knows nothing of pixels, of theorems
or of answers: `check` compares what the labels state with what is measured here.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from mm_gym.geo3k.generator.expressions import Linear, Number, linear

ARC_STEPS = 4096  # edges of the polygon that stands for a whole circle when an area or a length is measured


@dataclass(frozen=True)
class Segment:
    """A straight stroke from `a` to `b`, with an arrowhead where a ray or line goes on."""

    a: str
    b: str
    dashed: bool = False
    arrow_a: bool = False
    arrow_b: bool = False


@dataclass(frozen=True)
class Arc:
    """The arc about `centre` from `a` to `b` that passes `via`; the whole circle where `a` is empty."""

    centre: str
    radius: float
    a: str = ""
    b: str = ""
    via: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Mark:
    """A mark that claims something: right (angle), equal (angle arcs), ticks (lengths), parallel (arrows)."""

    kind: str
    at: tuple[str, ...]
    group: int = 1


@dataclass(frozen=True)
class Label:
    """A text at an element and, where it states a size, that size.

    kind: `length` (two points), `angle` (arm, vertex, arm), `arc` (centre, start, end[, via]), `area` and
    `perimeter` (the corners of a polygon) or `text` (a point; states nothing). drawn: False where the
    question says it instead.
    """

    kind: str
    at: tuple[str, ...]
    text: str
    states: Linear | None = None
    drawn: bool = True


@dataclass
class Figure:
    """The scene that a family builds. A point is named by its letter; `_` opens a hidden name."""

    points: dict[str, complex] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    fills: list[tuple[tuple[str | Arc, ...], bool]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    dots: list[str] = field(default_factory=list)
    claims: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    letters: bool = True
    upright: bool = False  # True where the figure must keep its base horizontal

    # building

    def point(self, name: str, at: complex) -> str:
        """Add a point; its name is drawn beside it unless it opens with `_`."""
        if name in self.points:
            raise ValueError(f"the figure already has a point {name!r}")
        self.points[name] = complex(at)
        return name

    def hidden(self, at: complex) -> str:
        """Add a point without a letter and return its name."""
        return self.point(f"_{len(self.points)}", at)

    def segment(self, a: str, b: str, **style: bool) -> None:
        """Draw a segment, `dashed=True` for an altitude, `arrow_b=True` for a ray."""
        self.segments.append(Segment(a, b, **style))

    def path(self, *names: str) -> None:
        """Draw the segments between successive points."""
        for a, b in pairwise(names):
            self.segment(a, b)

    def polygon(self, *names: str, fill: bool = False) -> None:
        """Draw a closed polygon."""
        self.path(*names, names[0])
        if fill:
            self.fill(*names)

    def line(self, a: str, b: str, before: float, after: float) -> tuple[str, str]:
        """Draw the line through `a` and `b`, that far beyond each, with arrowheads; return its ends."""
        unit = (self.points[b] - self.points[a]) / self.length(a, b)
        start = self.hidden(self.points[a] - unit * before)
        end = self.hidden(self.points[b] + unit * after)
        self.segment(start, end, arrow_a=True, arrow_b=True)
        return start, end

    def circle(self, centre: str, radius: float, *on: str, dashed: bool = False) -> Arc:
        """Draw a circle; `on` names points that lie on it."""
        self.arcs.append(Arc(centre, float(radius), dashed=dashed))
        for name in on:
            self.claims.append(("same", (centre, on[0], centre, name)))
        return self.arcs[-1]

    def arc(self, centre: str, a: str, b: str, via: str, dashed: bool = False) -> Arc:
        """Draw the arc from `a` to `b` that passes `via`."""
        self.claims.append(("same", (centre, a, centre, b)))
        self.claims.append(("same", (centre, a, centre, via)))
        self.arcs.append(Arc(centre, self.length(centre, a), a, b, via, dashed))
        return self.arcs[-1]

    def fill(self, *outline: str | Arc, white: bool = False) -> None:
        """Shade the region inside an outline of points and arcs (white: cut a hole into what is shaded)."""
        self.fills.append((outline, white))

    def right_angle(self, a: str, vertex: str, b: str) -> None:
        """Mark a right angle."""
        self.marks.append(Mark("right", (a, vertex, b)))

    def ticks(self, a: str, b: str, group: int = 1) -> None:
        """Mark a segment as equal to the others of its group."""
        self.marks.append(Mark("ticks", (a, b), group))

    def equal_angle(self, a: str, vertex: str, b: str, group: int = 1) -> None:
        """Mark an angle as equal to the others of its group."""
        self.marks.append(Mark("equal", (a, vertex, b), group))

    def arrow(self, a: str, b: str, group: int = 1) -> None:
        """Mark a segment as parallel to the others of its group."""
        self.marks.append(Mark("parallel", (a, b), group))

    def label_length(self, a: str, b: str, states: Linear | Number | str, unit: str = "") -> Linear:
        """Label a segment with its length."""
        return self._label("length", (a, b), linear(states), f"{linear(states)}{unit and ' ' + unit}")

    def label_angle(self, a: str, vertex: str, b: str, states: Linear | Number | str) -> Linear:
        """Label an angle with its measure in degrees."""
        return self._label("angle", (a, vertex, b), linear(states), linear(states).degrees())

    def label_arc(self, centre: str, a: str, b: str, states: Linear | Number | str, via: str = "") -> Linear:
        """Label an arc with its measure in degrees, outside its circle."""
        at = (centre, a, b, via) if via else (centre, a, b)
        return self._label("arc", at, linear(states), linear(states).degrees())

    def number_angle(self, a: str, vertex: str, b: str, number: int) -> None:
        """Number an angle, so that a question can call it by that number."""
        self.labels.append(Label("angle", (a, vertex, b), str(number)))

    def given(self, kind: str, at: Sequence[str], states: Linear | Number) -> Linear:
        """Record a size that the question states in words; it is checked like a label, and not drawn."""
        self.labels.append(Label(kind, tuple(at), "", linear(states), drawn=False))
        return linear(states)

    def _label(self, kind: str, at: tuple[str, ...], states: Linear, text: str) -> Linear:
        self.labels.append(Label(kind, at, text, states))
        return states

    def turn(self, degrees: float, mirrored: bool) -> None:
        """Rotate, after a reflection if asked, every point about the origin; no size changes."""
        factor = cmath.exp(1j * math.radians(degrees))
        for name, z in self.points.items():
            self.points[name] = (z.conjugate() if mirrored else z) * factor

    # measuring

    def length(self, a: str, b: str) -> float:
        """Distance of two points."""
        return abs(self.points[b] - self.points[a])

    def angle(self, a: str, vertex: str, b: str) -> float:
        """Angle at `vertex` between the directions to `a` and `b`, 0 to 180 degrees."""
        v = self.points[vertex]
        return abs(math.degrees(cmath.phase((self.points[a] - v) / (self.points[b] - v))))

    def arc_measure(self, centre: str, a: str, b: str, via: str = "") -> float:
        """Measure of an arc in degrees: the minor one, or the one that passes `via`."""
        if not via:
            return self.angle(a, centre, b)
        return abs(self._sweep(centre, a, b, via))

    def distance_to_line(self, name: str, a: str, b: str) -> float:
        """Distance of a point from the line through `a` and `b`."""
        along = self.points[b] - self.points[a]
        return abs(((self.points[name] - self.points[a]) * along.conjugate()).imag) / abs(along)

    def area(self, *outline: str | Arc) -> float:
        """Area inside an outline of points and arcs, by the shoelace formula."""
        z = self.outline(outline)
        return abs(float(np.sum((z * np.roll(z, -1).conjugate()).imag))) / 2

    def perimeter(self, *outline: str | Arc) -> float:
        """Length around an outline of points and arcs."""
        z = self.outline(outline)
        return float(np.sum(np.abs(np.roll(z, -1) - z)))

    def outline(self, outline: Sequence[str | Arc]) -> np.ndarray:
        """The outline as the vertices of a polygon (complex, shape (N,)); arcs become many short edges."""
        parts = []
        for item in outline:
            parts.append(self.trace(item) if isinstance(item, Arc) else np.array([self.points[item]]))
        return np.concatenate(parts)

    def trace(self, arc: Arc, steps: int = ARC_STEPS) -> np.ndarray:
        """Points along an arc (complex, shape (N,)), `steps` edges for a whole circle."""
        centre = self.points[arc.centre]
        if not arc.a:
            return centre + arc.radius * np.exp(1j * np.linspace(0, 2 * math.pi, steps + 1))
        sweep = math.radians(self._sweep(arc.centre, arc.a, arc.b, arc.via))
        count = max(2, math.ceil(abs(sweep) / (2 * math.pi) * steps))
        return centre + (self.points[arc.a] - centre) * np.exp(1j * np.linspace(0, sweep, count + 1))

    def measured(self, label: Label) -> float:
        """What the coordinates say of the size that a label states."""
        if label.kind == "length":
            return self.length(*label.at)
        if label.kind == "angle":
            return self.angle(*label.at)
        if label.kind == "arc":
            return self.arc_measure(*label.at)
        if label.kind == "area":
            return self.area(*label.at)
        if label.kind == "perimeter":
            return self.perimeter(*label.at)
        raise ValueError(f"a label of kind {label.kind!r} states no size: {label}")

    def _sweep(self, centre: str, a: str, b: str, via: str) -> float:
        """Signed degrees from `a` to `b` on the way round that passes `via`."""
        start = self.points[a] - self.points[centre]
        to_b = math.degrees(cmath.phase((self.points[b] - self.points[centre]) / start)) % 360
        to_via = math.degrees(cmath.phase((self.points[via] - self.points[centre]) / start)) % 360
        return to_b if to_via <= to_b else to_b - 360


def polar(radius: float, degrees: float) -> complex:
    """The point at that distance from the origin in that direction."""
    return cmath.rect(radius, math.radians(degrees))


def crossing(a: complex, b: complex, c: complex, d: complex) -> complex:
    """Where the lines ab and cd meet; raises ZeroDivisionError for parallel lines."""
    ab, cd = b - a, d - c
    return a + ab * (((c - a) * cd.conjugate()).imag / (ab * cd.conjugate()).imag)


def foot(p: complex, a: complex, b: complex) -> complex:
    """The foot of the perpendicular from `p` to the line ab."""
    ab = b - a
    return a + ab * ((p - a) * ab.conjugate()).real / abs(ab) ** 2
