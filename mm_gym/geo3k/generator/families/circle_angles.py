"""Angles and arcs of circles: central, inscribed, between chords, secants and tangents."""

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
    find_arc,
    for_angle,
    for_unknown,
    letters,
    pick,
    told,
    whole,
)

RADIUS = 10.0


def circle_with(
    rng: np.random.Generator, directions: list[float], dot: bool = True
) -> tuple[Figure, list[str], str]:
    """A circle about a centre with lettered points on it in the given directions (degrees)."""
    names = letters(rng, len(directions) + 1)
    centre = "O" if chance(rng, 0.5) else names[-1]
    figure = Figure()
    figure.point(centre if dot else "_centre", 0)
    centre = centre if dot else "_centre"
    for name, direction in zip(names, directions, strict=False):
        figure.point(name, polar(RADIUS, direction))
    figure.circle(centre, RADIUS, *names[: len(directions)])
    if dot:
        figure.dots.append(centre)
    return figure, names[: len(directions)], centre


def split_circle(rng: np.random.Generator, count: int, least: int = 40, most: int = 150) -> list[int]:
    """Whole arcs that add up to 360 degrees, each between the bounds."""
    arcs = [whole(rng, least, most) for _ in range(count - 1)]
    arcs.append(360 - sum(arcs))
    if not least <= arcs[-1] <= most or len(set(arcs)) < count:
        raise Unsuitable(f"arcs {arcs}")
    return arcs


def _starts(arcs: list[int]) -> list[float]:
    return [float(sum(arcs[:index])) for index in range(len(arcs))]


@family("central_angles")
def central_angles(rng: np.random.Generator, level: int) -> Draft:
    """The central angles of a circle add up to 360°; at level 3 two beside a diameter give an arc."""
    if level == 3:
        return _beside_diameter(rng)
    arcs = split_circle(rng, pick(rng, (3, 4)), least=35)
    figure, names, centre = circle_with(rng, _starts(arcs))
    figure.letters = chance(rng, 0.6)
    for name in names:
        figure.segment(centre, name)
    x = whole(rng, 8, 30)
    states = [linear(arc) for arc in arcs]
    if level == 1:
        states[0] = linear("x")
    else:
        for index in (0, 1):
            states[index] = expression(rng, arcs[index], x, slopes=(1, 2, 3, 4))
    for index, label in enumerate(states):
        figure.label_angle(names[index], centre, names[(index + 1) % len(names)], label)
    full = sum(states[1:], states[0])
    value = full.solve(360)
    solution = f"The central angles add up to 360°: {full} = 360, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution, unit="degree")


def _beside_diameter(rng: np.random.Generator) -> Draft:
    first, x = whole(rng, 38, 142), whole(rng, 8, 25)
    figure, (a, b, c), centre = circle_with(rng, [0.0, float(first), 180.0])
    figure.segment(a, centre)
    figure.segment(centre, c)
    figure.segment(centre, b)
    left = figure.label_angle(a, centre, b, expression(rng, first, x, slopes=(1, 2, 3)))
    right = figure.label_angle(b, centre, c, expression(rng, 180 - first, x, slopes=(2, 4, 5)))
    value = (left + right).solve(180)
    steps = f"{a}{c} is a diameter: {left} + {right} = 180, so x = {plain(value)}"
    text = f"In $\\odot {centre}$, $\\overline{{{a}{c}}}$ is a diameter."
    if chance(rng, 0.5):
        answer = right.at(value)
        solution = f"{steps}, and the arc {b}{c} measures as its central angle, {right} = {plain(answer)}."
        return Draft(
            figure,
            f"{text} {find_arc(rng, b + c)}",
            answer,
            lambda f: f.arc_measure(centre, b, c),
            solution,
            {"x": value},
            unit="degree",
        )
    answer = 180 + left.at(value)
    solution = (
        f"{steps}; the arc {c}{a}{b} is a half circle and {left} = {plain(left.at(value))} more: "
        f"{plain(answer)}."
    )
    return Draft(
        figure,
        f"{text} {find_arc(rng, c + a + b)}",
        answer,
        lambda f: f.arc_measure(centre, c, b, via=a),
        solution,
        {"x": value},
        unit="degree",
    )


