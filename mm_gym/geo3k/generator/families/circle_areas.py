"""Arcs, sectors, circumferences, shaded regions and figures composed of simple ones."""

from __future__ import annotations

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain, rounded
from mm_gym.geo3k.generator.families.areas import UNITS
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import TRIPLES
from mm_gym.geo3k.generator.figure import Arc, Figure, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import chance, letters, pick, whole

NICE_ANGLES = (36, 40, 45, 60, 72, 80, 90, 108, 120, 135, 144, 150)


def _sector(rng: np.random.Generator, radius: float, angle: float) -> tuple[Figure, str, str, str]:
    """A circle about a centre with two radii, `angle` degrees apart."""
    a, b, letter = letters(rng, 3)
    figure = Figure()
    centre = figure.point("O" if chance(rng, 0.5) else letter, 0)
    figure.point(a, radius)
    figure.point(b, polar(radius, angle))
    figure.circle(centre, radius, a, b)
    figure.dots.append(centre)
    figure.segment(centre, a)
    figure.segment(centre, b)
    return figure, centre, a, b


@family("arc_length")
def arc_length(rng: np.random.Generator, level: int) -> Draft:
    """An arc's share of the circumference; at level 3 the radius from the arc."""
    angle = pick(rng, NICE_ANGLES) if chance(rng, 0.6) else whole(rng, 32, 150)
    radius = whole(rng, 2, 20)
    figure, centre, a, b = _sector(rng, radius, angle)
    figure.label_angle(a, centre, b, angle)
    length = sympy.Rational(angle, 180) * sympy.pi * radius
    text = f"In $\\odot {centre}$, "
    if level == 3:
        if length.as_coeff_Mul()[0].q > 1:
            raise Unsuitable("a fraction of pi")
        answer = length / sympy.pi * 180 / angle
        question = (
            f"{text}the length of $\\widehat{{{a}{b}}}$ is ${plain(length / sympy.pi)} \\pi$. Find the "
            f"radius of $\\odot {centre}$."
        )
        solution = (
            f"{angle}/360 · 2π · r = {plain(length)}, so r = {plain(length / sympy.pi)} · 180/{angle} = "
            f"{plain(answer)}."
        )
        return Draft(figure, question, answer, lambda f: f.length(centre, a), solution)
    if level == 1:
        figure.label_length(centre, a, radius)
        known = f"{angle}/360 · 2π · {radius}"
    else:
        end = figure.hidden(-figure.points[a])
        figure.segment(centre, end)
        figure.given("length", (a, end), 2 * radius)
        text += f"the diameter is {2 * radius}. "
        known = f"{angle}/360 · π · {2 * radius}"
    exact = chance(rng, 0.3) and length.as_coeff_Mul()[0].q <= 3
    places = None if exact else pick(rng, (1, 2))
    solution = (
        f"The arc is {known} {'= ' + plain(length) if places is None else '≈ ' + rounded(length, places)}."
    )
    ask = f"ind the {'exact ' if exact else ''}length of $\\widehat{{{a}{b}}}$."
    question = f"{text}{'f' if level == 1 else 'F'}{ask}"
    minor = Arc(centre, radius, a, b, figure.hidden(polar(radius, angle / 2)))
    straight = (b, centre, a)
    return Draft(
        figure,
        question,
        length,
        lambda f: f.perimeter(minor, *straight) - f.length(b, centre) - f.length(centre, a),
        solution,
        places=places,
    )


