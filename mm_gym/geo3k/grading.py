r"""Whether an answer to a geometry problem is right: `grade_answer`.

Knows how answers are written (boxes, names, units, ratios, relations, words) and Geometry3K's kinds of
reference. Arithmetic is `expression`'s. Pure Python over short text: bounded time and memory in any thread
or process, nothing evaluated as code.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from mm_gym.geo3k.expression import MAX_LENGTH, ExpressionError, equal, evaluate, round_places

MIN_PLACES = 2
"""Decimal places that a decimal needs to stand for an exact reference (a root, a fraction, pi)."""
_NOISE_PLACES = 10  # beyond these, digits of a decimal for an exact reference may be float noise


def grade_answer(prediction: str, reference: str) -> bool:
    r"""Whether `prediction` is right.

    - Integer reference: equal values only.
    - Decimal reference: equal after rounding the prediction to the reference's places (halves up).
    - Exact reference (root, fraction, pi): equal, or a decimal of at least two places that is the correctly
      rounded value.
    - Ratios, relations and words: the same text once writing is normalised; sides of a ratio by value.

    >>> grade_answer(r"x = 5\sqrt{3}\text{ cm}", r"5 \sqrt { 3 }"), grade_answer("8.66", r"5 \sqrt { 3 }")
    (True, True)
    >>> grade_answer("8.7", r"5 \sqrt { 3 }"), grade_answer("59.9", "60")
    (False, False)

    Args:
        prediction: The answer, inside `\boxed{}` or not; of several boxes the last counts. Longer than 400
            characters is wrong.
        reference: The right answer.
    """
    boxed = last_boxed(prediction)
    prediction = prediction if boxed is None else boxed
    if len(prediction) > MAX_LENGTH:
        return False
    right = _reference(reference)
    if right.value is None:
        return _same_text(prediction, right)
    values = _chain_values(_cleaned(prediction))
    if values is None:
        return False
    return _matches(values[0], right)


def last_boxed(text: str) -> str | None:
    r"""The content of the last complete `\boxed{...}`, nested braces kept; None where there is none.

    >>> last_boxed(r"\boxed{1} so \boxed{\frac{1}{2}}")
    '\\frac{1}{2}'
    """
    end = len(text)
    for _ in range(16):  # incomplete boxes looked past, at most
        start = text.rfind("\\boxed", 0, end)
        if start < 0:
            return None
        opening = _BOX_OPENING.match(text, start)
        if opening is not None and (close := _closing_brace(text, opening.end(), end)) >= 0:
            return text[opening.end() : close].strip()
        end = start
    return None


# -- the reference -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """A right answer, read once."""

    kind: str
    """ "integer", "decimal", "exact" or "text"."""
    value: Decimal | None
    """None for "text"."""
    places: int
    """Decimal places of a decimal."""
    text: str
    """The cleaned text."""


@lru_cache(maxsize=8192)
def _reference(reference: str) -> Reference:
    boxed = last_boxed(reference)
    text = _cleaned(reference if boxed is None else boxed)
    number = _number(text)
    if number is not None:
        return Reference("decimal" if number.places else "integer", number.value, number.places, text)
    values = None if ":" in text or _RELATION.search(text) else _chain_values(text)
    if values is None:
        return Reference("text", None, 0, text)
    return Reference("exact", values[0].value, 0, text)


def _matches(given: _Value, right: Reference) -> bool:
    assert right.value is not None
    if equal(given.value, right.value):
        return True
    if right.kind == "decimal":
        return round_places(given.value, right.places) == right.value
    if right.kind == "exact" and given.is_literal and given.places >= MIN_PLACES:
        places = min(given.places, _NOISE_PLACES)
        return round_places(given.value, places) == round_places(right.value, places)
    return False


# -- reading an answer's value -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Value:
    value: Decimal
    places: int = 0
    """Decimal places as written, of a plain number."""
    is_literal: bool = False
    """Whether it was written as a plain number."""


_LITERAL = re.compile(r"[-+]?\s*(?:\d{1,3}(?:(?:,|\{,\})\d{3})+|\d*)(?:\.(\d*))?", re.ASCII)
_SPLIT = re.compile(r"\\approx|≈|=|\\doteq|≐")
_NAME = re.compile(  # letters, points and marks; no leading digit ("2x = 10" is no answer of 10), no operator
    r"(?![\s({|]*\d)(?:[a-zA-Z∠△⊙□θαβφ'’_(){}|\s:\d]|"
    r"\\(?:angle|triangle|overline|widehat|overparen|overrightarrow|hat|bar|sin|cos|tan|theta|alpha|beta|phi|odot|"
    r"square|measuredangle)(?![a-zA-Z]))+"
)
_MAX_PARTS = 6


def _chain_values(text: str) -> list[_Value] | None:
    """The values of "name = value = value ≈ value" when all agree, rounding allowed after the first."""
    parts = _SPLIT.split(text)
    if len(parts) > _MAX_PARTS:
        return None
    while len(parts) > 1 and (not parts[0].strip() or _is_name(parts[0])):
        parts = parts[1:]
    values: list[_Value] = []
    for part in parts:
        value = _value(part)
        if value is None or (values and not _agrees(value, values[0])):
            return None
        values.append(value)
    return values or None


def _is_name(text: str) -> bool:
    """Whether the left side of "=" names what was asked for ("x", "m∠ABC", "Area of the circle")."""
    text = text.strip()
    return bool(_NAME.fullmatch(text)) and not text.isdigit() and _number(text) is None


def _agrees(value: _Value, first: _Value) -> bool:
    if equal(value.value, first.value):
        return True
    return value.is_literal and round_places(first.value, value.places) == value.value


def _value(text: str) -> _Value | None:
    """The value of one expression, with or without a unit; None when it is not understood."""
    text = text.strip()
    for candidate in (text, _without_unit(text)):
        if not candidate:
            continue
        number = _number(candidate)
        if number is not None:
            return number
        try:
            return _Value(evaluate(candidate))
        except ExpressionError:
            continue
    return None


def _number(text: str) -> _Value | None:
    text = text.strip()
    match = _LITERAL.fullmatch(text)
    if match is None or not any(c.isdigit() for c in text):
        return None
    try:
        value = evaluate(text)
    except ExpressionError:
        return None
    return _Value(value, len(match[1] or ""), True)


# -- cleaning ----------------------------------------------------------------------------------------------

_BOX_OPENING = re.compile(r"\\boxed\s*\{")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_RELATION = re.compile(r"=|<|>|≤|≥|≅|∼|~|\\(?:cong|leq?|geq?|lt|gt|neq?|sim|parallel|perp)(?![a-zA-Z])")
_MATH_MARKS = re.compile(r"\$|\\[()\[\]]")
_SPACING = re.compile(
    r"\\(?:[,;:! ]|quad(?![a-z])|qquad(?![a-z])|left(?![a-z])|right(?![a-z])|displaystyle)|&"
)
_FONT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|mathrm|mathbf|mathit|mathsf|operatorname|mbox|rm|bf|it)(?![a-zA-Z])\*?"
)
_DEGREE = re.compile(
    r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-z])|\{\s*°\s*\})|\\(?:text)?degrees?(?![a-z])|[°º˚]|"
    r"(?<![a-zA-Z])deg(?:rees?)?(?![a-zA-Z])\.?",
    re.IGNORECASE,
)
_LEAD = re.compile(r"(?:the\s+)?(?:final\s+)?answer(?:\s+is)?\s*:?\s*", re.IGNORECASE)
_UNIT_WORD = (
    r"(?:units?|"
    r"(?:milli|centi|kilo|deci)?met(?:er|re)s?|[mck]?m|dm|"
    r"inch(?:es)?|in|f(?:oo|ee)t|ft|yards?|yds?|miles?|mi|"
    r"(?:kilo|milli)?grams?|kg|pounds?|lbs?|ounces?|oz|seconds?|secs?|minutes?|mins?|hours?|hrs?|mph|"
    r"lit(?:er|re)s?)"
)
_UNIT_POWER = r"(?:\s*\^?\s*(?:\{\s*[23]\s*\}|[23²³])|\s+squared|\s+cubed)?"
_UNIT = re.compile(
    rf"(?<![a-zA-Z\\])(?:(?:square|sq|cubic|cu)\.?\s*)?{_UNIT_WORD}\.?{_UNIT_POWER}\s*"
    rf"(?:(?:/|per)\s*{_UNIT_WORD}\.?{_UNIT_POWER}\s*)?\.?$",
    re.IGNORECASE,
)


def _closing_brace(text: str, start: int, end: int) -> int:
    depth = 1
    for match in _BRACES.finditer(text, start, end):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return -1


def _cleaned(text: str) -> str:
    """Without math marks, spacing and font commands, degree signs and a final full stop."""
    if not text.isascii():
        text = "".join(unicodedata.normalize("NFKC", c) if c in _FULL_WIDTH else c for c in text)
    text = _SPACING.sub(" ", _MATH_MARKS.sub(" ", text)).replace("~", " ")
    if "\\" in text:
        text = _unwrap_fonts(text)
    text = _DEGREE.sub(" ", text).strip()
    if text.startswith("**") and text.endswith("**"):  # Markdown's bold
        text = text[2:-2].strip()
    text = text.removesuffix(".").rstrip()
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead else text


_FULL_WIDTH = frozenset(chr(c) for c in range(0xFF01, 0xFF5F))


def _unwrap_fonts(text: str) -> str:
    r"""`\text{ cm}^2` as ` cm^2`: the braces after a font command go with it."""
    out, position = [], 0
    while match := _FONT.search(text, position):
        out.append(text[position : match.start()])
        opening = match.end()
        while opening < len(text) and text[opening] == " ":
            opening += 1
        close = _closing_brace(text, opening + 1, len(text)) if text[opening : opening + 1] == "{" else -1
        if close < 0:
            position = match.end()
            continue
        text = text[:close] + text[close + 1 :]
        position = opening + 1
        out.append(" ")
    out.append(text[position:])
    return "".join(out)


def _without_unit(text: str) -> str:
    match = _UNIT.search(text)
    if match is None:
        return ""
    return text[: match.start()].rstrip().removesuffix("*").removesuffix("\\cdot")


# -- text answers ------------------------------------------------------------------------------------------

_TEXT_FORMS = {
    r"\angle": "∠",
    r"\measuredangle": "∠",
    r"\cong": "≅",
    r"\leq": "≤",
    r"\le": "≤",
    "<=": "≤",
    r"\geq": "≥",
    r"\ge": "≥",
    ">=": "≥",
    r"\lt": "<",
    r"\gt": ">",
    r"\triangle": "△",
    r"\overline": "",
    r"\parallel": "∥",
    r"\perp": "⊥",
    r"\sim": "∼",
    r"\pi": "π",
    r"\cdot": "*",
    r"\times": "*",
    "−": "-",
    "–": "-",
}
_TEXT_FORM = re.compile(
    "|".join(re.escape(k) + ("(?![a-zA-Z])" if k[0] == "\\" else "") for k in _TEXT_FORMS)
)


def _same_text(prediction: str, right: Reference) -> bool:
    given = _cleaned(prediction)
    if ":" in right.text:
        sides, wanted = given.split(":"), right.text.split(":")
        return len(sides) == len(wanted) and all(map(_same_side, sides, wanted))
    normal = _normal_text(right.text)
    if normal in (_normal_text(given), _normal_text(_without_unit(given))):
        return True
    if "=" in right.text or "=" not in given:
        return False
    name, _, rest = given.partition("=")  # "x = m + n - 180" for m + n - 180
    return _is_name(name) and _normal_text(rest) == normal


def _same_side(given: str, wanted: str) -> bool:
    left, right = _value(given), _value(wanted)
    if left is None or right is None:
        return _normal_text(given) == _normal_text(wanted)
    return equal(left.value, right.value)


def _normal_text(text: str) -> str:
    text = _TEXT_FORM.sub(lambda match: _TEXT_FORMS[match[0]], text)
    return re.sub(r"[\s{}]+", "", text).casefold()
