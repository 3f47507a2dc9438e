"""Recorded episodes as warm-up data: what `python -m mm_gym.computer record` stored.

A recording is played back as an environment of its own, so that its tokens are made by the very code that
makes a rollout's. Knows recorded episodes; neither models nor how they are trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from mm_gym.computer.record import load_episode
from mm_gym.episode import Episode
from mm_gym.messages import Message


class RecordedEnv(gymnasium.Env[dict[str, Any], str]):
    """Gives back an episode; its solver says what was said in it.

    Args:
        episode: A whole one.
    """

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self._turn = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The first observation."""
        super().reset(seed=seed)
        self._turn = 0
        observation, info = self._observed()
        episode = self.episode
        info |= {"system_prompt": episode.system_prompt, "tools": episode.tools, "task_id": episode.task_id}
        return observation, info | {"task": None}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """What answered the recorded action.

        Raises:
            ValueError: Another action is given.
        """
        turn, episode = self._turn, self.episode
        if action != episode.actions[turn]:
            raise ValueError(
                f"action {turn} reads {action!r} after the tokenizer, and {episode.actions[turn]!r} before: "
                "it holds control tokens, or spaces at its end"
            )
        self._turn += 1
        observation, info = self._observed()
        ended = self._turn == len(episode.actions)
        return observation, episode.rewards[turn], ended, False, info | episode.infos[turn]

    def expert_action(self) -> str:
        """The recorded action."""
        return self.episode.actions[self._turn]

    def _observed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The turn's messages and pictures, the pictures counted from 0."""
        messages, images = [], []
        for message in self.episode.observations[self._turn]:
            content = []
            for block in message["content"]:
                if block["type"] == "image":
                    images.append(self.episode.images[block["index"]])
                    block = {**block, "index": len(images) - 1}
                content.append(block)
            messages.append({**message, "content": content})
        return {"text": _text(messages), "images": tuple(images)}, {"messages": messages}


def _text(messages: list[Message]) -> str:
    blocks = [block for message in messages for block in message["content"]]
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def read_episodes(folder: str | Path) -> list[Episode]:
    """The solved episodes below a folder, by name.

    Raises:
        ValueError: One of them is broken, or there is none; the text names it and says what is wrong.
    """
    places = sorted(path.parent for path in Path(folder).rglob("episode.json"))
    episodes = [_read(place) for place in places]
    solved = [episode for episode in episodes if episode.success]
    if not solved:
        raise ValueError(
            f"{folder} holds {len(episodes)} recorded episodes and none that is solved: record some with "
            "`python -m mm_gym.computer record --out FOLDER`"
        )
    return solved


def _read(place: Path) -> Episode:
    try:
        episode = load_episode(place)
        _check(episode)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(
            f"{place} is not a whole recorded episode ({error}): record it again, or take it out"
        ) from error
    return episode


def _check(episode: Episode) -> None:
    turns = len(episode.actions)
    lengths = {"observations": turns + 1, "rewards": turns, "infos": turns}
    for name, wanted in lengths.items():
        if len(getattr(episode, name)) != wanted:
            raise ValueError(f"{turns} actions need {wanted} {name}, it has {len(getattr(episode, name))}")
    if not turns:
        raise ValueError("it has no actions")
    shown = [
        block["index"]
        for observation in episode.observations
        for message in observation
        for block in message["content"]
        if block["type"] == "image"
    ]
    if not all(isinstance(index, int) and 0 <= index < len(episode.images) for index in shown):
        raise ValueError(f"its messages show the pictures {shown} of {len(episode.images)}")
    if not all(isinstance(image, np.ndarray) for image in episode.images):
        raise ValueError("a picture is missing")