@family("sector_area")
def sector_area(rng: np.random.Generator, level: int) -> Draft:
    """A sector's share of the circle's area; the larger sector at level 2, a circular segment at level 3."""
    angle = pick(rng, (60, 90, 120)) if level == 3 else pick(rng, NICE_ANGLES)
    radius = whole(rng, 3, 18)
    unit = pick(rng, UNITS)
    figure, centre, a, b = _sector(rng, radius, angle)
    figure.letters = chance(rng, 0.5)
    figure.label_angle(a, centre, b, angle)
    figure.label_length(centre, a, radius, unit)
    sweep = 360 - angle if level == 2 else angle
    middle = figure.hidden(polar(radius, angle / 2 + (180 if level == 2 else 0)))
    outline = Arc(centre, radius, a, b, middle)
    area = sympy.Rational(sweep, 360) * sympy.pi * radius**2
    share = f"{sweep}/360 · π · {radius}²"
    if level == 3:
        figure.segment(a, b)
        figure.fill(outline)
        triangle = sympy.Rational(radius**2, 2) * sympy.sin(sympy.pi * sympy.Rational(angle, 180))
        answer = area - triangle
        solution = (
            f"The sector has {share} ≈ {rounded(area, 2)}, the triangle 1/2 · {radius}² · sin {angle}° ≈ "
            f"{rounded(triangle, 2)}; the difference is about {rounded(answer, 1)}."
        )
        question = "Find the area of the shaded region."
        return Draft(figure, question, answer, lambda f: f.area(outline), solution, places=1, unit="area")
    figure.fill(outline, centre)
    exact = chance(rng, 0.25) and area.as_coeff_Mul()[0].q == 1
    rest = f"The shaded sector spans 360° − {angle}° = {sweep}°. " if level == 2 else ""
    solution = f"{rest}Its area is {share} {'= ' + plain(area) if exact else '≈ ' + rounded(area, 1)}."
    question = f"Find the {'exact ' if exact else ''}area of the shaded {pick(rng, ('sector', 'region'))}."
    return Draft(
        figure,
        question,
        area,
        lambda f: f.area(outline, centre),
        solution,
        places=None if exact else 1,
        unit="area",
    )


@family("circumference")
def circumference(rng: np.random.Generator, level: int) -> Draft:
    """A circle's circumference from its radius, from a rectangle or right triangle in it."""
    names = letters(rng, 4)
    unit = pick(rng, UNITS)
    figure = Figure(letters=False)
    centre = figure.point("_o", 0)
    if level == 1:
        size = whole(rng, 2, 24)
        end, start = figure.hidden(size), figure.hidden(-size)
        figure.circle(centre, size, end)
        figure.dots.append(centre)
        figure.segment(centre, end)
        diameter = chance(rng, 0.5)
        if diameter:
            figure.segments.clear()
            figure.dots.clear()
            figure.segment(start, end)
            figure.label_length(start, end, 2 * size, unit)
        else:
            figure.label_length(centre, end, size, unit)
        answer = 2 * sympy.pi * size
        solution = f"Circumference = π · diameter = π · {2 * size} ≈ {rounded(answer, 1)}."
        return Draft(
            figure,
            f"Find the circumference of the {pick(rng, ('circle', 'figure'))}.",
            answer,
            lambda f: f.perimeter(f.arcs[0]),
            solution,
            places=1,
        )
    p, q, r = pick(rng, TRIPLES[:3])
    factor = 1 if r > 10 else whole(rng, 1, 4)
    p, q, r = p * factor, q * factor, r * factor
    if level == 3:
        p, q = whole(rng, 3, 12), whole(rng, 3, 12)
    diagonal = sympy.sqrt(p**2 + q**2)
    if not 0.4 < p / q < 2.5 or (
        level == 3 and (diagonal.is_Integer or diagonal.as_coeff_Mul()[1].base > 60)
    ):
        raise Unsuitable("a narrow rectangle or an ugly root")
    radius = float(diagonal) / 2
    for name, z in zip(names, (complex(-q, -p), complex(q, -p), complex(q, p), complex(-q, p)), strict=True):
        figure.point(name, z / 2)
    figure.circle(centre, radius, *names)
    figure.dots.append(centre)
    rectangle = p != q and chance(rng, 0.5)
    if rectangle:
        figure.polygon(*names)
    else:
        del figure.points[names[3]]
        figure.claims = [claim for claim in figure.claims if names[3] not in claim[1]]
        figure.path(names[0], names[1], names[2], centre, names[0])
        figure.right_angle(*names[:3])
    figure.label_length(names[0], names[1], q, unit)
    figure.label_length(names[1], names[2], p, unit)
    answer = diagonal * sympy.pi
    shape = "rectangle" if rectangle else "triangle"
    solution = (
        f"The {'diagonal' if rectangle else 'hypotenuse'} √({p}² + {q}²) = {plain(diagonal)} is a "
        "diameter, so the "
        f"circumference is {plain(answer)}."
    )
    question = f"The {shape} is inscribed in the circle. Find the exact circumference of the circle."
    return Draft(figure, question, answer, lambda f: f.perimeter(f.arcs[0]), solution)


