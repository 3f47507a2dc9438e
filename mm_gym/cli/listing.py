"""`mm-gym list`: the environments, what they need, and whether it is there."""

from __future__ import annotations

import inspect
import json
from typing import Any

import gymnasium
import typer
from gymnasium.error import DependencyNotInstalled
from rich.console import Console
from rich.table import Table

from mm_gym.registry import IDS


def list_environments(
    as_json: bool = typer.Option(False, "--json", help="Print JSON for scripts."),
) -> None:
    """List the environments, and whether what they need is installed."""
    rows = [describe(env_id) for env_id in IDS]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(title="Environments", title_justify="left")
    table.add_column("id", no_wrap=True)
    table.add_column("ready", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        ready = "[green]yes[/]" if row["ready"] else f"[red]no[/]: {row['missing']}"
        table.add_row(row["id"], ready, row["description"])
    Console().print(table)


def describe(env_id: str) -> dict[str, Any]:
    """One row: `id`, `ready`, `missing` (the command that mends it, or "") and `description`."""
    row: dict[str, Any] = {"id": env_id, "ready": True, "missing": "", "description": ""}
    try:
        env = gymnasium.make(env_id)
    except DependencyNotInstalled as error:
        row.update(ready=False, missing=str(error))
        return row
    doc = inspect.getdoc(type(env.unwrapped)) or ""
    row["description"] = doc.split("\n\n")[0].replace("\n", " ")
    env.close()
    return row
