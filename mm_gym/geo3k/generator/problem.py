"""What a family hands over (`Draft`) and what the generator gives out (`Problem`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import sympy

from mm_gym.geo3k.generator.figure import Figure


@dataclass(frozen=True, eq=False)
class Problem:
    """A geometry problem with its diagram. Holds the answer: never hand it to a model as it is.

    Attributes:
        problem: The question, without an image mark; LaTeX between dollar signs, as in Geometry3K.
        answer: The right answer as Geometry3K writes answers.
        image: The diagram, uint8 (H, W, 3), white ground, 200 to 600 pixels a side.
        family: Which kind of problem it is, one of `FAMILIES`.
        level: Difficulty, one of `LEVELS`.
        solution: A short derivation in plain words that ends with the answer's value.
        exact: The exact value as SymPy writes it, before any rounding.
    """

    problem: str
    answer: str
    image: np.ndarray
    family: str
    level: int
    solution: str
    exact: str


@dataclass
class Draft:
    """A problem before it is drawn.

    Attributes:
        figure: Points to scale, with everything drawn and stated about them.
        question: The question's text; the rounding that it asks for is appended later.
        answer: The theorem's value, exact.
        measure: Reads the same quantity off the figure's coordinates, without the theorem.
        solution: How the theorem gives the value.
        unknowns: The value of every unknown that appears in a label.
        places: Decimal places that the answer is rounded to; None asks for the exact value.
        unit: `length`, `degree` or `area`: what is rounded.
        echoes: True where the theorem says that the answer equals a number that stands in the figure.
    """

    figure: Figure
    question: str
    answer: sympy.Expr
    measure: Callable[[Figure], float]
    solution: str
    unknowns: dict[str, sympy.Expr] = field(default_factory=dict)
    places: int | None = None
    unit: str = "length"
    echoes: bool = False


class Unsuitable(Exception):  # noqa: N818 - not a fault: the numbers drawn make a poor problem, others are drawn
    """The numbers drawn give no good problem of this family; the generator draws again."""
