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
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

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

    @property
    def record(self) -> dict[str, Any]:
        """What is known of the run: `seconds`, `starts`, `finished` (a date, once it is)."""
        path = self.folder / RECORD_FILE
        return json.loads(path.read_text()) if path.is_file() else {"seconds": 0.0, "starts": 0}

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


def run(job: Job, core: int, *more: str) -> bool:
    """Run a job to its end on one core; True when it got there. Its output goes to `run.log` in its folder."""
    job.folder.mkdir(parents=True, exist_ok=True)
    record = job.record
    record["starts"] = record["starts"] + 1
    record["command"] = _portable(job.command(*more))
    _write(job, record)
    started = time.monotonic()
    with (job.folder / "run.log").open("a") as log:
        process = subprocess.Popen(
            job.command(*more),
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        os.sched_setaffinity(process.pid, {core})  # inherited by its threads and browsers
        try:
            code = process.wait()
        finally:
            process.terminate()  # where we were interrupted
            record["seconds"] = record["seconds"] + time.monotonic() - started
            _write(job, record)
    if code == 0:
        _write(job, {**record, "finished": datetime.now(UTC).strftime("%Y-%m-%d")})
    return code == 0


def _portable(command: list[str]) -> str:
    """The command as a reader would give it, from the checkout."""
    words = ["python", *command[1:]]
    return " ".join(word.replace(f"{ROOT}/", "") for word in words)


def _write(job: Job, record: dict[str, Any]) -> None:
    (job.folder / RECORD_FILE).write_text(json.dumps(record, indent=2))


def run_all(jobs: list[Job], side_by_side: int, *more: str) -> list[Job]:
    """Run what is not finished, each on a core of its own; returns the jobs that failed."""
    cores: SimpleQueue[int] = SimpleQueue()
    allowed = sorted(os.sched_getaffinity(0))
    for number in range(side_by_side):
        cores.put(allowed[number % len(allowed)])

    def one(job: Job) -> bool:
        core = cores.get()
        try:
            print(f"{job.recipe}: {job.variant.name} ({job.folder})", flush=True)
            done = run(job, core, *more)
            took = f"{job.record['seconds']:.0f} s"
            print(f"{job.recipe}: {job.variant.name} {'done' if done else 'FAILED'} after {took}", flush=True)
            return done
        finally:
            cores.put(core)

    waiting = [job for job in jobs if not job.finished]
    with ThreadPoolExecutor(side_by_side) as pool:
        return [job for job, done in zip(waiting, pool.map(one, waiting), strict=True) if not done]


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
