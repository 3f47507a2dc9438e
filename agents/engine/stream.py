"""Who answers in an episode: a token-level policy or a message-level one, behind the same five calls.

Knows the trajectory's record and the policy; not environments' workers, retries of them, or schedules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium

from agents.chat import ChatRenderer
from agents.engine.config import Budgets
from agents.env_host import Observed, Stepped
from agents.token_env import TokenEnv
from agents.types import (
    EpisodePolicy,
    FinishReason,
    Policy,
    Request,
    Response,
    SamplingParams,
    Task,
    TextResponse,
    Trajectory,
    Turn,
)
from mm_gym.episode import Episode
from mm_gym.stop import StopReason


class Stream(Protocol):
    """The conversation of one episode as its policy sees it."""

    @property
    def trajectory(self) -> Trajectory: ...

    @property
    def was_cut(self) -> bool:
        """Whether the sampled turn was cut before its end."""
        ...

    def begin(self, reset: Observed) -> None:
        """Take in what `reset` returned."""
        ...

    def room(self) -> int | StopReason:
        """How many tokens the next turn may have, or why there can be none."""
        ...

    async def generate(self, room: int, seed: int) -> str:
        """Sample the next turn; returns the action's text. Changes nothing in the trajectory.

        Called again after it was cancelled, it goes on after what was sampled, where the policy can.
        """
        ...

    def take(self, step: Stepped) -> StopReason | None:
        """Append the turn and the environment's answer; why the episode is over, or None."""
        ...

    def cut(self) -> None:
        """Append the turn without an answer: the episode ends here."""
        ...

    def settle(self, stop_reason: StopReason, reward: float, metrics: dict[str, float]) -> None:
        """Record an end from the engine's side."""
        ...


@dataclass
class _Begun:
    """What is sampled of a turn so far, over all interruptions."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pieces: list[tuple[int, int]] = field(default_factory=list)
    """Version and count of the ids it sampled, in order."""
    finish_reason: FinishReason | None = None
    """As the back end says at the end of the turn."""

    def add(self, version: int, sampled: Sequence[tuple[int, float]]) -> None:
        self.token_ids += [token_id for token_id, _ in sampled]
        self.logprobs += [logprob for _, logprob in sampled]
        before = 0
        if self.pieces and (self.pieces[-1][0] == version or not self.pieces[-1][1]):
            _, before = self.pieces.pop()
        self.pieces.append((version, before + len(sampled)))

    def is_open(self, room: int, sampling: SamplingParams) -> bool:
        """Whether there is more to sample: a call may be cancelled just after the turn's last id."""
        return len(self.token_ids) < room and not self._stopped(sampling)

    def response(self, sampling: SamplingParams) -> Response:
        reason = self.finish_reason or ("stop" if self._stopped(sampling) else "length")
        return Response(self.token_ids, self.logprobs, reason)

    def _stopped(self, sampling: SamplingParams) -> bool:
        return bool(self.token_ids) and self.token_ids[-1] in sampling.stop_token_ids


class TokenStream:
    """The conversation as one append-only token stream, sampled by a `Policy`."""

    def __init__(
        self,
        policy: Policy,
        renderer: ChatRenderer,
        task: Task,
        name: str,
        budgets: Budgets,
        sampling: SamplingParams,
        *,
        interruptible: bool = False,
    ) -> None:
        self._policy = policy
        self._interruptible = interruptible
        self._tokens = TokenEnv(_Elsewhere(), renderer, task=task)
        self._task = task
        self._name = name
        self._budgets = budgets
        self._sampling = sampling
        self._context = budgets.max_context or getattr(policy, "max_context", None)
        self._response: Response | None = None
        self._begun = _Begun()
        self._pieces: list[tuple[int, int]] = []

    @property
    def trajectory(self) -> Trajectory:
        return self._tokens.trajectory

    @property
    def was_cut(self) -> bool:
        return self._response is not None and self._response.finish_reason != "stop"

    def begin(self, reset: Observed) -> None:
        observation, info = reset
        self._tokens.begin(observation, info, seed=self._task.seed, options=self._task.options)
        self.trajectory.episode.env_id = self._task.env_id
        self.trajectory.episode.env_kwargs = dict(self._task.env_kwargs)

    def room(self) -> int | StopReason:
        length = len(self.trajectory.token_ids)
        room, reason = self._left(length)
        if room < self._budgets.min_tokens_per_turn:
            return reason
        return min(room, self._budgets.max_tokens_per_turn)

    async def generate(self, room: int, seed: int) -> str:
        begun = self._begun
        if begun.is_open(room, self._sampling):
            await self._sample(begun, room, seed)
        self._begun = _Begun()
        response = begun.response(self._sampling)
        action = self._tokens.action(response)
        self._response, self._pieces = response, begun.pieces
        return action

    async def _sample(self, begun: _Begun, room: int, seed: int) -> None:
        """Sample what the turn still lacks. Of a cancelled call, what it has sampled stays in `begun`."""
        trajectory, version = self.trajectory, self._policy.version
        progress: list[tuple[int, float]] | None = [] if self._interruptible else None
        request = Request(
            self._name,
            [*trajectory.token_ids, *begun.token_ids],
            list(trajectory.images),
            room - len(begun.token_ids),
            seed,
            self._sampling,
            sampled=len(begun.token_ids),
            progress=progress,
        )
        try:
            response = await self._policy.generate(request)
        except asyncio.CancelledError:
            begun.add(version, list(progress or ()))
            raise
        begun.add(version, list(zip(response.token_ids, response.logprobs, strict=True)))
        begun.finish_reason = response.finish_reason

    def take(self, step: Stepped) -> StopReason | None:
        response = self._sampled()
        observation, reward, terminated, truncated, info = step
        room, reason = self._left(len(self.trajectory.token_ids) + len(response.token_ids))
        limited = self._context is not None or self._budgets.max_tokens_per_episode is not None
        _, _, _, _, info = self._tokens.advance(
            response,
            observation,
            reward,
            terminated,
            truncated,
            info,
            room=max(room - self._budgets.min_tokens_per_turn, 0) if limited else None,
        )
        self._note_pieces()
        if terminated or truncated:
            return self.trajectory.stop_reason
        return reason if "overflow" in info else None

    def cut(self) -> None:
        response = self._sampled()
        nothing: dict[str, Any] = {"text": "", "images": ()}
        self._tokens.advance(response, nothing, 0.0, False, True, {"messages": [], "tool_calls": []})
        self.trajectory.stop_reason = None
        self._note_pieces()

    def settle(self, stop_reason: StopReason, reward: float, metrics: dict[str, float]) -> None:
        self._tokens.settle(stop_reason, reward, metrics)

    def _sampled(self) -> Response:
        response, self._response = self._response, None
        if response is None:
            raise RuntimeError("take() or cut() needs a generate() before it")
        return response

    def _note_pieces(self) -> None:
        """Which versions sampled the turn that was just taken."""
        turn = self.trajectory.turns[-1]
        turn.policy_version = self._pieces[0][0]
        turn.pieces = self._pieces if len(self._pieces) > 1 else []

    def _left(self, length: int) -> tuple[int, StopReason]:
        """Tokens that still fit after `length`, and the stop reason of the limit that is nearest."""
        limits = [
            (self._budgets.max_tokens_per_episode, StopReason.TOKEN_BUDGET),
            (self._context, StopReason.CONTEXT_FULL),
        ]
        nearest = min(((limit, why) for limit, why in limits if limit is not None), default=None)
        if nearest is None:
            return self._budgets.max_tokens_per_turn, StopReason.TOKEN_BUDGET
        return nearest[0] - length, nearest[1]


