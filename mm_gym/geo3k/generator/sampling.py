"""What is drawn from the random generator: numbers, letters, expressions, wordings, looks.

Every choice comes from the generator passed in, so one seed gives one problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import sympy

from mm_gym.geo3k.generator.expressions import Linear
from mm_gym.geo3k.generator.figure import Arc, Figure
from mm_gym.geo3k.generator.ink import Style
from mm_gym.geo3k.generator.problem import Draft, Unsuitable

Item = TypeVar("Item")

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # no I and no O: O is kept for centres
BLUE, BLACK, MAGENTA = (0, 92, 160), (20, 20, 20), (214, 0, 120)
FILLS = ((255, 230, 170), (190, 217, 236), (198, 226, 180), (238, 214, 230), (222, 222, 222))


def pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """One of the items."""
    return items[int(rng.integers(len(items)))]


def whole(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(rng.integers(low, high + 1))


def chance(rng: np.random.Generator, probability: float) -> bool:
    """True that often."""
    return bool(rng.random() < probability)


def letters(rng: np.random.Generator, count: int, avoid: str = "") -> list[str]:
    """Vertex names: mostly neighbours of the alphabet, as textbooks take them, in turn or shuffled."""
    free = [letter for letter in ALPHABET if letter not in avoid]
    if chance(rng, 0.75):
        start = int(rng.integers(len(free) - count + 1))
        names = free[start : start + count]
        return names if chance(rng, 0.6) else [names[i] for i in rng.permutation(count)]
    return [free[i] for i in rng.choice(len(free), size=count, replace=False)]


def expression(
    rng: np.random.Generator,
    value: int,
    unknown_value: int,
    unknown: str = "x",
    slopes: Sequence[int] = (2, 3, 4, 5),
) -> Linear:
    """A linear expression that has `value` where the unknown has `unknown_value`; its offset is never 0."""
    slope = pick(rng, slopes)
    offset = value - slope * unknown_value
    if offset == 0 or abs(offset) > max(60, value):
        raise Unsuitable(f"{slope}{unknown} + {offset} is no good label")
    return Linear(slope, offset, unknown)


def find_unknown(rng: np.random.Generator, unknown: str = "x") -> str:
    """A wording that asks for an unknown."""
    return pick(
        rng, (f"Find {unknown}.", f"Find ${unknown}$.", f"Find the value of ${unknown}$.", f"Find {unknown}.")
    )


def find_angle(rng: np.random.Generator, name: str) -> str:
    """A wording that asks for an angle, named by three letters, one letter or a number."""
    return pick(
        rng,
        (f"Find $m \\angle {name}$.", f"Find $m\\angle {name}$.", f"Find the measure of $\\angle {name}$."),
    )


def find_length(rng: np.random.Generator, name: str) -> str:
    """A wording that asks for a segment's length."""
    return pick(rng, (f"Find ${name}$.", f"Find {name}.", f"Find the length of $\\overline{{{name}}}$."))


def find_arc(rng: np.random.Generator, name: str) -> str:
    """A wording that asks for an arc's measure in degrees."""
    return pick(rng, (f"Find $m \\widehat{{{name}}}$.", f"Find the measure of $\\widehat{{{name}}}$."))


def read_unknown(unknown: str) -> Callable[[Figure], float]:
    """A measure: the unknown's value that the coordinates of the first element labelled with it imply."""

    def read(figure: Figure) -> float:
        for label in figure.labels:
            if label.states is not None and label.states.unknown == unknown and not label.states.known:
                return (figure.measured(label) - float(label.states.offset)) / float(label.states.slope)
        raise ValueError(f"no label of the figure holds {unknown}")

    return read


def style(rng: np.random.Generator) -> Style:
    """The look of one diagram: size, colours, weight of lines."""
    coloured = chance(rng, 0.6)
    return Style(
        size=whole(rng, 14, 18),
        span=float(rng.uniform(200, 330)),
        ink=BLUE if coloured else BLACK,
        mark=MAGENTA if coloured else BLACK,
        fill=pick(rng, FILLS),
        width=float(pick(rng, (1.4, 1.7, 2.0))),
        arcs=chance(rng, 0.6),
        pad=whole(rng, 8, 16),
    )


def tilt(rng: np.random.Generator, figure: Figure) -> None:
    """Turn the figure: often it keeps its base, as in textbooks, else any rotation; half of them mirrored."""
    mirrored = chance(rng, 0.5)
    if figure.upright or chance(rng, 0.45):
        figure.turn(0.0, mirrored)
    else:
        figure.turn(float(rng.uniform(0, 360)), mirrored)


def for_unknown(
    rng: np.random.Generator,
    figure: Figure,
    value: sympy.Expr,
    solution: str,
    unknown: str = "x",
    **more: Any,
) -> Draft:
    """A draft that asks for the unknown in the figure's labels."""
    return Draft(
        figure,
        find_unknown(rng, unknown),
        value,
        read_unknown(unknown),
        solution,
        unknowns={unknown: value},
        **more,
    )


def for_area(
    figure: Figure,
    question: str,
    value: sympy.Expr,
    outline: Sequence[str | Arc],
    solution: str,
    places: int | None = None,
) -> Draft:
    """A draft that asks for the area inside an outline of points and arcs."""
    return Draft(figure, question, value, lambda f: f.area(*outline), solution, places=places, unit="area")


def for_length(
    rng: np.random.Generator,
    figure: Figure,
    ends: tuple[str, str],
    value: sympy.Expr,
    solution: str,
    **more: Any,
) -> Draft:
    """A draft that asks for the length of a segment."""
    return Draft(figure, find_length(rng, "".join(ends)), value, lambda f: f.length(*ends), solution, **more)


def for_angle(
    rng: np.random.Generator,
    figure: Figure,
    at: tuple[str, str, str],
    value: sympy.Expr,
    solution: str,
    name: str = "",
    **more: Any,
) -> Draft:
    """A draft that asks for an angle (arm, vertex, arm), called by those letters or by `name`."""
    question = find_angle(rng, name or "".join(at))
    return Draft(figure, question, value, lambda f: f.angle(*at), solution, unit="degree", **more)


def told(text: str, draft: Draft, joined: bool = False) -> Draft:
    """Put what the question tells before what it asks; `joined` makes one sentence of both."""
    ask = draft.question
    draft.question = f"{text} {ask[0].lower()}{ask[1:]}" if joined else f"{text} {ask}"
    return draft
