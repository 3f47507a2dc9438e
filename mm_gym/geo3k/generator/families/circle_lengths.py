"""Lengths in circles: chords and their distances, tangents, and the products along chords and secants."""

from __future__ import annotations

import math

import numpy as np
import sympy

from mm_gym.geo3k.generator.answers import plain
from mm_gym.geo3k.generator.expressions import linear
from mm_gym.geo3k.generator.families.registry import family
from mm_gym.geo3k.generator.families.right_triangles import scaled_triple, simple_root
from mm_gym.geo3k.generator.figure import Figure, polar
from mm_gym.geo3k.generator.problem import Draft, Unsuitable
from mm_gym.geo3k.generator.sampling import (
    chance,
    expression,
    find_length,
    for_length,
    for_unknown,
    letters,
    told,
    whole,
)


def circumcentre(a: complex, b: complex, c: complex) -> complex:
    """The centre of the circle through three points."""
    p, q = b - a, c - a
    cross = 2 * (p.conjugate() * q).imag
    return a + 1j * (p * abs(q) ** 2 - q * abs(p) ** 2) / cross


def tangent_text(draft: Draft) -> Draft:
    """Say in the question that tangents are meant, as Geometry3K does."""
    draft.question = f"{draft.question} Assume that segments that appear to be tangent are tangent."
    return draft


@family("chord_and_radius")
def chord_and_radius(rng: np.random.Generator, level: int) -> Draft:
    """The perpendicular from the centre halves a chord."""
    distance, half, _ = scaled_triple(rng) if level < 3 else (whole(rng, 2, 9), whole(rng, 3, 12), 0)
    radius = sympy.sqrt(distance**2 + half**2)
    if not 0.4 < distance / half < 2.6 or (
        level == 3 and (radius.is_Integer or not simple_root(radius, 120))
    ):
        raise Unsuitable("a flat triangle or an ugly root")
    a, b, m = letters(rng, 3)
    figure = Figure()
    o = figure.point("O", 0)
    for name, z in ((a, complex(-half, distance)), (b, complex(half, distance)), (m, complex(0, distance))):
        figure.point(name, z)
    figure.circle(o, float(radius), a, b)
    figure.dots.append(o)
    figure.path(a, m, b)
    figure.path(m, o, b)
    figure.right_angle(b, m, o)
    rule = f"The radius {o}{b}, the distance {o}{m} and half of the chord make a right triangle"
    if level == 1:
        figure.label_length(o, b, radius)
        figure.label_length(o, m, distance)
        figure.label_length(m, b, "x")
        value = sympy.sqrt(radius**2 - distance**2)
        solution = f"{rule}: x = √({radius}² − {distance}²) = {plain(value)}."
        return for_unknown(rng, figure, value, solution)
    chord = figure.given("length", (a, b), 2 * half).offset
    text = f"In $\\odot O$, ${a}{b} = {chord}$."
    if level == 2:
        figure.label_length(o, b, radius)
        answer = sympy.sqrt(radius**2 - (chord / 2) ** 2)
        solution = f"{rule}: {o}{m} = √({radius}² − {half}²) = {plain(answer)}."
        return told(text, for_length(rng, figure, (o, m), answer, solution))
    figure.label_length(o, m, distance)
    root = sympy.sqrt(distance**2 + (chord / 2) ** 2)
    solution = (
        f"{rule}: {o}{b} = √({distance}² + {half}²) = {plain(root)}, and the diameter is {plain(2 * root)}."
    )
    question = f"{text} Find the diameter of the circle."
    return Draft(figure, question, 2 * root, lambda f: 2 * f.length(o, a), solution)


def _equal_products(rng: np.random.Generator) -> tuple[int, int, int, sympy.Integer]:
    """Whole p, q, r, s between 2 and 20 with pq = rs."""
    k, m, n, t = (whole(rng, 1, 5) for _ in range(4))
    if min(k * m, n * t, k * n, m * t) < 2 or max(k * m, n * t, k * n, m * t) > 20:
        raise Unsuitable("parts too short or too long")
    return k * m, n * t, k * n, sympy.Integer(m * t)


