"""The message-level record of an episode: what play, record, viewer, warm-up and store share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from mm_gym.messages import Message, with_images


@dataclass
class Episode:
    """One episode as messages, before any tokenisation.

    `observations[0]` is what `reset` gave and `observations[i + 1]` what answered `actions[i]`; image
    blocks hold indices into `images`, which lists the pictures of the whole episode in order.
    """

    env_id: str = ""
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    task_id: str = ""
    system_prompt: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    observations: list[list[Message]] = field(default_factory=list)
    images: list[np.ndarray] = field(default_factory=list)
    """uint8 arrays of shape (H, W, 3)."""
    actions: list[str] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)
    """Per step: `tool_calls`, `metrics` and, when present, `error`, `stop_reason`, `success`."""
    stop_reason: str = ""
    success: bool = False

    @property
    def episode_return(self) -> float:
        """The sum of the turns' rewards."""
        return float(sum(self.rewards))

    @property
    def messages(self) -> list[Message]:
        """The whole conversation, image blocks holding indices into `images`."""
        out: list[Message] = []
        if self.system_prompt:
            out.append({"role": "system", "content": [{"type": "text", "text": self.system_prompt}]})
        for turn, observation in enumerate(self.observations):
            out.extend(observation)
            if turn < len(self.actions):
                out.append({"role": "assistant", "content": [{"type": "text", "text": self.actions[turn]}]})
        return out

    def chat(self) -> list[Message]:
        """The whole conversation in transformers' form, with the pictures in place."""
        return with_images(self.messages, self.images)

    def _repr_html_(self) -> str:
        """How a notebook shows it: as a conversation with its pictures."""
        from mm_gym.viewer.display import episode_html

        return episode_html(self)

    def record_reset(self, observation: dict[str, Any], info: dict[str, Any]) -> None:
        """Take in what `reset` returned."""
        self.task_id = info["task_id"]
        self.system_prompt = info["system_prompt"]
        self.tools = list(info["tools"])
        self._observe(observation, info)

    def record_step(
        self, action: str, observation: dict[str, Any], reward: float, info: dict[str, Any]
    ) -> None:
        """Take in an action and what `step` returned for it."""
        self.actions.append(action)
        self.rewards.append(float(reward))
        self.infos.append({k: info[k] for k in _KEPT if k in info})
        self._observe(observation, info)
        self.stop_reason = info.get("stop_reason", self.stop_reason)
        self.success = bool(info.get("success", self.success))

    def _observe(self, observation: dict[str, Any], info: dict[str, Any]) -> None:
        offset = len(self.images)
        self.images.extend(observation["images"])
        self.observations.append(
            [
                {
                    **message,
                    "content": [
                        {**block, "index": block["index"] + offset} if block["type"] == "image" else block
                        for block in message["content"]
                    ],
                }
                for message in info["messages"]
            ]
        )


_KEPT = ("tool_calls", "metrics", "error", "stop_reason", "success")


def play(
    env: gymnasium.Env[dict[str, Any], str],
    policy: Callable[[Episode], str],
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
) -> Episode:
    """Run one episode and record it.

    Args:
        env: Any environment that keeps the contract.
        policy: From the episode so far to the next action.
        seed: Passed to `reset`.
        options: Passed to `reset`.
    """
    spec = env.spec
    episode = Episode(
        env_id=spec.id if spec else type(env.unwrapped).__name__,
        env_kwargs=dict(spec.kwargs) if spec else {},
        seed=seed,
        options=dict(options or {}),
    )
    episode.record_reset(*env.reset(seed=seed, options=options))
    ended = False
    while not ended:
        action = policy(episode)
        observation, reward, terminated, truncated, info = env.step(action)
        episode.record_step(action, observation, float(reward), info)
        ended = terminated or truncated
    return episode


def expert(env: gymnasium.Env[dict[str, Any], str]) -> Callable[[Episode], str]:
    """The environment's own solver as a policy for `play`."""

    def policy(episode: Episode) -> str:
        action = env.unwrapped.expert_action()  # type: ignore[attr-defined]
        if action is None:
            raise ValueError(f"{episode.env_id} has no expert for task {episode.task_id!r}")
        return action

    return policy
