"""Proportions: parallels, similar triangles, midsegments, bisectors, medians."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain
from mm_gym.geo3k.generator.expressions import linear
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.figure import Figure, crossing, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import (
    chance,
    expression,
    find_length,
    for_length,
    for_unknown,
    letters,
    pick,
    told,
    whole,
)


def triangle_from_sides(figure: Figure, names: tuple[str, str, str], ab: float, bc: float, ca: float) -> None:
    """Add the points of a triangle with base ab on the x axis.

    Raises:
        Unsuitable: The sides make no triangle, or a flat one.
    """
    a, b, c = names
    x = (ab**2 + ca**2 - bc**2) / (2 * ab)
    height = ca**2 - x**2
    if height <= 0 or math.sqrt(height) < 0.35 * max(ab, bc, ca):
        raise Unsuitable(f"sides {ab}, {bc}, {ca} make no triangle or a flat one")
    figure.point(a, 0)
    figure.point(b, ab)
    figure.point(c, complex(x, math.sqrt(height)))


@family("parallel_in_triangle")
def parallel_in_triangle(rng: np.random.Generator, level: int) -> Draft:
    """A parallel to a side divides the other two in proportion; at level 3 it is compared with that side."""
    a, b, c, d, e = letters(rng, 5)
    over, under, times = whole(rng, 1, 5), whole(rng, 1, 5), whole(rng, 1, 4)
    upper, lower = times * over, times * under
    far = over * whole(rng, 1, 5) if level > 1 or chance(rng, 0.5) else whole(rng, 3, 18)
    near = sympy.Rational(far * lower, upper)  # the lower part of the other side
    left, right = upper + lower, far + near
    if near.q > 3 or min(upper, lower, far, near) < 2 or not 0.6 < float(left / right) < 1.7:
        raise Unsuitable("ugly parts")
    longest = float(max(left, right))
    base = whole(rng, math.ceil(0.6 * longest), round(1.3 * longest))
    if level == 3:  # so that the parallel is a whole number, or a fraction that is not ugly
        base = round(base / (over + under)) * (over + under) + (whole(rng, 0, 1) if over + under < 4 else 0)
    figure = Figure()
    triangle_from_sides(figure, (b, c, a), base, float(right), float(left))
    points = figure.points
    figure.point(d, points[a] + (points[b] - points[a]) * upper / left)
    figure.point(e, points[a] + (points[c] - points[a]) * upper / left)
    figure.path(a, d, b, c, e, a)
    figure.segment(d, e)
    figure.arrow(d, e)
    figure.arrow(b, c)
    if level == 3:
        return _with_base(rng, figure, (a, b, c, d, e), upper, lower, base)
    figure.letters = chance(rng, 0.6)
    figure.label_length(a, d, upper)
    figure.label_length(d, b, lower)
    if level == 1:
        figure.label_length(a, e, linear(far))
        states = figure.label_length(e, c, "x")
    else:
        x = whole(rng, 2, 9)
        if near.q != 1:
            raise Unsuitable("a fraction as a part")
        figure.label_length(a, e, linear(far))
        states = figure.label_length(e, c, expression(rng, int(near), x, slopes=(1, 2, 3)))
    value = states.solve(sympy.Rational(far * lower, upper))
    solution = (
        f"A parallel to a side divides the other sides in proportion: {upper}/{lower} = "
        f"{far}/{states.grouped()}, so "
        f"{states} = {far} · {lower}/{upper} = {plain(states.at(value))}"
    )
    return for_unknown(rng, figure, value, solution + ("." if level == 1 else f" and x = {plain(value)}."))


def _with_base(
    rng: np.random.Generator, figure: Figure, names: tuple[str, ...], upper: int, lower: int, base: int
) -> Draft:
    """The small triangle is similar to the whole one: the parallel from the base."""
    a, b, c, d, e = names
    figure.label_length(a, d, upper)
    figure.label_length(d, b, lower)
    figure.label_length(b, c, base)
    answer = sympy.Rational(base * upper, upper + lower)
    if answer.q > 3 or float(answer) * 1.1 > base:
        raise Unsuitable("an ugly fraction")
    solution = (
        f"Triangles {a}{d}{e} and {a}{b}{c} are similar, so {d}{e}/{base} = {upper}/({upper} + "
        f"{lower}) and {d}{e} = "
        f"{plain(answer)}."
    )
    return Draft(figure, find_length(rng, d + e), answer, lambda f: f.length(d, e), solution)


@family("similar_triangles")
def similar_triangles(rng: np.random.Generator, level: int) -> Draft:
    """Two similar triangles side by side; at level 3 a perimeter is asked for."""
    names = letters(rng, 6)
    factor = sympy.Rational(
        *pick(rng, ((1, 2), (2, 3), (3, 4), (3, 5), (4, 5), (2, 1), (3, 2), (4, 3), (5, 3)))
    )
    sides = [whole(rng, 4, 15) for _ in range(3)]
    if level > 1 or chance(rng, 0.5):  # whole numbers in both triangles
        sides = [max(1, round(side / factor.q)) * factor.q for side in sides]
    if len(set(sides)) < 3:
        raise Unsuitable("an isosceles triangle")
    known, asked, third = (int(i) for i in rng.permutation(3))
    other = [side * factor for side in sides]
    if other[known].q > 2 or other[asked].q > (2 if level == 1 else 1):
        raise Unsuitable("fractions as labels")
    figure = Figure(upright=True)
    first, second = _two_triangles(figure, names, sides, float(factor))
    figure.label_length(*first[known], sides[known])
    large = figure.label_length(*second[known], other[known]).offset
    figure.label_length(*first[asked], sides[asked])
    one, two = "".join(names[:3]), "".join(names[3:])
    text = f"If $\\triangle {one} \\sim \\triangle {two}$,"
    ratio = f"{plain(large)}/{sides[known]}"
    if level == 3:
        figure.label_length(*first[third], sides[third])
        answer = sum(sides) * large / sides[known]
        solution = (
            f"The perimeters are as the sides, {ratio}. The first is {' + '.join(map(str, sides))} = "
            f"{sum(sides)}, so the "
            f"second is {plain(answer)}."
        )
        question = f"{text} find the perimeter of $\\triangle {two}$."
        return Draft(figure, question, answer, lambda f: f.perimeter(*names[3:]), solution)
    unknown = linear("x")
    if level == 2:
        unknown = expression(rng, int(other[asked]), whole(rng, 2, 9), slopes=(1, 2, 3))
    states = figure.label_length(*second[asked], unknown)
    value = states.solve(sympy.Rational(sides[asked]) * large / sides[known])
    proportion = f"{states.grouped()}/{sides[asked]} = {ratio}"
    solution = f"Corresponding sides are in proportion: {proportion}, so x = {plain(value)}."
    return told(text, for_unknown(rng, figure, value, solution), joined=True)


def _two_triangles(
    figure: Figure, names: list[str], sides: list[int], factor: float
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Draw two similar triangles with their bases on one line; the ends of the sides of both, in turn."""
    first, second = names[:3], names[3:]
    triangle_from_sides(figure, (first[0], first[1], first[2]), *sides)
    triangle_from_sides(figure, (second[0], second[1], second[2]), *(side * factor for side in sides))
    gap = max(sides[0], sum(sides) / 3) * 0.45 + max(figure.points[n].real for n in first)
    shift = gap - min(figure.points[n].real for n in second)
    for name in second:
        figure.points[name] += shift
    figure.polygon(*first)
    figure.polygon(*second)
    ends = [[(t[i], t[(i + 1) % 3]) for i in range(3)] for t in (first, second)]
    return ends[0], ends[1]


