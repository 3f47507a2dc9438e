"""Angles at intersecting and at parallel lines."""

from __future__ import annotations

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
    for_unknown,
    letters,
    pick,
    whole,
)

PAIRS = (  # name, position at the lower line, position at the upper line, relation
    ("Corresponding angles", 0, 0, "equal"),
    ("Corresponding angles", 2, 2, "equal"),
    ("Alternate interior angles", 1, 3, "equal"),
    ("Alternate interior angles", 0, 2, "equal"),
    ("Alternate exterior angles", 2, 0, "equal"),
    ("Consecutive interior angles", 0, 3, "supplementary"),
    ("Consecutive interior angles", 1, 2, "supplementary"),
)


def _transversal(rng: np.random.Generator, figure: Figure, slant: int) -> list[list[tuple[str, str, str]]]:
    """Two parallel lines and a transversal; the four angles at either crossing, from the right.

    Angles 0 and 2 measure `slant`, 1 and 3 its supplement.
    """
    height = 10.0
    step = polar(height / np.sin(np.radians(slant)), slant)
    low, high = figure.hidden(0), figure.hidden(step)
    left, right = min(0, step.real) - 11, max(0, step.real) + 11
    rows = []
    for at in (0, step):
        start, end = figure.hidden(complex(left, at.imag)), figure.hidden(complex(right, at.imag))
        figure.segment(start, end, arrow_a=True, arrow_b=True)
        rows.append((start, end))
    bottom, top = figure.line(low, high, 9, 9)
    angles = []
    for vertex, (start, end), up, down in ((low, rows[0], high, bottom), (high, rows[1], top, low)):
        around = [end, up, start, down]
        angles.append([(around[i], vertex, around[(i + 1) % 4]) for i in range(4)])
    for _, end in rows:
        mark = figure.points[end] - 2.6
        figure.arrow(figure.hidden(mark - 1), figure.hidden(mark))
    return angles


@family("parallel_lines")
def parallel_lines(rng: np.random.Generator, level: int) -> Draft:
    """A transversal of two parallel lines; at level 3 the angle of a bent line between them."""
    if level == 3:
        return _bent_line(rng)
    slant = pick(rng, (whole(rng, 40, 78), whole(rng, 102, 140)))
    figure = Figure(letters=False)
    angles = _transversal(rng, figure, slant)
    name, lower, upper, relation = pick(rng, PAIRS)
    first, second = angles[0][lower], angles[1][upper]
    sizes = [slant if position % 2 == 0 else 180 - slant for position in (lower, upper)]
    if level == 1 and chance(rng, 0.5):
        return _numbered(rng, figure, angles, (name, lower, upper, relation), sizes[0])
    if level == 1:
        labels = [linear(sizes[0]), linear("x")]
    else:
        x = whole(rng, 6, 28)
        labels = [
            expression(rng, sizes[0], x, slopes=(1, 2, 3)),
            expression(rng, sizes[1], x, slopes=(4, 5, 6)),
        ]
    figure.label_angle(*first, labels[0])
    figure.label_angle(*second, labels[1])
    if relation == "equal":
        value = labels[0].solve(labels[1])
        solution = f"{name} at parallel lines are equal: {labels[0]} = {labels[1]}, so x = {plain(value)}."
    else:
        value = (labels[0] + labels[1]).solve(180)
        solution = f"{name} add up to 180°: {labels[0]} + {labels[1]} = 180, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution, unit="degree", echoes=level == 1)


def _numbered(
    rng: np.random.Generator,
    figure: Figure,
    angles: list[list[tuple[str, str, str]]],
    pair: tuple[str, int, int, str],
    size: int,
) -> Draft:
    """All eight angles bear numbers; the question names two of them."""
    name, lower, upper, relation = pair
    numbers = [int(n) for n in rng.permutation(8) + 1] if chance(rng, 0.3) else [2, 1, 3, 4, 6, 5, 7, 8]
    for number, angle in zip(numbers, (*angles[1], *angles[0]), strict=True):
        figure.number_angle(*angle, number)
    known, asked = numbers[4 + lower], numbers[upper]
    given = figure.given("angle", angles[0][lower], size).offset
    answer = given if relation == "equal" else 180 - given
    rule = "are equal" if relation == "equal" else "add up to 180°"
    return Draft(
        figure,
        f"In the figure, $m \\angle {known} = {given}$. {find_angle(rng, str(asked))}",
        answer,
        lambda f: f.angle(*angles[1][upper]),
        f"{name} at parallel lines {rule}, so m∠{asked} = {answer}.",
        unit="degree",
        echoes=True,
    )