@family("shaded_region")
def shaded_region(rng: np.random.Generator, level: int) -> Draft:
    """What is left when one figure is cut out of another."""
    unit = pick(rng, UNITS)
    figure = Figure(letters=False)
    if level == 1:
        return _circle_in_square(rng, figure, unit)
    if level == 2:
        return _ring(rng, figure, unit)
    return _polygon_in_circle(rng, figure, unit)


def _circle_in_square(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    side = 2 * whole(rng, 2, 14)
    half = side / 2
    corners = [
        figure.hidden(z) for z in (-half - half * 1j, half - half * 1j, half + half * 1j, -half + half * 1j)
    ]
    centre = figure.hidden(0)
    figure.polygon(*corners, fill=True)
    circle = figure.circle(centre, half)
    figure.fill(circle, white=True)
    figure.label_length(corners[0], corners[1], side, unit)
    answer = side**2 - sympy.pi * sympy.Rational(side, 2) ** 2
    solution = f"Square minus circle: {side}² − π · {side // 2}² ≈ {rounded(answer, 1)}."
    question = "The circle is inscribed in the square. Find the area of the shaded region."
    return Draft(
        figure, question, answer, lambda f: f.area(*corners) - f.area(circle), solution, places=1, unit="area"
    )


def _ring(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """Two circles about one centre, or two small circles side by side in a large one."""
    centre = figure.hidden(0)
    if chance(rng, 0.5):
        inner = whole(rng, 3, 12)
        width = whole(rng, max(2, inner // 2), inner + 2)
        big = figure.circle(centre, inner + width)
        small = figure.circle(centre, inner)
        figure.fill(big)
        figure.fill(small, white=True)
        figure.dots.append(centre)
        on_inner, on_outer = figure.hidden(inner), figure.hidden(inner + width)
        figure.path(centre, on_inner, on_outer)
        parts = (
            figure.label_length(centre, on_inner, inner, unit),
            figure.label_length(on_inner, on_outer, width, unit),
        )
        outer = parts[0].offset + parts[1].offset
        answer = sympy.pi * (outer**2 - parts[0].offset ** 2)
        solution = (
            f"The large radius is {inner} + {width} = {outer}: π · {outer}² − π · {inner}² = "
            f"{plain(answer)} ≈ "
            f"{rounded(answer, 1)}."
        )
        question = "Find the area of the shaded region."
        return Draft(
            figure, question, answer, lambda f: f.area(big) - f.area(small), solution, places=1, unit="area"
        )
    half = whole(rng, 2, 12)
    big = figure.circle(centre, 2 * half)
    figure.fill(big)
    smalls = []
    for middle in (half * 1j, -half * 1j):
        smalls.append(figure.circle(figure.hidden(middle), half))
        figure.fill(smalls[-1], white=True)
    ends = figure.hidden(-2 * half), figure.hidden(2 * half)
    figure.segment(*ends, dashed=True)
    figure.label_length(*ends, 4 * half, unit)
    answer = sympy.pi * (4 * half**2 - 2 * half**2)
    solution = (
        f"The large circle has radius {2 * half}, each small one {half}: π · {2 * half}² − 2π · "
        f"{half}² = {plain(answer)} ≈ "
        f"{rounded(answer, 1)}."
    )
    question = "Find the area of the shaded region."
    return Draft(
        figure,
        question,
        answer,
        lambda f: f.area(big) - f.area(smalls[0]) - f.area(smalls[1]),
        solution,
        places=1,
        unit="area",
    )


def _polygon_in_circle(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """A square, an equilateral triangle or a regular hexagon inside a circle."""
    count = pick(rng, (3, 4, 6))
    radius = whole(rng, 3, 18)
    centre = figure.hidden(0)
    corners = [figure.hidden(polar(radius, -90 + 360 / count * (index - 0.5))) for index in range(count)]
    circle = figure.circle(centre, radius, *corners)
    figure.fill(circle)
    figure.fill(*corners, white=True)
    figure.polygon(*corners)
    figure.dots.append(centre)
    figure.segment(centre, corners[0])
    figure.label_length(centre, corners[0], radius, unit)
    polygon = sympy.Rational(count * radius**2, 2) * sympy.sin(2 * sympy.pi / count)
    answer = sympy.pi * radius**2 - polygon
    name = {3: "equilateral triangle", 4: "square", 6: "regular hexagon"}[count]
    solution = (
        f"The circle has π · {radius}² = {plain(sympy.pi * radius**2)}, the {name} {plain(polygon)}; "
        "the difference is about "
        f"{rounded(answer, 1)}."
    )
    question = f"The polygon in the circle is a {name}. Find the area of the shaded region.".replace(
        "a equi", "an equi"
    )
    return Draft(
        figure, question, answer, lambda f: f.area(circle) - f.area(*corners), solution, places=1, unit="area"
    )


@family("composite_figure")
def composite_figure(rng: np.random.Generator, level: int) -> Draft:
    """Area or perimeter of an L, of a rectangle with a triangle on it, of a rectangle with a half circle."""
    unit = pick(rng, UNITS)
    figure = Figure(letters=False)
    if level == 1:
        return _corner(rng, figure, unit)
    if level == 2:
        return _house(rng, figure, unit)
    return _half_circle_on_rectangle(rng, figure, unit)


def _corner(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """An L: a rectangle without a corner."""
    width, height = whole(rng, 9, 24), whole(rng, 8, 20)
    cut_x, cut_y = whole(rng, 3, width - 4), whole(rng, 3, height - 4)
    if min(cut_x, width - cut_x) < 0.25 * width or min(cut_y, height - cut_y) < 0.25 * height:
        raise Unsuitable("a thin part")
    outline = (0, width, complex(width, height - cut_y), complex(width - cut_x, height - cut_y))
    corners = [figure.hidden(z) for z in (*outline, complex(width - cut_x, height), complex(0, height))]
    figure.polygon(*corners, fill=chance(rng, 0.7))
    for index in (0, 1, 2, 4, 5):
        figure.right_angle(corners[index - 1], corners[index], corners[(index + 1) % 6])
    for ends, size in (((0, 1), width), ((5, 0), height), ((3, 4), cut_y), ((2, 3), cut_x)):
        figure.label_length(corners[ends[0]], corners[ends[1]], size, unit)
    if chance(rng, 0.6):
        answer = sympy.Integer(width * height - cut_x * cut_y)
        solution = f"The whole rectangle less the corner: {width} · {height} − {cut_x} · {cut_y} = {answer}."
        return Draft(
            figure, "Find the area of the figure.", answer, lambda f: f.area(*corners), solution, unit="area"
        )
    answer = sympy.Integer(2 * (width + height))
    solution = f"The missing corner does not change the perimeter: 2 · ({width} + {height}) = {answer}."
    return Draft(
        figure, "Find the perimeter of the figure.", answer, lambda f: f.perimeter(*corners), solution
    )


def _house(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """A rectangle with an isosceles triangle on it."""
    half, rise, slant = pick(rng, TRIPLES[:3])
    if chance(rng, 0.5):
        half, rise = rise, half
    factor = 1 if slant > 10 else whole(rng, 1, 3)
    half, rise, slant = half * factor, rise * factor, slant * factor
    height = whole(rng, max(4, half // 2), 2 * half + 2)
    if not 0.4 < rise / half < 2.2 or height == slant:
        raise Unsuitable("a flat or a steep roof")
    outline = (0, 2 * half, complex(2 * half, height), complex(half, height + rise), complex(0, height))
    corners = [figure.hidden(z) for z in outline]
    figure.polygon(*corners, fill=chance(rng, 0.7))
    figure.segment(corners[2], corners[4], dashed=True)
    figure.right_angle(corners[4], corners[0], corners[1])
    figure.right_angle(corners[0], corners[1], corners[2])
    figure.ticks(corners[2], corners[3])
    figure.ticks(corners[3], corners[4])
    figure.label_length(corners[0], corners[1], 2 * half, unit)
    figure.label_length(corners[1], corners[2], height, unit)
    figure.label_length(corners[3], corners[4], slant, unit)
    if chance(rng, 0.6):
        roof = sympy.sqrt(slant**2 - half**2)
        answer = 2 * half * height + half * roof
        solution = (
            f"The triangle's height is √({slant}² − {half}²) = {plain(roof)}: {2 * half} · {height} + "
            f"1/2 · {2 * half} · "
            f"{plain(roof)} = {plain(answer)}."
        )
        return Draft(
            figure, "Find the area of the figure.", answer, lambda f: f.area(*corners), solution, unit="area"
        )
    answer = sympy.Integer(2 * half + 2 * height + 2 * slant)
    solution = f"{2 * half} + 2 · {height} + 2 · {slant} = {answer}."
    question = "Find the perimeter of the figure."
    return Draft(figure, question, answer, lambda f: f.perimeter(*corners), solution)


def _half_circle_on_rectangle(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """A rectangle with a half circle on one side or on two."""
    radius, length = whole(rng, 3, 10), whole(rng, 6, 30)
    if not 0.6 < length / (2 * radius) < 2.6 or length == 2 * radius:
        raise Unsuitable("a flat rectangle or a square")
    both = chance(rng, 0.4)
    corners = [figure.hidden(z) for z in (0, length, complex(length, 2 * radius), complex(0, 2 * radius))]
    a, b, c, d = corners
    centre = figure.hidden(complex(length, radius))
    caps = [figure.arc(centre, b, c, figure.hidden(complex(length + radius, radius)))]
    figure.segment(b, c, dashed=True)
    outline: tuple[str | Arc, ...] = (a, caps[0], d)
    if both:
        other = figure.hidden(complex(0, radius))
        caps.append(figure.arc(other, d, a, figure.hidden(complex(-radius, radius))))
        figure.segment(d, a, dashed=True)
        outline = (*caps,)
    else:
        figure.segment(d, a)
        figure.right_angle(d, a, b)
        figure.right_angle(c, d, a)
    figure.segment(a, b)
    figure.segment(c, d)
    if chance(rng, 0.7):
        figure.fill(*outline)
    figure.label_length(a, b, length, unit)
    figure.label_length(d, a, 2 * radius, unit)
    halves = len(caps)
    curved = "the two half circles" if both else "the half circle"
    if chance(rng, 0.6):
        answer = 2 * radius * length + halves * sympy.pi * sympy.Rational(radius**2, 2)
        solution = (
            f"The rectangle and {curved}: {length} · {2 * radius} + {'' if halves == 1 else '2 · '}π · "
            f"{radius}²/2 ≈ {rounded(answer, 1)}."
        )
        question = "Find the area of the figure."
        return Draft(figure, question, answer, lambda f: f.area(*outline), solution, places=1, unit="area")
    answer = 2 * length + (0 if both else 2 * radius) + halves * sympy.pi * radius
    rest = "" if both else f" + {2 * radius}"
    solution = (
        f"The straight sides and {curved}: 2 · {length}{rest} + {'' if halves == 1 else '2 · '}π · "
        f"{radius} ≈ {rounded(answer, 1)}."
    )
    question = "Find the perimeter of the figure."
    return Draft(figure, question, answer, lambda f: f.perimeter(*outline), solution, places=1)
