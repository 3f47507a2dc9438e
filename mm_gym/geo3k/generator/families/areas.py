"""Areas of triangles, quadrilaterals, regular polygons and similar figures, forwards and backwards."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain, rounded
from mm_gym.geo3k.generator.expressions import linear
from mm_gym.geo3k.generator.families.quadrilaterals import parallelogram_points, with_diagonals
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import TRIPLES, sine
from mm_gym.geo3k.generator.figure import Figure, foot, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import chance, for_unknown, letters, pick, whole

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
    a, b, c = letters(rng, 3)
    unit = pick(rng, UNITS)
    figure = Figure(letters=False)
    figure.point(a, 0)
    if level == 3:
        at_a, ab, ac = whole(rng, 32, 118), whole(rng, 6, 30), whole(rng, 6, 30)
        if at_a in (45, 60, 90) or not 0.55 < ab / ac < 1.8:
            raise Unsuitable("a special angle or a narrow triangle")
        figure.point(b, ab)
        figure.point(c, polar(ac, at_a))
        figure.polygon(a, b, c, fill=chance(rng, 0.5))
        figure.letters = True
        figure.label_length(a, b, ab, unit)
        figure.label_length(a, c, ac, unit)
        figure.label_angle(b, a, c, at_a)
        answer = sympy.Rational(ab * ac, 2) * sine(at_a)
        solution = f"Area = 1/2 · {ab} · {ac} · sin {at_a}° ≈ {rounded(answer, 1)}."
        question = f"Find the area of $\\triangle {a}{b}{c}$."
        return Draft(figure, question, answer, lambda f: f.area(a, b, c), solution, places=1, unit="area")
    base, height = whole(rng, 6, 36), whole(rng, 4, 26)
    if not 0.35 < height / base < 1.5:
        raise Unsuitable("a flat triangle")
    figure.point(b, base)
    figure.point(c, complex(base * float(rng.uniform(-0.25, 0.8)), height))
    if not 0.15 < abs(figure.points[c].real / base) < 0.9:
        raise Unsuitable("the altitude falls on a side")
    figure.polygon(a, b, c, fill=chance(rng, 0.6))
    bottom = altitude(figure, c, a, b)
    states = linear(base)
    if level == 2:
        states = linear("x")
    if figure.points[c].real > 0:  # the foot divides the base, so the base is told in words
        figure.letters = True
        figure.given("length", (a, b), base) if level == 1 else None
    else:
        figure.label_length(a, b, states, unit if level == 1 else "")
    figure.label_length(c, bottom, height, unit)
    words = f" ${a}{b} = {base}${unit and ' ' + unit}" if figure.letters and level == 1 else ""
    if level == 1:
        answer = sympy.Rational(base * height, 2)
        solution = f"Area = 1/2 · base · height = 1/2 · {base} · {height} = {plain(answer)}."
        name = f"Find the area of $\\triangle {a}{b}{c}$." if words else find_area(rng, "triangle")
        question = f"In the figure,{words.removesuffix('.')}. {name}" if words else name
        return Draft(figure, question, answer, lambda f: f.area(a, b, c), solution, unit="area")
    area = figure.given("area", (a, b, c), sympy.Rational(base * height, 2)).offset
    value = 2 * area / height
    solution = f"1/2 · base · {height} = {plain(area)}, so the base is {plain(value)}."
    told = given_area("triangle", area, unit)
    if figure.letters:
        question = f"{told} Find ${a}{b}$."
        return Draft(figure, question, value, lambda f: f.length(a, b), solution)
    draft = for_unknown(rng, figure, value, solution)
    draft.question = f"{told} {draft.question}"
    return draft


@family("parallelogram_area")
def parallelogram_area(rng: np.random.Generator, level: int) -> Draft:
    """Base times height; at level 2 the height by sine, at level 3 backwards."""
    names = letters(rng, 4)
    a, b, c, d = names
    unit = pick(rng, UNITS)
    figure = Figure(letters=False)
    base, side = whole(rng, 10, 32), whole(rng, 8, 24)
    if level == 2:
        at_a = pick(rng, (30, 45, 60, 60, whole(rng, 48, 74)))
        if side * math.cos(math.radians(at_a)) > 0.8 * base or base == side:
            raise Unsuitable("the foot falls outside")
        parallelogram_points(figure, names, base, side, at_a)
        figure.polygon(*names, fill=chance(rng, 0.7))
        figure.label_angle(d, a, b, at_a)
        figure.label_length(c, d, base, unit)
        figure.label_length(a, d, side, unit)
        answer = base * side * sine(at_a)
        exact = at_a in (30, 45, 60)
        value = plain(answer) if exact else rounded(answer, 1)
        solution = (
            f"The height is {side} · sin {at_a}°, so the area is {base} · {side} · sin {at_a}° = {value}."
        )
        return Draft(
            figure,
            "Find the area of the parallelogram.",
            answer,
            lambda f: f.area(*names),
            solution,
            places=None if exact else 1,
            unit="area",
        )
    run, height, slant = pick(rng, TRIPLES[:3])
    if chance(rng, 0.5):
        run, height = height, run
    factor = 1 if slant > 10 else whole(rng, 2, 4)
    run, height, slant = run * factor, height * factor, slant * factor
    if not (1.2 * run < base < 4 * height) or base == slant:
        raise Unsuitable("the foot falls outside, or a flat figure")
    parallelogram_points(figure, names, base, slant, math.degrees(math.atan2(height, run)))
    figure.polygon(*names, fill=chance(rng, 0.7))
    bottom = altitude(figure, d, a, b)
    figure.label_length(c, d, base, unit)
    if level == 1:
        figure.label_length(d, bottom, height, unit)
        figure.label_length(b, c, slant, unit)
        answer = sympy.Integer(base * height)
        solution = f"Area = base · height = {base} · {height} = {answer}; the side {slant} is not needed."
        return Draft(
            figure,
            "Find the area of the parallelogram.",
            answer,
            lambda f: f.area(*names),
            solution,
            unit="area",
        )
    area = figure.given("area", names, base * height).offset
    figure.label_length(a, bottom, run, unit)
    figure.label_length(a, d, "x")
    value = sympy.sqrt((area / base) ** 2 + run**2)
    solution = (
        f"The height is {plain(area)}/{base} = {plain(area / base)}, so x = √({plain(area / base)}² + "
        f"{run}²) = {plain(value)}."
    )
    draft = for_unknown(rng, figure, value, solution)
    draft.question = f"{given_area('parallelogram', area, unit)} {draft.question}"
    return draft


@family("trapezoid_area")
def trapezoid_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of the bases' sum times the height; backwards at level 2, the height by an angle at level 3."""
    names = letters(rng, 4)
    a, b, c, d = names
    unit = pick(rng, UNITS)
    short, run, height = whole(rng, 6, 22), whole(rng, 3, 12), whole(rng, 5, 18)
    angle = pick(rng, (45, 60))
    factor = sympy.Integer(1) if angle == 45 else sympy.sqrt(3)
    if level == 3:
        height_exact = run * factor
    else:
        height_exact = sympy.Integer(height)
    long = short + run
    if not 0.3 < float(height_exact) / long < 1.3:
        raise Unsuitable("a flat figure")
    figure = Figure(letters=False)
    high = float(height_exact)
    for name, z in zip(names, (0, long, complex(long, high), complex(run, high)), strict=True):
        figure.point(name, z)
    figure.polygon(*names, fill=chance(rng, 0.7))
    figure.right_angle(a, b, c)
    figure.right_angle(b, c, d)
    figure.label_length(c, d, short, unit)
    area = (short + long) * height_exact / 2
    if level == 3:
        figure.label_length(a, b, long, unit)
        figure.label_angle(b, a, d, angle)
        leg = f"{run}" if angle == 45 else f"{run}√3"
        solution = (
            f"The slanted side runs {long} − {short} = {run} across at {angle}°, so the height is "
            f"{leg} and the area "
            f"({short} + {long})/2 · {leg} = {plain(area)}."
        )
        return Draft(
            figure, find_area(rng, "trapezoid"), area, lambda f: f.area(*names), solution, unit="area"
        )
    figure.label_length(b, c, height, unit)
    if level == 1:
        figure.label_length(a, b, long, unit)
        solution = f"Area = ({short} + {long})/2 · {height} = {plain(area)}."
        return Draft(
            figure, find_area(rng, "trapezoid"), area, lambda f: f.area(*names), solution, unit="area"
        )
    told = figure.given("area", names, area).offset
    figure.label_length(a, b, "x")
    value = 2 * told / height - short
    solution = (
        f"({short} + x)/2 · {height} = {plain(told)}, so x = 2 · {plain(told)}/{height} − {short} = "
        f"{plain(value)}."
    )
    draft = for_unknown(rng, figure, value, solution)
    draft.question = f"{given_area('trapezoid', told, unit)} {draft.question}"
    return draft


