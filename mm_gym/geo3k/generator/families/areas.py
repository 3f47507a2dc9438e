"""Areas of triangles and quadrilaterals, forwards and backwards."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain, rounded
from mm_gym.geo3k.generator.families.quadrilaterals import parallelogram_points, with_diagonals
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import scaled_triple, sine
from mm_gym.geo3k.generator.figure import Figure, foot, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import (
    chance,
    for_area,
    for_length,
    for_unknown,
    letters,
    pick,
    told,
    whole,
)

UNITS = ("", "", "cm", "in.", "ft", "m", "mm")
SQUARE_WORDS = {
    "": "square units",
    "cm": "square centimeters",
    "in.": "square inches",
    "ft": "square feet",
    "m": "square meters",
    "mm": "square millimeters",
}


def find_area(rng: np.random.Generator, shape: str) -> str:
    """A wording that asks for an area."""
    return pick(
        rng,
        (f"Find the area of the {shape}.", "Find the area of the figure.", f"Find the area of the {shape}."),
    )


def given_area(shape: str, area: sympy.Expr, unit: str) -> str:
    """A wording that states an area."""
    return f"The area of the {shape} is {plain(area)} {SQUARE_WORDS[unit]}."


def altitude(figure: Figure, top: str, a: str, b: str) -> str:
    """Draw the dashed altitude from `top` to the line ab, lengthening ab where its foot lies outside."""
    points = figure.points
    bottom = figure.hidden(foot(points[top], points[a], points[b]))
    figure.segment(top, bottom, dashed=True)
    share = ((points[bottom] - points[a]) / (points[b] - points[a])).real
    if share < 0:
        figure.segment(a, bottom, dashed=True)
    elif share > 1:
        figure.segment(b, bottom, dashed=True)
    figure.right_angle(top, bottom, b if share < 0.5 else a)
    return bottom


@family("triangle_area")
def triangle_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of base times height; at level 2 backwards, at level 3 by two sides and their angle."""
    if level == 3:
        return _triangle_by_angle(rng)
    a, b, c = letters(rng, 3)
    unit = pick(rng, UNITS)
    base, height = whole(rng, 6, 36), whole(rng, 4, 26)
    across = float(rng.uniform(-0.25, 0.8))
    if not 0.35 < height / base < 1.5 or not 0.15 < abs(across) < 0.9:
        raise Unsuitable("a flat triangle, or its altitude falls on a side")
    figure = Figure(letters=across > 0)
    for name, z in ((a, 0), (b, base), (c, complex(base * across, height))):
        figure.point(name, z)
    figure.polygon(a, b, c, fill=chance(rng, 0.6))
    figure.label_length(c, altitude(figure, c, a, b), height, unit)
    area = sympy.Rational(base * height, 2)
    if level == 1:
        solution = f"Area = 1/2 · base · height = 1/2 · {base} · {height} = {plain(area)}."
        if across < 0:
            figure.label_length(a, b, base, unit)
            return for_area(figure, find_area(rng, "triangle"), area, (a, b, c), solution)
        figure.given("length", (a, b), base)  # the foot divides the base, so the base is told in words
        words = f"In the figure, ${a}{b} = {base}${unit and ' ' + unit.removesuffix('.')}."
        question = f"{words} Find the area of $\\triangle {a}{b}{c}$."
        return for_area(figure, question, area, (a, b, c), solution)
    known = figure.given("area", (a, b, c), area).offset
    value = 2 * known / height
    solution = f"1/2 · base · {height} = {plain(known)}, so the base is {plain(value)}."
    if across > 0:
        return told(given_area("triangle", known, unit), for_length(rng, figure, (a, b), value, solution))
    figure.label_length(a, b, "x")
    return told(given_area("triangle", known, unit), for_unknown(rng, figure, value, solution))


