"""A person acts on a task, and the episode is stored as training would see it.

`python -m mm_gym.computer record mm_gym/ComputerUse-v0 --task mail/reply --out episodes/` serves one local
page that shows the environment's screen. Clicks, drags, wheel turns and keys on it become canonical actions,
are written in the environment's dialect and stepped, so that what is stored is exactly what a model would have
said and seen. No display is needed on this machine: any browser that reaches the port will do (`ssh -L`).
"""

from __future__ import annotations

import io
import json
import secrets
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from PIL import Image

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError, check_on_screen
from mm_gym.computer.keyboard import resolve_key
from mm_gym.computer.screen_env import ScreenEnv
from mm_gym.episode import Episode

_PAGE = (Path(__file__).with_name("js") / "record.html").read_text()


class Recorder:
    """One episode under a person's hands.

    Args:
        env: A computer-use environment.
        seed: Of the episode.
        options: Passed to `reset`.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], *, seed: int = 0, options: dict[str, Any] | None = None
    ) -> None:
        screen = env.unwrapped
        if not isinstance(screen, ScreenEnv):
            raise TypeError(
                f"only computer-use environments can be recorded here, got {type(screen).__name__}"
            )
        self.env, self.screen = env, screen
        spec = env.spec
        self.episode = Episode(
            env_id=spec.id if spec else type(screen).__name__,
            env_kwargs=dict(spec.kwargs) if spec else {},
            seed=seed,
            options=dict(options or {}),
        )
        observation, info = env.reset(seed=seed, options=options)
        self.episode.record_reset(observation, info)
        self.goal = observation["text"]
        self.ended = False
        self.message = ""
        self._lock = threading.Lock()

    def act(self, action: Action) -> None:
        """Carry out one action as a turn (or as several, where the dialect needs them).

        Raises:
            ActionError: It is not on the screen, or the dialect can't express it; nothing happened.
        """
        with self._lock:
            if self.ended:
                raise ActionError("the episode has ended")
            check_on_screen(action, *self.screen.screen_size)
            view = self.screen.view()
            try:
                steps = self.screen.dialect.steps(action, view)
                self.screen.dialect.encode(steps[0], view)
            except ValueError as error:
                raise ActionError(str(error)) from error
            for step in steps:
                self._step(self.screen.dialect.encode(step, self.screen.view()))
                if self.ended:
                    break

    def _step(self, response: str) -> None:
        observation, reward, terminated, truncated, info = self.env.step(response)
        self.episode.record_step(response, observation, float(reward), info)
        self.message = observation["text"]
        self.ended = terminated or truncated

    @property
    def png(self) -> bytes:
        """The last picture of the episode."""
        buffer = io.BytesIO()
        Image.fromarray(self.episode.images[-1]).save(buffer, "PNG")
        return buffer.getvalue()

    @property
    def state(self) -> dict[str, Any]:
        """What the page shows beside the picture."""
        return {
            "goal": self.goal,
            "message": self.message,
            "turns": len(self.episode.actions),
            "last": self.episode.actions[-1] if self.episode.actions else "",
            "ended": self.ended,
            "success": self.episode.success,
        }


def read_action(data: dict[str, Any]) -> Action:
    """An action from the recording page's message.

    Raises:
        ActionError: The message is not one of those that the page sends.
    """
    try:
        kind = data["kind"]
        if kind == "click":
            return a.Click(
                int(data["x"]), int(data["y"]), data.get("button", "left"), int(data.get("count", 1))
            )
        if kind == "drag":
            return a.Drag(tuple((int(x), int(y)) for x, y in data["path"]))
        if kind == "scroll":
            return a.Scroll(int(data["dx"]), int(data["dy"]), int(data["x"]), int(data["y"]))
        if kind == "type":
            return a.Type(str(data["text"]))
        if kind == "keys":
            return a.Keys(tuple(resolve_key(str(k)) for k in data["keys"]))
        if kind == "wait":
            return a.Wait(1.0)
        if kind == "answer":
            return a.Answer(str(data["text"]))
        if kind == "done":
            return a.Terminate("success")
    except (KeyError, TypeError, ValueError) as error:
        raise ActionError(f"the message {data!r} is not well formed: {error}") from error
    raise ActionError(f"unknown kind of action {data['kind']!r}")


def serve(recorder: Recorder, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """A server on this machine's loopback for one recording, and the address to open.

    The address holds a token: other local users and other pages of the person's browser can't act.
    """
    token = secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == f"/{token}":
                self._answer(_PAGE.encode(), "text/html; charset=utf-8")
            elif self.path.split("?")[0] == f"/{token}/screen.png":
                self._answer(recorder.png, "image/png")
            elif self.path == f"/{token}/state":
                self._answer(json.dumps(recorder.state).encode(), "application/json")
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            if self.path != f"/{token}/act":
                self.send_error(404)
                return
            length = min(int(self.headers.get("Content-Length", 0)), 1 << 20)
            error = ""
            try:
                recorder.act(read_action(json.loads(self.rfile.read(length))))
            except (ActionError, json.JSONDecodeError) as problem:
                error = str(problem)
            self._answer(json.dumps({**recorder.state, "error": error}).encode(), "application/json")

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # quiet: the page says what happens
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    return server, f"http://127.0.0.1:{server.server_address[1]}/{token}"


# -- storing -----------------------------------------------------------------------------------------


def save_episode(episode: Episode, folder: str | Path) -> Path:
    """Store an episode: `episode.json` and one PNG a picture, in a new folder inside `folder`.

    Returns:
        The new folder.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    number = len(list(root.glob("episode_*")))
    while (place := root / f"episode_{number:05d}").exists():
        number += 1
    place.mkdir()
    data = asdict(episode)
    data["images"] = [f"{i:04d}.png" for i in range(len(episode.images))]
    for name, image in zip(data["images"], episode.images, strict=True):
        Image.fromarray(image).save(place / name)
    (place / "episode.json").write_text(json.dumps(data, ensure_ascii=False, indent=1))
    return place


def load_episode(folder: str | Path) -> Episode:
    """Read what `save_episode` stored.

    Raises:
        ValueError: The folder holds no episode.
    """
    place = Path(folder)
    if not (place / "episode.json").is_file():
        raise ValueError(f"{place} holds no episode: episode.json is missing")
    data = json.loads((place / "episode.json").read_text())
    names = data.pop("images")
    episode = Episode(**data)
    for name in names:
        with Image.open(place / Path(name).name) as image:
            episode.images.append(np.array(image.convert("RGB"), dtype=np.uint8))
    return episode
