"""Parallelograms, rectangles, rhombi, trapezoids and kites."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain
from mm_gym.geo3k.generator.expressions import linear
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import TRIPLES, scaled_triple, simple_root
from mm_gym.geo3k.generator.figure import Figure, crossing, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import (
    chance,
    expression,
    find_angle,
    find_length,
    for_angle,
    for_length,
    for_unknown,
    letters,
    pick,
    told,
    whole,
)


def parallelogram_points(figure: Figure, names: list[str], base: float, side: float, at_a: float) -> None:
    """Add a parallelogram abcd with ab on the x axis and the angle at a in degrees."""
    a, b, c, d = names
    figure.point(a, 0)
    figure.point(b, base)
    figure.point(c, base + polar(side, at_a))
    figure.point(d, polar(side, at_a))


def with_diagonals(figure: Figure, names: list[str], middle: str) -> None:
    """Draw a quadrilateral's sides and its diagonals, which meet in `middle`."""
    a, b, c, d = names
    points = figure.points
    figure.point(middle, crossing(points[a], points[c], points[b], points[d]))
    figure.polygon(a, b, c, d)
    for name in names:
        figure.segment(name, middle)


@family("parallelogram")
def parallelogram(rng: np.random.Generator, level: int) -> Draft:
    """Equal and supplementary angles, equal sides; at level 3 the diagonals that halve each other."""
    if level == 3:
        return _halved_diagonal(rng)
    names = letters(rng, 4)
    a, b, c, d = names
    at_a = pick(rng, (whole(rng, 48, 78), whole(rng, 102, 132)))
    base, x = whole(rng, 12, 30), whole(rng, 4, 20)
    figure = Figure()
    parallelogram_points(figure, names, base, whole(rng, 9, 22), at_a)
    figure.polygon(a, b, c, d)
    text = f"{a}{b}{c}{d} is a parallelogram."
    if level == 1:
        figure.label_angle(d, a, b, at_a)
        answer = sympy.Integer(180 - at_a)
        solution = f"Consecutive angles of a parallelogram add up to 180°: m∠{b} = 180 − {at_a} = {answer}."
        return told(text, for_angle(rng, figure, (a, b, c), answer, solution, pick(rng, (b, a + b + c))))
    if chance(rng, 0.5):
        first = figure.label_length(a, b, expression(rng, base, x, slopes=(1, 2, 3)))
        second = figure.label_length(c, d, expression(rng, base, x, slopes=(2, 4, 5)))
        value = first.solve(second)
        rule = f"Opposite sides of a parallelogram are equal: {first} = {second}"
    else:
        first = figure.label_angle(d, a, b, expression(rng, at_a, x, slopes=(1, 2, 3)))
        second = figure.label_angle(a, b, c, expression(rng, 180 - at_a, x))
        value = (first + second).solve(180)
        rule = f"Consecutive angles of a parallelogram add up to 180°: {first} + {second} = 180"
    return told(text, for_unknown(rng, figure, value, f"{rule}, so x = {plain(value)}."))


def _halved_diagonal(rng: np.random.Generator) -> Draft:
    """A diagonal of a parallelogram from expressions for its halves."""
    names = letters(rng, 5)
    a, b, c, d, e = names
    half, x = whole(rng, 6, 16), whole(rng, 4, 20)
    base, side = whole(rng, 12, 30), whole(rng, 9, 22)
    at_a = pick(rng, (whole(rng, 48, 78), whole(rng, 102, 132)))
    scale = 2 * half / abs(base + polar(side, at_a))
    figure = Figure()
    parallelogram_points(figure, names[:4], base * scale, side * scale, at_a)
    with_diagonals(figure, names[:4], e)
    first = figure.label_length(a, e, expression(rng, half, x, slopes=(1, 2, 3)))
    second = figure.label_length(e, c, expression(rng, half, x, slopes=(2, 4, 5)))
    value = first.solve(second)
    answer = first.at(value) + second.at(value)
    solution = (
        f"The diagonals of a parallelogram halve each other: {first} = {second}, so x = "
        f"{plain(value)} and {a}{c} = "
        f"2 · {first.at(value)} = {answer}."
    )
    draft = for_length(rng, figure, (a, c), answer, solution, unknowns={"x": value})
    return told(f"{a}{b}{c}{d} is a parallelogram.", draft)


