r"""Exact values written as Geometry3K writes its answers.

Knows SymPy numbers: rationals, multiples of one root, multiples of pi, and sums of those. Knows nothing of
figures.

>>> import sympy
>>> write(5 * sympy.sqrt(3)), write(sympy.Rational(40, 3)), write(sympy.Rational(15, 2)), write(10 * sympy.pi)
('5 \\sqrt { 3 }', '\\frac { 40 } { 3 }', '7.5', '10 \\pi')
>>> write(sympy.sqrt(50), places=1), plain(5 * sympy.sqrt(2) / 2)
('7.1', '5√2/2')
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import sympy

GUARD_DIGITS = 30


def write(value: sympy.Expr, places: int | None = None) -> str:
    r"""Write `value` as the data set does: `12`, `7.5`, `\frac { 40 } { 3 }`, `5 \sqrt { 3 }`, `10 \pi`.

    Args:
        value: An exact positive real number.
        places: Round half up to that many decimal places; None writes the exact value.
    """
    if places is not None:
        return rounded(value, places)
    return " + ".join(_latex_term(term) for term in _terms(value))


def plain(value: sympy.Expr) -> str:
    """Write an exact value for a label or a sentence, in Unicode: `12`, `7.5`, `40/3`, `5√3`, `10π`."""
    return " + ".join(_plain_term(term) for term in _terms(value))


def rounded(value: sympy.Expr, places: int) -> str:
    """Round half up to `places` decimal places; a whole number is written without a point.

    >>> rounded(sympy.Rational(25, 2), 0), rounded(sympy.pi, 2), rounded(sympy.Rational(3), 1)
    ('13', '3.14', '3')
    """
    exact = Decimal(str(sympy.N(value, GUARD_DIGITS)))
    text = str(exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP))
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounding_margin(value: sympy.Expr, places: int) -> float:
    """How far `value` lies from the nearest rounding boundary, in units of the last place (0 to 0.5)."""
    scaled = float(sympy.N(value, GUARD_DIGITS) * 10**places)
    return abs(scaled % 1 - 0.5)


def _terms(value: sympy.Expr) -> list[sympy.Expr]:
    """Split a sum into its terms, rationals first, in SymPy's own canonical order."""
    terms = list(sympy.Add.make_args(sympy.expand(value)))
    return sorted(terms, key=lambda term: (not term.is_Rational, sympy.default_sort_key(term)))


def _split(term: sympy.Expr) -> tuple[sympy.Rational, sympy.Expr]:
    """Split a term into its rational coefficient and what it multiplies (1, a root, pi or their product)."""
    coefficient, rest = term.as_coeff_Mul()
    if not coefficient.is_Rational:
        raise ValueError(f"cannot write {term}: its coefficient {coefficient} is not rational; give `places`")
    return coefficient, rest


def _factor(rest: sympy.Expr, root: str, pi: str) -> str:
    """Write a root, pi or their product, with the given pattern for a root."""
    pieces: list[str] = []
    for factor in sympy.Mul.make_args(rest):
        if factor == sympy.pi:
            pieces.insert(0, pi)
        elif factor.is_Pow and factor.exp == sympy.Rational(1, 2) and factor.base.is_Integer:
            pieces.append(root.format(factor.base))
        else:
            raise ValueError(f"cannot write {rest} exactly: {factor} is neither pi nor a root; give `places`")
    return " ".join(pieces)


def _decimal(coefficient: sympy.Rational) -> str | None:
    """The decimal of a fraction that ends after at most two places, else None."""
    hundredfold = coefficient * 100
    if not hundredfold.is_Integer:
        return None
    return f"{int(hundredfold) / 100:.2f}".rstrip("0").rstrip(".")


def _latex_term(term: sympy.Expr) -> str:
    coefficient, rest = _split(term)
    if rest == 1:
        return _decimal(coefficient) or f"\\frac {{ {coefficient.p} }} {{ {coefficient.q} }}"
    factor = _factor(rest, "\\sqrt {{ {} }}", "\\pi")
    if coefficient.q == 1:
        return factor if coefficient == 1 else f"{coefficient.p} {factor}"
    numerator = factor if coefficient.p == 1 else f"{coefficient.p} {factor}"
    if sympy.pi in sympy.Mul.make_args(rest):
        decimal = _decimal(coefficient)
        return (
            f"{decimal} {factor}"
            if decimal
            else f"\\frac {{ {coefficient.p} }} {{ {coefficient.q} }} {factor}"
        )
    return f"\\frac {{ {numerator} }} {{ {coefficient.q} }}"


def _plain_term(term: sympy.Expr) -> str:
    coefficient, rest = _split(term)
    if rest == 1:
        return _decimal(coefficient) or f"{coefficient.p}/{coefficient.q}"
    factor = _factor(rest, "√{}", "π").replace(" ", "")
    decimal = _decimal(coefficient) if factor.startswith("π") else None
    if decimal:
        return factor if decimal == "1" else decimal + factor
    numerator = factor if coefficient.p == 1 else f"{coefficient.p}{factor}"
    return numerator if coefficient.q == 1 else f"{numerator}/{coefficient.q}"
