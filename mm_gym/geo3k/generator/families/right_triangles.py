"""Right triangles: Pythagoras, the two special ones, the altitude on the hypotenuse."""

from __future__ import annotations

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.figure import Figure, polar
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

TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29), (9, 40, 41), (12, 35, 37))


def scaled_triple(rng: np.random.Generator, most: int = 4) -> tuple[int, int, int]:
    """Legs, in either order, and hypotenuse of a right triangle with whole sides, small triples enlarged."""
    p, q, r = pick(rng, TRIPLES[:4])
    factor = whole(rng, 1, most) if r < 10 else whole(rng, 1, 2)
    return (p * factor, q * factor, r * factor) if chance(rng, 0.5) else (q * factor, p * factor, r * factor)


def right_triangle(figure: Figure, a: str, b: str, right: str, leg_a: float, leg_b: float) -> None:
    """Draw a right triangle with the right angle at the origin and legs `leg_a` to a and `leg_b` to b."""
    figure.point(right, 0)
    figure.point(a, leg_a)
    figure.point(b, complex(0, leg_b))
    figure.polygon(a, b, right)
    figure.right_angle(a, right, b)


def sine(degrees: int) -> sympy.Expr:
    """The exact sine of whole degrees."""
    return sympy.sin(sympy.pi * sympy.Rational(degrees, 180))


def cosine(degrees: int) -> sympy.Expr:
    """The exact cosine of whole degrees."""
    return sympy.cos(sympy.pi * sympy.Rational(degrees, 180))


def simple_root(value: sympy.Expr, largest: int = 60) -> bool:
    """Whether a square root is a number, or a root of which no textbook is ashamed."""
    _, rest = value.as_coeff_Mul()
    return rest == 1 or (rest.is_Pow and rest.base <= largest)


@family("pythagoras")
def pythagoras(rng: np.random.Generator, level: int) -> Draft:
    """Two sides of a right triangle give the third; at level 3 two triangles share an altitude."""
    if level == 3:
        return _shared_altitude(rng)
    a, b, right = letters(rng, 3)
    if level == 1:
        p, q, _ = pick(rng, TRIPLES[:5])
        factor = whole(rng, 1, 4) if p < 10 else 1
        p, q = p * factor, q * factor
        leg_a, leg_b = (p, q) if chance(rng, 0.5) else (q, p)
    else:
        leg_a, leg_b = whole(rng, 2, 15), whole(rng, 2, 15)
    hypotenuse = sympy.sqrt(leg_a**2 + leg_b**2)
    figure = Figure(letters=chance(rng, 0.4))
    if level == 2 and chance(rng, 0.5):  # a whole hypotenuse, a root as a leg
        long_side = whole(rng, leg_a + 2, leg_a + 14)
        root = sympy.sqrt(long_side**2 - leg_a**2)
        right_triangle(figure, a, b, right, leg_a, float(root))
        sides = ((right, b), (right, a, leg_a), (a, b, long_side))
        value, sum_text = root, f"x² = {long_side}² − {leg_a}²"
    elif level == 1 and chance(rng, 0.5):
        right_triangle(figure, a, b, right, leg_a, leg_b)
        sides = ((right, b), (right, a, leg_a), (a, b, int(hypotenuse)))
        value = sympy.sqrt(int(hypotenuse) ** 2 - leg_a**2)
        sum_text = f"x² = {int(hypotenuse)}² − {leg_a}²"
    else:
        right_triangle(figure, a, b, right, leg_a, leg_b)
        sides = ((a, b), (right, a, leg_a), (right, b, leg_b))
        value, sum_text = hypotenuse, f"x² = {leg_a}² + {leg_b}²"
    if (level == 2) == bool(value.is_Integer) or not simple_root(value):
        raise Unsuitable(f"{value} does not suit level {level}")
    figure.label_length(*sides[0], "x")
    for end_a, end_b, size in sides[1:]:
        figure.label_length(end_a, end_b, size)
    solution = f"By the Pythagorean theorem {sum_text} = {plain(value**2)}, so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution)