@family("intersecting_chords")
def intersecting_chords(rng: np.random.Generator, level: int) -> Draft:
    """The products of the parts of two crossing chords are equal."""
    p, q, r, s = _equal_products(rng)
    if level == 1 and chance(rng, 0.3):
        r = whole(rng, 2, 14)
        s = sympy.Rational(p * q, r)
    if s.q > 2 or len({p, q, r, s}) < 4 or max(p, q, r, s) > 4 * min(p, q, r, s) or s < 2:
        raise Unsuitable("ugly parts")
    a, b, c, d, e = letters(rng, 5)
    slant = whole(rng, 55, 125)
    figure = Figure(letters=chance(rng, 0.5))
    figure.point(e, 0)
    for name, z in ((a, p), (b, -q), (c, polar(r, slant)), (d, polar(float(s), slant + 180))):
        figure.point(name, z)
    points = figure.points
    centre = figure.point("_centre", circumcentre(points[a], points[b], points[c]))
    figure.circle(centre, figure.length(centre, a), a, b, c, d)
    for name in (a, b, c, d):
        figure.segment(e, name)
    rule = "The products of the parts of two chords are equal"
    figure.label_length(e, a, p)
    figure.label_length(e, b, q)
    if level == 3:
        gap = s - r
        if s.q > 1 or gap <= 0:
            raise Unsuitable("the longer part comes second")
        figure.label_length(e, c, "x")
        figure.label_length(e, d, linear("x") + gap)
        value = (-gap + sympy.sqrt(gap**2 + 4 * p * q)) / 2
        solution = (
            f"{rule}: x(x + {gap}) = {p} · {q} = {p * q}, and the positive solution is x = {plain(value)}."
        )
        return for_unknown(rng, figure, value, solution)
    figure.label_length(e, c, r)
    if level == 2 and s.q > 1:
        raise Unsuitable("a fraction as an expression's value")
    states = linear("x") if level == 1 else expression(rng, int(s), whole(rng, 2, 9), slopes=(1, 2, 3))
    figure.label_length(e, d, states)
    value = (states * r).solve(p * q)
    product_text = f"{r}x" if level == 1 else f"{r}{states.grouped()}"
    return for_unknown(rng, figure, value, f"{rule}: {product_text} = {p} · {q}, so x = {plain(value)}.")


@family("tangent_and_radius")
def tangent_and_radius(rng: np.random.Generator, level: int) -> Draft:
    """A tangent is perpendicular to the radius at its point."""
    o, a, p, b = letters(rng, 4)
    radius, tangent, _ = scaled_triple(rng) if level != 2 else (whole(rng, 3, 12), whole(rng, 4, 16), 0)
    if not 0.45 < tangent / radius < 2.6:
        raise Unsuitable("the outer point is too near or too far")
    across = sympy.sqrt(radius**2 + tangent**2)
    figure = Figure()
    for name, z in ((o, 0), (a, radius), (p, complex(radius, tangent))):
        figure.point(name, z)
    figure.circle(o, radius, a)
    figure.dots.append(o)
    figure.path(o, a, p)
    figure.claims.append(("perpendicular", (o, a, p)))
    if level == 3:
        return tangent_text(_outer_part(rng, figure, (o, a, p, b), tangent, int(across) - radius))
    figure.segment(o, p)
    figure.label_length(o, a, radius)
    rule = "The tangent is perpendicular to the radius"
    if level == 1 and chance(rng, 0.5):
        figure.label_length(a, p, "x")
        known = figure.given("length", (o, p), across).offset
        value = sympy.sqrt(known**2 - radius**2)
        solution = f"{rule}: x = √({known}² − {radius}²) = {plain(value)}."
        draft = told(f"If ${o}{p} = {known}$,", for_unknown(rng, figure, value, solution), joined=True)
        return tangent_text(draft)
    if (level == 2 and across.is_Integer) or not simple_root(across, 130):
        raise Unsuitable("an ugly root")
    figure.label_length(a, p, tangent)
    solution = f"{rule}: {o}{p} = √({radius}² + {tangent}²) = {plain(across)}."
    return tangent_text(for_length(rng, figure, (o, p), across, solution))


def _outer_part(
    rng: np.random.Generator, figure: Figure, names: tuple[str, str, str, str], tangent: int, outer: int
) -> Draft:
    """The radius from a tangent and the part of the secant through the centre that lies outside."""
    o, a, p, b = names
    figure.point(b, figure.points[p] * figure.length(o, a) / figure.length(o, p))
    figure.claims.append(("same", (o, a, o, b)))
    figure.letters = chance(rng, 0.6)
    figure.path(o, b, p)
    figure.label_length(o, a, "x")
    figure.label_length(a, p, tangent)
    figure.label_length(b, p, outer)
    value = sympy.Rational(tangent**2 - outer**2, 2 * outer)
    solution = (
        f"The tangent is perpendicular to the radius: x² + {tangent}² = (x + {outer})², so {2 * outer}x = "
        f"{tangent**2 - outer**2} and x = {plain(value)}."
    )
    return for_unknown(rng, figure, value, solution)