@family("midsegment")
def midsegment(rng: np.random.Generator, level: int) -> Draft:
    """The segment that joins two midpoints is half of the third side and parallel to it."""
    a, b, c, d, e = letters(rng, 5)
    half = whole(rng, 4, 26)
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    sides = [2 * half * float(rng.uniform(0.75, 1.35)) for _ in range(2)]
    triangle_from_sides(figure, (b, c, a), 2 * half, sides[0], sides[1])
    points = figure.points
    figure.point(d, (points[a] + points[b]) / 2)
    figure.point(e, (points[a] + points[c]) / 2)
    figure.path(a, d, b, c, e, a)
    figure.segment(d, e)
    for group, (p, q) in enumerate(((a, b), (a, c)), start=1):
        middle = d if q == b else e
        figure.ticks(p, middle, group)
        figure.ticks(middle, q, group)
    x = whole(rng, 2, 12)
    if level == 1:
        inner, base = (linear("x"), linear(2 * half)) if chance(rng, 0.5) else (linear(half), linear("x"))
    elif level == 2:
        inner, base = expression(rng, half, x, slopes=(1, 2, 3)), linear(2 * half)
    else:
        inner, base = (
            expression(rng, half, x, slopes=(1, 2, 3)),
            expression(rng, 2 * half, x, slopes=(3, 5, 7)),
        )
    figure.label_length(d, e, inner)
    figure.label_length(b, c, base)
    value = (inner * 2).solve(base)
    rule = f"A midsegment is half of the third side: 2{inner.grouped()} = {base}, so x = {plain(value)}"
    if level < 3:
        return for_unknown(rng, figure, value, rule + ".")
    answer = base.at(value)
    solution = f"{rule} and {b}{c} = {base} = {plain(answer)}."
    return Draft(figure, find_length(rng, b + c), answer, lambda f: f.length(b, c), solution, {"x": value})


