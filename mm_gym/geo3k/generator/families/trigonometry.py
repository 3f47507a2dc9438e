"""Sine, cosine and tangent in right triangles; the laws of sines and cosines in all."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import rounded
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import cosine, right_triangle, sine
from mm_gym.geo3k.generator.families.similarity import triangle_from_sides
from mm_gym.geo3k.generator.families.triangle_angles import triangle_angles, triangle_from_angles
from mm_gym.geo3k.generator.figure import Figure, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import (
    chance,
    find_angle,
    find_length,
    for_unknown,
    letters,
    pick,
    whole,
)


@family("law_of_sines")
def law_of_sines(rng: np.random.Generator, level: int) -> Draft:
    """A side from two angles and a side; an angle at level 2; by way of the third angle at level 3."""
    a, b, c = letters(rng, 3)
    if level == 2:
        return _angle_by_sines(rng, a, b, c)
    at_a, at_b, at_c = triangle_angles(rng)
    side = whole(rng, 6, 40)  # the side ab, across from c
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    triangle_from_angles(figure, a, b, c, at_a, at_b, side)
    figure.polygon(a, b, c)
    figure.label_length(a, b, side)
    figure.label_angle(b, a, c, at_a)
    value = side * sine(at_a) / sine(at_c)
    if level == 1:
        figure.label_angle(a, c, b, at_c)
        figure.label_length(b, c, "x")
        solution = (
            f"By the law of sines x / sin {at_a}° = {side} / sin {at_c}°, so x = {side} · sin {at_a}° "
            f"/ sin {at_c}° ≈ "
            f"{rounded(value, 1)}."
        )
        return for_unknown(rng, figure, value, solution, places=1)
    figure.label_angle(a, b, c, at_b)
    solution = (
        f"The third angle is 180° − {at_a}° − {at_b}° = {at_c}°. By the law of sines {b}{c} / sin "
        f"{at_a}° = {side} / "
        f"sin {at_c}°, so {b}{c} ≈ {rounded(value, 1)}."
    )
    return Draft(figure, find_length(rng, b + c), value, lambda f: f.length(b, c), solution, places=1)


def _angle_by_sines(rng: np.random.Generator, a: str, b: str, c: str) -> Draft:
    """The angle across from the shorter of two sides, so that only one angle fits."""
    at_a, across, other = whole(rng, 40, 110), whole(rng, 14, 40), whole(rng, 8, 38)
    ratio = other * sine(at_a) / across
    if other > 0.92 * across or not 0.42 < float(ratio) < 0.9:
        raise Unsuitable("two triangles, or a narrow one")
    at_b = math.degrees(math.asin(float(ratio)))
    if 180 - at_a - at_b < 25:
        raise Unsuitable("a narrow triangle")
    figure = Figure()
    base = across * math.sin(math.radians(at_a + at_b)) / math.sin(math.radians(at_a))
    figure.point(a, 0)
    figure.point(b, base)
    figure.point(c, polar(other, at_a))
    figure.polygon(a, b, c)
    figure.label_angle(b, a, c, at_a)
    figure.label_length(b, c, across)
    figure.label_length(a, c, other)
    answer = sympy.asin(ratio) * 180 / sympy.pi
    solution = (
        f"By the law of sines sin {b} / {other} = sin {at_a}° / {across}; {b} faces the shorter side, so "
        f"m∠{b} ≈ {rounded(answer, 1)}°."
    )
    return Draft(
        figure, find_angle(rng, b), answer, lambda f: f.angle(a, b, c), solution, places=1, unit="degree"
    )


@family("law_of_cosines")
def law_of_cosines(rng: np.random.Generator, level: int) -> Draft:
    """A side from two sides and their angle; at level 2 an angle from three sides; at level 3 a perimeter."""
    a, b, c = letters(rng, 3)
    if level == 2:
        return _angle_by_cosines(rng, a, b, c)
    at_a, ab, ac = whole(rng, 35, 125), whole(rng, 6, 30), whole(rng, 6, 30)
    if at_a in (60, 90, 120) or not 0.5 < ab / ac < 2:
        raise Unsuitable("a special angle or a narrow triangle")
    value = sympy.sqrt(ab**2 + ac**2 - 2 * ab * ac * cosine(at_a))
    figure = Figure(letters=level == 3 or chance(rng, 0.5))
    figure.point(a, 0)
    figure.point(b, ab)
    figure.point(c, polar(ac, at_a))
    figure.polygon(a, b, c)
    figure.label_length(a, b, ab)
    figure.label_length(a, c, ac)
    figure.label_angle(b, a, c, at_a)
    name = "x" if level == 1 else b + c
    rule = (
        f"By the law of cosines {name}² = {ab}² + {ac}² − 2 · {ab} · {ac} · cos {at_a}°, so {name} ≈ "
        f"{rounded(value, 1)}"
    )
    if level == 1:
        figure.label_length(b, c, "x")
        return for_unknown(rng, figure, value, rule + ".", places=1)
    answer = ab + ac + value
    question = f"Find the perimeter of $\\triangle {a}{b}{c}$."
    solution = f"{rule} and the perimeter is about {rounded(answer, 1)}."
    return Draft(figure, question, answer, lambda f: f.perimeter(a, b, c), solution, places=1)


def _angle_by_cosines(rng: np.random.Generator, a: str, b: str, c: str) -> Draft:
    ab, bc, ca = (whole(rng, 6, 32) for _ in range(3))
    figure = Figure()
    triangle_from_sides(figure, (a, b, c), ab, bc, ca)
    figure.polygon(a, b, c)
    for p, q, side in ((a, b, ab), (b, c, bc), (c, a, ca)):
        figure.label_length(p, q, side)
    ratio = sympy.Rational(ab**2 + ca**2 - bc**2, 2 * ab * ca)
    answer = sympy.acos(ratio) * 180 / sympy.pi
    if ratio == 0 or abs(ratio) == sympy.Rational(1, 2) or float(answer) < 25:
        raise Unsuitable("a special or narrow angle")
    solution = (
        f"By the law of cosines cos {a} = ({ab}² + {ca}² − {bc}²) / (2 · {ab} · {ca}), so m∠{a} ≈ "
        f"{rounded(answer, 1)}°."
    )
    return Draft(
        figure, find_angle(rng, a), answer, lambda f: f.angle(b, a, c), solution, places=1, unit="degree"
    )


@family("right_triangle_trigonometry")
def right_triangle_trigonometry(rng: np.random.Generator, level: int) -> Draft:
    """A side from an angle and a side; an angle from two sides at level 2; two triangles at level 3."""
    if level == 3:
        return _two_elevations(rng)
    a, b, right = letters(rng, 3)
    figure = Figure(letters=level == 2 or chance(rng, 0.4))
    if level == 2:
        return _angle_from_sides(rng, figure, a, b, right)
    at_a, size = whole(rng, 24, 66), whole(rng, 5, 40)
    if at_a in (30, 45, 60):
        raise Unsuitable("a special triangle")
    sides = {"opposite": sine(at_a), "adjacent": cosine(at_a), "hypotenuse": sympy.Integer(1)}
    known, asked = (pick(rng, sorted(sides)) for _ in range(2))
    if known == asked:
        raise Unsuitable("nothing is asked")
    value = size * sides[asked] / sides[known]
    unit = size / float(sides[known])
    right_triangle(figure, a, b, right, unit * float(cosine(at_a)), unit * float(sine(at_a)))
    ends = {"opposite": (right, b), "adjacent": (right, a), "hypotenuse": (a, b)}
    figure.label_angle(right, a, b, at_a)
    figure.label_length(*ends[known], size)
    figure.label_length(*ends[asked], "x")
    name = {frozenset(("opposite", "hypotenuse")): "sin", frozenset(("adjacent", "hypotenuse")): "cos"}
    function = name.get(frozenset((known, asked)), "tan")
    over = {
        "sin": ("opposite", "hypotenuse"),
        "cos": ("adjacent", "hypotenuse"),
        "tan": ("opposite", "adjacent"),
    }
    top, bottom = (("x" if side == asked else str(size)) for side in over[function])
    solution = f"{function} {at_a}° = {top}/{bottom}, so x ≈ {rounded(value, 1)}."
    return for_unknown(rng, figure, value, solution, places=1)


def _angle_from_sides(rng: np.random.Generator, figure: Figure, a: str, b: str, right: str) -> Draft:
    leg_a, leg_b = whole(rng, 4, 25), whole(rng, 4, 25)
    ratio = sympy.Rational(leg_b, leg_a)
    hypotenuse = sympy.sqrt(leg_a**2 + leg_b**2)
    right_triangle(figure, a, b, right, leg_a, leg_b)
    figure.label_length(right, a, leg_a)
    if hypotenuse.is_Integer and chance(rng, 0.8):
        figure.label_length(a, b, hypotenuse)
        answer, text = sympy.acos(leg_a / hypotenuse) * 180 / sympy.pi, f"cos {a} = {leg_a}/{hypotenuse}"
    else:
        figure.label_length(right, b, leg_b)
        answer, text = sympy.atan(ratio) * 180 / sympy.pi, f"tan {a} = {leg_b}/{leg_a}"
    if not answer.has(sympy.atan, sympy.acos) or not 22 < float(answer) < 70:
        raise Unsuitable("a steep or special angle")
    solution = f"{text}, so m∠{a} ≈ {rounded(answer, 1)}°."
    return Draft(
        figure, find_angle(rng, a), answer, lambda f: f.angle(right, a, b), solution, places=1, unit="degree"
    )


def _two_elevations(rng: np.random.Generator) -> Draft:
    """A height seen under one angle gives the distance to its foot, and with that a second slope."""
    a, b, c, d = letters(rng, 4)
    at_a, at_b, base = whole(rng, 25, 42), whole(rng, 48, 70), whole(rng, 8, 40)
    height = base * sympy.tan(sympy.pi * sympy.Rational(at_a, 180))
    figure = Figure()
    figure.point(d, 0)
    figure.point(a, -base)
    figure.point(c, complex(0, float(height)))
    value = height / sine(at_b)
    figure.point(b, float(height) / np.tan(np.radians(at_b)))
    figure.polygon(a, b, c)
    figure.segment(c, d, dashed=chance(rng, 0.5))
    figure.right_angle(a, d, c)
    figure.label_angle(d, a, c, at_a)
    figure.label_angle(d, b, c, at_b)
    figure.label_length(a, d, base)
    figure.label_length(c, b, "x")
    solution = (
        f"{c}{d} = {base} · tan {at_a}° ≈ {rounded(height, 2)}, and sin {at_b}° = {c}{d}/x, so x ≈ "
        f"{rounded(value, 1)}."
    )
    return for_unknown(rng, figure, value, solution, places=1)
