"""`mm-gym view`: a run's rollouts as a page."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import typer

from mm_gym.viewer.page import write_page
from mm_gym.viewer.records import Decode, Records, token_decoder
from mm_gym.viewer.serve import make_server

_MANY = 300  # episodes from which a page of their own gets slow to load


def view(
    paths: list[Path] = typer.Argument(help="Runs, or folders of trajectories; two are set side by side."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Write one HTML file here."),
    model: Path | None = typer.Option(None, help="Model folder or tokenizer.json, to show tokens as text."),
    port: int = typer.Option(0, help="To serve on; 0 takes a free one."),
    open_browser: bool = typer.Option(True, "--browser/--no-browser", help="Open a browser."),
) -> None:
    """Look at trajectories: one page for a small run, served on this machine for a large one."""
    records = Records()
    try:
        for path in paths:
            folder = _store(path)
            records.add_store(folder, run=path.name, decode=_decoder(model, folder))
    except FileNotFoundError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    title = ", ".join(path.name for path in paths)
    if output is None and len(records.rows) <= _MANY:
        output = _store(paths[0]).parent / "rollouts.html"
    if output is not None:
        page = write_page(records, output, title=title).resolve()
        typer.echo(f"{len(records.rows)} episodes: {page}")
        if open_browser:
            webbrowser.open(page.as_uri())
        return
    server = make_server(records, title=title, port=port)
    url = f"http://127.0.0.1:{server.server_port}/"
    typer.echo(f"{len(records.rows)} episodes at {url} (Ctrl-C ends)")
    if open_browser:
        webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def _store(path: Path) -> Path:
    """The folder of trajectories of a run."""
    return path / "rollouts" if (path / "rollouts" / "trajectories").is_dir() else path


def _decoder(model: Path | None, store: Path) -> Decode | None:
    """The tokenizer named, or the run's own (`model/` beside the store)."""
    if model is not None:
        return token_decoder(model)
    own = store.parent / "model"
    return token_decoder(own) if (own / "tokenizer.json").is_file() else None