class MessageStream:
    """The conversation as messages, answered by an `EpisodePolicy`: a trajectory without tokens."""

    def __init__(self, policy: EpisodePolicy, task: Task, budgets: Budgets) -> None:
        self._policy = policy
        self._task = task
        self._budgets = budgets
        self._response: TextResponse | None = None
        self._context = 0
        self.trajectory = Trajectory(task=task)

    @property
    def was_cut(self) -> bool:
        return self._response is not None and self._response.finish_reason != "stop"

    def begin(self, reset: Observed) -> None:
        task = self._task
        episode = Episode(task.env_id, dict(task.env_kwargs), task.seed, dict(task.options))
        episode.record_reset(*reset)
        self.trajectory = Trajectory(task=task, episode=episode, failures=self.trajectory.failures)

    def room(self) -> int | StopReason:
        limits = [
            (self._budgets.max_tokens_per_episode, StopReason.TOKEN_BUDGET),
            (self._budgets.max_context, StopReason.CONTEXT_FULL),
        ]
        for limit, reason in limits:
            if limit is not None and limit - self._context < self._budgets.min_tokens_per_turn:
                return reason
        left = [limit - self._context for limit, _ in limits if limit is not None]
        return min([self._budgets.max_tokens_per_turn, *left])

    async def generate(self, room: int, seed: int) -> str:
        self._response = await self._policy.respond(self.trajectory.episode, max_tokens=room, seed=seed)
        self._context = self._response.context or self._context
        return self._response.text

    def take(self, step: Stepped) -> StopReason | None:
        observation, reward, terminated, truncated, info = step
        self._record(observation, reward, info)
        if not (terminated or truncated):
            return None
        default = StopReason.ENV_DONE if terminated else StopReason.ENV_TRUNCATED
        self.trajectory.stop_reason = StopReason(info.get("stop_reason", default))
        return self.trajectory.stop_reason

    def cut(self) -> None:
        self._record({"text": "", "images": ()}, 0.0, {"messages": [], "tool_calls": []})

    def settle(self, stop_reason: StopReason, reward: float, metrics: dict[str, float]) -> None:
        trajectory = self.trajectory
        trajectory.stop_reason = stop_reason
        trajectory.episode.stop_reason = str(stop_reason)
        trajectory.reward = (trajectory.reward or 0.0) + reward
        trajectory.metrics.update(metrics)
        if trajectory.episode.rewards:
            trajectory.episode.rewards[-1] += reward
            trajectory.turns[-1].reward = (trajectory.turns[-1].reward or 0.0) + reward

    def _record(self, observation: dict[str, Any], reward: float, info: dict[str, Any]) -> None:
        response, self._response = self._response, None
        if response is None:
            raise RuntimeError("take() or cut() needs a generate() before it")
        trajectory = self.trajectory
        trajectory.episode.record_step(response.text, observation, reward, info)
        trajectory.reward = (trajectory.reward or 0.0) + reward
        trajectory.turns.append(
            Turn(
                start=0,
                end=0,
                reward=reward,
                finish_reason=response.finish_reason,
                policy_version=self._policy.version,
                images=len(observation["images"]),
                metrics={
                    **info.get("metrics", {}),
                    "sampled_tokens": float(response.tokens),
                    "context_tokens": float(response.context),
                },
                tool_calls=list(info.get("tool_calls", [])),
                error=info["error"]["kind"] if "error" in info else None,
            )
        )


class _Elsewhere(gymnasium.Env[Any, Any]):
    """Stands for an environment that lives in a worker; only the parts of `TokenEnv` are used."""
