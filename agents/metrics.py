"""What happened in a step's rollouts, as one flat dictionary of floats, and as one record a turn.

Knows trajectories; not loggers or trainers. Everything is by task (environment) and, under "all", over
all of them. Masked trajectories count in failures, times and stop reasons, never in reward or success.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from agents.types import Trajectory
from mm_gym.episode import Episode
from mm_gym.intervals import wilson_interval
from mm_gym.stop import StopReason

NGRAM = 4
"""Length of the n-grams whose repetition is measured."""
TRUNCATED = frozenset(
    {
        StopReason.ENV_TRUNCATED,
        StopReason.MAX_TURNS,
        StopReason.TOKEN_BUDGET,
        StopReason.CONTEXT_FULL,
        StopReason.GENERATION_LENGTH,
    }
)
"""Stop reasons of an episode that a limit ended."""
CALL_STATUSES = ("ok", "failed", "unknown", "malformed")


def rollout_metrics(
    trajectories: Sequence[Trajectory], *, version: int | None = None, prefix: str = "rollout"
) -> dict[str, float]:
    """Metrics of one step, for a logger.

    Args:
        trajectories: All of the step.
        version: The policy's now; gives `staleness`.
        prefix: Before each name.

    Returns:
        `{"<prefix>/<task>/<metric>": value}`; `<task>` is the environment's short name, or "all".
    """
    tasks: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        tasks["all"].append(trajectory)
        tasks[task_name(trajectory)].append(trajectory)
    return {
        f"{prefix}/{task}/{name}": value
        for task, members in tasks.items()
        for name, value in _task_metrics(members, version).items()
    }


def without_bulk(trajectory: Trajectory) -> Trajectory:
    """All that `rollout_metrics` reads and no more: small enough to gather over ranks."""
    episode = trajectory.episode
    pictures: list[Any] = [None] * len(trajectory.images or episode.images)
    small = Episode(env_id=episode.env_id, task_id=episode.task_id, success=episode.success)
    return replace(trajectory, images=pictures, logprobs=[], episode=small)


def task_name(trajectory: Trajectory) -> str:
    """The environment's short name: "Geo3k" of "mm_gym/Geo3k-v0"."""
    env_id = trajectory.task.env_id if trajectory.task else trajectory.episode.env_id
    return env_id.split(":")[-1].split("/")[-1].split("-v")[0] or "unknown"


def turn_records(trajectories: Iterable[Trajectory]) -> list[dict[str, Any]]:
    """One flat record a turn, for a table or a JSON-lines log."""
    records = []
    for trajectory in trajectories:
        for number, turn in enumerate(trajectory.turns):
            statuses = Counter(call.get("status", "ok") for call in turn.tool_calls)
            records.append(
                {
                    "env_id": trajectory.task.env_id if trajectory.task else trajectory.episode.env_id,
                    "task_id": trajectory.episode.task_id,
                    "group": trajectory.task.group if trajectory.task else 0,
                    "turn": number,
                    "reward": turn.reward,
                    "tokens": turn.end - turn.start,
                    "images": turn.images,
                    "finish_reason": turn.finish_reason,
                    "policy_version": turn.policy_version,
                    "error": turn.error,
                    **{f"calls_{status}": statuses[status] for status in CALL_STATUSES},
                    **{f"seconds_{name}": value for name, value in turn.seconds.items()},
                    "retries": sum(turn.retries.values()),
                    "masked": trajectory.masked,
                }
            )
    return records


def repetition(token_ids: Sequence[int], n: int = NGRAM) -> float:
    """Share of the n-grams that occurred before in the same sequence, in [0, 1].

    >>> repetition([1, 2, 3, 4, 5, 6])
    0.0
    >>> repetition([7] * 103)
    0.99
    """
    count = len(token_ids) - n + 1
    if count < 1:
        return 0.0
    distinct = {tuple(token_ids[i : i + n]) for i in range(count)}
    return 1.0 - len(distinct) / count


# -- by task -------------------------------------------------------------------------------------------


def _task_metrics(trajectories: Sequence[Trajectory], version: int | None) -> dict[str, float]:
    live = [t for t in trajectories if not t.masked]
    return {
        "episodes": float(len(trajectories)),
        "masked": _share(t.masked for t in trajectories),
        **_outcome(live),
        **_shape(trajectories),
        **_calls(trajectories),
        **_failures(trajectories),
        **_times(trajectories),
        **_tokens(trajectories),
        **_versions(trajectories, version),
        **_own(trajectories),
    }


