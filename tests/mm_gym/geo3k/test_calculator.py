"""The bounded expression reader and the calculator tool on it."""

from __future__ import annotations

import contextlib
import math
import time
from decimal import Inexact, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mm_gym.geo3k.calculator import calculate, calculator
from mm_gym.geo3k.expression import ExpressionError, equal, evaluate
from mm_gym.tools import ToolError


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2*(3+4)^2", "98"),
        ("2 ** 3", "8"),
        ("-2^2", "-4"),
        ("2^3^2", "512"),
        ("2^-1", "0.5"),
        ("10/4", "2.5"),
        ("1/3", "0.3333333333"),
        ("0.1+0.2", "0.3"),
        ("sqrt(2)", "1.414213562"),
        ("√16", "4"),
        ("sqrt(3)*12/2", "10.39230485"),
        (r"\frac{1}{2}\cdot 7.5^2", "28.125"),
        ("2π5", "31.41592654"),
        ("12 × 3 ÷ 4", "9"),
        ("sin(30)", "0.5"),
        ("sin 30°", "0.5"),
        ("cos 60", "0.5"),
        ("tan(45)", "1"),
        ("sin(-390)", "-0.5"),
        ("asin(0.5)", "30"),
        ("arctan(1)", "45"),
        ("acos(-1)", "180"),
        ("abs(-3)", "3"),
        ("1,234 + 1", "1235"),
        ("2^60", "1152921504606846976"),
        ("10^30", "1e+30"),
        ("1/10^10", "1e-10"),
    ],
)
def test_values(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("2**9**9", "exponent"),
        ("9^64^9", "exponent"),
        ("9^64^4", "exponent"),
        ("((9^60)^60)", "larger than"),
        ("(" * 300 + "1" + ")" * 300, "characters"),
        ("(" * 100 + "1" + ")" * 100, "nested deeper"),
        ("sqrt" * 90 + "1", "not understood"),
        ("1" * 5000, "characters"),
        ("1" * 300, "digits"),
        ("1/0", "division by zero"),
        ("sqrt(-1)", "undefined"),
        ("acos(2)", "from -1 to 1"),
        ("", "empty"),
        ("2 +", "ends too early"),
        ("(2", "expected ')'"),
        ("2)", "not understood at ')'"),
        ("x + 1", "not understood at 'x'"),
        ("5 3", "not understood"),
        ("__import__('os').system('true')", "not understood"),
        ("lambda: 1", "not understood"),
        ("[1 for _ in (1,)]", "not understood"),
    ],
)
def test_what_is_not_understood_or_too_large_ends_at_once_with_an_error(expression: str, says: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ToolError) as error:
        calculate(expression)
    assert time.perf_counter() - start < 0.5
    assert says in str(error.value)
    assert "Expected arithmetic such as" in str(error.value)


def test_the_tool_checks_its_argument() -> None:
    assert calculator({"expression": "1+1"}) == "2"
    for arguments in ({}, {"expression": 5}, {"expression": "1", "extra": 1}, {"expr": "1"}):
        with pytest.raises(ToolError, match=r'Expected \{"name": "calculator"'):
            calculator(arguments)


def test_trigonometry_agrees_with_the_standard_library() -> None:
    for degrees in range(-720, 721, 7):
        assert float(evaluate(f"sin({degrees})")) == pytest.approx(math.sin(math.radians(degrees)), abs=1e-12)
        assert float(evaluate(f"cos({degrees})")) == pytest.approx(math.cos(math.radians(degrees)), abs=1e-12)
    assert equal(evaluate("sin(30)"), evaluate("1/2"))
    assert evaluate("cos(90)") == 0


def test_the_threads_own_decimal_context_plays_no_part() -> None:
    with localcontext() as context:
        context.prec = 2
        context.traps[Inexact] = True
        assert calculate("sqrt(2)*sqrt(2) + sin(30)") == "2.5"
        assert equal(evaluate("sqrt(8)"), evaluate("2*sqrt(2)"))


def expressions() -> st.SearchStrategy[tuple[str, Fraction]]:
    """Random arithmetic as text with its exact value."""
    number = st.integers(0, 30).map(lambda n: (str(n), Fraction(n)))

    def combine(inner: st.SearchStrategy[tuple[str, Fraction]]) -> st.SearchStrategy[Any]:
        def join(parts: tuple[Any, str, Any]) -> tuple[str, Fraction]:
            (a, x), sign, (b, y) = parts
            if sign == "/" and y == 0:
                sign = "+"
            value = {"+": x + y, "-": x - y, "*": x * y}.get(sign)
            return f"({a} {sign} {b})", x / y if value is None else value

        return st.tuples(inner, st.sampled_from("+-*/"), inner).map(join)

    return st.recursive(number, combine, max_leaves=12)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(expressions())
def test_arithmetic_agrees_with_fractions(case: tuple[str, Fraction]) -> None:
    text, value = case
    assert abs(Fraction(evaluate(text)) - value) <= abs(value) * Fraction(1, 10**40)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(alphabet="0123456789.+-*/^(){}[]√π \\sqrtfracpincoa", max_size=80))
def test_any_text_gives_a_value_or_an_expression_error(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        assert evaluate(text).is_finite()