@family("two_tangents")
def two_tangents(rng: np.random.Generator, level: int) -> Draft:
    """Two tangents from one point are equal; at level 3 a triangle around a circle."""
    if level == 3:
        return _triangle_around_circle(rng)
    a, b, p = letters(rng, 3)
    tangent, opening = whole(rng, 6, 40), whole(rng, 40, 80)
    radius = tangent * math.tan(math.radians(opening / 2))
    figure = Figure(letters=chance(rng, 0.6))
    o = figure.point("O", 0)
    figure.point(p, math.hypot(radius, tangent))
    figure.point(a, polar(radius, 90 - opening / 2))
    figure.point(b, polar(radius, opening / 2 - 90))
    figure.circle(o, radius, a, b)
    figure.dots.append(o)
    figure.claims += [("perpendicular", (o, a, p)), ("perpendicular", (o, b, p))]
    figure.segment(p, a)
    figure.segment(p, b)
    x = whole(rng, 3, 12)
    first = expression(rng, tangent, x, slopes=(1, 2, 3))
    second = linear(tangent) if level == 1 else expression(rng, tangent, x, slopes=(4, 5, 6))
    figure.label_length(p, a, first)
    figure.label_length(p, b, second)
    value = first.solve(second)
    rule = f"Tangents from one point are equal: {first} = {second}, so x = {plain(value)}"
    if level == 1 or chance(rng, 0.5):
        return tangent_text(for_unknown(rng, figure, value, rule + "."))
    answer = first.at(value)
    figure.letters = True
    question = find_length(rng, p + a)
    solution = f"{rule} and {p}{a} = {first} = {plain(answer)}."
    return tangent_text(Draft(figure, question, answer, lambda f: f.length(p, a), solution, {"x": value}))


def _triangle_around_circle(rng: np.random.Generator) -> Draft:
    """A triangle around a circle: its perimeter from three of the tangent lengths."""
    u, v, w = whole(rng, 3, 12), whole(rng, 3, 12), whole(rng, 3, 12)
    sides = (u + v, v + w, w + u)
    half = u + v + w
    radius = math.sqrt(u * v * w / half)
    if len({u, v, w}) < 3 or max(sides) > 0.86 * half:
        raise Unsuitable("a flat or symmetric triangle")
    a, b, c, d, e, g = letters(rng, 6)
    figure = Figure()
    figure.point(a, 0)
    figure.point(b, u + v)
    x = (sides[0] ** 2 + sides[2] ** 2 - sides[1] ** 2) / (2 * sides[0])
    figure.point(c, complex(x, math.sqrt(sides[2] ** 2 - x**2)))
    points = figure.points
    figure.point(d, u)
    figure.point(e, points[b] + (points[c] - points[b]) * v / sides[1])
    figure.point(g, points[a] + (points[c] - points[a]) * u / sides[2])
    centre = figure.point("_centre", complex(u, radius))
    figure.circle(centre, radius, d, e, g)
    figure.claims += [("perpendicular", (centre, e, c)), ("perpendicular", (centre, g, c))]
    figure.path(a, d, b, e, c, g, a)
    parts = [figure.label_length(a, d, u), figure.label_length(b, e, v), figure.label_length(c, g, w)]
    answer = 2 * (parts[0].offset + parts[1].offset + parts[2].offset)
    solution = (
        f"Tangents from one point are equal, so every part occurs twice: 2 · ({u} + {v} + {w}) = "
        f"{plain(answer)}."
    )
    question = f"Find the perimeter of $\\triangle {a}{b}{c}$."
    return tangent_text(Draft(figure, question, answer, lambda f: f.perimeter(a, b, c), solution))


def _secants(
    rng: np.random.Generator, near: float, whole_a: float, other: float, whole_b: float
) -> tuple[Figure, tuple[str, ...]]:
    """Two secants from one point that meet the circle at those distances along either."""
    p, a, b, c, d = letters(rng, 5)
    opening = whole(rng, 28, 58)
    figure = Figure(letters=chance(rng, 0.5))
    figure.point(p, 0)
    figure.point(a, near)
    figure.point(b, whole_a)
    figure.point(c, polar(other, opening))
    figure.point(d, polar(whole_b, opening))
    points = figure.points
    centre = figure.point("_centre", circumcentre(points[a], points[b], points[c]))
    radius = figure.length(centre, a)
    if not min(near, other) / radius > 0.2 or not max(whole_a, whole_b) / radius < 4.5:
        raise Unsuitable("a small or a large circle")
    if min(figure.length(a, b), figure.length(c, d)) < 0.8 * radius:
        raise Unsuitable("a secant is nearly a tangent")
    figure.circle(centre, radius, a, b, c, d)
    figure.path(p, a, b)
    figure.path(p, c, d)
    return figure, (p, a, b, c, d)


