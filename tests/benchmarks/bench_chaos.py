"""A thousand episodes in which environments and the back end break: is every trajectory accounted for?

A tenth of the episodes meets an environment fault (exception, hang, worker death, garbage; hang and death
are met in process mode, where they can be mended), and 2% of the turns a generation fault. Some faults
pass, some last. Printed: what became of the episodes, what was left over, and that no fault was scored.

    python tests/benchmarks/bench_chaos.py --episodes 1000
"""

# ruff: noqa: E402  (the paths come first)

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agents")]

import psutil
from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import GroupPolicy, RetryPolicy, RolloutEngine, Timeouts
from agents.types import Request, Task, Trajectory

GROUP = 4
LENGTH = 3
PROCESS_FAULTS = ("exception", "hang", "death", "garbage")
THREAD_FAULTS = ("exception", "garbage")


@dataclass(frozen=True)
class Outcome:
    """What a run of the chaos gave."""

    workers: str
    tasks: list[Task]
    trajectories: list[Trajectory]
    seconds: float
    open_environments: int
    abandoned_threads: int
    leftover_processes: int
    leftover_files: int


def chaotic_tasks(
    count: int, kinds: Sequence[str], folder: Path, share: float = 0.1, seed: int = 0
) -> list[Task]:
    """`count` episodes in groups, a `share` of them with a fault planned; a third of the faults lasts."""
    rng = random.Random(seed)
    tasks = []
    for number in range(count):
        options = {}
        if rng.random() < share:
            times = 10**6 if rng.random() < 1 / 3 else 1
            options["fault"] = {
                "kind": rng.choice(list(kinds)),
                "turn": rng.randint(1, LENGTH),
                "times": times,
                "ledger": str(folder / f"ledger-{number}"),
            }
        tasks.append(
            Task(ENV_ID, {"length": LENGTH}, seed=number // GROUP, options=options, group=number // GROUP)
        )
    return tasks


def run_chaos(count: int, workers: str, folder: Path, step_timeout: float = 1.0) -> Outcome:
    """Run the episodes with faults and look at what is left over."""
    kinds = PROCESS_FAULTS if workers == "process" else THREAD_FAULTS
    tasks = chaotic_tasks(count, kinds, folder / workers)
    rng = random.Random(1)

    def breaks(request: Request) -> bool:
        return rng.random() < 0.02

    own = psutil.Process()
    before = {p.pid for p in own.children(recursive=True)}
    files = own.num_fds()
    started = time.perf_counter()
    engine = RolloutEngine(
        ScriptedPolicy(fault=breaks),
        CharRenderer(),
        workers=workers,
        timeouts=Timeouts(reset=60.0, step=step_timeout, close=5.0),
        retries=RetryPolicy(max_env_retries_per_turn=2),
        groups=GroupPolicy(refills=1),
        max_open=32,
    )
    with engine:
        trajectories = engine.collect(tasks)
    seconds = time.perf_counter() - started
    left = {p.pid for p in own.children(recursive=True)} - before
    return Outcome(
        workers,
        tasks,
        trajectories,
        seconds,
        engine.open_environments,
        engine.abandoned_threads,
        len(left),
        own.num_fds() - files,
    )


def check(outcome: Outcome) -> None:
    """What must hold whatever broke."""
    assert len(outcome.trajectories) == len(outcome.tasks)
    lost_groups = {t.task.group for t in outcome.trajectories if t.masked}
    for task, trajectory in zip(outcome.tasks, outcome.trajectories, strict=True):
        assert trajectory.task == task
        assert trajectory.stop_reason is not None
        if trajectory.masked:
            assert trajectory.reward is None
            assert trajectory.failures
        else:
            assert trajectory.reward == 1.0, "a fault was scored"
            assert len(trajectory.turns) == LENGTH
            assert task.group not in lost_groups
        planned = task.options.get("fault")
        if planned and planned["times"] > 1:
            assert trajectory.masked
        if planned:
            assert sum(trajectory.failures.values()) >= 1
    assert outcome.open_environments == 0
    assert outcome.leftover_processes == 0
    assert outcome.leftover_files <= 0


def report(outcome: Outcome) -> str:
    """The outcome in lines."""
    failures: Counter[str] = Counter()
    for trajectory in outcome.trajectories:
        failures.update(trajectory.failures)
    masked = sum(t.masked for t in outcome.trajectories)
    mended = sum(bool(t.failures) and not t.masked for t in outcome.trajectories)
    planned = sum("fault" in t.options for t in outcome.tasks)
    return "\n".join(
        [
            f"{outcome.workers}: {len(outcome.tasks)} episodes in {outcome.seconds:.1f} s, "
            f"{planned} with a planned fault",
            f"  scored {len(outcome.tasks) - masked} (of them mended {mended}), masked {masked}",
            "  failures met: " + ", ".join(f"{kind} {n}" for kind, n in sorted(failures.items())),
            f"  left over: {outcome.open_environments} environments, {outcome.leftover_processes} processes, "
            f"{max(outcome.leftover_files, 0)} files; abandoned threads {outcome.abandoned_threads}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_chaos(4, "process", Path(folder) / "warm")  # what the first run imports stays open
        for workers in ("process", "thread"):
            outcome = run_chaos(arguments.episodes, workers, Path(folder))
            print(report(outcome), flush=True)
            check(outcome)


if __name__ == "__main__":
    main()
