"""Shows that training learns: runs the recipes of `configs/learning`, then writes docs/learning.md.

    python train/learning.py                        # all runs, two side by side, then the page
    python train/learning.py --only pointing        # one task; runs that are finished are not repeated
    python train/learning.py --page                 # the page alone, from the runs that are there

A recipe runs with three seeds, and once with each of three faults: pictures blanked, later pictures blanked, a
loss mask of ones everywhere. A killed run goes on from its last checkpoint when the command is given again.
Knows commands and folders; what a run does is in `train/grpo.py`, what its records say is read by
`train/learning_page.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import yaml

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout, not this folder

from train.learning_page import RECORD_FILE, Variant, write_page
from train.learning_views import UNSEEN

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ("pointing", "screens")
"""Configurations in configs/learning."""
VARIANTS = (
    Variant("seed 0", seed=0),
    Variant("seed 1", seed=1),
    Variant("seed 2", seed=2),
    Variant("all pictures blank", seed=0, hidden="all"),
    Variant("later pictures blank", seed=0, hidden="later"),
    Variant("loss mask all ones", seed=0, script="learning_mask.py"),
)


@dataclass(frozen=True)
class Job:
    """One run: a recipe with a variant, in a folder of its own."""

    recipe: str
    variant: Variant
    folder: Path

    def __str__(self) -> str:
        return f"{self.recipe}: {self.variant.name}"

    @property
    def record(self) -> dict[str, Any]:
        """What is known of the run: `starts`, `seconds`, `cpu_seconds`, `load`, and once it is, `finished`."""
        path = self.folder / RECORD_FILE
        if path.is_file():
            return json.loads(path.read_text())
        return {"starts": 0, "seconds": 0.0, "cpu_seconds": 0.0}

    def write(self, record: dict[str, Any]) -> None:
        """Replace the record, whole or not at all."""
        new = self.folder / f"{RECORD_FILE}.new"
        new.write_text(json.dumps(record, indent=2))
        new.replace(self.folder / RECORD_FILE)

    @property
    def finished(self) -> bool:
        return "finished" in self.record

    def command(self, *more: str) -> list[str]:
        """What starts the run, and goes on with it after a kill."""
        config = ROOT / "configs" / "learning" / f"{self.recipe}.yaml"
        command = [
            sys.executable, str(ROOT / "train" / self.variant.script), "--config", str(config),
            "--seed", str(self.variant.seed), "--output_dir", str(self.folder),
            "--resume_from_checkpoint", "last", "--disable_tqdm", "true",
        ]  # fmt: skip
        if self.variant.hidden is not None:
            recipe = yaml.safe_load(config.read_text())
            for name in ("environments", "expert_environments"):
                if name in recipe:
                    members = [_unseen(member, self.variant.hidden) for member in recipe[name]]
                    command += [f"--{name}", json.dumps(members)]
        return [*command, *more]

    @property
    def shown_command(self) -> str:
        """The command as a reader would give it, from the checkout."""
        return " ".join(["python", *(word.replace(f"{ROOT}/", "") for word in self.command()[1:])])


def _unseen(member: dict[str, Any], hidden: str) -> dict[str, Any]:
    kwargs = {"of": member["id"], "hidden": hidden, **member.get("kwargs", {})}
    return {**member, "id": UNSEEN, "kwargs": kwargs}


def jobs_of(runs: Path, recipes: list[str], seeds: list[int], *, ablations: bool = True) -> list[Job]:
    """All runs of these recipes and seeds, the seeds first.

    Args:
        runs: Where runs are kept.
        recipes: Names of `RECIPES`.
        seeds: Those to run of the plain variants.
        ablations: Whether the runs with a fault are among them.
    """
    chosen = [v for v in VARIANTS if (ablations if v.ablation else v.seed in seeds)]
    return [Job(r, v, runs / r / v.name.replace(" ", "-")) for r in recipes for v in chosen]


@dataclass
class Running:
    """A run under way. Its record is kept up to date, so that a kill of ours loses no seconds."""

    job: Job
    core: int
    process: psutil.Popen
    started: float
    record: dict[str, Any]
    loads: list[float] = field(default_factory=list)

    def note(self) -> None:
        """Write what the run has taken so far: wall-clock and CPU seconds, and the machine's load meanwhile."""
        self.loads.append(os.getloadavg()[0])
        cpu = max(self.record.get("cpu_now", 0.0), cpu_seconds(self.process))
        self.record |= {"cpu_now": cpu, "load": sum(self.loads) / len(self.loads)}
        taken = {
            "seconds": self.record["seconds"] + time.monotonic() - self.started,
            "cpu_seconds": self.record["cpu_seconds"] + cpu,
        }
        self.job.write({name: value for name, value in (self.record | taken).items() if name != "cpu_now"})

    def end(self) -> bool:
        """Note how it ended; True when it got to its end."""
        self.note()
        done = self.process.returncode == 0
        if done:
            self.job.write({**self.job.record, "finished": datetime.now(UTC).strftime("%Y-%m-%d")})
        print(
            f"{self.job} {'done' if done else 'FAILED'} after {self.job.record['seconds']:.0f} s", flush=True
        )
        return done