@family("two_secants")
def two_secants(rng: np.random.Generator, level: int) -> Draft:
    """From one point, outer part times whole secant is the same for every secant."""
    parts = _equal_products(rng)
    (near, whole_a), other = sorted(parts[:2]), int(min(parts[2:]))
    if level == 1 and chance(rng, 0.3):
        other = whole(rng, 3, 14)
    inner, product = whole_a - near, sympy.Integer(near * whole_a)
    rest = product / other - other
    if min(inner, rest) <= 2 or rest.q > 2 or other == near:
        raise Unsuitable("ugly parts")
    figure, (p, a, b, c, d) = _secants(rng, near, near + inner, other, float(product / other))
    figure.label_length(p, a, near)
    figure.label_length(a, b, inner)
    rule = "Outer part times whole secant is the same for both"
    left = f"{near} · ({near} + {inner}) = {product}"
    if level == 3:
        figure.label_length(p, c, "x")
        figure.label_length(c, d, rest)
        value = (-rest + sympy.sqrt(rest**2 + 4 * product)) / 2
        solution = f"{rule}: {left} = x(x + {rest}), and the positive solution is x = {plain(value)}."
        return for_unknown(rng, figure, value, solution)
    figure.label_length(p, c, other)
    states = linear("x") if level == 1 else expression(rng, int(rest), whole(rng, 2, 9), slopes=(1, 2, 3))
    figure.label_length(c, d, states)
    value = ((states + other) * other).solve(product)
    solution = f"{rule}: {left} = {other} · ({other} + {states}), so x = {plain(value)}."
    return for_unknown(rng, figure, value, solution)


@family("secant_and_tangent")
def secant_and_tangent(rng: np.random.Generator, level: int) -> Draft:
    """The square of a tangent is outer part times whole secant."""
    m, n, k = whole(rng, 1, 4), whole(rng, 2, 7), whole(rng, 1, 5)
    outer, inner = (k * m**2, k * (n**2 - m**2)) if level > 1 else (whole(rng, 2, 16), whole(rng, 3, 24))
    if not 2 <= outer <= 24 or not 3 <= inner <= 40:
        raise Unsuitable("parts too short or too long")
    product = sympy.Integer(outer * (outer + inner))
    tangent = sympy.sqrt(product)
    if not simple_root(tangent, 40) or inner < 0.4 * outer:
        raise Unsuitable("an ugly root")
    figure, (p, a, b, t) = _secant_beside_tangent(rng, outer, inner, float(tangent))
    rule = "The square of the tangent is outer part times whole secant"
    if level == 1:
        figure.label_length(p, t, "x")
        figure.label_length(p, a, outer)
        figure.label_length(a, b, inner)
        value = tangent
        solution = f"{rule}: x² = {outer} · ({outer} + {inner}) = {product}, so x = {plain(value)}."
    elif level == 2:
        figure.label_length(p, t, tangent)
        figure.label_length(p, a, outer)
        states = figure.label_length(a, b, "x")
        value = ((states + outer) * outer).solve(tangent**2)
        solution = f"{rule}: {tangent}² = {outer}({outer} + x), so x = {plain(value)}."
    else:
        figure.label_length(p, t, tangent)
        figure.label_length(p, a, "x")
        figure.label_length(a, b, inner)
        value = (-inner + sympy.sqrt(inner**2 + 4 * tangent**2)) / 2
        solution = f"{rule}: {tangent}² = x(x + {inner}), and the positive solution is x = {plain(value)}."
    return tangent_text(for_unknown(rng, figure, value, solution))


def _secant_beside_tangent(
    rng: np.random.Generator, outer: int, inner: int, tangent: float
) -> tuple[Figure, tuple[str, str, str, str]]:
    """Draw a circle with a secant and a tangent from one point; that point, its points."""
    p, a, b, t = letters(rng, 4)
    opening = whole(rng, 38, 70)
    figure = Figure(letters=chance(rng, 0.5))
    for name, z in ((p, 0), (t, tangent), (a, polar(outer, opening)), (b, polar(outer + inner, opening))):
        figure.point(name, z)
    points = figure.points
    centre = figure.point("_centre", circumcentre(points[a], points[b], points[t]))
    radius = figure.length(centre, t)
    if not 0.25 < outer / radius < 3 or inner < 0.8 * radius:
        raise Unsuitable("a small or a large circle, or a secant that is nearly a tangent")
    figure.circle(centre, radius, a, b, t)
    figure.claims.append(("perpendicular", (centre, t, p)))
    figure.segment(p, t)
    figure.path(p, a, b)
    return figure, (p, a, b, t)