def _shared_altitude(rng: np.random.Generator) -> Draft:
    """The altitude from one triangle's Pythagoras carries over to the other's."""
    a, b, c, d = letters(rng, 4)
    leg, height, slant = pick(rng, TRIPLES[:5])
    if chance(rng, 0.5):
        leg, height = height, leg
    rest = whole(rng, 4, 24)
    figure = Figure()
    figure.point(d, 0)
    figure.point(a, -leg)
    figure.point(b, rest)
    figure.point(c, complex(0, height))
    figure.polygon(a, b, c)
    figure.segment(c, d, dashed=chance(rng, 0.5))
    figure.right_angle(b, d, c)
    figure.label_length(a, d, leg)
    figure.label_length(a, c, slant)
    altitude = sympy.sqrt(slant**2 - leg**2)
    first = f"In triangle {a}{d}{c}, {c}{d}² = {slant}² − {leg}² = {plain(altitude**2)}"
    if chance(rng, 0.5):
        figure.label_length(d, b, rest)
        answer = sympy.sqrt(altitude**2 + rest**2)
        if not simple_root(answer, 150):
            raise Unsuitable("an ugly root")
        solution = f"{first}; then {c}{b}² = {plain(altitude**2)} + {rest}², so {c}{b} = {plain(answer)}."
        return Draft(figure, find_length(rng, c + b), answer, lambda f: f.length(c, b), solution)
    answer = altitude * (leg + rest) / 2
    figure.label_length(d, b, rest)
    solution = (
        f"{first}, so {c}{d} = {plain(altitude)}. The base is {leg} + {rest} = {leg + rest}, the area half "
        f"of base times height: {plain(answer)}."
    )
    question = f"Find the area of $\\triangle {a}{b}{c}$."
    return Draft(figure, question, answer, lambda f: f.area(a, b, c), solution, unit="area")


@family("special_30_60_90")
def special_30_60_90(rng: np.random.Generator, level: int) -> Draft:
    """Sides in the ratio 1 : √3 : 2; at level 3 in an equilateral triangle or beside a 45-45-90."""
    if level == 3:
        return _equilateral_altitude(rng) if chance(rng, 0.5) else _half_square_on_half_equilateral(rng)
    a, b, right = letters(rng, 3)
    size = whole(rng, 3, 24)
    root = sympy.sqrt(3)
    asked = pick(rng, ("short", "long", "hypotenuse"))
    known = pick(rng, [side for side in ("short", "long", "hypotenuse") if side != asked])
    if (level == 1) == (known == "long" or (known == "hypotenuse" and size % 2 == 1)):
        raise Unsuitable("level 1 has no fractions, level 2 has")
    known_size = size * root if known == "long" and chance(rng, 0.5) else sympy.Integer(size)
    ratio = {"short": sympy.Integer(1), "long": root, "hypotenuse": sympy.Integer(2)}
    short = known_size / ratio[known]
    value = sympy.nsimplify(short * ratio[asked])
    figure = Figure(letters=chance(rng, 0.4))
    right_triangle(figure, a, b, right, float(short), float(short * root))  # 60 degrees at a, 30 at b
    ends = {"short": (right, a), "long": (right, b), "hypotenuse": (a, b)}
    figure.label_length(*ends[known], known_size)
    figure.label_length(*ends[asked], "x")
    if chance(rng, 0.5):
        figure.label_angle(right, a, b, 60)
    else:
        figure.label_angle(right, b, a, 30)
    solution = (
        f"In a 30-60-90 triangle the short leg, the long leg and the hypotenuse are as 1 : √3 : 2. The "
        f"{known if known == 'hypotenuse' else known + ' leg'} is {plain(known_size)}, so x = {plain(value)}."
    )
    return for_unknown(rng, figure, value, solution)


