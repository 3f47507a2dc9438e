r"""Arithmetic as people and LaTeX write it, read and evaluated with bounded time and memory.

Knows numbers, + - * / ^, roots, fractions, mixed numbers, pi, sin, cos, tan and their inverses (degrees),
in plain, unicode and LaTeX writing. Does not know units, names or what an answer is (`grading`), and never
evaluates anything as code. Values are `decimal.Decimal` of 60 digits: equal forms agree to far more digits
than different ones of this size can. All arithmetic goes through an own context, never the thread's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow

MAX_LENGTH = 400
"""Longest expression in characters."""
MAX_DEPTH = 40
"""Deepest nesting of brackets, roots and fractions."""
MAX_EXPONENT = 64
"""Largest absolute value of an exponent."""
MAX_DIGITS = 40
"""Longest number in characters."""

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


class ExpressionError(ValueError):
    """The text is not an expression that is understood, or too large; the message says what and where."""


def context() -> Context:
    """A fresh decimal context: 60 digits, magnitudes up to 1e200, errors raised."""
    return Context(prec=60, Emax=200, Emin=-200, traps=[InvalidOperation, DivisionByZero, Overflow])


def evaluate(text: str) -> Decimal:
    r"""The value of an expression.

    >>> evaluate(r"\frac{1}{2} + 2^3")
    Decimal('8.5')
    >>> evaluate("4 4/11") == evaluate(r"4\frac{4}{11}")
    True

    Raises:
        ExpressionError: It is not understood, too long, too deep or too large.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text)} characters, at most {MAX_LENGTH} are read")
    try:
        return _Parser(_tokens(_plain(text))).parse()
    except (InvalidOperation, DivisionByZero) as error:
        what = "division by zero" if isinstance(error, DivisionByZero) else "undefined value"
        raise ExpressionError(f"{what} (0/0, a root of a negative number, ...)") from None
    except Overflow:
        raise ExpressionError("the value is larger than 1e200") from None


def round_places(value: Decimal, places: int) -> Decimal:
    """The value rounded to so many decimal places, halves away from zero."""
    rounding = context()
    rounding.prec = 300
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=rounding)


def equal(left: Decimal, right: Decimal) -> bool:
    """Whether two values are the same number, to 40 digits: what is left of rounding at 60."""
    if left == right:
        return True
    ctx = context()
    difference = ctx.abs(ctx.subtract(left, right))
    return difference <= ctx.multiply(max(ctx.abs(left), ctx.abs(right)), Decimal("1e-40"))


# -- reading -----------------------------------------------------------------------------------------------

