"""`JudgedEnv`: any environment, with a judge's feedback after each turn or a judge's score at the end."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np

from mm_gym.env import ChatEnv
from mm_gym.episode import Episode
from mm_gym.judge.endpoint import ChatEndpoint
from mm_gym.judge.judge import Judge
from mm_gym.judge.rubric import Rubric
from mm_gym.messages import user
from mm_gym.stop import StopReason
from mm_gym.text import scalar_text

StepResult = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]


class JudgedEnv(ChatEnv):
    """An environment whose episodes a judge scores; the loop around it needs no change.

    The final reward is `(1 - weight) * the environment's own + weight * the judge's score`, the judge being
    asked once, when the episode ends. With `feedback`, the judge's sentence after each turn is added to
    the observation as a user message.

    A judge that fails raises `EnvironmentFailure`: the retry asks it again, and does not repeat the
    environment's step.

    Args:
        env: An id, or an environment that keeps the contract of `ChatEnv`.
        judge: A `Judge`; or give `rubric`, `base_url` and `model`.
        rubric: Path of a rubric in YAML.
        base_url: Of an OpenAI-compatible endpoint.
        model: Its name there.
        weight: Share of the judge's score in the reward, 0 to 1.
        feedback: "none", or "turn" for a sentence after each turn that does not end the episode.
        env_kwargs: For `gymnasium.make`, where `env` is an id.
        render_mode: None or "rgb_array".
    """

    def __init__(
        self,
        env: str | gymnasium.Env[Any, Any] = "mm_gym/Geo3k-v0",
        *,
        judge: Judge | None = None,
        rubric: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        weight: float = 1.0,
        feedback: Literal["none", "turn"] = "none",
        env_kwargs: dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not 0.0 <= weight <= 1.0:
            raise ValueError(f"weight is the judge's share of the reward, from 0 to 1, got {weight}")
        if feedback not in ("none", "turn"):
            raise ValueError(f'feedback must be "none" or "turn", got {feedback!r}')
        made = gymnasium.make(env, **(env_kwargs or {})) if isinstance(env, str) else env
        inner = made.unwrapped
        if not isinstance(inner, ChatEnv):
            raise TypeError(f"JudgedEnv wraps an mm_gym.ChatEnv, got {type(inner).__name__}")
        super().__init__(max_turns=inner.max_turns, render_mode=render_mode)
        self.inner = inner
        self.judge = judge or _judge(rubric, base_url, model)
        self.weight = float(weight)
        self.feedback = feedback
        self.episode = Episode()
        self._over = True
        self._pending: tuple[str, StepResult] | None = None
        self._settled: tuple[float, dict[str, float]] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the environment inside; see `ChatEnv.reset`."""
        gymnasium.Env.reset(self, seed=seed)
        observation, info = self.inner.reset(seed=seed, options=options)
        self.episode = Episode()
        self.episode.record_reset(observation, info)
        self._pending = self._settled = None
        self._over = False
        self.turn = 0
        return observation, info

    def step(self, action: str) -> StepResult:
        """Step the environment inside, then ask the judge where that is due; see `ChatEnv.step`."""
        if self._pending is None or self._pending[0] != action:
            result = self.inner.step(action)
            self.episode.record_step(scalar_text(action), result[0], result[1], result[4])
            self._pending = (action, result)
        observation, own, terminated, truncated, info = self._pending[1]
        reward = (1.0 - self.weight) * own
        if terminated or truncated:
            verdict = self.judge.judge(self.episode)
            reward += self.weight * verdict.score
            info = {**info, "metrics": {**info["metrics"], **_metrics(verdict.score, verdict.scores)}}
        elif self.feedback == "turn":
            observation, info = self._with_feedback(observation, info)
        self._pending = None
        self._over = terminated or truncated
        self.turn = self.inner.turn
        return observation, reward, terminated, truncated, info

    def finish(self, stop_reason: StopReason | str) -> tuple[float, dict[str, float]]:
        """What the engine's end earns: the environment's share, and the judge's score of what there is."""
        if self._over:
            return 0.0, {}
        if self._settled is None:  # asked once, also when the judge needs another try
            self._settled = self.inner.finish(stop_reason)
        own, metrics = self._settled
        verdict = self.judge.judge(self.episode)
        self._over = True
        reward = (1.0 - self.weight) * own + self.weight * verdict.score
        return reward, {**metrics, **_metrics(verdict.score, verdict.scores)}

    def expert_action(self) -> str | None:
        return self.inner.expert_action()

    def draw(self) -> np.ndarray:
        return self.inner.draw()

    def close(self) -> None:
        self.inner.close()

    def _with_feedback(
        self, observation: dict[str, Any], info: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        text = scalar_text(self.judge.judge(self.episode).feedback)
        if not text:
            return observation, info
        text = f"Feedback: {text}"
        message = user(text)
        self.episode.observations[-1].append(message)
        joined = "\n\n".join(part for part in (observation["text"], text) if part)
        return {**observation, "text": joined}, {**info, "messages": [*info["messages"], message]}


def _judge(rubric: str | None, base_url: str | None, model: str | None) -> Judge:
    if rubric is None or base_url is None or model is None:
        raise ValueError("JudgedEnv needs a judge, or all of rubric (a YAML file), base_url and model")
    return Judge(ChatEndpoint(base_url, model), Rubric.load(rubric))


def _metrics(score: float, scores: dict[str, float]) -> dict[str, float]:
    return {"judge/score": score, **{f"judge/{name}": value for name, value in scores.items()}}
