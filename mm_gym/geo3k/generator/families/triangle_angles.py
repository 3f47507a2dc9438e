"""Angles of triangles: their sum, exterior angles, isosceles triangles."""

from __future__ import annotations

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
    find_angle,
    find_length,
    for_unknown,
    letters,
    pick,
    whole,
)


def triangle_from_angles(
    figure: Figure, a: str, b: str, c: str, at_a: float, at_b: float, base: float = 10
) -> None:
    """Add the points of a triangle with base ab on the x axis and the given angles in degrees."""
    figure.point(a, 0)
    figure.point(b, base)
    figure.point(c, crossing(0, polar(1, at_a), base, base + polar(1, 180 - at_b)))


def triangle_angles(rng: np.random.Generator) -> tuple[int, int, int]:
    """Three whole angles of a triangle, none narrow, none right."""
    first, second = whole(rng, 28, 105), whole(rng, 28, 80)
    third = 180 - first - second
    if third < 28 or 90 in (first, second, third):
        raise Unsuitable(f"angles {first}, {second}, {third}")
    return first, second, third


@family("triangle_angle_sum")
def triangle_angle_sum(rng: np.random.Generator, level: int) -> Draft:
    """Two angles give the third; they are expressions at level 2; at level 3 an angle is asked for."""
    a, b, c = letters(rng, 3)
    at_a, at_b, at_c = triangle_angles(rng)
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    triangle_from_angles(figure, a, b, c, at_a, at_b)
    figure.polygon(a, b, c)
    if level == 1:
        first, second = figure.label_angle(b, a, c, at_a), figure.label_angle(a, b, c, at_b)
        third = figure.label_angle(a, c, b, "x")
    else:
        x = whole(rng, 8, 30)
        first = figure.label_angle(b, a, c, expression(rng, at_a, x))
        second = figure.label_angle(a, b, c, expression(rng, at_b, x, slopes=(1, 2, 3)))
        third = figure.label_angle(a, c, b, linear(at_c) if chance(rng, 0.5) else expression(rng, at_c, x))
    value = (first + second + third).solve(180)
    rule = (
        f"The angles of a triangle add up to 180°: {first} + {second} + {third} = 180, so x = {plain(value)}"
    )
    if level < 3:
        return for_unknown(rng, figure, value, rule + ".", unit="degree")
    answer = first.at(value)
    solution = f"{rule} and m∠{a} = {first} = {plain(answer)}."
    question = find_angle(rng, pick(rng, (a, b + a + c)))
    return Draft(figure, question, answer, lambda f: f.angle(b, a, c), solution, {"x": value}, unit="degree")


@family("exterior_angle")
def exterior_angle(rng: np.random.Generator, level: int) -> Draft:
    """The exterior angle is the sum of the two remote interior angles."""
    a, b, c, d = letters(rng, 4)
    at_a, at_b, at_c = triangle_angles(rng)
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    triangle_from_angles(figure, a, b, c, at_a, at_b)
    figure.point(d, 10 + whole(rng, 4, 6))
    figure.path(a, c, b)
    figure.segment(a, d, arrow_b=True)
    x = whole(rng, 8, 30)
    if level == 1:
        values = [linear(at_a), linear(at_c), linear(180 - at_b)]
        values[whole(rng, 0, 2)] = linear("x")
    elif level == 2:
        values = [expression(rng, at_a, x), linear(at_c), expression(rng, 180 - at_b, x, slopes=(3, 4, 5, 6))]
    else:
        values = [expression(rng, v, x, slopes=(1, 2, 3, 4, 5)) for v in (at_a, at_c, 180 - at_b)]
    remote_a, remote_c = figure.label_angle(b, a, c, values[0]), figure.label_angle(a, c, b, values[1])
    outside = figure.label_angle(c, b, d, values[2])
    value = (remote_a + remote_c).solve(outside)
    rule = (
        f"An exterior angle equals the sum of the two remote interior angles: {remote_a} + {remote_c} = "
        f"{outside}, so x = {plain(value)}"
    )
    if level < 3:
        return for_unknown(rng, figure, value, rule + ".", unit="degree")
    answer = outside.at(value)
    solution = f"{rule} and m∠{c}{b}{d} = {outside} = {plain(answer)}."
    question = find_angle(rng, c + b + d)
    return Draft(figure, question, answer, lambda f: f.angle(c, b, d), solution, {"x": value}, unit="degree")


