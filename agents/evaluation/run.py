"""Episodes of an evaluation, stored as they end: a killed run goes on where it was.

Knows the engine and the store; neither figures nor the command line.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agents.engine import RolloutEngine
from agents.evaluation.figures import Outcome, outcome_of
from agents.store import TrajectoryStore, read_trajectories
from agents.types import Task, Trajectory
from mm_gym.shards import read_rows

SETTINGS_FILE = "settings.json"
ROLLOUTS = "rollouts"


class AlreadyRunning(Exception):  # noqa: N818  (says what is the case)
    """Another process is running this evaluation."""


@dataclass(frozen=True)
class EvalSettings:
    """What decides about an evaluation's episodes. How many tasks are run does not belong to it."""

    env_id: str
    env_kwargs: dict[str, Any]
    options: dict[str, Any]
    model: str
    backend: str
    """"transformers", "vllm", "endpoint" or "solver"."""
    seed: int = 0
    samples: int = 1
    temperature: float = 0.0
    max_turns: int | None = None
    max_tokens_per_turn: int = 1024
    max_tokens_per_episode: int | None = None
    blank_images: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    """What else the back end was told."""

    @property
    def name(self) -> str:
        """A folder's name: the same settings give the same one."""
        env = self.env_id.split(":")[-1].split("/")[-1]
        model = re.sub(r"[^A-Za-z0-9._-]+", "-", self.model.rstrip("/").split("/")[-1])
        text = json.dumps(asdict(self), sort_keys=True, default=repr)
        return f"{env}--{model}--{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True)
class _Job:
    task: Task
    sample: int


class EvalRun:
    """An evaluation in a folder: `settings.json` and the trajectory store `rollouts/`.

    Args:
        folder: Made when missing; a stored evaluation of the same settings is continued.
        settings: What is evaluated.
        tasks: Of the evaluation, each of its own `group`.

    Raises:
        ValueError: The folder holds an evaluation of other settings.
    """

    def __init__(self, folder: str | Path, settings: EvalSettings, tasks: list[Task]) -> None:
        self.folder = Path(folder)
        self.settings = settings
        self.tasks = tasks
        _check_settings(self.folder, settings)

    @property
    def rollouts(self) -> Path:
        """The folder of trajectories."""
        return self.folder / ROLLOUTS

    def missing(self) -> list[_Job]:
        """Episodes that are not stored yet, those lost to a failure of ours included."""
        stored = _stored(self.rollouts)
        jobs = [_Job(task, sample) for task in self.tasks for sample in range(self.settings.samples)]
        return [job for job in jobs if (job.task.group, job.sample) not in stored]

    def run(
        self,
        engine: RolloutEngine,
        *,
        concurrency: int = 16,
        on_episode: Callable[[Trajectory], None] = lambda trajectory: None,
    ) -> int:
        """Run what is missing; returns how many episodes that was.

        Each episode is on disk before the next one begins in its place: a kill loses at most `concurrency`.

        Args:
            engine: Runs the episodes.
            concurrency: Episodes at a time.
            on_episode: Called after each is stored.

        Raises:
            AlreadyRunning: Another process is running this evaluation.
        """
        jobs = self.missing()
        if not jobs:
            return 0
        gate = engine.new_gate()
        with _lock(self.folder), TrajectoryStore(self.rollouts) as store:

            def keep(job: _Job, trajectory: Trajectory) -> None:
                store.append(trajectory, step=job.sample)
                on_episode(trajectory)

            async def collect() -> None:
                slots = asyncio.Semaphore(concurrency)

                async def one(job: _Job) -> None:
                    async with slots:
                        trajectory = await engine.begin(job.task, job.sample, gate)
                        await asyncio.to_thread(keep, job, trajectory)

                async with asyncio.TaskGroup() as group:
                    for job in jobs:
                        group.create_task(one(job))

            try:
                engine.wait(engine.run_exclusively(collect))
            except ExceptionGroup as group:  # what went wrong once went wrong for all: one is enough
                raise group.exceptions[0] from None
        return len(jobs)

    def outcomes(self) -> tuple[list[Outcome], int]:
        """Outcomes of the episodes that are stored and belong to these tasks, and how many were lost."""
        groups = {task.group for task in self.tasks}
        kept = [o for o in read_outcomes(self.rollouts) if o.group in groups]
        return kept, len(self.tasks) * self.settings.samples - len(kept)


def read_outcomes(folder: str | Path) -> list[Outcome]:
    """Outcomes of a store's episodes that were not lost.

    Args:
        folder: A trajectory store, or a folder with one as `rollouts`.

    Raises:
        FileNotFoundError: There is none.
    """
    return [outcome_of(t) for t in live_trajectories(folder, images=False)]


def live_trajectories(folder: str | Path, *, images: bool = True) -> Iterator[Trajectory]:
    """A store's trajectories that were not lost to a failure of ours.

    Raises:
        FileNotFoundError: There is no store.
    """
    store = store_of(folder)
    return (t for t in read_trajectories(store, images=images) if not t.masked)


def store_of(folder: str | Path) -> Path:
    """The trajectory store that a folder is or holds.

    Raises:
        FileNotFoundError: There is none.
    """
    for store in (Path(folder), Path(folder) / ROLLOUTS):
        if (store / "trajectories").is_dir():
            return store
    raise FileNotFoundError(
        f"{folder} holds no trajectories: name a folder that `mm-gym eval` or a training run wrote"
    )


def _stored(rollouts: Path) -> set[tuple[int, int]]:
    """(task, sample) of the episodes that need not be run again."""
    if not (rollouts / "trajectories").is_dir():
        return set()
    rows = read_rows(rollouts / "trajectories", ["group", "step", "masked"])
    return {(row["group"], row["step"]) for row in rows if not row["masked"]}


def _check_settings(folder: Path, settings: EvalSettings) -> None:
    """Write the settings, or compare them with those that are there."""
    path = folder / SETTINGS_FILE
    ours = json.loads(json.dumps(asdict(settings), default=repr))
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(ours, indent=2))
        temporary.replace(path)
        return
    theirs = json.loads(path.read_text())
    differing = [name for name in ours if theirs.get(name) != ours[name]]
    if differing:
        told = ", ".join(f"{name} was {theirs.get(name)!r} and is {ours[name]!r}" for name in differing)
        raise ValueError(f"{folder} holds another evaluation ({told}): give another --output")


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; a killed one's lock goes with it."""
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"another process is running the evaluation in {folder}") from None
        yield
