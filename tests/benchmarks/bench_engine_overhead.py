"""Turns a second of the engine itself: environment, model and renderer of almost no cost, on one core.

python tests/benchmarks/bench_engine_overhead.py
"""

# ruff: noqa: E402  (the paths come first)

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agents")]

from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import RolloutEngine
from agents.types import Task

TURNS = 10
PROMISED = 2000
"""Turns a second on one core."""


@dataclass(frozen=True)
class Overhead:
    """Turns a second, by the clock and by what the process computed."""

    episodes: int
    per_second: float
    per_cpu_second: float


def measure(episodes: int, workers: str = "thread") -> Overhead:
    """Run `episodes` of ten turns each, after a round that opens the environments."""
    tasks = [Task(ENV_ID, {"length": TURNS, "picture": False}, group=n) for n in range(episodes)]
    with RolloutEngine(ScriptedPolicy(), CharRenderer(), workers=workers) as engine:
        engine.collect(tasks)
        wall, cpu = time.perf_counter(), time.process_time()
        trajectories = engine.collect(tasks)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    turns = sum(len(t.turns) for t in trajectories)
    assert turns == episodes * TURNS
    return Overhead(episodes, turns / wall, turns / cpu)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, nargs="*", default=[16, 64, 256])
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'episodes at once':>16}{'turns/s':>10}{'turns per CPU second':>22}")
    for episodes in arguments.episodes:
        row = measure(episodes)
        print(f"{row.episodes:>16}{row.per_second:>10.0f}{row.per_cpu_second:>22.0f}", flush=True)
        if row.per_cpu_second < PROMISED:
            sys.exit(f"less than {PROMISED} turns a second on one core")


if __name__ == "__main__":
    main()