_REPLACED = {
    "−": "-",
    "–": "-",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "∙": "*",
    "÷": "/",
    "⁄": "/",
    "∕": "/",
    "√": r"\sqrt ",
    "π": r"\pi ",
    "²": "^2",
    "³": "^3",
    "°": " ",
    "º": " ",
    "˚": " ",
    "½": r"\frac{1}{2}",
    "⅓": r"\frac{1}{3}",
    "⅔": r"\frac{2}{3}",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}",
    "⅖": r"\frac{2}{5}",
    "⅗": r"\frac{3}{5}",
    "⅘": r"\frac{4}{5}",
    "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}",
    "⅛": r"\frac{1}{8}",
    "⅜": r"\frac{3}{8}",
    "⅝": r"\frac{5}{8}",
    "⅞": r"\frac{7}{8}",
    "\u00a0": " ",
    "\u2009": " ",
    "\u202f": " ",
}
_TABLE = str.maketrans(_REPLACED)
_DEGREE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-z]))|\\degrees?(?![a-z])|\\textdegree(?![a-z])")
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d{1,3}(?:(?:,|\{,\})\d{3})+(?!\d)|\d+)(?:\.\d*)?|\.\d+)
  | (?P<command>\\[a-zA-Z]+)
  | (?P<space>\\[,;:!\ ]|~)
  | (?P<power>\*\*|\^)
  | (?P<symbol>[-+*/(){}\[\]])
  | (?P<word>[A-Za-z]+)
  )""",
    re.VERBOSE | re.ASCII,
)
_FRACTIONS = frozenset({r"\frac", r"\dfrac", r"\tfrac", r"\cfrac"})
_TIMES = frozenset({r"\cdot", r"\times", r"\ast"})
_IGNORED = frozenset(
    {r"\left", r"\right", r"\quad", r"\qquad", r"\displaystyle", r"\big", r"\Big", r"\bigl", r"\bigr"}
)
_WORDS = {"pi": r"\pi", "sqrt": r"\sqrt", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}


def _plain(text: str) -> str:
    """Unicode and degree signs in the writing that the tokens know (angles are in degrees anyway)."""
    return _DEGREE.sub(" ", text if text.isascii() else text.translate(_TABLE))


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"not understood at {text[position : position + 12].strip()!r}")
        position = match.end()
        kind, token = match.lastgroup, match[match.lastgroup or 0]
        if kind == "space" or token in _IGNORED:
            continue
        if kind == "number":
            token = token.replace("{,}", "").replace(",", "")
            if len(token) > MAX_DIGITS:
                raise ExpressionError(f"a number has more than {MAX_DIGITS} digits")
        elif kind == "power":
            token = "^"
        elif token in _TIMES:
            token = "*"
        elif token == r"\div":
            token = "/"
        elif token in _FRACTIONS:
            token = r"\frac"
        elif kind in ("word", "command"):
            token = _WORDS.get(token.lstrip("\\"), token) if kind == "word" else _command(token)
        tokens.append(token)
    return tokens


def _command(token: str) -> str:
    name = token[1:]
    name = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}.get(name, name)
    return name if name in _FUNCTIONS else token


# -- evaluating --------------------------------------------------------------------------------------------


class _Parser:
    """Recursive descent over the tokens, evaluating as it goes; depth and sizes are bounded."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.context = context()

    def parse(self) -> Decimal:
        if not self.tokens:
            raise ExpressionError("the expression is empty")
        value = self.sum()
        if self.at < len(self.tokens):
            raise ExpressionError(f"not understood at {self.tokens[self.at]!r}")
        return value

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        if self.next == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.take(token):
            found = repr(self.next) if self.next else "the end"
            raise ExpressionError(f"expected {token!r}, found {found}")

    def sum(self) -> Decimal:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels")
        value = self.product()
        while self.next in ("+", "-"):
            add = self.take("+") or not self.take("-")
            term = self.product()
            value = self.context.add(value, term) if add else self.context.subtract(value, term)
        self.depth -= 1
        return value

    def product(self) -> Decimal:
        negative = False
        while self.next in ("+", "-"):
            negative ^= self.next == "-"
            self.at += 1
        value = self.mixed_number()
        if value is None:
            value = self.power()
        while True:
            if self.take("*"):
                value = self.context.multiply(value, self.signed_power())
            elif self.take("/"):
                value = self.context.divide(value, self.signed_power())
            elif self.begins_factor():
                value = self.context.multiply(value, self.power())
            else:
                return self.context.minus(value) if negative else value

    def signed_power(self) -> Decimal:
        negative = False
        while self.next in ("+", "-"):
            negative ^= self.next == "-"
            self.at += 1
        value = self.power()
        return self.context.minus(value) if negative else value

    def begins_factor(self) -> bool:
        """Whether the next token is a factor that is multiplied without a sign ("2 pi", "3(4)")."""
        token = self.next
        if not token or token in "+-*/^)}]":
            return False
        if _is_number(token):  # "5 3" is no product
            return not _is_number(self.tokens[self.at - 1])
        return True

    def mixed_number(self) -> Decimal | None:
        r"""`4 \frac{4}{11}` and `4 4/11`, where the fraction is proper and of whole numbers."""
        rest = self.tokens[self.at : self.at + 8]
        if not rest or not rest[0].isdigit():
            return None
        whole, upper, lower, used = rest[0], "", "", 0
        if len(rest) >= 8 and rest[1:3] == [r"\frac", "{"] and rest[4:6] == ["}", "{"] and rest[7] == "}":
            upper, lower, used = rest[3], rest[6], 8
        elif len(rest) >= 4 and rest[2] == "/":
            upper, lower, used = rest[1], rest[3], 4
        if not (upper.isdigit() and lower.isdigit() and int(upper) < int(lower)):
            return None
        self.at += used
        part = self.context.divide(Decimal(upper), Decimal(lower))
        return self.context.add(Decimal(whole), part)

    def power(self) -> Decimal:
        base = self.atom()
        if not self.take("^"):
            return base
        exponent = self.signed_power()  # right associative: 2^3^2 is 2^9
        if not -MAX_EXPONENT <= exponent <= MAX_EXPONENT:
            raise ExpressionError(f"the exponent {_short(exponent)} is beyond {MAX_EXPONENT}")
        return self.context.power(base, exponent)

    def atom(self) -> Decimal:
        token = self.next
        self.at += 1
        if _is_number(token):
            return self.context.create_decimal(token)
        if token in _CLOSING:
            value = self.sum()
            self.expect(_CLOSING[token])
            return value
        if token == r"\pi":
            return self.context.plus(_PI)
        if token == r"\frac":
            upper = self.group()
            return self.context.divide(upper, self.group())
        if token == r"\sqrt":
            return self.root()
        if token in _FUNCTIONS:
            return _FUNCTIONS[token](self.argument(), self.context)
        raise ExpressionError(f"not understood at {token!r}" if token else "the expression ends too early")

    def group(self) -> Decimal:
        r"""A fraction's part: `{...}`, or like TeX one digit (`\frac12`)."""
        token = self.next
        if token.isdigit() and len(token) > 1:
            self.tokens[self.at] = token[1:]
            return Decimal(token[0])
        return self.atom()

    def root(self) -> Decimal:
        degree = Decimal(2)
        if self.take("["):
            degree = self.sum()
            self.expect("]")
        value = self.atom()
        if degree == 2:
            return self.context.sqrt(value)
        if not (2 < degree <= MAX_EXPONENT and degree == degree.to_integral_value()):
            raise ExpressionError(f"a root's degree must be a whole number from 2 to {MAX_EXPONENT}")
        root = self.context.power(value.copy_abs(), self.context.divide(Decimal(1), degree))
        if value < 0 and degree % 2 == 0:
            raise ExpressionError("an even root of a negative number")
        return root.copy_sign(value)

    def argument(self) -> Decimal:
        """A function's argument: in brackets, or the factor that follows."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels")
        value = self.signed_power()
        self.depth -= 1
        return value


_CLOSING = {"(": ")", "{": "}", "[": "]"}


def _is_number(token: str) -> bool:
    return token[:1].isdigit() or (token[:1] == "." and len(token) > 1)


def _short(value: Decimal) -> str:
    return f"{value:.4g}"


def _sine(degrees: Decimal, ctx: Context) -> Decimal:
    """Taylor series after an exact reduction to -90 to 90 degrees."""
    degrees = ctx.remainder_near(degrees, Decimal(360))
    if degrees.copy_abs() > 90:
        degrees = ctx.subtract(Decimal(180).copy_sign(degrees), degrees)
    x = ctx.divide(ctx.multiply(degrees, _PI), Decimal(180))
    square, term, total = ctx.multiply(x, x), x, x
    for n in range(2, 80, 2):
        term = ctx.divide(ctx.multiply(term, ctx.minus(square)), Decimal(n * (n + 1)))
        total = ctx.add(total, term)
    return ctx.quantize(total, Decimal("1e-50"))


def _cosine(degrees: Decimal, ctx: Context) -> Decimal:
    return _sine(ctx.subtract(Decimal(90), ctx.remainder_near(degrees, Decimal(360))), ctx)


def _tangent(degrees: Decimal, ctx: Context) -> Decimal:
    return ctx.divide(_sine(degrees, ctx), _cosine(degrees, ctx))


def _inverse(name: str) -> Callable[[Decimal, Context], Decimal]:
    function = getattr(math, name)

    def inverse(value: Decimal, ctx: Context) -> Decimal:
        if name != "atan" and value.copy_abs() > 1:
            raise ExpressionError(f"{name} takes values from -1 to 1, got {_short(value)}")
        return ctx.create_decimal(repr(round(math.degrees(function(float(value))), 12)))

    return inverse


_FUNCTIONS: dict[str, Callable[[Decimal, Context], Decimal]] = {
    "sin": _sine,
    "cos": _cosine,
    "tan": _tangent,
    "asin": _inverse("asin"),
    "acos": _inverse("acos"),
    "atan": _inverse("atan"),
    "abs": lambda value, ctx: ctx.abs(value),
}