def start(job: Job, core: int, *more: str) -> Running:
    """Start a job on one core, or go on with it. Its output goes to `run.log` in its folder."""
    job.folder.mkdir(parents=True, exist_ok=True)
    record = job.record
    record |= {"starts": record["starts"] + 1, "command": job.shown_command}
    print(f"{job} in {job.folder}", flush=True)
    with (job.folder / "run.log").open("a") as log:
        process = psutil.Popen(
            job.command(*more),
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    process.cpu_affinity([core])  # inherited by its threads and browsers
    return Running(job, core, process, time.monotonic(), record)


def cpu_seconds(process: psutil.Popen) -> float:
    """CPU time of a process and all that it started, as far as they live or were waited for."""
    total = 0.0
    try:
        for one in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(one.cpu_times()[:4])
    except psutil.NoSuchProcess:
        pass
    return total


def run_all(jobs: Sequence[Job], side_by_side: int, *more: str) -> list[Job]:
    """Run what is not finished, each on a core of its own; returns the jobs that failed.

    Args:
        jobs: In this order.
        side_by_side: How many at a time.
        more: Further arguments of each run.
    """
    waiting = deque(job for job in jobs if not job.finished)
    allowed = psutil.Process().cpu_affinity()
    cores = [allowed[number % len(allowed)] for number in range(side_by_side)]
    running: list[Running] = []
    failed: list[Job] = []
    try:
        while waiting or running:
            while waiting and cores:
                running.append(start(waiting.popleft(), cores.pop(0), *more))
            time.sleep(1.0)
            for one in [*running]:
                if one.process.poll() is None:
                    one.note()
                    continue
                running.remove(one)
                cores.append(one.core)
                if not one.end():
                    failed.append(one.job)
    finally:
        for one in running:  # where we were interrupted
            one.process.terminate()
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the learning recipes and write docs/learning.md.")
    parser.add_argument("--only", choices=RECIPES, action="append", help="this recipe (default: all)")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="of the plain runs")
    parser.add_argument("--no-ablations", action="store_true", help="leave out the runs with a fault")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, each on one core")
    parser.add_argument("--runs", type=Path, default=Path("runs/learning"), help="where runs are kept")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page goes")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runs end with us
    failed = []
    if not args.page:
        jobs = jobs_of(args.runs, args.only or list(RECIPES), args.seeds, ablations=not args.no_ablations)
        failed = run_all(jobs, args.jobs)
    done = [job for job in jobs_of(args.runs, list(RECIPES), [0, 1, 2]) if job.finished]
    print(f"wrote {write_page([(job.recipe, job.variant, job.folder) for job in done], args.docs)}")
    for job in failed:
        print(f"FAILED: see {job.folder / 'run.log'}", file=sys.stderr)
    sys.exit(int(bool(failed)))


if __name__ == "__main__":
    main()