@family("inscribed_angle")
def inscribed_angle(rng: np.random.Generator, level: int) -> Draft:
    """An inscribed angle is half of its arc; at level 3 a triangle in a half circle."""
    if level == 3:
        return _half_circle(rng)
    arc = 2 * whole(rng, 25, 75)
    vertex = arc + (360 - arc) * float(rng.uniform(0.35, 0.65))
    figure, (a, b, c), centre = circle_with(rng, [0.0, float(arc), vertex])
    figure.letters = chance(rng, 0.6)
    figure.path(a, c, b)
    x = whole(rng, 6, 30)
    to_angle = chance(rng, 0.5)
    if level == 1:
        inside, outside = (linear("x"), linear(arc)) if to_angle else (linear(arc // 2), linear("x"))
    else:
        inside = expression(rng, arc // 2, x, slopes=(1, 2, 3))
        outside = linear(arc) if to_angle else expression(rng, arc, x, slopes=(3, 5, 7))
    figure.label_angle(a, c, b, inside)
    figure.label_arc(centre, a, b, outside)
    value = (inside * 2).solve(outside)
    product = f"2 · {inside}" if inside.known else f"2{inside.grouped()}"
    solution = f"An inscribed angle is half of its arc: {product} = {outside}, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution, unit="degree")


def _half_circle(rng: np.random.Generator) -> Draft:
    """An angle inscribed in a half circle is right, so the other two of the triangle add up to 90°."""
    at_a, x = whole(rng, 24, 66), whole(rng, 5, 20)
    figure, (a, b, c), centre = circle_with(rng, [0.0, 180.0, 180.0 - 2 * at_a])
    figure.path(a, centre, b, c, a)
    if chance(rng, 0.5):
        left = figure.label_angle(c, b, a, expression(rng, 90 - at_a, x, slopes=(1, 2, 3)))
        right = figure.label_angle(b, a, c, expression(rng, at_a, x, slopes=(2, 3, 4)))
        value = (left + right).solve(90)
        solution = (
            f"{a}{b} is a diameter, so the angle at {c} is right and {left} + {right} = 90: x = "
            f"{plain(value)}."
        )
        return for_unknown(rng, figure, value, solution, unit="degree")
    states = figure.label_arc(centre, a, c, 180 - 2 * at_a)
    answer = 90 - states.offset / 2
    solution = (
        f"The angle at {b} is half of its arc, {plain(states.offset / 2)}°; {a}{b} is a diameter, so "
        f"the angle at {c} is "
        f"right and m∠{a} = 90 − {plain(states.offset / 2)} = {plain(answer)}."
    )
    question = f"$\\overline{{{a}{b}}}$ is a diameter of $\\odot {centre}$. {find_angle(rng, b + a + c)}"
    return Draft(figure, question, answer, lambda f: f.angle(b, a, c), solution, unit="degree")


@family("angles_between_chords")
def angles_between_chords(rng: np.random.Generator, level: int) -> Draft:
    """Two chords cross at half of the sum of the arcs between them."""
    arcs = split_circle(rng, 4, least=36, most=140)
    if (arcs[0] + arcs[2]) % 2:
        raise Unsuitable("half degrees")
    figure, (a, b, c, d), centre = circle_with(rng, _starts(arcs), dot=False)
    (e,) = fresh(figure, 1, "EFGKX")
    points = figure.points
    figure.point(e, crossing(points[a], points[c], points[b], points[d]))
    for name in (a, b, c, d):
        figure.segment(e, name)
    figure.letters = level == 3 or chance(rng, 0.6)
    angle, x = (arcs[0] + arcs[2]) // 2, whole(rng, 6, 28)
    if level == 1:
        states = [linear(arcs[0]), linear(arcs[2]), linear("x")]
    elif level == 2:
        states = [linear(arcs[0]), linear("x"), linear(angle)]
    else:
        states = [
            expression(rng, arcs[0], x, slopes=(1, 2, 3)),
            expression(rng, arcs[2], x, slopes=(1, 3, 4)),
            expression(rng, angle, x, slopes=(2, 4, 5)),
        ]
    figure.label_arc(centre, a, b, states[0])
    figure.label_arc(centre, c, d, states[1])
    figure.label_angle(a, e, b, states[2])
    value = (states[0] + states[1]).solve(states[2] * 2)
    rule = (
        f"The angle between two chords is half of the sum of its arcs: ({states[0]} + {states[1]})/2 "
        f"= {states[2]}, so "
        f"x = {plain(value)}"
    )
    if level < 3:
        return for_unknown(rng, figure, value, rule + ".", unit="degree")
    answer = states[2].at(value)
    solution = f"{rule} and m∠{a}{e}{b} = {states[2]} = {plain(answer)}."
    return for_angle(rng, figure, (a, e, b), answer, solution, unknowns={"x": value})


@family("angles_outside_circle")
def angles_outside_circle(rng: np.random.Generator, level: int) -> Draft:
    """Secants and tangents from outside meet at half of the difference of their arcs."""
    if level == 3:
        return _two_tangents_angle(rng)
    near, far = whole(rng, 24, 70), whole(rng, 90, 160)
    if (far - near) % 2 or far - near < 50:
        raise Unsuitable("half degrees or a narrow angle")
    tilt = float(rng.uniform(-14, 14))
    directions = [near / 2, 180 - far / 2 + tilt, -near / 2, 180 + far / 2 + tilt]
    figure, (a, b, c, d), centre = circle_with(rng, directions, dot=False)
    points = figure.points
    (p,) = fresh(figure, 1)
    figure.point(p, crossing(points[a], points[b], points[c], points[d]))
    if not 0.25 < abs(points[p]) / RADIUS - 1 < 1.6:
        raise Unsuitable("the secants meet too near or too far")
    figure.path(p, a, b)
    figure.path(p, c, d)
    figure.letters = chance(rng, 0.6)
    angle, x = (far - near) // 2, whole(rng, 6, 26)
    if level == 1:
        states = [linear(far), linear(near), linear(angle)]
        states[pick(rng, (0, 2, 2))] = linear("x")
    else:
        states = [
            expression(rng, far, x, slopes=(3, 4, 5)),
            linear(near),
            expression(rng, angle, x, slopes=(1, 2)),
        ]
    figure.label_arc(centre, b, d, states[0])
    figure.label_arc(centre, a, c, states[1])
    figure.label_angle(a, p, c, states[2])
    value = (states[0] + states[1] * -1).solve(states[2] * 2)
    solution = (
        f"The angle of two secants is half of the difference of their arcs: ({states[0]} − "
        f"{states[1]})/2 = {states[2]}, "
        f"so x = {plain(value)}."
    )
    return for_unknown(rng, figure, value, solution, unit="degree")


def _two_tangents_angle(rng: np.random.Generator) -> Draft:
    """Two tangents: the angle and the near arc add up to 180°."""
    arc, x = whole(rng, 90, 145), whole(rng, 8, 25)
    figure, (a, b), centre = circle_with(rng, [arc / 2, -arc / 2])
    (p,) = fresh(figure, 1)
    figure.point(p, RADIUS / np.cos(np.radians(arc / 2)))
    figure.claims += [("perpendicular", (centre, a, p)), ("perpendicular", (centre, b, p))]
    figure.segment(p, a)
    figure.segment(p, b)
    angle = figure.label_angle(a, p, b, expression(rng, 180 - arc, x, slopes=(1, 2, 3)))
    if chance(rng, 0.5):
        near = figure.label_arc(centre, a, b, expression(rng, arc, x, slopes=(2, 3, 4)))
        value = (angle + near).solve(180)
        equation = f"{angle} + {near} = 180"
    else:
        far = figure.hidden(polar(RADIUS, 180))
        states = figure.label_arc(centre, a, b, expression(rng, 360 - arc, x, slopes=(4, 5, 6)), via=far)
        value = (angle + 180).solve(states)
        equation = f"the far arc is 180° more than the angle, {angle} + 180 = {states}"
    solution = f"Two tangents and the radii to them make right angles: {equation}, so x = {plain(value)}."
    draft = for_unknown(rng, figure, value, solution, unit="degree")
    draft.question = f"Assume that segments that appear to be tangent are tangent. {draft.question}"
    return draft


@family("tangent_and_chord")
def tangent_and_chord(rng: np.random.Generator, level: int) -> Draft:
    """A tangent and a chord meet at half of the arc between them."""
    arc = 2 * whole(rng, 30, 80)
    figure, (a, b), centre = circle_with(rng, [-90.0, -90.0 + arc], dot=chance(rng, 0.5))
    c, d = fresh(figure, 2)
    figure.point(c, complex(13, -RADIUS))
    figure.point(d, complex(-13, -RADIUS))
    figure.claims += [("perpendicular", (centre, a, c)), ("perpendicular", (centre, a, d))]
    figure.segment(a, c, arrow_b=True)
    figure.segment(a, d, arrow_b=True)
    figure.segment(a, b)
    x = whole(rng, 6, 28)
    text = f"Line ${c}{d}$ is tangent to the circle at {a}."
    rule = "The angle of a tangent and a chord is half of its arc"
    if level == 3:
        far = figure.hidden(polar(RADIUS, arc / 2 + 90))
        far_arc = figure.label_arc(centre, a, b, 360 - arc, via=far)
        answer = (360 - far_arc.offset) / 2
        solution = (
            f"{rule}. The arc inside angle {b}{a}{c} is 360 − {far_arc} = {arc}, so m∠{b}{a}{c} = "
            f"{plain(answer)}."
        )
        return told(text, for_angle(rng, figure, (b, a, c), answer, solution))
    if level == 1:
        angle, outside = (linear("x"), linear(arc)) if chance(rng, 0.5) else (linear(arc // 2), linear("x"))
    else:
        angle = expression(rng, arc // 2, x, slopes=(1, 2, 3))
        outside = expression(rng, arc, x, slopes=(3, 5, 7)) if chance(rng, 0.5) else linear(arc)
    figure.label_angle(b, a, c, angle)
    figure.label_arc(centre, a, b, outside)
    value = (angle * 2).solve(outside)
    product = f"2 · {angle}" if angle.known else f"2{angle.grouped()}"
    solution = f"{rule}: {product} = {outside}, so x = {plain(value)}."
    return told(text, for_unknown(rng, figure, value, solution, unit="degree"))


@family("cyclic_quadrilateral")
def cyclic_quadrilateral(rng: np.random.Generator, level: int) -> Draft:
    """Opposite angles of a quadrilateral in a circle add up to 180°."""
    arcs = split_circle(rng, 4, least=45, most=140)
    figure, names, centre = circle_with(rng, _starts(arcs), dot=False)
    a, b, c, d = names
    figure.polygon(a, b, c, d)
    at_b, at_d = sympy.Rational(arcs[2] + arcs[3], 2), sympy.Rational(arcs[0] + arcs[1], 2)
    if at_b.q > 1 or abs(at_b - at_d) < 8:
        raise Unsuitable("half degrees or right angles")
    text = f"Quadrilateral {a}{b}{c}{d} is inscribed in a circle."
    rule = "Opposite angles of a quadrilateral inscribed in a circle add up to 180°"
    if level == 3:
        first = figure.label_arc(centre, c, d, arcs[2])
        second = figure.label_arc(centre, d, a, arcs[3])
        answer = 180 - (first.offset + second.offset) / 2
        solution = (
            f"m∠{b} is half of the arcs {c}{d} and {d}{a}, ({first} + {second})/2 = "
            f"{plain(180 - answer)}. {rule}, so "
            f"m∠{d} = 180 − {plain(180 - answer)} = {plain(answer)}."
        )
        question = f"{text} {find_angle(rng, d)}"
        return Draft(figure, question, answer, lambda f: f.angle(c, d, a), solution, unit="degree")
    x = whole(rng, 6, 28)
    if level == 1:
        first, second = linear(at_b), linear("x")
    else:
        first = expression(rng, int(at_b), x, slopes=(1, 2, 3, 4))
        second = expression(rng, int(at_d), x, slopes=(1, 2, 3, 5))
    figure.label_angle(a, b, c, first)
    figure.label_angle(c, d, a, second)
    figure.letters = chance(rng, 0.6)
    value = (first + second).solve(180)
    return for_unknown(
        rng, figure, value, f"{rule}: {first} + {second} = 180, so x = {plain(value)}.", unit="degree"
    )


def fresh(figure: Figure, count: int, letters_from: str = "PQRSTUVWXYZABCDEFGHJKLMN") -> list[str]:
    """Letters that the figure does not use yet."""
    return [letter for letter in letters_from if letter not in figure.points][:count]
