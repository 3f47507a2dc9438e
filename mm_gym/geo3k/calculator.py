"""The `calculator` tool: bounded arithmetic for the agent, nothing evaluated as code."""

from __future__ import annotations

from decimal import Context, Decimal

from mm_gym.geo3k.expression import ExpressionError, evaluate
from mm_gym.tools import Tool, ToolError

_HELP = (
    "Expected arithmetic such as sqrt(3)*12/2 or \\frac{1}{2}*7.5^2: numbers, + - * / ^, brackets, sqrt, pi, "
    "sin, cos, tan, asin, acos, atan (degrees), abs"
)


def calculate(expression: str) -> str:
    """The value as text: exact where it is short, else to 10 significant digits.

    >>> calculate("2*(3+4)^2"), calculate("sqrt(2)"), calculate("sin 30")
    ('98', '1.414213562', '0.5')

    Raises:
        ToolError: The expression is not understood or too large; the text says what was wrong.
    """
    try:
        return format_number(evaluate(expression))
    except ExpressionError as error:
        raise ToolError(f"calculator: {error}. {_HELP}") from None


def format_number(value: Decimal) -> str:
    """The value to 10 significant digits, without trailing zeros."""
    if value == value.to_integral_value() and value.copy_abs() < Decimal("1e20"):
        return str(int(value))
    rounded = Context(prec=10).plus(value).normalize()
    plain = Decimal("1e-6") <= rounded.copy_abs() < Decimal("1e20")
    return f"{rounded:f}" if plain else f"{rounded:e}"


calculator = Tool(
    "calculator",
    "Evaluate an arithmetic expression: + - * / ^, sqrt, pi, sin, cos, tan and inverses in degrees.",
    {
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "e.g. sqrt(3)*12/2"}},
        "required": ["expression"],
    },
    calculate,
)
