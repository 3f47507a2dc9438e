"""The table of families: a name and the function that drafts a problem of it at a level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mm_gym.geo3k.generator.problem import Draft

Builder = Callable[[np.random.Generator, int], Draft]
BUILDERS: dict[str, Builder] = {}


def family(name: str) -> Callable[[Builder], Builder]:
    """Register a builder `(rng, level) -> Draft` that raises `Unsuitable` where its numbers are poor."""

    def register(builder: Builder) -> Builder:
        if name in BUILDERS:
            raise ValueError(f"two families are called {name!r}")
        BUILDERS[name] = builder
        return builder

    return register
