"""`mm-gym film`: a stored episode as an animation or a film strip."""

from __future__ import annotations

from pathlib import Path

import typer

from mm_gym.viewer.film import write_film
from mm_gym.viewer.records import read_episode


def film(
    path: Path = typer.Argument(help="A run, an evaluation, or a folder of trajectories."),
    episode: int = typer.Option(0, "--episode", "-e", min=0, help="Its number, as `mm-gym view` counts."),
    output: Path = typer.Option(Path("film.gif"), "--output", "-o", help=".gif, or .png for a strip."),
    size: int = typer.Option(480, min=64, max=2048, help="Side of a frame in pixels."),
) -> None:
    """Draw an episode turn by turn: what was seen, what was answered, where was clicked."""
    store = path / "rollouts" if (path / "rollouts" / "trajectories").is_dir() else path
    try:
        written = write_film(read_episode(store, episode), output, size=(size, size))
    except (FileNotFoundError, IndexError, ValueError) as error:
        typer.echo(f"mm-gym: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(str(written))
