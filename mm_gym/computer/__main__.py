"""`python -m mm_gym.computer`: record a person's episode, list the tasks, check the browser."""

from __future__ import annotations

import argparse
import json
import threading
import time
from typing import Any

import gymnasium

import mm_gym  # noqa: F401  (registers the ids)
from mm_gym.computer.install import find_browser, install_command
from mm_gym.computer.record import Recorder, save_episode, serve


def record(arguments: argparse.Namespace) -> None:
    """Serve the page, wait until the episode ends, store it."""
    kwargs: dict[str, Any] = json.loads(arguments.kwargs)
    if arguments.task:
        kwargs["task"] = arguments.task
    env = gymnasium.make(arguments.env, dialect=arguments.dialect, **kwargs)
    try:
        recorder = Recorder(env, seed=arguments.seed)
        server, address = serve(recorder, arguments.port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"Task: {recorder.goal}\nOpen {address}\n(Ctrl-C stops without storing)")
        while not recorder.ended:
            time.sleep(0.2)
        time.sleep(1.0)  # the page fetches the last picture
        server.shutdown()
        server.server_close()
        place = save_episode(recorder.episode, arguments.out)
        how = "solved" if recorder.episode.success else "not solved"
        print(f"{how}, {len(recorder.episode.actions)} turns, stored in {place}")
    except KeyboardInterrupt:
        print("stopped, nothing was stored")
    finally:
        env.close()


def tasks(arguments: argparse.Namespace) -> None:
    """List our tasks with levels and tags."""
    from mm_gym.computer.tasks import builtin_apps

    for app in builtin_apps():
        for spec in app.tasks:
            print(f"{spec.full_name:24s} levels {','.join(map(str, spec.levels)):8s} {' '.join(spec.tags)}")


def browser(arguments: argparse.Namespace) -> None:
    """Say which browser is used and how it is confined."""
    from mm_gym.computer.page import PageSpec
    from mm_gym.computer.screen import Screen

    try:
        found = find_browser()
    except gymnasium.error.DependencyNotInstalled:
        print(f"none found; install it with:\n    {install_command()}")
        raise SystemExit(1) from None
    screen = Screen()
    try:
        screen.open(PageSpec(None, "about:blank", (64, 64)))
        print(f"{found.location} ({'fast' if found.fast else 'slower'} mode), {screen.safety}")
    finally:
        screen.close()


def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m mm_gym.computer", description=__doc__)
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record", help="a person acts, the episode is stored")
    recording.add_argument("env", nargs="?", default="mm_gym/ComputerUse-v0")
    recording.add_argument("--task", help="the task's name; default drawn by the seed")
    recording.add_argument("--seed", type=int, default=0)
    recording.add_argument("--dialect", default="qwen3_vl")
    recording.add_argument("--out", default="episodes", help="folder to store into")
    recording.add_argument("--port", type=int, default=0, help="default: any free one")
    recording.add_argument("--kwargs", default="{}", help="further arguments of the environment, as JSON")
    recording.set_defaults(run=record)
    commands.add_parser("tasks", help="list our tasks").set_defaults(run=tasks)
    commands.add_parser("browser", help="which browser is used, and how").set_defaults(run=browser)
    arguments = parser.parse_args(argv)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
