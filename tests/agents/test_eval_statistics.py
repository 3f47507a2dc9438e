"""Shares, differences and correlations against counting, simulation and published values."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.evaluation import Outcome, compare, figures
from agents.evaluation.statistics import (
    bootstrap_difference,
    correlation,
    matched_difference,
    mcnemar,
    pass_at_k,
)


@settings(derandomize=True, max_examples=60)
@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_subsets_with_a_success(case):
    n, correct, k = case
    subsets = list(itertools.combinations([1] * correct + [0] * (n - correct), k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_refuses_more_than_was_sampled():
    with pytest.raises(ValueError, match="k=5 of 4"):
        pass_at_k(4, 1, 5)


@settings(derandomize=True, max_examples=40)
@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_the_binomial_test_of_the_discordant_tasks(a, b):
    """The mass of all outcomes that are at most as likely as the one seen."""
    ways = [math.comb(a + b, i) for i in range(a + b + 1)]
    assert mcnemar(a, b) == pytest.approx(sum(w for w in ways if w <= ways[a]) / 2 ** (a + b))


def test_the_matched_interval_covers_the_true_difference():
    rng = np.random.default_rng(0)
    for share_a, share_b in ((0.1, 0.1), (0.5, 0.6)):
        hits = 0
        for _ in range(400):
            a, b = rng.random(40) < share_a, rng.random(40) < share_b
            low, high = matched_difference(int((a & ~b).sum()), int((b & ~a).sum()), 40)
            hits += low <= share_b - share_a <= high
        assert hits / 400 >= 0.93
    low, high = matched_difference(0, 0, 5)
    assert low < 0 < high  # five equal tasks don't prove equality


def test_the_bootstrap_is_repeatable_and_holds_the_mean():
    a, b = [0.0, 0.5, 0.25, 1.0] * 10, [0.5, 0.5, 0.5, 1.0] * 10
    low, high = bootstrap_difference(a, b)
    assert (low, high) == bootstrap_difference(a, b)
    assert 0 < low < np.mean(b) - np.mean(a) < high


def test_correlation_is_spearmans_with_ties():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, 60).tolist()
    y = [value + int(rng.integers(0, 3)) for value in x]
    rho, low, high = correlation(x, y)
    ranks = [[sum(w < v for w in z) + (z.count(v) + 1) / 2 for v in z] for z in (x, y)]
    assert rho == pytest.approx(np.corrcoef(ranks)[0, 1])
    assert low < rho < high
    quotients = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]  # the textbook's example, rho = -29/165
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert correlation(quotients, hours)[0] == pytest.approx(-29 / 165)
    assert correlation(x, [1.0] * 60) is None
    assert correlation(x[:9], y[:9]) is None


def outcome(group: int, success: bool, **changes) -> Outcome:
    plain = {
        **{"task_id": f"t{group}", "reward": float(success), "turns": 1, "tool_calls": Counter()},
        **{"failed_calls": 0, "mistakes": 0, "images": 1, "late_images": 0, "sampled_tokens": 10},
        **{"prompt_tokens": 100, "seconds": 0.5, "stop_reason": "env_done"},
    }
    return Outcome(group=group, success=success, **(plain | changes))


def test_more_samples_of_the_same_tasks_do_not_narrow_the_interval():
    once = figures([outcome(g, g < 5) for g in range(10)])
    often = figures([outcome(g, g < 5) for g in range(10) for _ in range(8)], samples=8)
    assert often.success == once.success
    assert often.pass_at[8].value == 0.5
    assert list(often.pass_at) == [1, 2, 4, 8]


def test_cost_is_priced_by_the_million():
    found = figures([outcome(g, True) for g in range(4)], price_in=3.0, price_out=15.0)
    assert found.cost == pytest.approx((400 * 3 + 40 * 15) / 1e6)
    assert figures([outcome(0, True)]).cost is None


def test_no_episode_at_all_is_no_success_and_no_certainty():
    empty = figures([], lost=3)
    assert (empty.success.value, empty.success.low, empty.success.high) == (0.0, 0.0, 1.0)
    assert empty.lost == 3


def test_a_comparison_pairs_by_task_and_not_by_order():
    a = [outcome(g, g in (0, 1)) for g in range(10)]
    b = [outcome(g, g in (1, 2, 3, 4, 5, 6, 7)) for g in reversed(range(12))]
    result = compare(a, b)
    assert (result.tasks, result.only_a, result.only_b, result.unpaired) == (10, 1, 6, 2)
    assert result.difference == pytest.approx(0.5)
    assert result.low <= 0.5 <= result.high
    assert result.p_value == pytest.approx(0.125)
    several = compare(a + a, b)
    assert several.p_value is None
    assert several.method.startswith("paired bootstrap")
    with pytest.raises(ValueError, match="no task is in both"):
        compare(a, [outcome(99, True)])
