"""Which tasks an evaluation runs: a pure function of environment, seed and number.

Knows environment ids and their tasks; not policies.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import mm_gym
from agents.types import Task

STREAM = 1
"""Tells these seeds from those of training, as `train.tasks.EVALUATION` does: one environment with the same
`seed` gives the held-out tasks that `train/grpo.py` evaluates on."""


def eval_tasks(
    env_id: str,
    count: int | None,
    *,
    env_kwargs: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    seed: int = 0,
) -> list[Task]:
    """The first `count` tasks; more of them begin with the same ones.

    Where the environment has a fixed set (`env.unwrapped.task_ids`), each is taken at most once, in an order
    that the seed fixes. Else episodes are drawn by seeds.

    Args:
        env_id: A registered id, or `module:id`.
        count: How many; None for the whole of a fixed set.
        env_kwargs: Of `gymnasium.make`.
        options: Of every `reset`.
        seed: Same seed, same tasks.

    Raises:
        ValueError: `count` is None and the environment draws without end, or is below 1.
        gymnasium.error.Error: The environment can't be made here.
    """
    if count is not None and count < 1:
        raise ValueError(f"at least 1 task is needed, got {count}")
    kwargs, options = dict(env_kwargs or {}), dict(options or {})
    ids = None if "task" in options else task_ids(env_id, kwargs)
    if ids:
        order = np.random.default_rng([seed, STREAM]).permutation(len(ids))[:count]
        return [
            Task(env_id, kwargs, seed, {**options, "task": ids[i]}, group=number)
            for number, i in enumerate(order)
        ]
    if count is None:
        raise ValueError(f"{env_id} draws tasks without end: say how many you want")
    return [Task(env_id, kwargs, _seed(seed, index), options, group=index) for index in range(count)]


def task_ids(env_id: str, env_kwargs: dict[str, Any]) -> tuple[str, ...] | None:
    """The environment's fixed set of tasks, or None.

    Raises:
        ValueError: The arguments are not the environment's, or its module is not there.
    """
    mm_gym.register_all()
    try:
        env = gymnasium.make(env_id, **env_kwargs)
    except TypeError as error:
        raise ValueError(f"{env_id} doesn't take {env_kwargs}: {error}") from error
    except ImportError as error:
        raise ValueError(f"{env_id} can't be imported: {error}") from error
    try:
        ids = getattr(env.unwrapped, "task_ids", None)
        return tuple(ids) if ids else None
    finally:
        env.close()


def _seed(seed: int, index: int) -> int:
    rng = np.random.default_rng([seed, STREAM, index])
    rng.random()  # where a mix would choose the environment
    return int(rng.integers(2**31))
