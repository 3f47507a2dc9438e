"""The environment contract: what every environment of this package is and promises.

An environment knows its task, its tools and its grading. It must not know tokens, chat templates,
policies or trainers. Subclass `ChatEnv` and fill in `begin` and `respond`; the base class turns their
messages into observations, counts turns, keeps the promises below, and hands out fresh objects only.

- Observation: `{"text": str, "images": tuple of uint8 (H, W, 3)}`, what is NEW since the last action.
- Action: `str`, the model's raw response. A malformed one gets a clear text observation.
- `info["messages"]`: the turn's messages in order, image blocks holding an index into `obs["images"]`.
- A fault on our side raises `EnvironmentFailure`, never a reward of 0.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from mm_gym.frame import frame
from mm_gym.messages import Message, flatten
from mm_gym.spaces import UnicodeText, observation_space
from mm_gym.stop import StopReason
from mm_gym.text import scalar_text


@dataclass(frozen=True)
class Opening:
    """What `ChatEnv.begin` returns: the start of an episode."""

    messages: Sequence[Message]
    """What the agent sees first; see `mm_gym.user`."""
    task_id: str
    """Stable name of the task: the same string means the same problem."""
    task: Any = None
    """A frozen, picklable dataclass describing the task."""
    system_prompt: str = ""
    """"" for none."""
    tools: Sequence[dict[str, Any]] = ()
    """JSON-schema function tools, in the form that chat templates take."""


@dataclass(frozen=True)
class Reply:
    """What `ChatEnv.respond` returns: the environment's answer to one action."""

    messages: Sequence[Message] = ()
    """What is new for the agent; may be empty when the episode ends."""
    reward: float = 0.0
    """The reward of this turn."""
    terminated: bool = False
    """The task reached its end."""
    success: bool = False
    """Whether the task is solved; read on the last step."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Deterministic figures of this turn (no wall-clock times)."""
    tool_calls: Sequence[dict[str, Any]] = ()
    """One record a call: `name`, `arguments`, `status` ("ok", "failed", "unknown" or "malformed")."""
    error: tuple[str, str] | None = None
    """The agent's mistake, if any: `(kind, text)`."""
    stop_reason: StopReason | None = None
    """Why the episode ended, where `terminated` alone does not say (no_tool_call, parse_failures)."""


