"""Linear expressions in one unknown, as the labels of a figure and the equations of its theorem.

Knows numbers and their writing. Knows nothing of figures or families.

>>> a, b = Linear(2, 5, "x"), Linear(3, -10, "x")
>>> str(a), str(b), str(a + b), (a + b).solve(180)
('2x + 5', '3x − 10', '5x − 5', 37)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import sympy

from mm_gym.geo3k.generator.answers import plain

MINUS = "\N{MINUS SIGN}"
Number: TypeAlias = int | sympy.Expr


@dataclass(frozen=True)
class Linear:
    """`slope * unknown + offset`; a plain number has no unknown."""

    slope: Number
    offset: Number
    unknown: str = ""

    def at(self, value: Number) -> sympy.Expr:
        """The value of the expression where its unknown has `value`."""
        return sympy.sympify(self.slope) * value + self.offset

    def solve(self, total: Linear | Number) -> sympy.Expr:
        """The value of the unknown for which the expression equals `total`."""
        gap = self + linear(total) * -1
        if gap.slope == 0:
            raise ZeroDivisionError(f"{self} = {total} does not fix the unknown")
        return -sympy.sympify(gap.offset) / gap.slope

    def __add__(self, other: Linear | Number) -> Linear:
        other = linear(other)
        return Linear(
            sympy.sympify(self.slope) + other.slope,
            sympy.sympify(self.offset) + other.offset,
            self.unknown or other.unknown,
        )

    def __mul__(self, factor: Number) -> Linear:
        return Linear(sympy.sympify(self.slope) * factor, sympy.sympify(self.offset) * factor, self.unknown)

    def __str__(self) -> str:
        if self.slope == 0:
            return plain(sympy.sympify(self.offset))
        term = self.unknown if self.slope == 1 else plain(sympy.sympify(self.slope)) + self.unknown
        if self.offset == 0:
            return term
        sign = "+" if self.offset > 0 else MINUS
        return f"{term} {sign} {plain(abs(sympy.sympify(self.offset)))}"

    def degrees(self) -> str:
        """The expression as an angle's label: `52°`, `x°`, `(2x + 5)°`."""
        return self.grouped() + "°"

    def grouped(self) -> str:
        """The expression as a factor: `x`, `12`, `(2x + 5)`."""
        text = str(self)
        return f"({text})" if " " in text else text

    @property
    def known(self) -> bool:
        """Whether it is a plain number."""
        return self.slope == 0


def linear(value: Linear | Number | str) -> Linear:
    """A number, the name of an unknown, or an expression, as an expression."""
    if isinstance(value, Linear):
        return value
    if isinstance(value, str):
        return Linear(1, 0, value)
    return Linear(0, sympy.sympify(value))
