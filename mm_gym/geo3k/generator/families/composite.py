"""Shaded regions and figures composed of simple ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain, rounded
from mm_gym.geo3k.generator.families.areas import UNITS
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import TRIPLES
from mm_gym.geo3k.generator.figure import Arc, Figure, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import chance, for_area, pick, whole


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
    text = "The circle is inscribed in the square. "
    return _shaded(figure, answer, lambda f: f.area(*corners) - f.area(circle), solution, text)


def _ring(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """Two circles about one centre, or two small circles side by side in a large one."""
    if chance(rng, 0.5):
        return _two_in_one(rng, figure, unit)
    inner = whole(rng, 3, 12)
    width = whole(rng, max(2, inner // 2), inner + 2)
    centre, on_inner, on_outer = (figure.hidden(z) for z in (0, inner, inner + width))
    big, small = figure.circle(centre, inner + width), figure.circle(centre, inner)
    figure.fill(big)
    figure.fill(small, white=True)
    figure.dots.append(centre)
    figure.path(centre, on_inner, on_outer)
    first = figure.label_length(centre, on_inner, inner, unit).offset
    outer = first + figure.label_length(on_inner, on_outer, width, unit).offset
    area = sympy.pi * (outer**2 - first**2)
    solution = (
        f"The large radius is {inner} + {width} = {outer}: π · {outer}² − π · {inner}² = {plain(area)} ≈ "
        f"{rounded(area, 1)}."
    )
    return _shaded(figure, area, lambda f: f.area(big) - f.area(small), solution)


def _two_in_one(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """A circle less two circles on its diameter."""
    half = whole(rng, 2, 12)
    big = figure.circle(figure.hidden(0), 2 * half)
    smalls = [figure.circle(figure.hidden(middle), half) for middle in (half * 1j, -half * 1j)]
    figure.fill(big)
    for small in smalls:
        figure.fill(small, white=True)
    ends = figure.hidden(-2 * half), figure.hidden(2 * half)
    figure.segment(*ends, dashed=True)
    figure.label_length(*ends, 4 * half, unit)
    area = sympy.pi * (4 * half**2 - 2 * half**2)
    solution = (
        f"The large circle has radius {2 * half}, each small one {half}: π · {2 * half}² − 2π · {half}² = "
        f"{plain(area)} ≈ {rounded(area, 1)}."
    )
    return _shaded(figure, area, lambda f: f.area(big) - sum(f.area(small) for small in smalls), solution)


def _shaded(
    figure: Figure, area: sympy.Expr, measure: Callable[[Figure], float], solution: str, text: str = ""
) -> Draft:
    question = f"{text}Find the area of the shaded region."
    return Draft(figure, question, area, measure, solution, places=1, unit="area")


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
    text = f"The polygon in the circle is {'an' if count == 3 else 'a'} {name}. "
    return _shaded(figure, answer, lambda f: f.area(circle) - f.area(*corners), solution, text)


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
        return for_area(figure, "Find the area of the figure.", answer, corners, solution)
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
        return for_area(figure, "Find the area of the figure.", answer, corners, solution)
    answer = sympy.Integer(2 * half + 2 * height + 2 * slant)
    solution = f"{2 * half} + 2 · {height} + 2 · {slant} = {answer}."
    question = "Find the perimeter of the figure."
    return Draft(figure, question, answer, lambda f: f.perimeter(*corners), solution)


def _half_circle_on_rectangle(rng: np.random.Generator, figure: Figure, unit: str) -> Draft:
    """A rectangle with a half circle on one side or on two."""
    radius, length = whole(rng, 3, 10), whole(rng, 6, 30)
    if not 0.6 < length / (2 * radius) < 2.6 or length == 2 * radius:
        raise Unsuitable("a flat rectangle or a square")
    corners = [figure.hidden(z) for z in (0, length, complex(length, 2 * radius), complex(0, 2 * radius))]
    a, b, c, d = corners
    right, left = figure.hidden(complex(length, radius)), figure.hidden(complex(0, radius))
    caps = [figure.arc(right, b, c, figure.hidden(complex(length + radius, radius)))]
    figure.path(a, b)
    figure.path(c, d)
    figure.segment(b, c, dashed=True)
    if chance(rng, 0.4):
        caps.append(figure.arc(left, d, a, figure.hidden(complex(-radius, radius))))
        figure.segment(d, a, dashed=True)
    else:
        figure.segment(d, a)
        figure.right_angle(d, a, b)
        figure.right_angle(c, d, a)
    outline: tuple[str | Arc, ...] = tuple(caps) if len(caps) == 2 else (a, caps[0], d)
    if chance(rng, 0.7):
        figure.fill(*outline)
    figure.label_length(a, b, length, unit)
    figure.label_length(d, a, 2 * radius, unit)
    halves = len(caps)
    times, curved = ("", "the half circle") if halves == 1 else ("2 · ", "the two half circles")
    if chance(rng, 0.6):
        area = 2 * radius * length + halves * sympy.pi * sympy.Rational(radius**2, 2)
        sum_text = f"{length} · {2 * radius} + {times}π · {radius}²/2 ≈ {rounded(area, 1)}"
        solution = f"The rectangle and {curved}: {sum_text}."
        return for_area(figure, "Find the area of the figure.", area, outline, solution, places=1)
    way = 2 * length + 2 * radius * (2 - halves) + halves * sympy.pi * radius
    straight = f"2 · {length}" + (f" + {2 * radius}" if halves == 1 else "")
    solution = f"The straight sides and {curved}: {straight} + {times}π · {radius} ≈ {rounded(way, 1)}."
    question = "Find the perimeter of the figure."
    return Draft(figure, question, way, lambda f: f.perimeter(*outline), solution, places=1)
