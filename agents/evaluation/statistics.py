"""Shares and differences with their uncertainty. Knows numbers only.

Sources: Wilson 1927; Chen et al. 2021 (pass@k); McNemar 1947, exact form; Agresti and Min 2005 (interval
of a difference of matched shares); Efron 1979 (bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Z = 1.96
"""Of a 95% interval."""
RESAMPLES = 10_000


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """The chance that at least one of `k` samples is right, without bias, from `samples` of them.

    >>> round(pass_at_k(4, 1, 2), 3)
    0.5

    Raises:
        ValueError: `k` is not from 1 to `samples`.
    """
    if not 1 <= k <= samples:
        raise ValueError(f"pass@k needs 1 <= k <= samples, got k={k} of {samples}")
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact two-sided p-value that A and B are equal, from the tasks that only one of them solved.

    >>> round(mcnemar(1, 9), 4)
    0.0215
    """
    total = only_a + only_b
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, i) for i in range(min(only_a, only_b) + 1))
    return min(1.0, 2.0 * tail / 2**total)


def matched_difference(only_a: int, only_b: int, total: int) -> tuple[float, float]:
    """Agresti and Min's 95% interval of share(B) - share(A) over `total` matched tasks.

    Half a task is added to each of the four cells, so that few tasks without a difference don't give an
    interval of width 0.
    """
    n, a, b = total + 2.0, only_a + 0.5, only_b + 0.5
    difference = (b - a) / n
    half = Z * math.sqrt(a + b - (b - a) ** 2 / n) / n
    return max(-1.0, difference - half), min(1.0, difference + half)


def bootstrap_difference(a: Sequence[float], b: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95% percentile interval of mean(B - A), tasks being drawn again with replacement."""
    differences = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    rng = np.random.default_rng(seed)
    means = [differences[rng.integers(len(differences), size=len(differences))].mean() for _ in _resamples()]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def correlation(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float] | None:
    """Spearman's rank correlation with its 95% interval (Fisher); None where it is not defined.

    Returns:
        `(rho, low, high)`; None for less than 10 pairs or where one side is constant.
    """
    if len(x) < 10:
        return None
    ranks_x, ranks_y = _ranks(x), _ranks(y)
    if ranks_x.std() == 0 or ranks_y.std() == 0:
        return None
    rho = float(np.corrcoef(ranks_x, ranks_y)[0, 1])
    centre = math.atanh(min(max(rho, -0.999999), 0.999999))
    half = Z * math.sqrt((1 + rho * rho / 2) / (len(x) - 3))  # Bonett and Wright 2000
    return rho, math.tanh(centre - half), math.tanh(centre + half)


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 1, ties sharing their mean."""
    array = np.asarray(values, dtype=float)
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[inverse]


def _resamples() -> range:
    return range(RESAMPLES)
