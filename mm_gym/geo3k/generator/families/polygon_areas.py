"""Areas of regular polygons and of similar figures."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain, rounded
from mm_gym.geo3k.generator.expressions import linear
from mm_gym.geo3k.generator.families.areas import SQUARE_WORDS, UNITS
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.figure import Figure, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import chance, for_area, for_unknown, pick, told, whole

SHAPES = {3: "equilateral triangle", 5: "regular pentagon", 6: "regular hexagon", 8: "regular octagon"}


@family("regular_polygon_area")
def regular_polygon_area(rng: np.random.Generator, level: int) -> Draft:
    """Half of apothem times perimeter; exactly at level 2, from the radius at level 3."""
    count = pick(rng, (3, 6)) if level == 2 else pick(rng, (5, 6, 8))
    size, unit = whole(rng, 4, 24), pick(rng, UNITS)
    radius = size if level == 3 else size / (2 * math.sin(math.pi / count))
    figure = Figure(letters=False)
    names = [figure.hidden(polar(radius, -90 + 360 / count * (index - 0.5))) for index in range(count)]
    figure.polygon(*names, fill=chance(rng, 0.6))
    question = f"Find the area of the {SHAPES[count]}."
    if level == 3:
        centre = figure.hidden(0)
        figure.dots.append(centre)
        figure.segment(centre, names[0])
        figure.label_length(centre, names[0], size, unit)
        area = count * size**2 * sympy.sin(2 * sympy.pi / count) / 2
        sector = plain(sympy.Rational(360, count))
        solution = f"{count} triangles of area 1/2 · {size}² · sin {sector}° make about {rounded(area, 1)}."
        return for_area(figure, question, area, names, solution, places=1)
    figure.label_length(names[1], names[2], size, unit)
    apothem = sympy.radsimp(size / (2 * sympy.tan(sympy.pi / count)))
    area = sympy.expand(count * size * apothem / 2)
    if level == 2:
        solution = (
            f"Its apothem is {plain(apothem)} and its perimeter {count * size}, so the area is {plain(area)}."
        )
        return for_area(figure, question, area, names, solution)
    centre, bottom = figure.hidden(0), figure.hidden(-1j * float(apothem))
    figure.dots.append(centre)
    figure.segment(centre, bottom, dashed=True)
    figure.right_angle(centre, bottom, names[0])
    solution = (
        f"The apothem is {size}/(2 tan {plain(sympy.Rational(180, count))}°) ≈ {rounded(apothem, 2)}; half "
        f"of it times the perimeter {count * size} is about {rounded(area, 1)}."
    )
    return for_area(figure, question, area, names, solution, places=1)


@family("similar_areas")
def similar_areas(rng: np.random.Generator, level: int) -> Draft:
    """Areas of similar figures are as the squares of their sides."""
    small, large = pick(rng, ((1, 2), (2, 3), (3, 4), (3, 5), (2, 5), (4, 5)))
    unit, factor = pick(rng, UNITS), whole(rng, 1, 5)
    sides = (small * factor, large * factor)
    shape = pick(rng, ("rectangle", "triangle", "parallelogram"))
    height = sides[0] * sympy.Rational(whole(rng, 4, 9), 6)
    area = sides[0] * height / (2 if shape == "triangle" else 1)
    areas = (area, area * sympy.Rational(large, small) ** 2)
    if any(a.q > 1 for a in areas) or (level > 1 and sides[0] < 3) or height == sides[0]:
        raise Unsuitable("fractions as areas, or squares")
    figure = Figure(letters=False, upright=True)
    outlines = _side_by_side(rng, figure, shape, sides, float(height))
    known = [figure.given("area", outlines[0], areas[0]).offset]
    text = f"The two {shape}s are similar."
    if level == 1:
        for outline, side in zip(outlines, sides, strict=True):
            figure.label_length(outline[0], outline[1], side, unit)
        answer = known[0] * sympy.Rational(sides[1], sides[0]) ** 2
        words = f"{text} The area of the smaller one is {plain(known[0])} {SQUARE_WORDS[unit]}."
        solution = (
            f"The areas are as the squares of corresponding sides: {plain(known[0])} · "
            f"({sides[1]}/{sides[0]})² = "
            f"{plain(answer)}."
        )
        question = f"{words} Find the area of the larger one."
        return for_area(figure, question, answer, outlines[1], solution)
    known.append(figure.given("area", outlines[1], areas[1]).offset)
    first = whole(rng, 0, 1)  # which of the two sides is known
    figure.label_length(outlines[first][0], outlines[first][1], sides[first], unit)
    states = linear("x") + (whole(rng, 1, 4) if level == 3 else 0)
    figure.label_length(outlines[1 - first][0], outlines[1 - first][1], states)
    side = sides[first] * sympy.sqrt(known[1 - first] / known[first])
    value = states.solve(side)
    end = f"x = {plain(value)}" if level == 2 else f"{states} = {plain(side)} and x = {plain(value)}"
    solution = (
        f"The sides are as the roots of the areas, √{plain(known[0])} : √{plain(known[1])} = {small} : "
        f"{large}, so {end}."
    )
    words = f"{text} Their areas are {plain(known[0])} and {plain(known[1])} {SQUARE_WORDS[unit]}."
    return told(f"{words} Use the given areas to", for_unknown(rng, figure, value, solution), joined=True)


def _side_by_side(
    rng: np.random.Generator, figure: Figure, shape: str, sides: tuple[int, int], height: float
) -> tuple[list[str], list[str]]:
    """Draw two similar figures, their bases on one line; the corners of both, bases first."""
    base, lean = sides[0], float(rng.uniform(0.2, 0.6))
    corners: list[complex] = {
        "rectangle": [0, base, base + 1j * height, 1j * height],
        "triangle": [0, base, base * lean + 1j * height],
        "parallelogram": [0, base, base * (1 + lean / 2) + 1j * height, base * lean / 2 + 1j * height],
    }[shape]
    shift = 1.35 * max(complex(z).real for z in corners) + 0.1 * sides[1]
    first = [figure.hidden(z) for z in corners]
    second = [figure.hidden(z * sides[1] / sides[0] + shift) for z in corners]
    for outline in (first, second):
        figure.polygon(*outline, fill=True)
    return first, second
