"""An environment at the token level: `TokenEnv` keeps the append-only stream of one episode.

Knows the token contract. Must not know back ends, budgets' names, retries or schedules: the engine has those.

Two ways to drive it:

- `reset` and `step`, as any `gymnasium.Wrapper`;
- the parts, when the environment runs elsewhere (a worker, another process): `begin` takes what its
  `reset` returned, `action` gives the text for its `step`, `advance` takes what that returned. Only
  `begin` and `advance` write to the trajectory, so that a step abandoned in a worker can't touch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
from PIL import Image

from agents.chat import ChatRenderer
from agents.types import GenerationFailure, Response, Segment, Task, Trajectory, Turn
from mm_gym.messages import with_images
from mm_gym.stop import StopReason


class TokenEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations as token segments, actions as sampled ids; `trajectory` records the episode.

    Args:
        env: An environment that keeps the contract of `mm_gym.ChatEnv`.
        renderer: Turns messages into ids; may be shared by any number of episodes.
        task: What is being run, for the trajectory's record.
    """

    trajectory: Trajectory

    def __init__(
        self, env: gymnasium.Env[Any, Any], renderer: ChatRenderer, *, task: Task | None = None
    ) -> None:
        super().__init__(env)
        self.renderer = renderer
        self.task = task
        self.trajectory = Trajectory(task=task)
        self._pads = 0

    # -- gymnasium's interface -----------------------------------------------------------------------------

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Segment, dict[str, Any]]:
        """Start an episode with a fresh trajectory; returns the prompt and the environment's info."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.begin(observation, info, seed=seed, options=options), info

    def step(  # type: ignore[override]
        self, action: Response, *, room: int | None = None
    ) -> tuple[Segment, float, bool, bool, dict[str, Any]]:
        """Answer one response. See `advance` for what is appended and for `room`.

        Raises:
            EnvironmentFailure: As the environment raised it; the trajectory is as before, so the step may be
                retried.
            GenerationFailure: A vision token was sampled.
        """
        observation, reward, terminated, truncated, info = self.env.step(self.action(action))
        return self.advance(action, observation, float(reward), terminated, truncated, info, room=room)

    # -- the parts -----------------------------------------------------------------------------------------

    def begin(
        self,
        observation: Mapping[str, Any],
        info: dict[str, Any],
        *,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Segment:
        """Start the trajectory from what the environment's `reset` returned."""
        trajectory = Trajectory(task=self.task)
        episode = trajectory.episode
        spec = self.env.spec
        episode.env_id = spec.id if spec else type(self.env.unwrapped).__name__
        episode.env_kwargs = dict(spec.kwargs) if spec else {}
        episode.seed, episode.options = seed, dict(options or {})
        episode.record_reset(dict(observation), info)
        messages = with_images(info["messages"], observation["images"])
        if info["system_prompt"]:
            system = {"role": "system", "content": [{"type": "text", "text": info["system_prompt"]}]}
            messages = [system, *messages]
        prompt = self.renderer.prompt(messages, info["tools"])
        self.trajectory, self._pads = trajectory, 0
        self._append(prompt)
        trajectory.prompt_length = len(prompt.token_ids)
        return prompt

    def action(self, response: Response) -> str:
        """The text that the environment gets for these sampled ids. Changes nothing.

        Raises:
            GenerationFailure: A vision token was sampled: the back end does not keep the bans.
        """
        vision = self.renderer.vision_token_ids.intersection(response.token_ids)
        if vision:
            raise GenerationFailure(
                f"the response holds the vision tokens {sorted(vision)}: the back end must ban "
                "renderer.banned_token_ids",
                kind="banned_token",
            )
        return self.renderer.decode(response.token_ids)

    def advance(
        self,
        response: Response,
        observation: Mapping[str, Any],
        reward: float,
        terminated: bool,
        truncated: bool,
        info: dict[str, Any],
        *,
        room: int | None = None,
    ) -> tuple[Segment, float, bool, bool, dict[str, Any]]:
        """Append one completed interaction: the sampled ids, then the observation where the episode goes on.

        Args:
            response: What the policy sampled.
            observation, reward, terminated, truncated, info: What the environment's `step` returned.
            room: The most ids that may follow the response. An observation that does not fit is left out
                whole, `truncated` is returned as True and `info["overflow"]` says how many ids it has: the
                caller ends the episode with its stop reason (`finish`). None: no limit.

        Returns:
            The segment that was appended after the response (closing ids included; empty when the episode
            ended), then reward, terminated, truncated and info as the environment gave them.
        """
        trajectory = self.trajectory
        segment = Segment([], [])
        ended = terminated or truncated
        if not ended:
            segment = self._answer(response, observation, info)
            if room is not None and len(segment.token_ids) > room:
                info = {**info, "overflow": len(segment.token_ids)}
                segment, truncated = Segment([], []), True
        start = len(trajectory.token_ids)
        self._append_response(response)
        trajectory.turns.append(
            Turn(
                start=start,
                end=len(trajectory.token_ids),
                reward=float(reward),
                finish_reason=response.finish_reason,
                images=len(segment.images),
                metrics=dict(info.get("metrics", {})),
                tool_calls=list(info.get("tool_calls", [])),
                error=info["error"]["kind"] if "error" in info else None,
            )
        )
        trajectory.episode.record_step(self.action(response), dict(observation), float(reward), info)
        self._append(segment)
        trajectory.reward = (trajectory.reward or 0.0) + float(reward)
        if ended:
            default = StopReason.ENV_DONE if terminated else StopReason.ENV_TRUNCATED
            trajectory.stop_reason = StopReason(info.get("stop_reason", default))
        return segment, float(reward), terminated, truncated, info

    def finish(self, stop_reason: StopReason | str) -> tuple[float, dict[str, float]]:
        """End the episode from the engine's side: ask the environment what it still earns, record it."""
        reward, metrics = self.env.unwrapped.finish(stop_reason)  # type: ignore[attr-defined]
        self.settle(stop_reason, reward, metrics)
        return reward, metrics

    def settle(
        self, stop_reason: StopReason | str, reward: float = 0.0, metrics: Mapping[str, float] = {}
    ) -> None:
        """Record an end from the engine's side, with what the environment's `finish` gave."""
        trajectory = self.trajectory
        trajectory.stop_reason = StopReason(stop_reason)
        trajectory.reward = (trajectory.reward or 0.0) + float(reward)
        trajectory.metrics.update(metrics)
        trajectory.episode.stop_reason = str(trajectory.stop_reason)
        if trajectory.turns and reward:
            last = trajectory.turns[-1]
            last.reward = (last.reward or 0.0) + float(reward)
            trajectory.episode.rewards[-1] += float(reward)

    # -- inside --------------------------------------------------------------------------------------------

    def _answer(self, response: Response, observation: Mapping[str, Any], info: dict[str, Any]) -> Segment:
        messages = with_images(info["messages"], observation["images"])
        tools = self.trajectory.episode.tools
        return self.renderer.answer(response.token_ids, response.finish_reason, messages, tools)

    def _append_response(self, response: Response) -> None:
        self.trajectory.append(response.token_ids, response.logprobs)
        self._check()

    def _append(self, segment: Segment) -> None:
        self.trajectory.append(segment.token_ids)
        self.trajectory.images.extend(segment.images)
        self._check_pads(segment.token_ids, segment.images)
        self._check()

    def _check(self) -> None:
        t = self.trajectory
        if not len(t.token_ids) == len(t.loss_mask) == len(t.logprobs):
            raise AssertionError(
                f"the stream has {len(t.token_ids)} ids, {len(t.loss_mask)} mask values and "
                f"{len(t.logprobs)} log-probs"
            )

    def _check_pads(self, token_ids: list[int], images: list[Image.Image]) -> None:
        pads = self.renderer.count_pads(token_ids)
        wanted = sum(self.renderer.count_image_tokens(image) for image in images)
        if pads != wanted:
            raise AssertionError(f"{pads} image pads stand for {len(images)} pictures with {wanted} features")