@family("rectangle")
def rectangle(rng: np.random.Generator, level: int) -> Draft:
    """The diagonals of a rectangle are equal and halve each other."""
    names = letters(rng, 5)
    a, b, c, d, e = names
    figure = Figure()
    text = f"Quadrilateral {a}{b}{c}{d} is a rectangle."
    if level == 1:
        width, height, _ = scaled_triple(rng)
        if not 0.4 < width / height < 2.5:
            raise Unsuitable("a narrow rectangle")
        parallelogram_points(figure, names[:4], width, height, 90)
        with_diagonals(figure, names[:4], e)
        figure.label_length(a, b, width)
        figure.label_length(b, c, height)
        answer = sympy.sqrt(width**2 + height**2)
        solution = (
            f"A diagonal and two sides make a right triangle: √({width}² + {height}²) = {plain(answer)}."
        )
        return told(text, for_length(rng, figure, pick(rng, ((a, c), (b, d))), answer, solution))
    half, slope, x = whole(rng, 6, 24), whole(rng, 24, 62), whole(rng, 3, 12)
    parallelogram_points(figure, names[:4], *_sides_of(2 * half, slope), 90)
    with_diagonals(figure, names[:4], e)
    if level == 2:
        first = figure.label_length(a, e, expression(rng, half, x, slopes=(1, 2, 3)))
        second = figure.label_length(b, e, expression(rng, half, x, slopes=(2, 4, 5)))
        value = first.solve(second)
        solution = f"All half diagonals of a rectangle are equal: {first} = {second}, so x = {plain(value)}."
        return told(text, for_unknown(rng, figure, value, solution))
    figure.label_angle(e, a, b, slope)
    answer = sympy.Integer(180 - 2 * slope)
    solution = (
        f"The half diagonals {a}{e} and {b}{e} are equal, so m∠{e}{b}{a} = {slope} and m∠{a}{e}{b} = 180 − "
        f"2 · {slope} = {answer}."
    )
    return told(text, for_angle(rng, figure, (a, e, b), answer, solution))


def _sides_of(diagonal: float, slope: float) -> tuple[float, float]:
    """Sides of the rectangle with that diagonal at that slope in degrees."""
    return diagonal * math.cos(math.radians(slope)), diagonal * math.sin(math.radians(slope))


@family("rhombus")
def rhombus(rng: np.random.Generator, level: int) -> Draft:
    """The diagonals of a rhombus are perpendicular and halve its angles."""
    names = letters(rng, 5)
    a, b, c, d, e = names
    text = f"Quadrilateral {a}{b}{c}{d} is a rhombus."
    if level == 2:
        return told(text, _rhombus_diagonal(rng, names))
    half = whole(rng, 24, 64)
    if abs(half - 45) < 4:
        raise Unsuitable("nearly a square")
    figure = Figure()
    parallelogram_points(figure, names[:4], 10, 10, 2 * half)
    with_diagonals(figure, names[:4], e)
    if level == 1:
        figure.label_angle(e, a, b, half)
        at, answer, why = pick(
            rng,
            (
                ((e, b, a), 90 - half, "the diagonals are perpendicular"),
                ((d, a, b), 2 * half, "a diagonal halves the angle"),
                ((a, b, c), 180 - 2 * half, "consecutive angles add up to 180°"),
            ),
        )
        solution = f"In a rhombus {why}, so m∠{''.join(at)} = {answer}."
        return told(text, for_angle(rng, figure, at, sympy.Integer(answer), solution))
    x = whole(rng, 4, 16)
    first = figure.label_angle(e, a, b, expression(rng, half, x, slopes=(1, 2, 3)))
    second = figure.label_angle(e, b, c, expression(rng, 90 - half, x, slopes=(2, 3, 4)))
    value = (first + second).solve(90)
    solution = (
        f"A diagonal halves the angles at its ends and the diagonals are perpendicular: {first} + "
        f"{second} = 90, so x = "
        f"{plain(value)}."
    )
    return told(text, for_unknown(rng, figure, value, solution, unit="degree"))


def _rhombus_diagonal(rng: np.random.Generator, names: list[str]) -> Draft:
    """A diagonal from the side and half of the other diagonal."""
    a, b, _, d, e = names
    half_a, half_b, side = scaled_triple(rng)
    if not 0.4 < half_a / half_b < 2.5:
        raise Unsuitable("a flat rhombus")
    figure = Figure()
    for name, z in zip(names[:4], (-half_b, -1j * half_a, half_b, 1j * half_a), strict=True):
        figure.point(name, z)
    with_diagonals(figure, names[:4], e)
    figure.label_length(a, e, half_b)
    figure.label_length(a, b, side)
    half = sympy.sqrt(side**2 - half_b**2)
    solution = (
        f"The diagonals are perpendicular and halve each other: {b}{e} = √({side}² − {half_b}²) = "
        f"{plain(half)}, so "
        f"{b}{d} = {plain(2 * half)}."
    )
    return for_length(rng, figure, (b, d), 2 * half, solution)