class ChatEnv(gymnasium.Env[dict[str, Any], str]):
    """Base class of environments: an episode is a conversation of text and images.

    Args:
        max_turns: The environment's own cap. The step that reaches it without ending is `truncated`.
        render_mode: None or "rgb_array".
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as in Gymnasium)
        "render_modes": ["rgb_array"],
        "render_fps": 2,
    }
    deterministic: ClassVar[bool] = True
    """Same seed, options and actions give the same observations: a lost episode may be replayed."""
    frame_size: ClassVar[tuple[int, int]] = (480, 480)
    """(height, width) in pixels of what the default `render` returns."""

    def __init__(self, *, max_turns: int = 8, render_mode: str | None = None) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, got {max_turns}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(
                f"render_mode must be None or one of {self.metadata['render_modes']}, got {render_mode!r}"
            )
        self.max_turns = max_turns
        self.render_mode = render_mode
        self.observation_space = observation_space()
        self.action_space = UnicodeText()
        self.turn = 0
        self._turn_cap = max_turns
        self._running = False
        self._finished = False
        self._last_image: np.ndarray | None = None
        self._last_text = ""

    # -- hooks for subclasses ------------------------------------------------------------------------

    def begin(self, options: dict[str, Any]) -> Opening:
        """Start an episode. Draw from `self.np_random` only; `options["task"]` may pick a task.

        Raises:
            ValueError: An option is unknown or names a task that does not exist.
            EnvironmentFailure: Our side is broken.
        """
        raise NotImplementedError(f"{type(self).__name__} must define begin(options) -> Opening")

    def respond(self, action: str) -> Reply:
        """Answer one model response. Never raises for what the response says.

        Raises:
            EnvironmentFailure: Our side is broken.
        """
        raise NotImplementedError(f"{type(self).__name__} must define respond(action) -> Reply")

    def settle(self, stop_reason: StopReason) -> tuple[float, dict[str, float]]:
        """Reward and metrics of an episode that the engine cut; default nothing. See `finish`."""
        return 0.0, {}

    def expert_action(self) -> str | None:
        """The next response of a solver, or None where the task has none."""
        return None

    @property
    def turns_left(self) -> int:
        """Turns that remain, by this environment's cap and by the engine's (`options["max_turns"]`).

        In `respond` the turn being answered is already counted: 0 means that it was the last.
        """
        return self._turn_cap - self.turn

    # -- gymnasium's interface -----------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode: the same seed and options give the same one.

        Args:
            seed: Seeds the task's choice and content.
            options: `task` picks a task; `max_turns` tells the engine's own turn cap (for reminders);
                the rest is the environment's own.

        Returns:
            The observation, and info with `system_prompt`, `tools`, `task_id`, `task`, `messages`.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        engine_cap = options.pop("max_turns", None)
        if engine_cap is not None and engine_cap < 1:
            raise ValueError(f'options["max_turns"] must be at least 1, got {engine_cap}')
        self._turn_cap = self.max_turns if engine_cap is None else min(self.max_turns, engine_cap)
        self.turn = 0
        self._running = self._finished = False
        opening = self.begin(options)
        self._running = True
        self._last_image = None
        observation, messages = self._observe(opening.messages)
        info = {
            "system_prompt": scalar_text(opening.system_prompt),
            "tools": copy.deepcopy(list(opening.tools)),
            "task_id": opening.task_id,
            "messages": messages,
        }
        if opening.task is not None:
            info["task"] = opening.task
        return observation, info

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Answer one model response.

        Returns:
            Observation, the reward of this turn, `terminated`, `truncated`, and info with `messages`,
            `tool_calls`, `metrics`, `error` (only when there is one) and, on the last step,
            `stop_reason` and `success`.

        Raises:
            ResetNeeded: The episode has ended, or never began.
            TypeError: The action is not a str (a fault of the caller, not of the model).
            EnvironmentFailure: Our side is broken.
        """
        if not self._running:
            raise ResetNeeded("the episode has ended or never began: call reset() before step()")
        if not isinstance(action, str):
            raise TypeError(
                f"an action is the model's response as str, got {type(action).__name__}: decode it first"
            )
        self.turn += 1
        try:
            reply = self.respond(scalar_text(action))
        except Exception:
            self.turn -= 1  # only a completed interaction advances the turn
            raise
        terminated = bool(reply.terminated)
        truncated = not terminated and self.turn >= self.max_turns
        observation, messages = self._observe(reply.messages)
        info: dict[str, Any] = {
            "messages": messages,
            "tool_calls": copy.deepcopy(list(reply.tool_calls)),
            "metrics": {name: float(value) for name, value in reply.metrics.items()},
        }
        if reply.error is not None:
            kind, text = reply.error
            info["error"] = {"kind": kind, "text": scalar_text(text)}
        if terminated or truncated:
            self._running = False
            self._finished = True
            default = StopReason.ENV_DONE if terminated else StopReason.ENV_TRUNCATED
            info["stop_reason"] = str((reply.stop_reason if terminated else None) or default)
            info["success"] = bool(reply.success)
        return observation, float(reply.reward), terminated, truncated, info

    def finish(self, stop_reason: StopReason | str) -> tuple[float, dict[str, float]]:
        """End the episode from the engine's side (token budget, context, length, wall time).

        Called once. Returns what the episode still earns and its last metrics; an episode that the
        environment ended itself has nothing left to earn: `(0.0, {})`.
        """
        if self._finished or not self._running:
            return 0.0, {}
        self._running = False
        self._finished = True
        reward, metrics = self.settle(StopReason(stop_reason))
        return float(reward), {name: float(value) for name, value in metrics.items()}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The last picture and text as uint8 of shape (`*frame_size`, 3); None without a render mode."""
        if self.render_mode is None:
            return None
        return self.draw()

    def draw(self) -> np.ndarray:
        """The frame for `render`; environments with a screen of their own override it."""
        return frame(self._last_image, self._last_text, self.frame_size)

    def close(self) -> None:
        """Free everything. Safe to call twice."""
        self._running = False

    def _observe(self, messages: Sequence[Message]) -> tuple[dict[str, Any], list[Message]]:
        plain, text, images = flatten(messages)
        if images:
            self._last_image = images[-1]
        self._last_text = text
        return {"text": text, "images": images}, plain