def _triangle_by_angle(rng: np.random.Generator) -> Draft:
    """Half of the product of two sides and the sine of their angle."""
    a, b, c = letters(rng, 3)
    unit = pick(rng, UNITS)
    at_a, ab, ac = whole(rng, 32, 118), whole(rng, 6, 30), whole(rng, 6, 30)
    if at_a in (45, 60, 90) or not 0.55 < ab / ac < 1.8:
        raise Unsuitable("a special angle or a narrow triangle")
    figure = Figure()
    for name, z in ((a, 0), (b, ab), (c, polar(ac, at_a))):
        figure.point(name, z)
    figure.polygon(a, b, c, fill=chance(rng, 0.5))
    figure.label_length(a, b, ab, unit)
    figure.label_length(a, c, ac, unit)
    figure.label_angle(b, a, c, at_a)
    answer = sympy.Rational(ab * ac, 2) * sine(at_a)
    solution = f"Area = 1/2 · {ab} · {ac} · sin {at_a}° ≈ {rounded(answer, 1)}."
    question = f"Find the area of $\\triangle {a}{b}{c}$."
    return for_area(figure, question, answer, (a, b, c), solution, places=1)


@family("parallelogram_area")
def parallelogram_area(rng: np.random.Generator, level: int) -> Draft:
    """Base times height; at level 2 the height by sine, at level 3 backwards."""
    if level == 2:
        return _parallelogram_by_angle(rng)
    names = letters(rng, 4)
    a, b, c, d = names
    unit, base = pick(rng, UNITS), whole(rng, 10, 32)
    run, height, slant = scaled_triple(rng)
    if not (1.2 * run < base < 4 * height) or base == slant:
        raise Unsuitable("the foot falls outside, or a flat figure")
    figure = Figure(letters=False)
    parallelogram_points(figure, names, base, slant, math.degrees(math.atan2(height, run)))
    figure.polygon(*names, fill=chance(rng, 0.7))
    bottom = altitude(figure, d, a, b)
    figure.label_length(c, d, base, unit)
    if level == 1:
        figure.label_length(d, bottom, height, unit)
        figure.label_length(b, c, slant, unit)
        area = sympy.Integer(base * height)
        solution = f"Area = base · height = {base} · {height} = {area}; the side {slant} is not needed."
        return for_area(figure, "Find the area of the parallelogram.", area, names, solution)
    known = figure.given("area", names, base * height).offset
    figure.label_length(a, bottom, run, unit)
    figure.label_length(a, d, "x")
    high = known / base
    value = sympy.sqrt(high**2 + run**2)
    solution = (
        f"The height is {plain(known)}/{base} = {plain(high)}, so x = √({plain(high)}² + {run}²) = "
        f"{plain(value)}."
    )
    return told(given_area("parallelogram", known, unit), for_unknown(rng, figure, value, solution))


def _parallelogram_by_angle(rng: np.random.Generator) -> Draft:
    """Exact for 30°, 45° and 60°, else rounded."""
    names = letters(rng, 4)
    a, b, c, d = names
    unit = pick(rng, UNITS)
    base, side = whole(rng, 10, 32), whole(rng, 8, 24)
    at_a = pick(rng, (30, 45, 60, 60, whole(rng, 48, 74)))
    if side * math.cos(math.radians(at_a)) > 0.8 * base or base == side:
        raise Unsuitable("a flat figure or a rhombus")
    figure = Figure(letters=False)
    parallelogram_points(figure, names, base, side, at_a)
    figure.polygon(*names, fill=chance(rng, 0.7))
    figure.label_angle(d, a, b, at_a)
    figure.label_length(c, d, base, unit)
    figure.label_length(a, d, side, unit)
    area = base * side * sine(at_a)
    places = None if at_a in (30, 45, 60) else 1
    value = f"= {plain(area)}" if places is None else f"≈ {rounded(area, 1)}"
    solution = f"The height is {side} · sin {at_a}°, so the area is {base} · {side} · sin {at_a}° {value}."
    return for_area(figure, "Find the area of the parallelogram.", area, names, solution, places=places)


