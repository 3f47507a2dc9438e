"""Proportions: parallels, similar triangles, midsegments, bisectors, medians."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain
from mm_gym.geo3k.generator.expressions import Linear, linear
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.figure import Figure, crossing, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import (
    chance,
    expression,
    find_length,
    for_unknown,
    letters,
    pick,
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
    upper, lower, step = whole(rng, 2, 9), whole(rng, 2, 9), whole(rng, 2, 6)
    ratio = sympy.Rational(upper, lower)
    far = step * upper if chance(rng, 0.6) else whole(rng, 3, 18)
    near = far / ratio  # the lower part of the other side
    left, right = upper + lower, far + near
    if near.q > 3 or not 0.6 < float(left / right) < 1.7:
        raise Unsuitable("ugly parts")
    base = whole(rng, round(0.6 * float(max(left, right))) + 1, round(1.3 * float(max(left, right))))
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
    sides = [whole(rng, 4, 15) for _ in range(3)]
    top, bottom = whole(rng, 2, 5), whole(rng, 2, 5)
    factor = sympy.Rational(top, bottom)
    if not 0.45 < float(factor) < 2.3 or factor == 1 or len(set(sides)) < 3:
        raise Unsuitable("a ratio out of bounds")
    other = [side * factor for side in sides]
    figure = Figure()
    first, second = tuple(names[:3]), tuple(names[3:])
    triangle_from_sides(figure, (first[0], first[1], first[2]), *sides)
    triangle_from_sides(figure, (second[0], second[1], second[2]), *(float(s) for s in other))
    gap = max(sides[0], sum(sides) / 3) * 0.45 + max(figure.points[n].real for n in first)
    shift = gap - min(figure.points[n].real for n in second)
    for name in second:
        figure.points[name] += shift
    figure.upright = True
    for triangle in (first, second):
        figure.polygon(*triangle)
    pairs = [(i, (i + 1) % 3) for i in range(3)]
    known, asked, third = (int(i) for i in rng.permutation(3))
    ends = [[(t[i], t[j]) for i, j in pairs] for t in (first, second)]
    similar = f"$\\triangle {''.join(first)} \\sim \\triangle {''.join(second)}$"
    if any(other[i].q > 2 for i in (known, asked)):
        raise Unsuitable("fractions as labels")
    figure.label_length(*ends[0][known], sides[known])
    figure.label_length(*ends[1][known], other[known])
    figure.label_length(*ends[0][asked], sides[asked])
    ratio = f"{plain(other[known])}/{sides[known]}"
    if level == 3:
        figure.label_length(*ends[0][third], sides[third])
        answer = sum(sides) * other[known] / sides[known]
        question = f"If {similar}, find the perimeter of $\\triangle {''.join(second)}$."
        solution = (
            f"The perimeters are as the sides, {ratio}. The first is {' + '.join(map(str, sides))} = "
            f"{sum(sides)}, so the "
            f"second is {plain(answer)}."
        )
        return Draft(figure, question, answer, lambda f: f.perimeter(*second), solution)
    if level == 1:
        states = figure.label_length(*ends[1][asked], "x")
    elif other[asked].q == 1:
        x = whole(rng, 2, 9)
        states = figure.label_length(*ends[1][asked], expression(rng, int(other[asked]), x, slopes=(1, 2, 3)))
    else:
        raise Unsuitable("a fraction as an expression's value")
    value = states.solve(sympy.Rational(sides[asked]) * other[known] / sides[known])
    solution = (
        f"Corresponding sides are in proportion: {states.grouped()}/{sides[asked]} = {ratio}, so x = "
        f"{plain(value)}."
    )
    draft = for_unknown(rng, figure, value, solution)
    draft.question = f"If {similar}, {draft.question[0].lower()}{draft.question[1:]}"
    return draft


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
    (bottom, top), lower, upper = (
        pick(rng, ((2, 3), (3, 4), (4, 5), (5, 6))),
        whole(rng, 2, 6),
        whole(rng, 2, 6),
    )
    scale = sympy.Rational(top, 1) if level > 1 or chance(rng, 0.5) else sympy.Rational(top, bottom)
    first, second = (lower * bottom, upper * bottom) if scale.q == 1 else (lower * bottom, upper)
    third, fourth = first * sympy.Rational(top, bottom), second * sympy.Rational(top, bottom)
    if first == second or not 0.5 < first / second < 2:
        raise Unsuitable("equal or very unequal parts")
    figure = Figure(letters=False)
    slant = whole(rng, 70, 88)
    height = (first + second) * math.sin(math.radians(slant))
    lean = math.asin(height / float(third + fourth))
    if math.degrees(lean) < 32:
        raise Unsuitable("a flat transversal")
    starts = (complex(0, 0), complex(0.55 * (first + second), 0))
    left = [starts[0] + polar(length, 180 - slant) for length in (0, first, first + second)]
    right = [starts[1] + polar(float(t), math.degrees(lean)) for t in (0, third, third + fourth)]
    names = [[figure.hidden(z) for z in side] for side in (left, right)]
    reach = 0.22 * (first + second)
    ends = min(z.real for z in left) - reach, max(z.real for z in right) + 2.2 * reach
    for p in names[0]:
        y = figure.points[p].imag
        start, end = figure.hidden(complex(ends[0], y)), figure.hidden(complex(ends[1], y))
        figure.segment(start, end, arrow_a=True, arrow_b=True)
        figure.arrow(figure.hidden(complex(ends[1] - 1.6 * reach, y)), end)
    for side in names:
        figure.line(side[0], side[2], reach, reach)
        figure.segment(side[0], side[1])
        figure.segment(side[1], side[2])
    figure.label_length(names[0][0], names[0][1], first)
    figure.label_length(names[0][1], names[0][2], second)
    if level == 1:
        figure.label_length(names[1][0], names[1][1], third)
        states = figure.label_length(names[1][1], names[1][2], "x")
        rest = linear(third)
    else:
        x = whole(rng, 2, 9)
        states = figure.label_length(
            names[1][1], names[1][2], expression(rng, int(fourth), x, slopes=(2, 3, 4))
        )
        rest = linear(third) if level == 2 else expression(rng, int(third), x, slopes=(1, 3, 5))
        figure.label_length(names[1][0], names[1][1], rest)
    value = _proportion(states, rest, sympy.Rational(second, first))
    solution = (
        f"Parallel lines cut transversals in proportion: {states.grouped()}/{rest.grouped()} = "
        f"{second}/{first}, so x = {plain(value)}."
    )
    return for_unknown(rng, figure, value, solution)


def _proportion(numerator: Linear, denominator: Linear, ratio: sympy.Rational) -> sympy.Expr:
    """The unknown for which numerator / denominator = ratio."""
    return numerator.solve(denominator * ratio)


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
    rule = f"The centroid divides a median as 2 : 1, so {a}{g} = 2 · {g}{d}"
    if level == 1:
        known, answer, asked = pick(
            rng, (((a, g), third, (g, d)), ((g, d), 2 * third, (a, g)), ((g, d), 3 * third, (a, d)))
        )
        figure.label_length(*known, 2 * third if known == (a, g) else third)
        question = f"In $\\triangle {a}{b}{c}$, {g} is the centroid. Find ${''.join(asked)}$."
        solution = f"{rule} and {a}{d} = 3 · {g}{d}: {''.join(asked)} = {answer}."
        return Draft(figure, question, sympy.Integer(answer), lambda f: f.length(*asked), solution)
    x = whole(rng, 2, 9)
    short = figure.label_length(g, d, expression(rng, third, x, slopes=(1, 2)))
    long = figure.label_length(a, g, expression(rng, 2 * third, x, slopes=(3, 5, 6)))
    value = long.solve(short * 2)
    question = f"In $\\triangle {a}{b}{c}$, {g} is the centroid."
    steps = f"{rule}: {long} = 2{short.grouped()}, so x = {plain(value)}"
    if level == 2:
        draft = for_unknown(rng, figure, value, steps + ".")
        draft.question = f"{question} {draft.question}"
        return draft
    answer = long.at(value) + short.at(value)
    solution = f"{steps} and {a}{d} = {long.at(value)} + {short.at(value)} = {answer}."
    return Draft(
        figure, f"{question} Find ${a}{d}$.", answer, lambda f: f.length(a, d), solution, {"x": value}
    )
