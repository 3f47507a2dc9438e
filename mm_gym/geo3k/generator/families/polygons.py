"""Angles of polygons, interior and exterior, and regular polygons."""

from __future__ import annotations

import cmath
import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain
from mm_gym.geo3k.generator.expressions import linear
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.figure import Figure, polar
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

NAMES = {5: "pentagon", 6: "hexagon", 8: "octagon"}


def convex_polygon(rng: np.random.Generator, figure: Figure, names: list[str]) -> list[int]:
    """Add a convex polygon with whole interior angles, counterclockwise; return the angles.

    All sides but the last two are free; those two close the polygon.

    Raises:
        Unsuitable: The polygon drawn has a short or a backward side, or an angle too narrow or too flat.
    """
    count = len(names)
    outer = [360 // count + whole(rng, -18, 18) for _ in range(count - 1)]
    outer.append(360 - sum(outer))
    if not all(28 <= turn <= 110 for turn in outer):
        raise Unsuitable(f"exterior angles {outer}")
    heading, at = 0.0, 0j
    points = [at]
    directions = []
    for turn in outer:
        directions.append(cmath.exp(1j * math.radians(heading)))
        heading += turn
    for direction in directions[: count - 2]:
        at += direction * float(rng.uniform(0.8, 1.3))
        points.append(at)
    last, closing = directions[count - 2], directions[count - 1]
    # at + s * last + t * closing = 0
    determinant = (last.conjugate() * closing).imag
    s = (-at * closing.conjugate()).imag / -determinant if determinant else -1
    t = (last.conjugate() * -at).imag / determinant if determinant else -1
    if not (0.55 < s < 1.9 and 0.55 < t < 1.9):
        raise Unsuitable("a short or long closing side")
    points.append(at + s * last)
    for name, z in zip(names, points, strict=True):
        figure.point(name, z)
    # the turn after side k is at vertex k + 1
    return [180 - outer[k - 1] for k in range(count)]


def _corner(names: list[str], index: int) -> tuple[str, str, str]:
    count = len(names)
    return names[(index - 1) % count], names[index], names[(index + 1) % count]


@family("polygon_interior_angles")
def polygon_interior_angles(rng: np.random.Generator, level: int) -> Draft:
    """The interior angles of an n-gon add up to (n − 2) · 180°."""
    count = pick(rng, (4, 5) if level == 1 else (4, 5, 6))
    names = letters(rng, count)
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    angles = convex_polygon(rng, figure, names)
    figure.polygon(*names)
    if len(set(angles)) < count - 1:
        raise Unsuitable("many equal angles")
    total = 180 * (count - 2)
    x = whole(rng, 10, 40)
    states = [linear(angle) for angle in angles]
    if level == 1:
        states[0] = linear("x")
    else:
        for index in range(0, count, 2 if level == 2 else 1):
            states[index] = expression(rng, angles[index], x, slopes=(1, 2, 3, 4))
    for index, label in enumerate(states):
        figure.label_angle(*_corner(names, index), label)
    full = sum(states[1:], states[0])
    value = full.solve(total)
    rule = (
        f"The interior angles add up to ({count} − 2) · 180° = {total}°: {full} = {total}, so x = "
        f"{plain(value)}"
    )
    if level < 3:
        return for_unknown(rng, figure, value, rule + ".", unit="degree")
    answer = states[0].at(value)
    corner = _corner(names, 0)
    solution = f"{rule} and m∠{names[0]} = {states[0]} = {plain(answer)}."
    return Draft(
        figure,
        find_angle(rng, names[0]),
        answer,
        lambda f: f.angle(*corner),
        solution,
        {"x": value},
        unit="degree",
    )


@family("polygon_exterior_angles")
def polygon_exterior_angles(rng: np.random.Generator, level: int) -> Draft:
    """The exterior angles of a convex polygon, one at each vertex, add up to 360°."""
    count = pick(rng, (3, 4, 5))
    names = [f"_{letter}" for letter in letters(rng, count)]
    figure = Figure(letters=False)
    if count == 3:
        a, b = whole(rng, 45, 75), whole(rng, 45, 75)
        figure.point(names[0], 0)
        figure.point(names[1], 1.6)
        side = 1.6 * math.sin(math.radians(b)) / math.sin(math.radians(a + b))
        figure.point(names[2], polar(side, a))
        angles = [a, b, 180 - a - b]
    else:
        angles = convex_polygon(rng, figure, names)
    outside = []
    for index in range(count):
        before, vertex, after = _corner(names, index)
        step = figure.points[vertex] - figure.points[before]
        end = figure.hidden(figure.points[vertex] + step / abs(step) * 0.7)
        figure.segment(before, end, arrow_b=True)
        outside.append((end, vertex, after))
    x = whole(rng, 8, 30)
    states = [linear(180 - angle) for angle in angles]
    if level == 1:
        states[0] = linear("x")
    else:
        for index in range(count if level == 3 else 2):
            states[index] = expression(rng, 180 - angles[index], x, slopes=(1, 2, 3))
    for corner, label in zip(outside, states, strict=True):
        figure.label_angle(*corner, label)
    full = sum(states[1:], states[0])
    value = full.solve(360)
    solution = f"The exterior angles add up to 360°: {full} = 360, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution, unit="degree")


@family("regular_polygon")
def regular_polygon(rng: np.random.Generator, level: int) -> Draft:
    """Angles of a regular polygon; at level 3 a diagonal or a distance in a regular hexagon."""
    if level == 3:
        return _hexagon_diagonal(rng)
    count = pick(rng, sorted(NAMES))
    names = letters(rng, count)
    figure = Figure()
    for index, name in enumerate(names):
        figure.point(name, polar(10, -90 + 360 / count * (index - 0.5)))
    figure.polygon(*names)
    a, b, c = names[:3]
    name = f"In the figure, {''.join(names)} is a regular {NAMES[count]}."
    inner = sympy.Rational(180 * (count - 2), count)
    if level == 1:
        centre = figure.point("O", 0)
        figure.dots.append(centre)
        figure.segment(centre, a)
        figure.segment(centre, b)
        answer = sympy.Rational(360, count)
        solution = f"The {count} central angles are equal and add up to 360°: 360/{count} = {answer}."
        question = f"{name} O is its center. {find_angle(rng, a + centre + b)}"
        return Draft(figure, question, answer, lambda f: f.angle(a, centre, b), solution, unit="degree")
    figure.segment(a, c)
    answer = (180 - inner) / 2
    solution = (
        f"Each interior angle is ({count} − 2) · 180°/{count} = {inner}°. Triangle {a}{b}{c} is "
        f"isosceles, so m∠{b}{a}{c} = "
        f"(180 − {inner})/2 = {answer}."
    )
    if chance(rng, 0.5):
        d = names[3]
        answer = inner - answer
        solution += f" Then m∠{a}{c}{d} = {inner} − {plain(inner - answer)} = {plain(answer)}."
        question = f"{name} {find_angle(rng, a + c + d)}"
        return Draft(figure, question, answer, lambda f: f.angle(a, c, d), solution, unit="degree")
    question = f"{name} {find_angle(rng, b + a + c)}"
    return Draft(figure, question, answer, lambda f: f.angle(b, a, c), solution, unit="degree")


def _hexagon_diagonal(rng: np.random.Generator) -> Draft:
    """The diagonals of a regular hexagon from its side, or its side from one of them."""
    names = letters(rng, 6)
    side = whole(rng, 3, 24)
    figure = Figure()
    for index, name in enumerate(names):
        figure.point(name, polar(side, 60 * index))
    figure.polygon(*names)
    a, b, c, d = names[:4]
    name = f"Hexagon {''.join(names)} is regular."
    figure.label_length(a, b, side)
    if chance(rng, 0.6):
        figure.segment(a, c)
        answer = side * sympy.sqrt(3)
        solution = (
            f"Triangle {a}{b}{c} is isosceles with 120° at {b}; half of it is a 30-60-90 triangle "
            f"with hypotenuse {side}, so "
            f"{a}{c} = 2 · {side} · √3/2 = {plain(answer)}."
        )
        return Draft(figure, f"{name} {find_length(rng, a + c)}", answer, lambda f: f.length(a, c), solution)
    figure.segment(b, d)
    figure.segment(a, d)
    answer = sympy.Integer(side) * 2 * side * sympy.sqrt(3) / 4
    solution = (
        f"{a}{d} = 2 · {side} passes through the center and angle {a}{b}{d} is right, so {b}{d} = "
        f"{side}√3 and the "
        f"area of triangle {a}{b}{d} is half of {side} · {side}√3, or "
        f"{plain(sympy.Integer(side) ** 2 * sympy.sqrt(3) / 2)}."
    )
    question = f"{name} Find the area of $\\triangle {a}{b}{d}$."
    return Draft(figure, question, answer, lambda f: f.area(a, b, d), solution, unit="area")