@family("trapezoid_area")
def trapezoid_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of the bases' sum times the height; backwards at level 2, the height by an angle at level 3."""
    names = letters(rng, 4)
    a, b, c, d = names
    unit = pick(rng, UNITS)
    short, run, height = whole(rng, 6, 22), whole(rng, 3, 12), sympy.Integer(whole(rng, 5, 18))
    angle = pick(rng, (45, 60))
    if level == 3:
        height = run * (sympy.Integer(1) if angle == 45 else sympy.sqrt(3))
    long, high = short + run, float(height)
    if not 0.3 < high / long < 1.3:
        raise Unsuitable("a flat figure")
    figure = Figure(letters=False)
    for name, z in zip(names, (0, long, complex(long, high), complex(run, high)), strict=True):
        figure.point(name, z)
    figure.polygon(*names, fill=chance(rng, 0.7))
    figure.right_angle(a, b, c)
    figure.right_angle(b, c, d)
    figure.label_length(c, d, short, unit)
    area = (short + long) * height / 2
    product = f"({short} + {long})/2 · {plain(height)} = {plain(area)}"
    if level == 3:
        figure.label_length(a, b, long, unit)
        figure.label_angle(b, a, d, angle)
        solution = (
            f"The slanted side runs {long} − {short} = {run} across at {angle}°, so the height is "
            f"{plain(height)} and "
            f"the area {product}."
        )
        return for_area(figure, find_area(rng, "trapezoid"), area, names, solution)
    figure.label_length(b, c, height, unit)
    if level == 1:
        figure.label_length(a, b, long, unit)
        return for_area(figure, find_area(rng, "trapezoid"), area, names, f"Area = {product}.")
    known = figure.given("area", names, area).offset
    figure.label_length(a, b, "x")
    value = 2 * known / height - short
    steps = f"({short} + x)/2 · {height} = {plain(known)}, so x = 2 · {plain(known)}/{height} − {short}"
    solution = f"{steps} = {plain(value)}."
    return told(given_area("trapezoid", known, unit), for_unknown(rng, figure, value, solution))


@family("rhombus_and_kite_area")
def rhombus_and_kite_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of the product of the diagonals; backwards at level 2, with a side instead of one at level 3."""
    names = letters(rng, 5)
    a, _, c, d, e = names
    unit = pick(rng, UNITS)
    kite = level < 3 and chance(rng, 0.5)
    half, near, side = (whole(rng, 3, 14), whole(rng, 4, 16), 0) if level < 3 else scaled_triple(rng)
    far = whole(rng, near + 2, 2 * near + 4) if kite else near
    if not 0.4 < half / near < 1.9 or half == near:
        raise Unsuitable("a flat figure or a square")
    figure = Figure(letters=level == 2)
    _perpendicular_diagonals(figure, names, (near, far, half), fill=chance(rng, 0.6))
    shape = "kite" if kite else "rhombus"
    area = sympy.Integer(half * (near + far))
    figure.label_length(e, d, half, unit)
    if level == 1:
        figure.label_length(a, e, near, unit)
        if kite:
            figure.label_length(e, c, far, unit)
        solution = f"The diagonals are 2 · {half} and {near} + {far}; half of their product is {area}."
        return for_area(figure, find_area(rng, shape), area, names[:4], solution)
    if level == 3:
        figure.label_length(c, d, side, unit)
        area = 2 * half * sympy.sqrt(side**2 - half**2)
        solution = (
            f"The other half diagonal is √({side}² − {half}²) = {near}, so the area is 1/2 · {2 * half} · "
            f"{2 * near} = {plain(area)}."
        )
        return for_area(figure, find_area(rng, shape), area, names[:4], solution)
    known = figure.given("area", names[:4], area).offset
    solution = f"1/2 · {2 * half} · {a}{c} = {plain(known)}, so {a}{c} = {plain(known / half)}."
    return told(given_area(shape, known, unit), for_length(rng, figure, (a, c), known / half, solution))


def _perpendicular_diagonals(
    figure: Figure, names: list[str], parts: tuple[int, int, int], fill: bool
) -> None:
    """Draw a kite or rhombus from the two parts of its axis and half of its other diagonal."""
    a, b, c, d, e = names
    near, far, half = parts
    for name, z in zip(names[:4], (-near, -1j * half, far, 1j * half), strict=True):
        figure.point(name, z)
    if fill:
        figure.fill(*names[:4])
    with_diagonals(figure, names[:4], e)
    figure.right_angle(b, e, c)
    for group, ends in enumerate(((a, b), (a, d), (c, b), (c, d))):
        figure.ticks(*ends, 1 + group // 2 if near != far else 1)