@family("angle_bisector")
def angle_bisector(rng: np.random.Generator, level: int) -> Draft:
    """The bisector of an angle divides the opposite side in the ratio of the sides beside it."""
    a, b, c, d = letters(rng, 4)
    part_b, part_c, factor = whole(rng, 2, 12), whole(rng, 2, 12), pick(rng, (2, 3, sympy.Rational(3, 2), 1))
    side_b, side_c = part_b * sympy.sympify(factor), part_c * sympy.sympify(factor)
    if part_b == part_c or side_b.q > 1 or side_c.q > 1 or not 0.5 < part_b / part_c < 2:
        raise Unsuitable("an isosceles or a crooked triangle")
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    triangle_from_sides(figure, (b, c, a), part_b + part_c, float(side_c), float(side_b))
    figure.point(d, part_b)
    figure.polygon(a, b, c)
    figure.segment(a, d)
    figure.equal_angle(b, a, d)
    figure.equal_angle(d, a, c)
    figure.label_length(a, b, side_b)
    figure.label_length(a, c, side_c)
    rule = "An angle's bisector divides the opposite side in the ratio of the adjacent sides"
    if level == 3:
        figure.given("length", (b, c), part_b + part_c)
        answer = side_b * (part_b + part_c) / (side_b + side_c)
        question = f"If ${b}{c} = {part_b + part_c}$, find ${b}{d}$."
        solution = (
            f"{rule}: {b}{d} : {d}{c} = {side_b} : {side_c}, so {b}{d} = {part_b + part_c} · {side_b}/"
            f"{side_b + side_c} = {plain(answer)}."
        )
        return Draft(figure, question, answer, lambda f: f.length(b, d), solution)
    figure.label_length(b, d, part_b)
    states = linear("x") if level == 1 else expression(rng, part_c, whole(rng, 2, 9), slopes=(1, 2, 3))
    figure.label_length(d, c, states)
    value = states.solve(part_b * side_c / side_b)
    solution = f"{rule}: {part_b}/{states.grouped()} = {side_b}/{side_c}, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution)


@family("three_parallels")
def three_parallels(rng: np.random.Generator, level: int) -> Draft:
    """Three parallel lines cut two transversals in proportion."""
    bottom, top = pick(rng, ((2, 3), (3, 4), (4, 5), (5, 6)))
    first, second = bottom * whole(rng, 2, 6), whole(rng, 2, 6)
    if level > 1 or chance(rng, 0.5):  # whole numbers on both transversals
        second *= bottom
    third, fourth = first * sympy.Rational(top, bottom), second * sympy.Rational(top, bottom)
    if first == second or not 0.5 < first / second < 2:
        raise Unsuitable("equal or very unequal parts")
    figure = Figure(letters=False)
    left, right = _cut_transversals(rng, figure, (first, second), float(third), float(fourth))
    figure.label_length(left[0], left[1], first)
    figure.label_length(left[1], left[2], second)
    x = whole(rng, 2, 9)
    states, rest = linear("x"), linear(third)
    if level > 1:
        states = expression(rng, int(fourth), x, slopes=(2, 3, 4))
    if level == 3:
        rest = expression(rng, int(third), x, slopes=(1, 3, 5))
    figure.label_length(right[0], right[1], rest)
    figure.label_length(right[1], right[2], states)
    value = states.solve(rest * sympy.Rational(second, first))
    solution = (
        f"Parallel lines cut transversals in proportion: {states.grouped()}/{rest.grouped()} = "
        f"{second}/{first}, so x = "
        f"{plain(value)}."
    )
    return for_unknown(rng, figure, value, solution)


