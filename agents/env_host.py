"""An environment where it lives: made, reset, stepped and closed, its answers checked.

The same host runs in a thread of the engine, in a child process and in a Ray actor. It knows the
environment contract; not tokens, policies, time-outs or retries. Imports nothing heavy: a child process
loads this module and `mm_gym` only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

import mm_gym
from mm_gym.errors import EnvironmentFailure
from mm_gym.messages import Message

Observed = tuple[dict[str, Any], dict[str, Any]]
"""What `reset` returns: observation and info."""
Stepped = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]
"""What `step` returns."""


@dataclass(frozen=True)
class EnvRecipe:
    """How to make an environment, wherever that is."""

    env_id: str
    env_kwargs: dict[str, Any] = field(default_factory=dict)

    def make(self) -> gymnasium.Env[Any, Any]:
        """The environment without Gymnasium's checker wrappers (the host checks what it returns)."""
        mm_gym.register_all()
        return gymnasium.make(self.env_id, disable_env_checker=True, **self.env_kwargs)

    @property
    def key(self) -> str:
        """Equal for recipes that make equal environments."""
        return f"{self.env_id} {json.dumps(self.env_kwargs, sort_keys=True, default=repr)}"


class EnvHost:
    """One environment behind the five calls that the engine makes.

    A step carries an id: the same id again returns the recorded answer instead of a second step.
    """

    def __init__(self, recipe: EnvRecipe) -> None:
        self.env = recipe.make()
        self._answered: tuple[str, Stepped] | None = None

    @property
    def deterministic(self) -> bool:
        """Whether a lost episode may be replayed."""
        return bool(getattr(self.env.unwrapped, "deterministic", False))

    def reset(self, seed: int | None, options: dict[str, Any]) -> Observed:
        """Start an episode.

        Raises:
            EnvironmentFailure: As the environment raised it, or kind "garbage".
        """
        self._answered = None
        result = self.env.reset(seed=seed, options=options)
        if not isinstance(result, tuple) or len(result) != 2:
            raise _garbage("reset", f"a tuple of 2, got {type(result).__name__}")
        observation, info = result
        _check_observed("reset", observation, info)
        missing = {"system_prompt", "tools", "task_id"} - set(info)
        if missing:
            raise _garbage("reset", f"info with {sorted(missing)}")
        return observation, info

    def step(self, action: str, step_id: str) -> Stepped:
        """Answer one action, once for each `step_id`."""
        if self._answered is not None and self._answered[0] == step_id:
            return self._answered[1]
        if hasattr(self.env.unwrapped, "step_id"):  # environments behind a network pass it on
            self.env.unwrapped.step_id = step_id
        result = self.env.step(action)
        if not isinstance(result, tuple) or len(result) != 5:
            raise _garbage("step", f"a tuple of 5, got {type(result).__name__}")
        observation, reward, terminated, truncated, info = result
        _check_observed("step", observation, info)
        try:
            reward = float(reward)
        except (TypeError, ValueError):
            raise _garbage("step", f"a reward as float, got {reward!r}") from None
        if not math.isfinite(reward):
            raise _garbage("step", f"a finite reward, got {reward}")
        answer = (observation, reward, bool(terminated), bool(truncated), info)
        self._answered = (step_id, answer)
        return answer

    def finish(self, stop_reason: str) -> tuple[float, dict[str, float]]:
        """What the episode still earns when the engine ends it; nothing where there is no such hook."""
        finish = getattr(self.env.unwrapped, "finish", None)
        if finish is None:
            return 0.0, {}
        reward, metrics = finish(stop_reason)
        return float(reward), dict(metrics)

    def close(self) -> None:
        self.env.close()


def observation_digest(messages: list[Message], images: Any) -> str:
    """A hash of what the agent saw in one turn: its messages, and its pictures by content.

    Args:
        messages: Image blocks hold indices from 0 into `images`.
        images: uint8 arrays of shape (H, W, 3).
    """
    digest = hashlib.blake2b(json.dumps(messages, sort_keys=True, default=repr).encode(), digest_size=16)
    for image in images:
        digest.update(str(image.shape).encode())
        digest.update(image.tobytes())
    return digest.hexdigest()


def _check_observed(call: str, observation: Any, info: Any) -> None:
    if not isinstance(observation, Mapping) or not {"text", "images"} <= set(observation):
        raise _garbage(call, f"an observation with text and images, got {type(observation).__name__}")
    if not isinstance(info, Mapping) or not isinstance(info.get("messages"), list):
        raise _garbage(call, "info with a list of messages")
    images = observation["images"]
    for message in info["messages"]:
        for block in message["content"]:
            if block["type"] == "image" and not 0 <= block["index"] < len(images):
                raise _garbage(call, f"an image index below {len(images)}, got {block['index']}")


def _garbage(call: str, expected: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"{call}() must return {expected}: the environment is broken", kind="garbage")
