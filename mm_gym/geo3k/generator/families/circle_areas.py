"""Arcs, sectors and circumferences."""

from __future__ import annotations

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain, rounded
from mm_gym.geo3k.generator.families.areas import UNITS
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import scaled_triple, simple_root
from mm_gym.geo3k.generator.figure import Arc, Figure, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import chance, for_area, letters, pick, whole

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
    text = f"In $\\odot {centre}$,"
    if level == 3:
        share = length / sympy.pi
        if share.q > 1:
            raise Unsuitable("a fraction of pi")
        radius_asked = share * 180 / angle
        question = (
            f"{text} the length of $\\widehat{{{a}{b}}}$ is ${share} \\pi$. Find the radius of $\\odot "
            f"{centre}$."
        )
        solution = f"{angle}/360 · 2π · r = {plain(length)}, so r = {share} · 180/{angle} = {radius_asked}."
        return Draft(figure, question, radius_asked, lambda f: f.length(centre, a), solution)
    round_way = f"2π · {radius}"
    if level == 1:
        figure.label_length(centre, a, radius)
    else:
        end = figure.hidden(-figure.points[a])
        figure.segment(centre, end)
        diameter = figure.given("length", (a, end), 2 * radius)
        text, round_way = f"{text} the diameter is {diameter}.", f"π · {diameter}"
    exact = chance(rng, 0.3) and length.as_coeff_Mul()[0].q <= 3
    places = None if exact else pick(rng, (1, 2))
    value = f"= {plain(length)}" if places is None else f"≈ {rounded(length, places)}"
    ask = f"ind the {'exact ' if exact else ''}length of $\\widehat{{{a}{b}}}$."
    question = f"{text} {'f' if level == 1 else 'F'}{ask}"
    minor = Arc(centre, radius, a, b, figure.hidden(polar(radius, angle / 2)))

    def along(f: Figure) -> float:
        return f.perimeter(minor, centre) - f.length(b, centre) - f.length(centre, a)

    return Draft(
        figure, question, length, along, f"The arc is {angle}/360 · {round_way} {value}.", places=places
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
    return for_area(figure, question, area, (outline, centre), solution, places=None if exact else 1)


@family("circumference")
def circumference(rng: np.random.Generator, level: int) -> Draft:
    """A circle's circumference from its radius, from a rectangle or right triangle in it."""
    if level == 1:
        return _circumference_from_radius(rng)
    names, unit = letters(rng, 4), pick(rng, UNITS)
    p, q, _ = scaled_triple(rng) if level == 2 else (whole(rng, 3, 12), whole(rng, 3, 12), 0)
    diagonal = sympy.sqrt(p**2 + q**2)
    if not 0.4 < p / q < 2.5 or (level == 3 and (diagonal.is_Integer or not simple_root(diagonal))):
        raise Unsuitable("a narrow rectangle or an ugly root")
    rectangle = p != q and chance(rng, 0.5)
    names = names if rectangle else names[:3]
    figure = Figure(letters=False)
    centre = figure.hidden(0)
    for name, z in zip(names, (-q - 1j * p, q - 1j * p, q + 1j * p, -q + 1j * p), strict=False):
        figure.point(name, z / 2)
    circle = figure.circle(centre, float(diagonal) / 2, *names)
    figure.dots.append(centre)
    if rectangle:
        figure.polygon(*names)
    else:
        figure.path(names[0], names[1], names[2], centre, names[0])
        figure.right_angle(names[0], names[1], names[2])
    figure.label_length(names[0], names[1], q, unit)
    figure.label_length(names[1], names[2], p, unit)
    value = diagonal * sympy.pi
    shape, across = ("rectangle", "diagonal") if rectangle else ("triangle", "hypotenuse")
    solution = (
        f"The {across} √({p}² + {q}²) = {plain(diagonal)} is a diameter, so the circumference is "
        f"{plain(value)}."
    )
    question = f"The {shape} is inscribed in the circle. Find the exact circumference of the circle."
    return Draft(figure, question, value, lambda f: f.perimeter(circle), solution)


def _circumference_from_radius(rng: np.random.Generator) -> Draft:
    """From the radius or the diameter."""
    unit, size = pick(rng, UNITS), whole(rng, 2, 24)
    figure = Figure(letters=False)
    centre, end, start = figure.hidden(0), figure.hidden(size), figure.hidden(-size)
    circle = figure.circle(centre, size, end)
    if chance(rng, 0.5):
        figure.segment(start, end)
        figure.label_length(start, end, 2 * size, unit)
    else:
        figure.dots.append(centre)
        figure.segment(centre, end)
        figure.label_length(centre, end, size, unit)
    value = 2 * sympy.pi * size
    solution = f"Circumference = π · diameter = π · {2 * size} ≈ {rounded(value, 1)}."
    question = f"Find the circumference of the {pick(rng, ('circle', 'figure'))}."
    return Draft(figure, question, value, lambda f: f.perimeter(circle), solution, places=1)
