"""`mm-gym play`: act by hand, in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import typer
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from mm_gym.cli.picture import show
from mm_gym.episode import Episode, expert
from mm_gym.episode import play as play_episode
from mm_gym.messages import Message
from mm_gym.viewer.page import write_page

_HELP = (
    "Type the response and press Enter; a backslash at the end of a line continues it.\n"
    "  :expert  let the solver act     :image PATH  save the last picture     :quit  stop"
)


class _Quit(Exception):  # noqa: N818
    """The player wants to stop."""


def play(
    env_id: str = typer.Argument(help='An id, e.g. "mm_gym/Geo3k-v0".'),
    env_args: str = typer.Option("{}", help="Keyword arguments of the environment, as JSON."),
    seed: int = typer.Option(0, help="Same seed, same episode."),
    task: str = typer.Option("", help="Picks a task, where the environment knows names."),
    solver: bool = typer.Option(False, "--expert", help="Watch the environment's own solver."),
    page: Path | None = typer.Option(None, help="Also write the episode to this HTML page, anew each turn."),
) -> None:
    """Play one episode by hand, or watch the solver."""
    console = Console()
    env = gymnasium.make(env_id, **_arguments(env_args))
    solve = expert(env)
    shown = 0

    def act(episode: Episode) -> str:
        nonlocal shown
        shown = _show_new(console, episode, shown)
        if page is not None:
            write_page([episode], page)
        action = solve(episode) if solver else _ask(console, episode, solve)
        console.print(Rule("response", align="left", style="green"))
        console.print(escape(action))
        return action

    options = {"task": task} if task else {}
    if not solver:
        console.print(_HELP, style="dim")
    try:
        episode = play_episode(env, act, seed=seed, options=options)
    except (_Quit, EOFError):
        console.print("stopped")
        raise typer.Exit(130) from None
    finally:
        env.close()
    _show_new(console, episode, shown)
    verdict = "[green]solved[/]" if episode.success else "[red]not solved[/]"
    console.print(Rule())
    console.print(
        f"{verdict}, return {episode.episode_return:g}, {episode.stop_reason}, {len(episode.actions)} turns"
    )
    if page is not None:
        console.print(f"page: {write_page([episode], page)}")


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--env-args is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f'--env-args must be a JSON object such as {{"level": 2}}, got {text}')
    return value


def _show_new(console: Console, episode: Episode, shown: int) -> int:
    """Print the observations from number `shown` on; returns how many there are now."""
    if shown == 0 and episode.system_prompt:
        console.print(Rule("system", align="left", style="dim"))
        console.print(escape(episode.system_prompt), style="dim")
    for observation in episode.observations[shown:]:
        for message in observation:
            _show(console, episode, message)
    return len(episode.observations)


def _show(console: Console, episode: Episode, message: Message) -> None:
    name = f" {message['name']}" if message["role"] == "tool" else ""
    console.print(Rule(message["role"] + name, align="left", style="cyan"))
    for block in message["content"]:
        if block["type"] == "text":
            console.print(escape(block["text"]))
        else:
            show(console, episode.images[block["index"]])


def _ask(console: Console, episode: Episode, solve: Any) -> str:
    lines: list[str] = []
    while True:
        line = console.input("[bold]> [/]" if not lines else "[bold]. [/]")
        command, _, argument = line.partition(" ")
        if not lines and command == ":quit":
            raise _Quit
        if not lines and command == ":expert":
            return solve(episode)
        if not lines and command == ":image":
            _save(console, episode, argument or "picture.png")
            continue
        if line.endswith("\\"):
            lines.append(line[:-1])
            continue
        return "\n".join([*lines, line])


def _save(console: Console, episode: Episode, path: str) -> None:
    from PIL import Image

    if not episode.images:
        console.print("there is no picture yet")
        return
    Image.fromarray(episode.images[-1]).save(path)
    console.print(f"saved {path}")