@family("rhombus_and_kite_area")
def rhombus_and_kite_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of the product of the diagonals; backwards at level 2, with a side instead of one at level 3."""
    names = letters(rng, 5)
    a, b, c, d, e = names
    unit = pick(rng, UNITS)
    figure = Figure(letters=False)
    kite = level < 3 and chance(rng, 0.5)
    half, near = whole(rng, 3, 14), whole(rng, 4, 16)
    far = whole(rng, near + 2, 2 * near + 4) if kite else near
    side = 0
    if level == 3:
        half, near, side = pick(rng, TRIPLES[:3])
        factor = 1 if side > 10 else whole(rng, 1, 4)
        half, near, side, far = half * factor, near * factor, side * factor, near * factor
    if not 0.4 < half / near < 1.9 or half == near:
        raise Unsuitable("a flat figure or a square")
    for name, z in zip(names[:4], (-near, -1j * half, far, 1j * half), strict=True):
        figure.point(name, z)
    figure.polygon(*names[:4], fill=chance(rng, 0.6))
    figure.segments.clear()
    with_diagonals(figure, names[:4], e)
    figure.right_angle(b, e, c)
    for group, ends in enumerate(((a, b), (a, d), (c, b), (c, d))):
        figure.ticks(*ends, 1 + group // 2 if kite else 1)
    shape = "kite" if kite else "rhombus"
    area = sympy.Integer(half * (near + far))
    figure.label_length(e, d, half, unit)
    if level == 1:
        figure.label_length(a, e, near, unit)
        figure.label_length(e, c, far, unit) if kite else None
        solution = f"The diagonals are 2 · {half} and {near} + {far}; half of their product is {area}."
        return Draft(figure, find_area(rng, shape), area, lambda f: f.area(*names[:4]), solution, unit="area")
    if level == 3:
        figure.label_length(c, d, side, unit)
        answer = 2 * half * sympy.sqrt(side**2 - half**2)
        solution = (
            f"The other half diagonal is √({side}² − {half}²) = {near}, so the area is 1/2 · "
            f"{2 * half} · {2 * near} = "
            f"{plain(answer)}."
        )
        return Draft(
            figure, find_area(rng, shape), answer, lambda f: f.area(*names[:4]), solution, unit="area"
        )
    told = figure.given("area", names[:4], area).offset
    figure.letters = True
    answer = told / half
    question = f"{given_area(shape, told, unit)} Find ${a}{c}$."
    solution = f"1/2 · {2 * half} · {a}{c} = {plain(told)}, so {a}{c} = {plain(answer)}."
    return Draft(figure, question, answer, lambda f: f.length(a, c), solution)


@family("regular_polygon_area")
def regular_polygon_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of apothem times perimeter; exactly at level 2, from the radius at level 3."""
    count = pick(rng, (3, 4, 6)) if level == 2 else pick(rng, (5, 6, 8))
    size = whole(rng, 4, 24)
    unit = pick(rng, UNITS)
    half_turn = sympy.pi / count
    names = [f"_{index}" for index in range(count)]
    radius = size if level == 3 else size / (2 * math.sin(math.pi / count))
    figure = Figure(letters=False)
    for index, name in enumerate(names):
        figure.point(name, polar(radius, -90 + 360 / count * (index - 0.5)))
    figure.polygon(*names, fill=chance(rng, 0.6))
    centre = figure.point("_o", 0)
    figure.dots.append(centre)
    shape = {
        3: "equilateral triangle",
        4: "square",
        5: "regular pentagon",
        6: "regular hexagon",
        8: "regular octagon",
    }[count]
    if level == 3:
        figure.segment(centre, names[0])
        figure.label_length(centre, names[0], size, unit)
        answer = count * size**2 * sympy.sin(2 * half_turn) / 2
        solution = (
            f"{count} triangles of area 1/2 · {size}² · sin {plain(sympy.Rational(360, count))}° make "
            f"about {rounded(answer, 1)}."
        )
        question = f"Find the area of the {shape}."
        return Draft(figure, question, answer, lambda f: f.area(*names), solution, places=1, unit="area")
    apothem = size / (2 * sympy.tan(half_turn))
    bottom = figure.hidden(-1j * float(apothem))
    figure.segment(centre, bottom, dashed=True)
    figure.right_angle(centre, bottom, names[0])
    figure.label_length(names[1], names[2], size, unit)
    answer = sympy.expand(sympy.radsimp(count * size * apothem / 2))
    if level == 2:
        figure.segments.pop()
        figure.marks.clear()
        figure.dots.clear()
        if count == 4:
            raise Unsuitable("a square is too easy")
        solution = (
            f"Its apothem is {plain(sympy.radsimp(apothem))} and its perimeter {count * size}, so the "
            f"area is {plain(answer)}."
        )
        return Draft(
            figure, f"Find the area of the {shape}.", answer, lambda f: f.area(*names), solution, unit="area"
        )
    solution = (
        f"The apothem is {size}/(2 tan {plain(sympy.Rational(180, count))}°) ≈ {rounded(apothem, 2)}; "
        "half of it times the "
        f"perimeter {count * size} is about {rounded(answer, 1)}."
    )
    question = f"Find the area of the {shape}."
    return Draft(figure, question, answer, lambda f: f.area(*names), solution, places=1, unit="area")


