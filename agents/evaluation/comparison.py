"""Two evaluations, task by task. Knows outcomes; not how they came about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.evaluation.figures import Outcome
from agents.evaluation.statistics import bootstrap_difference, matched_difference, mcnemar


@dataclass(frozen=True)
class Comparison:
    """B against A on the tasks that both have."""

    tasks: int
    a: float
    """Mean success of A on these tasks."""
    b: float
    difference: float
    """b - a."""
    low: float
    """Of the 95% interval of `difference`."""
    high: float
    method: str
    """How the interval was made."""
    only_a: int
    """Tasks that A solves more often than B."""
    only_b: int
    p_value: float | None
    """McNemar's exact test; None where a task has more than one episode."""
    unpaired: int
    """Tasks that only one of the two has."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def compare(a: Sequence[Outcome], b: Sequence[Outcome]) -> Comparison:
    """Compare two evaluations on their common tasks, paired by `task_id`.

    With one episode a task: McNemar's exact test, and the interval of Agresti and Min. With more: the paired
    bootstrap over tasks.

    Raises:
        ValueError: They have no task in common.
    """
    of_a, of_b = _by_task(a), _by_task(b)
    common = sorted(of_a.keys() & of_b.keys())
    if not common:
        raise ValueError(
            f"no task is in both ({len(of_a)} tasks in A, {len(of_b)} in B): evaluate both on the same "
            "environment with the same --seed"
        )
    x = [sum(of_a[task]) / len(of_a[task]) for task in common]
    y = [sum(of_b[task]) / len(of_b[task]) for task in common]
    only_a = sum(p > q for p, q in zip(x, y, strict=True))
    only_b = sum(p < q for p, q in zip(x, y, strict=True))
    single = all(len(of_a[task]) == len(of_b[task]) == 1 for task in common)
    if single:
        low, high = matched_difference(only_a, only_b, len(common))
    else:
        low, high = bootstrap_difference(x, y)
    mean_a, mean_b = sum(x) / len(x), sum(y) / len(y)
    return Comparison(
        tasks=len(common),
        a=mean_a,
        b=mean_b,
        difference=mean_b - mean_a,
        low=low,
        high=high,
        method="Agresti and Min, matched shares" if single else "paired bootstrap over tasks",
        only_a=only_a,
        only_b=only_b,
        p_value=mcnemar(only_a, only_b) if single else None,
        unpaired=len(of_a.keys() ^ of_b.keys()),
    )


def _by_task(outcomes: Sequence[Outcome]) -> dict[str, list[bool]]:
    tasks: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        tasks[outcome.task_id].append(outcome.success)
    return tasks