def _outcome(live: Sequence[Trajectory]) -> dict[str, float]:
    rewards = [t.reward for t in live if t.reward is not None]
    wins = sum(t.success for t in live)
    low, high = wilson_interval(wins, len(live))
    out = {"success": _ratio(wins, len(live)), "success_low": low, "success_high": high}
    if rewards:
        mean = sum(rewards) / len(rewards)
        deviation = math.sqrt(sum((r - mean) ** 2 for r in rewards) / max(len(rewards) - 1, 1))
        out |= {"reward": mean, "reward_std": deviation}
        out["reward_interval"] = 1.96 * deviation / math.sqrt(len(rewards))
    return out


def _shape(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    turns = Counter(len(t.turns) for t in trajectories)
    reasons = Counter(str(t.stop_reason) for t in trajectories)
    total = len(trajectories)
    cut = [turn.finish_reason == "length" for t in trajectories for turn in t.turns]
    return {
        "turns": _mean(len(t.turns) for t in trajectories),
        **{f"turns_histogram/{n}": _ratio(count, total) for n, count in sorted(turns.items())},
        **{f"stop/{reason}": _ratio(count, total) for reason, count in sorted(reasons.items())},
        "truncated": _share(t.stop_reason in TRUNCATED for t in trajectories),
        "turns_cut": _share(cut),
    }


def _calls(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    statuses = Counter(
        call.get("status", "ok") for t in trajectories for turn in t.turns for call in turn.tool_calls
    )
    total = sum(statuses.values())
    errors = Counter(turn.error for t in trajectories for turn in t.turns if turn.error)
    return {
        "tool_calls": _ratio(total, len(trajectories)),
        "episodes_with_tool_calls": _share(any(turn.tool_calls for turn in t.turns) for t in trajectories),
        **{f"tool_calls_{status}": _ratio(statuses[status], total) for status in CALL_STATUSES},
        **{f"agent_errors/{kind}": _ratio(n, len(trajectories)) for kind, n in sorted(errors.items())},
    }


def _failures(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    failures: Counter[str] = Counter()
    retries: Counter[str] = Counter()
    for trajectory in trajectories:
        failures.update(trajectory.failures)
        for turn in trajectory.turns:
            retries.update(turn.retries)
    return {
        **{f"failures/{kind}": float(n) for kind, n in sorted(failures.items())},
        **{f"retries/{kind}": float(n) for kind, n in sorted(retries.items())},
    }


def _times(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    seconds: Counter[str] = Counter()
    for trajectory in trajectories:
        for turn in trajectory.turns:
            seconds.update(turn.seconds)  # type: ignore[arg-type]
    episodes = max(len(trajectories), 1)
    names = ("generation", "environment", "waiting")
    return {f"seconds_{name}": float(seconds[name]) / episodes for name in names}


def _tokens(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    sampled = [t.sampled_tokens for t in trajectories]
    prompts = [t.prompt_length for t in trajectories]
    totals = [len(t.token_ids) for t in trajectories]
    observed = [total - s - p for total, s, p in zip(totals, sampled, prompts, strict=True)]
    return {
        "tokens": _mean(totals),
        "tokens_prompt": _mean(prompts),
        "tokens_sampled": _mean(sampled),
        "tokens_observation": _mean(observed),
        "images": _mean(len(t.images) or len(t.episode.images) for t in trajectories),
        "images_after_turn_1": _mean(sum(turn.images for turn in t.turns) for t in trajectories),
        "repetition": _mean(repetition(_sampled_ids(t)) for t in trajectories),
    }


def _versions(trajectories: Sequence[Trajectory], version: int | None) -> dict[str, float]:
    """How old the weights were that sampled, and how many episodes more than one version sampled."""
    per_episode = [[v for turn in t.turns for v in turn.versions] for t in trajectories]
    mixed = _share(any(a != b for a, b in pairwise(versions)) for versions in per_episode)
    if version is None:
        return {"mixed_versions": mixed}
    ages = [version - v for versions in per_episode for v in versions]
    return {"mixed_versions": mixed, "staleness": _mean(ages), "staleness_max": float(max(ages, default=0))}


def _own(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What environments and the drift audit measured: the mean over the episodes that have it."""
    values: dict[str, list[float]] = defaultdict(list)
    for trajectory in trajectories:
        last: dict[str, float] = {}
        for turn in trajectory.turns:
            last |= turn.metrics
        for name, value in {**last, **trajectory.metrics}.items():
            values[name].append(float(value))
    return {
        name if name.startswith("drift") else f"env/{name}": _mean(v) for name, v in sorted(values.items())
    }


def _sampled_ids(trajectory: Trajectory) -> list[int]:
    return [i for turn in trajectory.turns for i in trajectory.token_ids[turn.start : turn.end]]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(sum(listed)) / len(listed) if listed else 0.0


def _share(flags: Iterable[bool]) -> float:
    return _mean(map(float, flags))


def _ratio(part: float, whole: float) -> float:
    return float(part) / whole if whole else 0.0
