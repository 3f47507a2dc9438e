"""A random stream of its own for each (seed, task, sample, turn)."""

from __future__ import annotations

import hashlib

from agents.types import Task


def turn_seed(seed: int, task: Task, sample: int, attempt: int, turn: int) -> int:
    """The seed of one turn's sampling, in [0, 2**63).

    Args:
        seed: The engine's.
        task: Its environment, seed and group count.
        sample: Which episode of the group.
        attempt: 0, or how often this episode was begun afresh after a loss.
        turn: From 0.
    """
    name = f"{seed}/{task.env_id}/{task.seed}/{task.group}/{sample}/{attempt}/{turn}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1