@family("isosceles_angles")
def isosceles_angles(rng: np.random.Generator, level: int) -> Draft:
    """Equal sides face equal angles; at level 3 two isosceles triangles share a side."""
    if level == 3:
        return _two_isosceles(rng)
    a, b, c = letters(rng, 3)
    base = whole(rng, 32, 76)
    figure = Figure(letters=chance(rng, 0.6))
    triangle_from_angles(figure, a, b, c, base, base)
    figure.polygon(a, b, c)
    figure.ticks(a, c)
    figure.ticks(b, c)
    apex_asked = chance(rng, 0.5)
    if level == 1:
        at_a, apex = (linear(base), linear("x")) if apex_asked else (linear("x"), linear(180 - 2 * base))
    else:
        x = whole(rng, 6, 30)
        at_a = expression(rng, base, x, slopes=(1, 2, 3, 4))
        apex = linear(180 - 2 * base) if chance(rng, 0.5) else expression(rng, 180 - 2 * base, x)
    figure.label_angle(b, a, c, at_a)
    figure.label_angle(a, c, b, apex)
    value = (at_a * 2 + apex).solve(180)
    solution = (
        f"The base angles of an isosceles triangle are equal: 2{at_a.grouped()} + {apex} = 180, so x = "
        f"{plain(value)}."
    )
    return for_unknown(rng, figure, value, solution, unit="degree")


def _two_isosceles(rng: np.random.Generator) -> Draft:
    """D on BC with AB = AD = DC: the angle at C fixes all others."""
    a, b, c, d = letters(rng, 4)
    narrow = whole(rng, 20, 38)
    figure = Figure()
    figure.point(d, 0)
    figure.point(c, 10)
    figure.point(a, polar(10, 180 - 2 * narrow))
    figure.point(b, 2 * figure.points[a].real)
    figure.polygon(a, b, c)
    figure.segment(a, d)
    for p, q in ((a, b), (a, d), (d, c)):
        figure.ticks(p, q)
    figure.label_angle(a, c, d, narrow)
    steps = f"{d}{a} = {d}{c}, so m∠{d}{a}{c} = {narrow}, and the exterior angle {a}{d}{b} is {2 * narrow}"
    if chance(rng, 0.5):
        answer = sympy.Integer(2 * narrow)
        solution = f"{steps}. {a}{b} = {a}{d}, so m∠{b} = {answer}."
        return Draft(
            figure, find_angle(rng, a + b + d), answer, lambda f: f.angle(a, b, d), solution, unit="degree"
        )
    answer = sympy.Integer(180 - 4 * narrow)
    solution = f"{steps}. {a}{b} = {a}{d}, so m∠{b}{a}{d} = 180 − 2 · {2 * narrow} = {answer}."
    return Draft(
        figure, find_angle(rng, b + a + d), answer, lambda f: f.angle(b, a, d), solution, unit="degree"
    )


@family("isosceles_sides")
def isosceles_sides(rng: np.random.Generator, level: int) -> Draft:
    """Equal angles face equal sides, given as expressions; at level 3 the triangle is equilateral."""
    a, b, c = letters(rng, 3)
    x, side = whole(rng, 3, 12), whole(rng, 8, 40)
    base = side if level == 3 else whole(rng, max(4, side // 2), round(1.6 * side))
    if level < 3 and abs(base - side) < 2:
        raise Unsuitable("an equilateral triangle")
    figure = Figure()
    figure.point(a, 0)
    figure.point(b, base)
    figure.point(c, complex(base / 2, (side**2 - base**2 / 4) ** 0.5))
    figure.polygon(a, b, c)
    left = expression(rng, side, x, slopes=(1, 2, 3))
    right = linear(side) if level == 1 else expression(rng, side, x, slopes=(4, 5, 6))
    figure.label_length(a, c, left)
    figure.label_length(b, c, right)
    if level == 3:
        figure.label_length(a, b, expression(rng, side, x, slopes=(2, 3, 7)))
        for p, q in ((a, b), (b, c), (a, c)):
            figure.ticks(p, q)
    else:
        figure.equal_angle(b, a, c)
        figure.equal_angle(a, b, c)
    value = left.solve(right)
    reason = "All sides are equal" if level == 3 else "Sides that face equal angles are equal"
    rule = f"{reason}: {left} = {right}, so x = {plain(value)}"
    if level == 1 or chance(rng, 0.4):
        return for_unknown(rng, figure, value, rule + ".")
    answer = left.at(value)
    solution = f"{rule} and {a}{c} = {left} = {plain(answer)}."
    question = find_length(rng, a + c)
    return Draft(figure, question, answer, lambda f: f.length(a, c), solution, {"x": value})
