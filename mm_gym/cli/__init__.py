"""The command line `mm-gym`: what a person does with tasks and rollouts.

Commands that need `agents` (eval, export) join by the entry-point group `mm_gym.commands`; from a wheel,
where there is no `agents`, they say that they run from a checkout.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

import mm_gym
from mm_gym.cli.doctor import doctor
from mm_gym.cli.film import film
from mm_gym.cli.listing import list_environments
from mm_gym.cli.play import play
from mm_gym.cli.plot import plot
from mm_gym.cli.view import view

GROUP = "mm_gym.commands"


def build() -> typer.Typer:
    """The application with its own commands and those of the entry-point group."""
    app = typer.Typer(
        name="mm-gym",
        help="Environments, rollouts and evaluation for vision-language agents.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )
    app.callback(invoke_without_command=True)(_root)
    app.command("list")(list_environments)
    app.command()(doctor)
    app.command()(play)
    app.command()(view)
    app.command()(film)
    app.command()(plot)
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda e: e.name):
        app.command(entry.name)(_load(entry))
    return app


def _root(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        typer.echo(f"mm-gym {mm_gym.__version__}")
        raise typer.Exit


def checkout() -> Path | None:
    """The checkout that this package runs from, or None when it is installed from a wheel."""
    root = Path(mm_gym.__file__).resolve().parents[1]
    return root if (root / "agents").is_dir() and (root / "train").is_dir() else None


def _load(entry: metadata.EntryPoint) -> Callable[..., Any]:
    root = checkout()
    if root is not None and sys.path[0] != str(root):
        sys.path.insert(0, str(root))  # ahead of an installed package that is called `agents` too
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        return _missing(entry.name, str(error))


def _missing(name: str, reason: str) -> Callable[[], None]:
    def command() -> None:
        typer.echo(
            f"mm-gym {name} needs the packages `agents` and `train`, which run from a checkout and are not "
            f"in the wheel ({reason}). Clone the project, run `pip install -e '.[train]'` there, and call it "
            "again.",
            err=True,
        )
        raise typer.Exit(2)

    command.__doc__ = f"(needs a checkout) {name}"
    return command


def main() -> None:
    """Run the command line. `module:id` finds modules of the folder where one stands, as `python -m` does."""
    sys.path.append(str(Path.cwd()))
    build()()
