"""Random but reproducible responses on a screen, in HUD's dialect (it expresses most actions)."""

from __future__ import annotations

import hashlib

import gymnasium
import numpy as np

from mm_gym.computer import actions as a
from mm_gym.computer.dialects import View, dialect

TEXTS = ("hello", "Ada 42", "x", "ünï", "12:30", "03/10/2026")
KEYS = ("Enter", "Tab", "Escape", "Backspace", "ArrowDown", "ArrowLeft", "PageDown", " ")


def random_action(rng: np.random.Generator, width: int, height: int) -> a.Action:
    """A click, drag, wheel turn, text, key press or wait somewhere on the screen."""

    def point() -> tuple[int, int]:
        return int(rng.integers(width)), int(rng.integers(height))

    match int(rng.integers(10)):
        case 0 | 1 | 2 | 3:
            return a.Click(*point(), count=int(rng.choice([1, 1, 1, 2])))
        case 4:
            return a.Drag((point(), point(), point()))
        case 5:
            return a.Scroll(0, int(rng.integers(-300, 301)), *point())
        case 6:
            return a.Type(TEXTS[int(rng.integers(len(TEXTS)))])
        case 7:
            return a.Keys((KEYS[int(rng.integers(len(KEYS)))],))
        case 8:
            return a.Move(*point())
    return a.Wait(float(rng.integers(1, 20)) / 10)


def responses(seed: int, count: int, width: int, height: int) -> list[str]:
    rng = np.random.default_rng(seed)
    hud, view = dialect("hud"), View(width, height)
    return [hud.encode(random_action(rng, width, height), view) for _ in range(count)]


def fingerprints(env: gymnasium.Env, seed: int, actions: list[str], options: dict | None = None) -> list[str]:
    """A hash of each observation (text and pixels) of an episode, until it ends."""
    prints = []
    observation, _ = env.reset(seed=seed, options=options)
    for action in [*actions, None]:
        digest = hashlib.sha256(observation["text"].encode())
        for image in observation["images"]:
            digest.update(image.tobytes())
        prints.append(digest.hexdigest())
        if action is None:
            break
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            prints.append(hashlib.sha256(b"".join(i.tobytes() for i in observation["images"])).hexdigest())
            break
    return prints
