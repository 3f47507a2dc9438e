"""Geometry problems like those of Geometry3K: a diagram to scale, a question, an exact answer, from a seed.

>>> import numpy as np
>>> from mm_gym.geo3k.generator import generate
>>> problem = generate(np.random.default_rng(0), family="triangle_angle_sum", level=1)
>>> problem.family, problem.level, problem.image.dtype, problem.image.shape[2]
('triangle_angle_sum', 1, dtype('uint8'), 3)

A family drafts points to scale and says what its theorem gives; `layout` finds room for every label;
`check` rejects poor pictures. The same state of the random generator gives the same problem, byte for byte,
with the same library versions.
"""

from __future__ import annotations

import numpy as np

from mm_gym.geo3k.generator.answers import write
from mm_gym.geo3k.generator.check import unsuitable
from mm_gym.geo3k.generator.drawing import render
from mm_gym.geo3k.generator.families import BUILDERS
from mm_gym.geo3k.generator.layout import Layout, lay_out
from mm_gym.geo3k.generator.placement import NoRoom
from mm_gym.geo3k.generator.problem import Draft, Problem, Unsuitable
from mm_gym.geo3k.generator.sampling import pick, style, tilt

FAMILIES: tuple[str, ...] = tuple(sorted(BUILDERS))
LEVELS: tuple[int, ...] = (1, 2, 3)
MOST_DRAWS = 4000

_ROUNDING = {0: "whole number", 1: "tenth", 2: "hundredth"}

__all__ = ["FAMILIES", "LEVELS", "Problem", "compose", "generate"]


def generate(rng: np.random.Generator, family: str | None = None, level: int | None = None) -> Problem:
    """Make one problem.

    Args:
        rng: The only source of chance.
        family: One of `FAMILIES`; None draws one.
        level: One of `LEVELS`; None draws one.

    Raises:
        ValueError: An unknown family or level.
    """
    family = pick(rng, FAMILIES) if family is None else family
    level = pick(rng, LEVELS) if level is None else level
    draft, layout = compose(rng, family, level)
    return Problem(
        problem=question(draft),
        answer=write(draft.answer, draft.places),
        image=render(layout),
        family=family,
        level=level,
        solution=draft.solution,
        exact=str(draft.answer),
    )


def compose(rng: np.random.Generator, family: str, level: int) -> tuple[Draft, Layout]:
    """Draft a problem and lay out its diagram, drawing again until the picture is a good one.

    Raises:
        ValueError: An unknown family or level.
        RuntimeError: No good problem in `MOST_DRAWS` draws, a fault of the family.
    """
    if family not in BUILDERS:
        raise ValueError(f"unknown family {family!r}; choose one of {', '.join(FAMILIES)}")
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}; choose one of {LEVELS}")
    reason = ""
    for _ in range(MOST_DRAWS):
        try:
            draft = BUILDERS[family](rng, level)
            tilt(rng, draft.figure)
            layout = lay_out(draft.figure, style(rng))
        except (Unsuitable, NoRoom, ZeroDivisionError) as problem:
            reason = str(problem)
            continue
        reason = unsuitable(draft, layout) or ""
        if not reason:
            return draft, layout
    raise RuntimeError(
        f"family {family}, level {level}: no good problem in {MOST_DRAWS} draws; the last: {reason}"
    )


def question(draft: Draft) -> str:
    """The question with the rounding that it asks for."""
    if draft.places is None:
        return draft.question
    place = "degree" if draft.unit == "degree" and draft.places == 0 else _ROUNDING[draft.places]
    return f"{draft.question} Round to the nearest {place}."
