"""What must hold of a draft, its mathematics and its picture.

`wrong` finds mistakes of a family's mathematics; the tests run it on every draft. `unsuitable` is part of
generating: a narrow angle, a crowded point or an answer that stands in the figure makes the generator draw
again.
"""

from __future__ import annotations

import math
from collections import defaultdict

import sympy

from mm_gym.geo3k.generator.answers import rounding_margin, write
from mm_gym.geo3k.generator.expressions import Linear
from mm_gym.geo3k.generator.figure import Figure, Label
from mm_gym.geo3k.generator.layout import Layout
from mm_gym.geo3k.generator.problem import Draft

TOLERANCE = 1e-5  # relative; arcs measured as polygons are that exact
NARROWEST = 15.0  # degrees of an angle that is labelled
CLOSEST = 22.0  # pixels between two named points
SHORTEST = 26.0  # pixels of a labelled segment
LARGEST_ANSWER = 2000.0


def wrong(draft: Draft) -> list[str]:
    """Every disagreement between what a draft says and what its coordinates measure."""
    faults = []
    measured = draft.measure(draft.figure)
    if not _close(measured, float(draft.answer)):
        faults.append(f"the answer is {draft.answer} = {float(draft.answer)}, the figure measures {measured}")
    for label in draft.figure.labels:
        faults += _wrong_label(draft, label)
    return faults + _wrong_marks(draft.figure) + _wrong_claims(draft.figure) + _ambiguous(draft.figure)


def unsuitable(draft: Draft, layout: Layout) -> str | None:
    """Why a draft with this layout makes a poor problem; None when it makes a good one."""
    answer = float(draft.answer)
    if not 0 < answer < LARGEST_ANSWER:
        return f"the answer {answer} is out of range"
    if draft.places is not None and rounding_margin(draft.answer, draft.places) < 0.02:
        return "the answer rounds either way"
    if draft.places and len(write(draft.answer, draft.places).partition(".")[2]) < draft.places:
        return "the rounded answer ends in a zero"
    if not draft.echoes and _stands_in_figure(draft):
        return "the answer stands in the figure"
    return _crowded(draft.figure, layout)


def _close(measured: float, stated: float) -> bool:
    return math.isclose(measured, stated, rel_tol=TOLERANCE, abs_tol=1e-7)


def _value(states: Linear, unknowns: dict[str, sympy.Expr]) -> float:
    return float(states.at(unknowns[states.unknown]) if not states.known else states.offset)


def _wrong_label(draft: Draft, label: Label) -> list[str]:
    if label.states is None:
        return []
    if not label.states.known and label.states.unknown not in draft.unknowns:
        return [f"the value of {label.states.unknown} is not told"]
    stated, measured = _value(label.states, draft.unknowns), draft.figure.measured(label)
    if _close(measured, stated):
        return []
    return [
        f"the {label.kind} label {label.states} at {label.at} states {stated}, the figure measures {measured}"
    ]


def _wrong_marks(figure: Figure) -> list[str]:
    faults = []
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for mark in figure.marks:
        if mark.kind == "right":
            groups["right", 0].append(figure.angle(*mark.at))
        elif mark.kind == "equal":
            groups["equal", mark.group].append(figure.angle(*mark.at))
        elif mark.kind == "ticks":
            groups["ticks", mark.group].append(figure.length(*mark.at))
        else:
            a, b = (figure.points[name] for name in mark.at)
            groups["parallel", mark.group].append(math.degrees(math.atan((b - a).imag / (b - a).real)) % 180)
    for (kind, group), values in groups.items():
        expected = 90.0 if kind == "right" else values[0]
        if any(not _close(value, expected) and not _close(abs(value - expected), 180) for value in values):
            faults.append(f"marks {kind} {group} join unequal sizes {values}")
        if kind != "right" and len(values) == 1:
            faults.append(f"a single mark {kind} {group} says nothing")
    return faults


def _wrong_claims(figure: Figure) -> list[str]:
    faults = []
    for kind, at in figure.claims:
        if kind == "same":
            holds = _close(figure.length(at[0], at[1]), figure.length(at[2], at[3]))
        elif kind == "perpendicular":
            holds = _close(figure.angle(*at), 90)
        elif kind == "between":
            holds = _close(
                figure.length(at[0], at[1]) + figure.length(at[1], at[2]), figure.length(at[0], at[2])
            )
        else:
            raise ValueError(f"unknown claim {kind!r}")
        if not holds:
            faults.append(f"{kind} does not hold of {at}")
    return faults


def _ambiguous(figure: Figure) -> list[str]:
    """Labels that could mean another element: a ray divides the labelled angle, a point the segment."""
    faults = []
    ends = defaultdict(set)
    for segment in figure.segments:
        ends[segment.a].add(segment.b)
        ends[segment.b].add(segment.a)
    for label in figure.labels:
        if not label.drawn:
            continue
        if label.kind == "angle":
            a, vertex, b = label.at
            whole = figure.angle(a, vertex, b)
            for other in sorted(ends[vertex]):
                parts = figure.angle(a, vertex, other), figure.angle(other, vertex, b)
                if min(parts) > 0.5 and _close(sum(parts), whole):
                    faults.append(f"the ray to {other} divides the labelled angle {label.at}")
        if label.kind == "length":
            a, b = label.at
            for other in sorted(ends):
                parts = figure.length(a, other), figure.length(other, b)
                if min(parts) > 1e-6 and _close(sum(parts), figure.length(a, b)):
                    faults.append(f"the point {other} divides the labelled segment {label.at}")
    return faults


def _stands_in_figure(draft: Draft) -> bool:
    answer = float(draft.answer)
    return any(
        label.states is not None
        and label.states.known
        and math.isclose(float(label.states.offset), answer, rel_tol=1e-3)
        for label in draft.figure.labels
    )


def _crowded(figure: Figure, layout: Layout) -> str | None:
    scale = layout.scale
    names = sorted({name for s in figure.segments for name in (s.a, s.b)} | set(figure.dots))
    for index, a in enumerate(names):
        for b in names[index + 1 :]:
            if figure.length(a, b) * scale < CLOSEST:
                return f"{a} and {b} are too close"
    for label in figure.labels:
        if label.kind == "length" and label.drawn and figure.length(*label.at) * scale < SHORTEST:
            return f"the segment {label.at} is too short for its label"
        if label.kind in ("angle", "arc") and figure.measured(label) < NARROWEST:
            return f"the {label.kind} {label.at} is too narrow"
    return None