@family("trapezoid")
def trapezoid(rng: np.random.Generator, level: int) -> Draft:
    """The median is the mean of the bases; at level 3 an isosceles trapezoid's height or leg."""
    if level == 3:
        return _isosceles_trapezoid(rng)
    names = letters(rng, 6)
    long, short = whole(rng, 16, 40), whole(rng, 8, 26)
    if long - short < 4 or (long + short) % 2:
        raise Unsuitable("bases too alike or a fraction")
    figure = Figure(letters=chance(rng, 0.6))
    _with_median(rng, figure, names, long, short)
    a, b, c, d, m, n = names
    x, middle = whole(rng, 3, 12), (long + short) // 2
    if level == 1:
        values = [linear(long), linear(short), linear(middle)]
        values[whole(rng, 0, 2)] = linear("x")
    else:
        narrow = expression(rng, short, x, slopes=(1, 2, 3))
        values = [linear(long), narrow, expression(rng, middle, x, slopes=(2, 3, 4))]
    for ends, states in zip(((a, b), (c, d), (m, n)), values, strict=True):
        figure.label_length(*ends, states)
    value = (values[0] + values[1]).solve(values[2] * 2)
    double = f"2 · {values[2]}" if values[2].known else f"2{values[2].grouped()}"
    solution = (
        f"The median of a trapezoid is half of the sum of its bases: {values[0]} + {values[1]} = "
        f"{double}, so x = "
        f"{plain(value)}."
    )
    draft = for_unknown(rng, figure, value, solution)
    return told(f"{m}{n} is the median of trapezoid {a}{b}{c}{d}.", draft) if figure.letters else draft


