"""The generator's parts: answers' writing, expressions, measuring, fonts, strokes and label placement."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy

from mm_gym.geo3k.generator import FAMILIES, LEVELS, compose
from mm_gym.geo3k.generator.answers import plain, rounded, write
from mm_gym.geo3k.generator.drawing import render
from mm_gym.geo3k.generator.expressions import Linear, linear
from mm_gym.geo3k.generator.figure import Arc, Figure, crossing, foot, polar
from mm_gym.geo3k.generator.ink import Style
from mm_gym.geo3k.generator.layout import lay_out
from mm_gym.geo3k.generator.placement import NoRoom, touches
from mm_gym.geo3k.generator.typeset import font, typeset

S = sympy.sqrt
R = sympy.Rational


@pytest.mark.parametrize(
    ("value", "latex", "text"),
    [
        (sympy.Integer(12), "12", "12"),
        (R(15, 2), "7.5", "7.5"),
        (R(11, 4), "2.75", "2.75"),
        (R(40, 3), "\\frac { 40 } { 3 }", "40/3"),
        (R(1, 3), "\\frac { 1 } { 3 }", "1/3"),
        (S(7), "\\sqrt { 7 }", "√7"),
        (5 * S(3), "5 \\sqrt { 3 }", "5√3"),
        (S(336), "4 \\sqrt { 21 }", "4√21"),
        (5 * S(2) / 2, "\\frac { 5 \\sqrt { 2 } } { 2 }", "5√2/2"),
        (S(10) / 5, "\\frac { \\sqrt { 10 } } { 5 }", "√10/5"),
        (10 * sympy.pi, "10 \\pi", "10π"),
        (R(5, 3) * sympy.pi, "\\frac { 5 } { 3 } \\pi", "5π/3"),
        (R(23, 5) * sympy.pi, "4.6 \\pi", "4.6π"),
        (10 * S(2) * sympy.pi, "10 \\pi \\sqrt { 2 }", "10π√2"),
        (40 + 14 * S(2), "40 + 14 \\sqrt { 2 }", "40 + 14√2"),
    ],
)
def test_exact_values_are_written_as_the_data_set_writes_them(value, latex, text):
    assert write(value) == latex
    assert plain(value) == text


def test_rounding_is_half_up_on_the_exact_value():
    assert rounded(R(5, 2), 0) == "3"
    assert rounded(R(45, 1000), 2) == "0.05"
    assert write(S(50), places=1) == "7.1"
    assert rounded(sympy.tan(sympy.pi / 7) * 1000, 1) == "481.6"


def test_a_value_without_an_exact_writing_is_refused():
    with pytest.raises(ValueError, match="give `places`"):
        write(sympy.sin(1))


def test_linear_expressions_print_add_and_solve():
    a, b = Linear(2, 5, "x"), Linear(3, -10, "x")
    assert (str(a), a.degrees(), b.grouped(), linear("y").degrees()) == (
        "2x + 5",
        "(2x + 5)°",
        "(3x − 10)",
        "y°",
    )
    assert (a + b).solve(180) == 37
    assert (a * 2).solve(b + 20) == 0
    with pytest.raises(ZeroDivisionError, match="does not fix the unknown"):
        a.solve(Linear(2, 9, "x"))


def test_measures_of_a_figure_are_those_of_plane_geometry():
    figure = Figure()
    for name, z in {"A": 0, "B": 4, "C": 4 + 3j, "O": 10}.items():
        figure.point(name, z)
    assert figure.length("A", "C") == 5
    assert math.isclose(figure.angle("A", "B", "C"), 90)
    assert math.isclose(figure.area("A", "B", "C"), 6)
    assert math.isclose(figure.perimeter("A", "B", "C"), 12)
    assert math.isclose(figure.distance_to_line("B", "A", "C"), 2.4)
    assert crossing(0, 2 + 2j, 2, 2j) == 1 + 1j
    assert foot(1 + 1j, 0, 5) == 1
    for name, degrees in {"P": 0, "Q": 90, "T": 180}.items():
        figure.point(name, 10 + polar(2, degrees))
    assert math.isclose(figure.arc_measure("O", "P", "Q"), 90)
    assert math.isclose(figure.arc_measure("O", "P", "Q", via="T"), 270)
    assert math.isclose(figure.area(Arc("O", 2, "P", "T", "Q")), 2 * math.pi, rel_tol=1e-5)
    assert math.isclose(figure.perimeter(Arc("O", 2)), 4 * math.pi, rel_tol=1e-5)


def test_turning_and_mirroring_change_no_measure():
    draft, _ = compose(np.random.default_rng(4), "two_secants", 1)
    figure = draft.figure
    before = [figure.measured(label) for label in figure.labels if label.states]
    figure.turn(73.0, mirrored=True)
    assert np.allclose([figure.measured(label) for label in figure.labels if label.states], before)


def test_a_name_is_used_once():
    figure = Figure()
    figure.point("A", 0)
    with pytest.raises(ValueError, match="already has a point 'A'"):
        figure.point("A", 1)


def missing_glyph(character: str, italic: bool) -> bool:
    """Whether the font draws its box for missing glyphs, told by its pixels."""
    face = font(40, italic)
    return bytes(face.getmask(character)) == bytes(face.getmask("\U000fffff"))


def test_the_bundled_fonts_have_the_glyphs_of_geometry():
    for italic in (False, True):
        assert missing_glyph("\U000ffffe", italic), "the test recognises the box"
        for character in "√∠πθ△²½°−ℓABCXYZxyz0123456789()+=.,":
            assert not missing_glyph(character, italic), character


def test_no_label_draws_the_missing_glyph_box():
    seen = set()
    cases = [(family, level) for family in FAMILIES for level in LEVELS] + [("special_45_45_90", 2)] * 9
    for seed, (family, level) in enumerate(cases):
        _, layout = compose(np.random.default_rng(seed), family, level)
        for label in layout.labels:
            seen |= {(c, run.italic) for run in label.setting.runs for c in run.text if c != " "}
    assert {c for c, _ in seen} >= set("°√+−()x0A")
    assert not [character for character, italic in seen if missing_glyph(character, italic)]


def test_letters_are_italic_units_and_digits_upright_and_roots_have_a_bar():
    runs = {run.text: run for run in typeset("3x − 4", 16).runs}
    assert runs["x"].italic
    assert not runs["3"].italic
    assert [run.italic for run in typeset("12 m", 16).runs] == [False, False]
    root = typeset("5√13", 16).runs[-1]
    assert root.text == "√13"
    assert root.bar is not None


def test_text_stays_inside_the_boxes_that_placement_reserved():
    for seed, family in enumerate(
        ("pythagoras", "special_45_45_90", "parallelogram", "angles_between_chords")
    ):
        _, layout = compose(np.random.default_rng(seed), family, 2)
        bare = render(replace(layout, labels=()))
        changed = (render(layout) != bare).any(axis=2)
        assert changed.any()
        for label in layout.labels:
            left, top, right, bottom = label.box
            x, y = left - layout.origin.real, top - layout.origin.imag
            rows = slice(int(y) - 1, int(y + bottom - top) + 2)
            assert changed[rows, int(x) - 1 : int(x + right - left) + 2].any(), label.text
            changed[rows, int(x) - 1 : int(x + right - left) + 2] = False
        assert not changed.any()


def test_boxes_and_strokes_touch_as_they_should():
    boxes = np.array([[0.0, 0.0, 10.0, 10.0]])
    through, beside, inside = (
        np.array([[-5 + 5j, 15 + 6j]]),
        np.array([[12 + 0j, 12 + 10j]]),
        np.array([[4 + 4j, 6 + 6j]]),
    )
    assert touches(boxes, through, 0)[0]
    assert touches(boxes, inside, 0)[0]
    assert not touches(boxes, beside, 1)[0]
    assert touches(boxes, beside, 3)[0]


def test_a_figure_whose_labels_cannot_fit_is_refused_not_drawn_badly():
    figure = Figure()
    figure.point("A", 0)
    figure.point("B", 10)
    figure.point("C", 5 + 0.3j)
    figure.polygon("A", "B", "C")
    for a, vertex, b in (("B", "A", "C"), ("A", "B", "C")):
        for _ in range(40):
            figure.label_angle(a, vertex, b, Linear(12, 345, "x"))
    with pytest.raises(NoRoom, match="no room for the angle label"):
        lay_out(figure, Style())


def test_dashed_strokes_leave_gaps_and_shades_lie_under_the_lines():
    figure = Figure(letters=False)
    for name, z in {"A": 0, "B": 10, "C": 10 + 8j, "D": 8j}.items():
        figure.point(name, z)
    figure.polygon("A", "B", "C", "D", fill=True)
    figure.segment("A", "C", dashed=True)
    layout = lay_out(figure, Style(mark=(255, 0, 0), fill=(0, 200, 0)))
    image = render(layout).reshape(-1, 3)
    colours = {tuple(int(v) for v in pixel) for pixel in image}
    assert {(255, 255, 255), (0, 200, 0), (0, 0, 0)} <= colours
    red = sum(1 for pixel in image if pixel[0] > 200 and pixel[1] < 60)
    length = abs(10 + 8j) * layout.scale
    assert 0.3 * length < red < 0.95 * length * 2