def _bent_line(rng: np.random.Generator) -> Draft:
    """The angle at B between two parallels is the sum of the two angles at them."""
    a, b, c = letters(rng, 3)
    upper, lower = whole(rng, 25, 60), whole(rng, 25, 60)
    figure = Figure()
    figure.point(b, 0)
    rise, fall = whole(rng, 5, 8), whole(rng, 5, 8)
    figure.point(a, complex(rise / np.tan(np.radians(upper)), rise))
    figure.point(c, complex(fall / np.tan(np.radians(lower)), -fall))
    ends = []
    for name in (a, c):
        at = figure.points[name]
        start, end = figure.hidden(complex(-3, at.imag)), figure.hidden(complex(at.real + 8, at.imag))
        figure.segment(start, end, arrow_a=True, arrow_b=True)
        figure.arrow(name, end)
        ends.append(start)
    figure.path(a, b, c)
    first, second = figure.label_angle(ends[0], a, b, upper), figure.label_angle(ends[1], c, b, lower)
    if chance(rng, 0.5):
        x = whole(rng, 5, 20)
        figure.labels.pop()
        second = figure.label_angle(ends[1], c, b, "x")
        total = figure.label_angle(a, b, c, upper + lower)
        value = (first + second).solve(total)
        solution = (
            f"The parallel through {b} divides the angle there into alternate interior angles: {first} + x = "
            f"{total}, so x = {plain(value)}."
        )
        return for_unknown(rng, figure, value, solution, unit="degree")
    x = whole(rng, 6, 24)
    total = figure.label_angle(a, b, c, expression(rng, upper + lower, x, slopes=(2, 3, 4, 5)))
    value = total.solve(first + second)
    solution = (
        f"The parallel through {b} divides the angle there into alternate interior angles: {total} = "
        f"{first} + {second}, so x = {plain(value)}."
    )
    return for_unknown(rng, figure, value, solution, unit="degree")


@family("intersecting_lines")
def intersecting_lines(rng: np.random.Generator, level: int) -> Draft:
    """Vertical angles and linear pairs; at level 3 three lines through one point."""
    if level == 3:
        return _three_lines(rng)
    slant = whole(rng, 35, 145)
    if abs(slant - 90) < 8:
        raise Unsuitable("nearly perpendicular lines")
    names = letters(rng, 5)
    figure = Figure(letters=chance(rng, 0.5))
    centre = figure.point(names[4], 0)
    for name, direction in zip(names, (0, slant, 180, 180 + slant), strict=False):
        figure.point(name, polar(10, direction))
    figure.segment(names[2], names[0], arrow_a=True, arrow_b=True)
    figure.segment(names[3], names[1], arrow_a=True, arrow_b=True)
    vertical = chance(rng, 0.5)
    sizes = (slant, slant if vertical else 180 - slant)
    x = whole(rng, 6, 28)
    if level == 1:
        first, second = linear(sizes[0]), linear("x")
    else:
        first, second = (
            expression(rng, sizes[0], x, slopes=(1, 2, 3)),
            expression(rng, sizes[1], x, slopes=(4, 5, 6)),
        )
    figure.label_angle(names[0], centre, names[1], first)
    if vertical:
        figure.label_angle(names[2], centre, names[3], second)
        value = first.solve(second)
        solution = f"Vertical angles are equal: {first} = {second}, so x = {plain(value)}."
    else:
        figure.label_angle(names[1], centre, names[2], second)
        value = (first + second).solve(180)
        solution = f"The two angles form a straight line: {first} + {second} = 180, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution, unit="degree", echoes=level == 1)


def _three_lines(rng: np.random.Generator) -> Draft:
    """Three lines through a point: two numbered or labelled angles give a third across."""
    names = letters(rng, 7)
    first, second = whole(rng, 30, 80), whole(rng, 30, 80)
    third = 180 - first - second
    if third < 30 or third in (first, second):
        raise Unsuitable("a narrow angle")
    figure = Figure()
    centre = figure.point(names[6], 0)
    for index, direction in enumerate((0, first, first + second)):
        figure.point(names[index], polar(10, direction))
        figure.point(names[index + 3], polar(10, direction + 180))
        figure.segment(names[index], names[index + 3], arrow_a=True, arrow_b=True)
    given = [figure.label_angle(names[0], centre, names[1], first)]
    given.append(figure.label_angle(names[1], centre, names[2], second))
    p, q = names[5], names[0]  # vertical to the third angle, between the third line and the first
    answer = sympy.Integer(180) - given[0].offset - given[1].offset
    solution = (
        f"Angle {p}{centre}{q} is vertical to the angle between rays {centre}{names[2]} and "
        f"{centre}{names[3]}, which "
        f"completes a straight line: 180 − {first} − {second} = {answer}."
    )
    question = find_angle(rng, p + centre + q)
    return Draft(figure, question, answer, lambda f: f.angle(p, centre, q), solution, unit="degree")