def _equilateral_altitude(rng: np.random.Generator) -> Draft:
    """The altitude of an equilateral triangle, from its side or the side from it."""
    a, b, c, d = letters(rng, 4)
    side = whole(rng, 4, 30)
    figure = Figure(letters=chance(rng, 0.6))
    figure.point(a, 0)
    figure.point(b, side)
    figure.point(c, polar(side, 60))
    figure.point(d, side / 2)
    figure.polygon(a, b, c)
    figure.segment(c, d, dashed=True)
    figure.right_angle(b, d, c)
    for p, q in ((a, c), (b, c)):
        figure.ticks(p, q)
    figure.label_angle(d, a, c, 60)
    if chance(rng, 0.5):
        figure.label_length(a, c, side)
        figure.label_length(c, d, "x")
        value = side * sympy.sqrt(3) / 2
        solution = (
            "Equal sides and an angle of 60° make the triangle equilateral, and its altitude halves "
            "it into 30-60-90 "
            f"triangles: x = {side} · √3/2 = {plain(value)}."
        )
    else:
        if side % 2:
            raise Unsuitable("an altitude with a fraction")
        figure.label_length(c, d, side * sympy.sqrt(3) / 2)
        figure.label_length(a, c, "x")
        value = side * sympy.sqrt(3) / 2 * 2 / sympy.sqrt(3)
        solution = (
            "The altitude is the long leg of a 30-60-90 triangle, so x = 2 · "
            f"{plain(side * sympy.sqrt(3) / 2)}/√3 = "
            f"{plain(value)}."
        )
    return for_unknown(rng, figure, value, solution)


def _half_square_on_half_equilateral(rng: np.random.Generator) -> Draft:
    """An altitude shared by a 45-45-90 and a 30-60-90 triangle."""
    a, b, c, d = letters(rng, 4)
    height = whole(rng, 3, 18)
    long_leg = height * sympy.sqrt(3)
    figure = Figure(letters=chance(rng, 0.5))
    figure.point(d, 0)
    figure.point(a, -height)
    figure.point(b, float(long_leg))
    figure.point(c, complex(0, height))
    figure.polygon(a, b, c)
    figure.segment(c, d, dashed=chance(rng, 0.5))
    figure.right_angle(b, d, c)
    figure.label_angle(d, a, c, 45)
    figure.label_angle(d, b, c, 30)
    if chance(rng, 0.5):
        figure.label_length(a, d, height)
        figure.label_length(d, b, "x")
        value, rest = height * sympy.sqrt(3), f"x = {height}√3"
    else:
        figure.label_length(a, c, height * sympy.sqrt(2))
        figure.label_length(c, b, "x")
        value, rest = height * sympy.sqrt(2) / sympy.sqrt(2) * 2, f"x = 2 · {height} = {2 * height}"
    solution = f"The 45-45-90 triangle gives the altitude {height}; in the 30-60-90 triangle {rest}."
    return for_unknown(rng, figure, value, solution)


@family("special_45_45_90")
def special_45_45_90(rng: np.random.Generator, level: int) -> Draft:
    """Sides in the ratio 1 : 1 : √2; at level 3 in a square."""
    if level == 3:
        return _square_diagonal(rng)
    a, b, right = letters(rng, 3)
    size = whole(rng, 3, 30)
    figure = Figure(letters=chance(rng, 0.4))
    if level == 1:
        value = size * sympy.sqrt(2)
        right_triangle(figure, a, b, right, size, size)
        figure.label_length(right, a, size)
        figure.label_length(a, b, "x")
        relation = f"the hypotenuse is √2 times a leg: x = {plain(value)}"
    else:
        hypotenuse = size * sympy.sqrt(2) if chance(rng, 0.35) else sympy.Integer(size)
        value = sympy.expand(hypotenuse / sympy.sqrt(2))
        right_triangle(figure, a, b, right, float(value), float(value))
        figure.label_length(a, b, hypotenuse)
        figure.label_length(right, a, "x")
        relation = f"a leg is the hypotenuse divided by √2: x = {plain(hypotenuse)}/√2 = {plain(value)}"
    if chance(rng, 0.6):
        figure.label_angle(right, b, a, 45)
    else:
        figure.ticks(right, a)
        figure.ticks(right, b)
    return for_unknown(rng, figure, value, f"In a 45-45-90 triangle {relation}.")