@family("similar_areas")
def similar_areas(rng: np.random.Generator, level: int) -> Draft:
    """Areas of similar figures are as the squares of their sides."""
    small, large = pick(rng, ((1, 2), (2, 3), (3, 4), (3, 5), (2, 5), (4, 5)))
    unit = pick(rng, UNITS)
    factor = whole(rng, 1, 5)
    side_a, side_b = small * factor, large * factor
    ratio = sympy.Rational(large, small)
    shape = pick(rng, ("rectangle", "triangle", "parallelogram"))
    height = side_a * sympy.Rational(whole(rng, 4, 9), 6)
    area_a = side_a * height / (2 if shape == "triangle" else 1)
    area_b = area_a * ratio**2
    if area_a.q > 1 or area_b.q > 1 or (level > 1 and side_a < 3) or height == side_a:
        raise Unsuitable("fractions as areas, or squares")
    figure = Figure(letters=False, upright=True)
    lean = float(rng.uniform(0.2, 0.6))
    corners = {
        "rectangle": [0, side_a, side_a + 1j * float(height), 1j * float(height)],
        "triangle": [0, side_a, side_a * lean + 1j * float(height)],
        "parallelogram": [
            0,
            side_a,
            side_a * (1 + lean / 2) + 1j * float(height),
            side_a * lean / 2 + 1j * float(height),
        ],
    }[shape]
    first = [figure.hidden(z) for z in corners]
    shift = 1.35 * max(z.real for z in map(complex, corners)) + 0.1 * side_b
    second = [figure.hidden(z * float(ratio) + shift) for z in corners]
    for polygon in (first, second):
        figure.polygon(*polygon, fill=True)
    told_a = figure.given("area", first, area_a).offset
    lead = f"The areas are as the squares of corresponding sides, and the sides as {small} : {large}"
    text = f"The two {shape}s are similar."
    if level == 1:
        figure.label_length(first[0], first[1], side_a, unit)
        figure.label_length(second[0], second[1], side_b, unit)
        answer = told_a * sympy.Rational(side_b, side_a) ** 2
        question = (
            f"{text} The area of the smaller one is {plain(told_a)} {SQUARE_WORDS[unit]}. Find the area "
            "of the larger one."
        )
        solution = f"{lead}: {plain(told_a)} · ({side_b}/{side_a})² = {plain(answer)}."
        return Draft(figure, question, answer, lambda f: f.area(*second), solution, unit="area")
    told_b = figure.given("area", second, area_b).offset
    known, asked = (first, second) if chance(rng, 0.5) else (second, first)
    known_side = side_a if known is first else side_b
    figure.label_length(known[0], known[1], known_side, unit)
    scale = sympy.sqrt(told_b / told_a) if known is first else sympy.sqrt(told_a / told_b)
    areas = f"Their areas are {plain(told_a)} and {plain(told_b)} {SQUARE_WORDS[unit]}."
    ratio_text = (
        f"The sides are as the roots of the areas, √{plain(told_a)} : √{plain(told_b)} = {small} : {large}"
    )
    if level == 2:
        figure.label_length(asked[0], asked[1], "x")
        value = known_side * scale
        draft = for_unknown(rng, figure, value, f"{ratio_text}, so x = {plain(value)}.")
        draft.question = (
            f"{text} {areas} Use the given areas to {draft.question[0].lower()}{draft.question[1:]}"
        )
        return draft
    offset = whole(rng, 1, 4)
    states = figure.label_length(asked[0], asked[1], linear("x") + offset)
    value = states.solve(known_side * scale)
    draft = for_unknown(
        rng, figure, value, f"{ratio_text}, so {states} = {plain(known_side * scale)} and x = {plain(value)}."
    )
    draft.question = f"{text} {areas} Use the given areas to {draft.question[0].lower()}{draft.question[1:]}"
    return draft
