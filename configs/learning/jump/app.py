"""A button that jumps to another of nine places when it is pressed: only the next picture shows where.

Reward is the share of the presses; a press beside the button ends the episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mm_gym.computer.actions import Action
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, Verdict, click

PLACES = 9
PAPERS = ("#ffffff", "#f2efe6", "#e4eff2")
COLORS = ("#c02626", "#1f8a3b", "#2546c8", "#8a2fa8")


@dataclass(frozen=True)
class Presses:
    """The check: `count` presses and no miss."""

    count: int

    def __call__(self, state: Any, answer: str | None = None) -> Verdict:
        done = state["presses"]
        success = done == self.count and not state["missed"]
        return Verdict(success, reward=done / self.count, over=state["missed"])


@dataclass(frozen=True)
class Follow:
    """The solver: press the button wherever it is."""

    count: int

    def __call__(self, page: PageQuery) -> Iterator[Action]:
        for _ in range(self.count):
            yield click(page.find("button"))


def jump(rng: np.random.Generator, level: int) -> Instance:
    """One press more than the level."""
    count = level + 1
    places = [int(rng.integers(PLACES))]
    while len(places) < count:  # never twice in the same place
        places.append((places[-1] + 1 + int(rng.integers(PLACES - 1))) % PLACES)
    state = {
        "places": places,
        "color": COLORS[int(rng.integers(len(COLORS)))],
        "paper": PAPERS[int(rng.integers(len(PAPERS)))],
    }
    return Instance(f"Press the button {count} times; it jumps.", state, Presses(count), Follow(count))


TASKS = [TaskSpec("follow", "jump", jump, tags=("grounding", "tiny"), min_size=(96, 96))]
