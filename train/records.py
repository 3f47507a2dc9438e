"""What names a run: the environments with their arguments, and what they say of themselves.

An environment may have `run_record() -> dict` (MCP-v0 gives its configuration's `job`). The record goes into
`environments.json` of the run; a `job_name` in it names the run in trackers, and its `job_metadata` stands
among the run's arguments there. Starts no environment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium

import mm_gym  # noqa: F401  (registers the ids)
from train.tasks import EnvMember

RECORD_FILE = "environments.json"


def environment_records(members: Sequence[EnvMember]) -> list[dict[str, Any]]:
    """One record a member: id, weight, keyword arguments, options, and its own `run_record`."""
    records = []
    for member in members:
        env = gymnasium.make(member.id, **member.kwargs)
        try:
            own: dict[str, Any] = getattr(env.unwrapped, "run_record", dict)()
        finally:
            env.close()
        given = {"id": member.id, "weight": member.weight, "kwargs": member.kwargs, "options": member.options}
        records.append({**given, **own})
    return records


def record_run(args: Any, members: Sequence[EnvMember], *, write: bool = True) -> list[dict[str, Any]]:
    """Write the record of a run's environments, and name the run after their job where it has no name.

    Args:
        args: TRL's arguments, which trackers log; `run_name` is set where it is None or the output folder, and
            `job` to what the jobs say of themselves.
        members: The environments trained on.
        write: Whether this process writes.
    """
    records = environment_records(members)
    names = [record["job_name"] for record in records if record.get("job_name")]
    if names and args.run_name in (None, args.output_dir):
        args.run_name = " + ".join(dict.fromkeys(names))
    args.job = _jobs(records) or None
    if write:
        folder = Path(args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RECORD_FILE).write_text(json.dumps(records, indent=2, default=str))
    return records


def _jobs(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Name, metadata and data set of each job, as plain data; of several jobs under their names."""
    jobs = {
        record["job_name"]: {
            "name": record["job_name"],
            **record.get("job_metadata", {}),
            **({"dataset_link": record["dataset_link"]} if record.get("dataset_link") else {}),
        }
        for record in records
        if record.get("job_name")
    }
    plain: dict[str, Any] = json.loads(json.dumps(jobs, default=str))  # YAML may hold dates
    return next(iter(plain.values())) if len(plain) == 1 else plain
