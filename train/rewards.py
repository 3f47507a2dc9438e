"""What TRL's reward machinery and logs read: the tickets of a data set, the columns, and the reward itself.

TRL wants a data set with one row a prompt; the task source has the tasks. So the rows are tickets, and what
they stand for is written over them once the episodes are there. Knows rows; no trainer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from datasets import Dataset

from train.rows import Row

RewardFunc = Callable[..., "list[float | None]"]


def tickets(count: int) -> Dataset:
    """A data set of `count` rows that stand for tasks."""
    return Dataset.from_dict({"prompt": [[{"role": "user", "content": "ticket"}]] * count})


def columns_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """What reward functions get beside prompts and completions, one value a row.

    `env_reward`, `task_id`, `stop_reason`, `success`, and the whole `trajectory`. A dead row has None and
    blanks: TRL prints the columns of one when it warns that no reward function scored it.
    """
    trajectories = [row.trajectory if row.live else None for row in rows]
    return {
        "env_reward": [row.reward for row in rows],
        "task_id": [t.episode.task_id if t else "" for t in trajectories],
        "stop_reason": [str(t.stop_reason) if t else "" for t in trajectories],
        "success": [bool(t.success) if t else False for t in trajectories],
        "trajectory": trajectories,
    }


def environment_reward(env_reward: list[float | None], **columns: Any) -> list[float | None]:
    """What the environments gave; None for a dead row."""
    return env_reward


def live_only(reward_func: RewardFunc) -> RewardFunc:
    """A reward function that sees the live rows alone; its verdict on dead ones is None."""

    @functools.wraps(reward_func)
    def wrapped(env_reward: list[float | None], **columns: Any) -> list[float | None]:
        count = len(env_reward)
        live = [i for i, reward in enumerate(env_reward) if reward is not None]
        columns["env_reward"] = env_reward
        kept = {
            name: [values[i] for i in live] if isinstance(values, list) and len(values) == count else values
            for name, values in columns.items()
        }
        rewards: list[float | None] = [None] * count
        for i, reward in zip(live, reward_func(**kept) if live else [], strict=True):
            rewards[i] = reward
        return rewards

    return wrapped