def _square_diagonal(rng: np.random.Generator) -> Draft:
    """A square's perimeter or area from its diagonal."""
    a, b, c, d = letters(rng, 4)
    half = whole(rng, 2, 16)
    diagonal = half * sympy.sqrt(2) if chance(rng, 0.4) else sympy.Integer(2 * half)
    side = sympy.expand(diagonal / sympy.sqrt(2))
    figure = Figure()
    length = float(side)
    for name, at in zip((a, b, c, d), (0, length, complex(length, length), complex(0, length)), strict=True):
        figure.point(name, at)
    figure.polygon(a, b, c, d)
    figure.segment(a, c, dashed=chance(rng, 0.5))
    figure.label_length(a, c, diagonal)
    lead = f"A diagonal of a square is √2 times its side, so the side is {plain(side)}"
    if chance(rng, 0.5):
        answer = 4 * side
        question = f"Quadrilateral {a}{b}{c}{d} is a square. Find its perimeter."
        solution = f"{lead} and the perimeter 4 · {plain(side)} = {plain(answer)}."
        return Draft(figure, question, answer, lambda f: f.perimeter(a, b, c, d), solution)
    answer = sympy.expand(side**2)
    question = f"Find the area of square ${a}{b}{c}{d}$."
    solution = f"{lead} and the area {plain(answer)}."
    return Draft(figure, question, answer, lambda f: f.area(a, b, c, d), solution, unit="area")


@family("altitude_on_hypotenuse")
def altitude_on_hypotenuse(rng: np.random.Generator, level: int) -> Draft:
    """The altitude is the mean of the hypotenuse's parts, a leg that of the hypotenuse and its part."""
    a, b, c, d = letters(rng, 4)
    near, far = whole(rng, 2, 16), whole(rng, 3, 20)
    if level == 3:  # a whole altitude
        scale, m, n = whole(rng, 1, 6), whole(rng, 1, 4), whole(rng, 1, 4)
        near, far = scale * m**2, scale * n**2
    altitude = sympy.sqrt(near * far)
    ugly = near < 2 or far < 3 or not simple_root(altitude, 15 if level == 1 else 400)
    if near == far or max(near, far) > 4 * min(near, far) or ugly:
        raise Unsuitable("a symmetric or a steep triangle, or an ugly root")
    figure = Figure(letters=chance(rng, 0.6))
    for name, z in ((d, 0), (a, -near), (b, far), (c, complex(0, float(altitude)))):
        figure.point(name, z)
    figure.polygon(a, b, c)
    figure.segment(c, d)
    figure.right_angle(a, c, b)
    figure.right_angle(b, d, c)
    figure.label_length(a, d, near)
    rule = "The altitude is the geometric mean of the two parts"
    if level == 3:
        figure.label_length(c, d, altitude)
        states = figure.label_length(d, b, expression(rng, far, whole(rng, 2, 9), slopes=(1, 2, 3)))
        value = states.solve(altitude**2 / near)
        steps = f"{altitude}² = {near}{states.grouped()}, so {states} = {plain(altitude**2 / near)}"
        return for_unknown(rng, figure, value, f"{rule}: {steps} and x = {plain(value)}.")
    figure.label_length(d, b, far)
    if level == 1:
        figure.label_length(c, d, "x")
        return for_unknown(rng, figure, altitude, f"{rule}: x = √({near} · {far}) = {plain(altitude)}.")
    figure.label_length(a, c, "x")
    value = sympy.sqrt(near * (near + far))
    if not simple_root(value):
        raise Unsuitable("an ugly root")
    rule = "A leg is the geometric mean of the hypotenuse and the part beside it"
    return for_unknown(rng, figure, value, f"{rule}: x = √({near} · {near + far}) = {plain(value)}.")
