"""Geo3k's grader beside math-verify and mathruler: wrong verdicts and time, on the real test set, in one run.

    python tests/benchmarks/bench_grading.py [--data ../shared/data]

Needs the real data beside the checkout and the extra `bench`. Prints a table of wrong verdicts by the way an
answer is written, and the time a call takes with its ratio to ours. Exits with 1 when ours has more wrong
verdicts than a peer in any row, or is slower than a peer on average.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mm_gym.geo3k import grade_answer  # noqa: E402

Grader = Callable[[str, str], bool]
Case = tuple[str, str, bool]
"""Prediction, reference, and whether it is right."""


def graders() -> dict[str, Grader]:
    """Ours and the peers, each without what cannot run off the main thread (SIGALRM)."""
    from math_verify import parse, verify
    from mathruler.grader import grade_answer as mathruler_grade

    def math_verify(prediction: str, reference: str) -> bool:
        gold = parse(f"${reference}$", parsing_timeout=None)
        given = parse(f"${prediction}$", parsing_timeout=None)
        return bool(verify(gold, given, timeout_seconds=None))

    return {
        "mm_gym": grade_answer,
        "mathruler": lambda prediction, reference: bool(mathruler_grade(prediction, reference)),
        "math-verify": math_verify,
    }


def cases(rows: list[dict[str, Any]]) -> dict[str, list[Case]]:
    """What is graded, by the way it is written."""
    answers = [row["answer"] for row in rows]
    values = {row["answer"]: _value(row) for row in rows}
    exact = [a for a in answers if "\\" in a and values[a] is not None]
    decimals = [a for a in answers if "." in a and "\\" not in a and values[a] is not None]

    def right(write: Callable[[str], str], of: list[str] = answers) -> list[Case]:
        return [(write(answer), answer, True) for answer in of]

    roots = [a for a in answers if "\\sqrt" in a]
    return {
        "identical": right(str),
        "x = ...": right(lambda a: f"x = {a}"),
        "^\\circ": right(lambda a: a + "^\\circ"),
        "degree sign": right(lambda a: a + "°"),
        "\\dfrac": right(lambda a: a.replace("\\frac", "\\dfrac"), [a for a in answers if "\\frac" in a]),
        "unicode root": right(lambda a: a.replace("\\sqrt", "√"), roots),
        "units": right(lambda a: a + " units"),
        "square units": right(lambda a: a + " square units"),
        "cm": right(lambda a: a + " cm"),
        "cm^2": right(lambda a: a + " cm^2"),
        "exact: two places": right(lambda a: f"{values[a]:.2f}", exact),
        "exact: three places": right(lambda a: f"{values[a]:.3f}", exact),
        "exact: unrounded": right(lambda a: repr(values[a]), exact),
        "decimal: unrounded": right(lambda a: repr(values[a]), decimals),
        "a wrong choice": [
            (choice, row["answer"], False)
            for row in rows
            for letter, choice in zip("ABCD", row["choices"], strict=True)
            if letter != row["letter"] and choice != row["answer"]
        ],
    }


def _value(row: dict[str, Any]) -> float | None:
    """The right answer's precise value; of 2885 the data has a wrong one."""
    value = row["precise_value"]["ABCD".index(row["letter"])]
    relation = any(mark in row["answer"] for mark in (":", "angle", "<", "="))
    return None if relation or row["id"] == 2885 or not isinstance(value, (int, float)) else float(value)


def measure(grader: Grader, table: dict[str, list[Case]]) -> tuple[dict[str, int], list[float]]:
    """Wrong verdicts by writing (an exception is one), and milliseconds of each call."""
    wrong: dict[str, int] = {}
    times: list[float] = []
    for name, rows in table.items():
        wrong[name] = 0
        for prediction, reference, right in rows:
            start = time.perf_counter()
            try:
                verdict: bool | None = grader(prediction, reference)
            except Exception:  # a peer that raises gave no verdict
                verdict = None
            times.append((time.perf_counter() - start) * 1e3)
            wrong[name] += verdict is not right
    return wrong, times


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=601, help="problems of the test set to grade")
    options = parser.parse_args(arguments)
    meta = options.data / "geo3k-meta" / "test_meta.jsonl"
    if not meta.is_file():
        print(f"skipped: {meta} is not there (the real data is not part of the project)")
        return 0
    try:
        peers = graders()
    except ImportError as missing:
        print(f"skipped: {missing.name} is not installed: pip install 'mm-gym[bench]'")
        return 0
    rows = [json.loads(line) for line in meta.read_text().splitlines()][: options.rows]
    table = cases(rows)
    results = {name: measure(grader, table) for name, grader in peers.items()}
    return report(table, results)


def report(table: dict[str, list[Case]], results: dict[str, tuple[dict[str, int], list[float]]]) -> int:
    """Print the tables; 1 when a peer is better anywhere."""
    names = list(results)
    print(f"{'wrong verdicts':24}{'n':>6}" + "".join(f"{name:>14}" for name in names))
    for writing, rows in table.items():
        print(f"{writing:24}{len(rows):6}" + "".join(f"{results[name][0][writing]:14}" for name in names))
    means = {name: statistics.mean(times) for name, (_, times) in results.items()}
    print(f"\n{'ms a call':30}" + "".join(f"{name:>14}" for name in names))
    for label, figure in (
        ("mean", statistics.mean),
        ("median", statistics.median),
        ("p99", lambda times: sorted(times)[int(len(times) * 0.99)]),
        ("max", max),
    ):
        print(f"{label:30}" + "".join(f"{figure(results[name][1]):14.3f}" for name in names))
    print(f"{'mean, times ours':30}" + "".join(f"{means[name] / means[names[0]]:14.1f}" for name in names))
    ours = results[names[0]][0]
    worse = [w for w in table for name in names[1:] if ours[w] > results[name][0][w]]
    slower = [name for name in names[1:] if means[name] < means[names[0]]]
    if worse or slower:
        print(f"ours is worse on {worse}, slower than {slower}")
    return int(bool(worse or slower))


if __name__ == "__main__":
    sys.exit(main())
