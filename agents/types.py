"""The data that flows from messages to tokens to the trainer, and the interface of a policy.

Knows neither chat templates nor back ends. `token_ids` are *expanded* everywhere (one image pad per
image feature) unless a name says `collapsed`. Lists of a trajectory only ever grow at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from PIL import Image

from mm_gym.episode import Episode
from mm_gym.stop import StopReason

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True)
class Segment:
    """Rendered messages, ready to append to a stream."""

    token_ids: list[int]
    """Expanded ids."""
    images: list[Image.Image] = field(default_factory=list)
    """RGB pictures whose pads stand in `token_ids`, in order."""


@dataclass(frozen=True)
class SamplingParams:
    """How a policy samples. The distribution is the softmax over the ids that are not banned."""

    temperature: float = 1.0
    """0 means greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 means off."""
    min_p: float = 0.0
    stop_token_ids: tuple[int, ...] = ()
    """Sampling one of these ends the turn; it is kept as the last id of the response."""
    banned_token_ids: tuple[int, ...] = ()
    """Never sampled and left out of the softmax, in every back end and in the trainer."""

    @property
    def biased(self) -> bool:
        """Whether the sampled distribution differs from the softmax at `temperature`."""
        return self.top_p < 1.0 or self.top_k > 0 or self.min_p > 0.0


@dataclass(frozen=True)
class Request:
    """One turn to generate."""

    episode: str
    """Names the episode: keeps it on one replica, and tags logs."""
    token_ids: Sequence[int]
    """The whole stream so far, expanded."""
    images: Sequence[Image.Image]
    """All its pictures so far, in order."""
    max_tokens: int
    seed: int
    """Of this turn's own random stream: a function of (seed, task, sample, turn)."""
    sampling: SamplingParams = field(default_factory=SamplingParams)
    sampled: int = 0
    """Ids at the end of `token_ids` that this very turn has sampled, before it was interrupted: its random
    stream goes on after them."""
    progress: list[tuple[int, float]] | None = field(default=None, compare=False, repr=False)
    """Where a back end that can notes each id and its log-prob when it is sampled: what stays of a turn whose
    call is cancelled."""


@dataclass(frozen=True)
class Response:
    """What a policy returns for one turn, and what `TokenEnv.step` takes."""

    token_ids: list[int]
    """The sampled ids, the stop token included when one was sampled."""
    logprobs: list[float]
    """Of each sampled id, under the softmax over the allowed ids at the sampling temperature."""
    finish_reason: FinishReason = "stop"


@runtime_checkable
class Policy(Protocol):
    """A generation back end. `generate` may be called for many episodes at once."""

    version: int
    """Counts weight updates; each response is attributed to the version that sampled it."""

    async def generate(self, request: Request) -> Response:
        """Sample one turn.

        Raises:
            GenerationFailure: The back end is broken; the engine retries.
        """
        ...

    async def start(self) -> None:
        """Get ready to generate (wake up, start the batching loop). Called before each collection."""
        ...

    async def stop(self) -> None:
        """Come to rest (sleep, stop the loop). Called after each collection, also after an error."""
        ...


@runtime_checkable
class EpisodePolicy(Protocol):
    """A back end that answers with text, without tokens or log-probs: for evaluation only."""

    version: int

    async def respond(self, episode: Episode, *, max_tokens: int, seed: int) -> TextResponse:
        """The next action of an episode.

        Args:
            episode: All messages and pictures so far, and the tools.
            max_tokens: Of this turn.
            seed: Of this turn's own random stream, where the back end takes one.

        Raises:
            GenerationFailure: The back end is broken; the engine retries.
        """
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True)
class TextResponse:
    """What an `EpisodePolicy` returns for one turn."""

    text: str
    """With tool calls written as the environment's parser reads them."""
    finish_reason: FinishReason = "stop"
    tokens: int = 0
    """How many were sampled, as the back end counts."""
    context: int = 0
    """How many tokens the conversation has, this response included, as the back end counts; 0 if unknown."""


class GenerationFailure(Exception):  # noqa: N818
    """The generation back end broke; retried, then the trajectory is masked. Never a reward of 0."""

    def __init__(self, message: str = "", *, kind: str = "generation") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Task:
    """One episode to run."""

    env_id: str
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    """For `env.reset`; the same for all episodes of a group."""
    options: dict[str, Any] = field(default_factory=dict)
    group: int = 0
    """Episodes of one group solve the same task and are compared with each other."""


@dataclass
class Turn:
    """One interaction: what the model sampled and what the environment answered."""

    start: int
    """Index into `token_ids` of the first sampled id."""
    end: int
    """One past the last sampled id."""
    reward: float | None = None
    finish_reason: FinishReason = "stop"
    policy_version: int = 0
    """Of the policy that sampled it; of the first where several did."""
    pieces: list[tuple[int, int]] = field(default_factory=list)
    """Where several versions sampled the turn: each version and how many ids it sampled, in order."""
    images: int = 0
    """Pictures in the observation that answered this turn."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The environment's deterministic figures."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    """Kind of the agent's mistake in this turn, if any."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by phase: "generation", "environment", "waiting"."""
    retries: dict[str, int] = field(default_factory=dict)
    """Environment and generation retries of this turn, by kind."""

    @property
    def versions(self) -> list[int]:
        """Of the policies that sampled it, in order."""
        return [version for version, _ in self.pieces] or [self.policy_version]


@dataclass
class Trajectory:
    """One episode as an append-only token stream, and what happened in it."""

    task: Task | None = None
    token_ids: list[int] = field(default_factory=list)
    """Expanded ids: prompt, then responses and observations in turn."""
    loss_mask: list[int] = field(default_factory=list)
    """1 exactly on sampled ids."""
    logprobs: list[float] = field(default_factory=list)
    """Of the sampled ids; 0.0 elsewhere."""
    images: list[Image.Image] = field(default_factory=list)
    prompt_length: int = 0
    turns: list[Turn] = field(default_factory=list)
    reward: float | None = None
    """The return; None when masked."""
    masked: bool = False
    """Lost to a failure of ours: left out of the loss and of the group's baseline."""
    stop_reason: StopReason | None = None
    failures: dict[str, int] = field(default_factory=dict)
    """Failures met, by kind, whether or not they were mended."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The episode's own: what `finish` gave, drift, repetition."""
    episode: Episode = field(default_factory=Episode)
    """The message-level record."""

    def append(self, token_ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
        """Append sampled ids (with log-probs, mask 1) or given ids (without, mask 0)."""
        if logprobs is not None and len(logprobs) != len(token_ids):
            raise ValueError(f"{len(token_ids)} sampled ids came with {len(logprobs)} log-probs")
        sampled = logprobs is not None
        self.token_ids.extend(token_ids)
        self.loss_mask.extend([int(sampled)] * len(token_ids))
        self.logprobs.extend(logprobs if logprobs is not None else [0.0] * len(token_ids))

    @property
    def success(self) -> bool:
        return self.episode.success

    @property
    def sampled_tokens(self) -> int:
        return sum(self.loss_mask)