def _cut_transversals(
    rng: np.random.Generator, figure: Figure, parts: tuple[int, int], third: float, fourth: float
) -> tuple[list[str], list[str]]:
    """Draw three parallel lines and two transversals; the three crossings along either, from below."""
    first, second = parts
    slant = whole(rng, 70, 88)
    lean = math.degrees(math.asin((first + second) * math.sin(math.radians(slant)) / (third + fourth)))
    if lean < 32:
        raise Unsuitable("a flat transversal")
    start = 0.55 * (first + second)
    left = [figure.hidden(polar(length, 180 - slant)) for length in (0, first, first + second)]
    right = [figure.hidden(start + polar(length, lean)) for length in (0, third, third + fourth)]
    reach = 0.22 * (first + second)
    low = min(figure.points[name].real for name in left) - reach
    high = max(figure.points[name].real for name in right) + 2.2 * reach
    for name in left:
        y = figure.points[name].imag
        begin, end = figure.hidden(complex(low, y)), figure.hidden(complex(high, y))
        figure.segment(begin, end, arrow_a=True, arrow_b=True)
        figure.arrow(figure.hidden(complex(high - 1.6 * reach, y)), end)
    for side in (left, right):
        figure.line(side[0], side[2], reach, reach)
        figure.path(*side)
    return left, right


@family("centroid")
def centroid(rng: np.random.Generator, level: int) -> Draft:
    """The centroid divides every median as 2 : 1, counted from the vertex."""
    a, b, c, d, e, g = letters(rng, 6)
    third = whole(rng, 2, 15)
    figure = Figure()
    base, rise = 2.4 * third * float(rng.uniform(0.9, 1.3)), float(rng.uniform(65, 115))
    figure.point(b, 0)
    figure.point(c, base)
    figure.point(d, base / 2)
    figure.point(a, base / 2 + polar(3 * third, rise))
    points = figure.points
    figure.point(e, (points[a] + points[c]) / 2)
    figure.point(g, crossing(points[a], points[d], points[b], points[e]))
    figure.path(a, b, d, c, e, a)
    figure.path(a, g, d)
    figure.segment(b, e)
    figure.ticks(b, d)
    figure.ticks(d, c)
    figure.ticks(a, e, 2)
    figure.ticks(e, c, 2)
    text = f"In $\\triangle {a}{b}{c}$, {g} is the centroid."
    rule = f"The centroid divides a median as 2 : 1, so {a}{g} = 2 · {g}{d}"
    if level == 1:
        known, answer, asked = pick(
            rng, (((a, g), third, (g, d)), ((g, d), 2 * third, (a, g)), ((g, d), 3 * third, (a, d)))
        )
        figure.label_length(*known, 2 * third if known == (a, g) else third)
        solution = f"{rule} and {a}{d} = 3 · {g}{d}: {''.join(asked)} = {answer}."
        return told(text, for_length(rng, figure, asked, sympy.Integer(answer), solution))
    x = whole(rng, 2, 9)
    short = figure.label_length(g, d, expression(rng, third, x, slopes=(1, 2)))
    long = figure.label_length(a, g, expression(rng, 2 * third, x, slopes=(3, 5, 6)))
    value = long.solve(short * 2)
    steps = f"{rule}: {long} = 2{short.grouped()}, so x = {plain(value)}"
    if level == 2:
        return told(text, for_unknown(rng, figure, value, steps + "."))
    answer = long.at(value) + short.at(value)
    solution = f"{steps} and {a}{d} = {long.at(value)} + {short.at(value)} = {answer}."
    return told(text, for_length(rng, figure, (a, d), answer, solution, unknowns={"x": value}))