def _with_median(rng: np.random.Generator, figure: Figure, names: list[str], long: int, short: int) -> None:
    """Draw a trapezoid with its median, ticks on the halved legs and arrows on the bases."""
    a, b, c, d, m, n = names
    height = float(rng.uniform(0.4, 0.6)) * long
    left = float(rng.uniform(0.1, 0.7)) * (long - short)
    for name, z in ((a, 0), (b, long), (c, complex(left + short, height)), (d, complex(left, height))):
        figure.point(name, z)
    figure.point(m, (figure.points[a] + figure.points[d]) / 2)
    figure.point(n, (figure.points[b] + figure.points[c]) / 2)
    figure.path(a, b, n, c, d, m, a)
    figure.segment(m, n)
    for group, ends in enumerate(((a, m), (m, d), (b, n), (n, c))):
        figure.ticks(*ends, 1 + group // 2)
    figure.arrow(a, b)
    figure.arrow(c, d)


def _isosceles_trapezoid(rng: np.random.Generator) -> Draft:
    a, b, c, d = letters(rng, 4)
    run, rise, leg = pick(rng, TRIPLES[:3])
    if chance(rng, 0.5):
        run, rise = rise, run
    short = whole(rng, max(4, run // 2), 24)
    figure = Figure()
    for name, z in ((a, 0), (b, short + 2 * run), (c, complex(run + short, rise)), (d, complex(run, rise))):
        figure.point(name, z)
    foot_name = figure.hidden(complex(run, 0))
    figure.polygon(a, b, c, d)
    figure.segment(d, foot_name, dashed=True)
    figure.right_angle(d, foot_name, b)
    figure.ticks(a, d)
    figure.ticks(b, c)
    figure.label_length(c, d, short)
    figure.given("length", (a, b), short + 2 * run)
    overhang = f"Each leg overhangs by ({short + 2 * run} − {short})/2 = {run}"
    text = f"{a}{b}{c}{d} is an isosceles trapezoid with ${a}{b} = {short + 2 * run}$."
    if chance(rng, 0.5):
        figure.label_length(d, foot_name, rise)
        answer = sympy.sqrt(run**2 + rise**2)
        solution = f"{overhang}, so {a}{d} = √({run}² + {rise}²) = {plain(answer)}."
        return Draft(figure, f"{text} Find ${a}{d}$.", answer, lambda f: f.length(a, d), solution)
    figure.label_length(b, c, leg)
    answer = (short + short + 2 * run) * sympy.sqrt(leg**2 - run**2) / 2
    solution = (
        f"{overhang}, the height is √({leg}² − {run}²) = {plain(sympy.sqrt(leg**2 - run**2))}, and "
        "the area half of "
        f"the bases' sum times it: {plain(answer)}."
    )
    question = f"{text} Find its area."
    return Draft(figure, question, answer, lambda f: f.area(a, b, c, d), solution, unit="area")


@family("kite")
def kite(rng: np.random.Generator, level: int) -> Draft:
    """Two pairs of equal neighbours: equal side angles; at level 2 the perpendicular diagonals."""
    names = letters(rng, 5)
    a, b, c, d, _ = names
    figure = Figure()
    top, bottom, half = whole(rng, 3, 9), whole(rng, 6, 20), whole(rng, 3, 12)
    if level == 2:
        return _kite_side(rng, figure, names, (top, bottom, half))
    at_a, at_c = whole(rng, 80, 130), whole(rng, 38, 72)
    if (at_a + at_c) % 2:
        raise Unsuitable("half degrees at the sides")
    height = 10 * math.sin(math.radians(at_a / 2))
    figure.point(a, 0)
    figure.point(b, 10 * math.cos(math.radians(at_a / 2)) - 1j * height)
    figure.point(c, 10 * math.cos(math.radians(at_a / 2)) + height / math.tan(math.radians(at_c / 2)))
    figure.point(d, figure.points[b].conjugate())
    figure.polygon(a, b, c, d)
    for group, ends in enumerate(((a, b), (a, d), (c, b), (c, d))):
        figure.ticks(*ends, 1 + group // 2)
    rule = f"The angles at {b} and {d} of the kite are equal and all four add up to 360°"
    if level == 1:
        figure.label_angle(d, a, b, at_a)
        figure.label_angle(b, c, d, at_c)
        answer = sympy.Rational(360 - at_a - at_c, 2)
        solution = f"{rule}: m∠{b} = (360 − {at_a} − {at_c})/2 = {answer}."
        question = f"Quadrilateral {a}{b}{c}{d} is a kite. {find_angle(rng, b)}"
        return Draft(figure, question, answer, lambda f: f.angle(a, b, c), solution, unit="degree")
    x = whole(rng, 5, 20)
    first = figure.label_angle(d, a, b, expression(rng, at_a, x))
    second = figure.label_angle(b, c, d, expression(rng, at_c, x, slopes=(1, 2, 3)))
    side = figure.label_angle(a, b, c, (360 - at_a - at_c) // 2)
    value = (first + second + side * 2).solve(360)
    solution = f"{rule}: {first} + {second} + 2 · {side} = 360, so x = {plain(value)}."
    draft = for_unknown(rng, figure, value, solution, unit="degree")
    draft.question = f"Quadrilateral {a}{b}{c}{d} is a kite. {draft.question}"
    return draft


def _kite_side(
    rng: np.random.Generator, figure: Figure, names: list[str], sizes: tuple[int, int, int]
) -> Draft:
    """A side of a kite from the parts of its diagonals."""
    a, b, c, d, e = names
    top, bottom, half = sizes
    if top >= bottom or not 0.45 < half / bottom < 1.6 or half / top > 2.2:
        raise Unsuitable("a flat kite")
    for name, z in ((a, -top), (b, -1j * half), (c, bottom), (d, 1j * half)):
        figure.point(name, z)
    with_diagonals(figure, names[:4], e)
    figure.right_angle(c, e, d)
    for group, ends in enumerate(((a, b), (a, d), (c, b), (c, d))):
        figure.ticks(*ends, 1 + group // 2)
    figure.label_length(e, d, half)
    asked = pick(rng, ((a, b, top), (b, c, bottom)))
    figure.label_length(*((a, e) if asked[2] == top else (e, c)), asked[2])
    answer = sympy.sqrt(half**2 + asked[2] ** 2)
    if not simple_root(answer, 130):
        raise Unsuitable("an ugly root")
    solution = (
        f"The diagonals of a kite are perpendicular and {a}{c} halves {b}{d}: {asked[0]}{asked[1]} = "
        f"√({half}² + {asked[2]}²) = {plain(answer)}."
    )
    question = f"Quadrilateral {a}{b}{c}{d} is a kite. {find_length(rng, asked[0] + asked[1])}"
    return Draft(figure, question, answer, lambda f: f.length(asked[0], asked[1]), solution)
