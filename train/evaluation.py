"""Held-out episodes in figures: success with its interval, turns, tool use, stop reasons.

Knows trajectories; not trainers. A record of an episode is small and plain, so that ranks can exchange
them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelerate import PartialState
from accelerate.utils import gather_object

from agents.metrics import rollout_metrics, without_bulk
from agents.types import Trajectory
from mm_gym.intervals import wilson_interval as wilson
from train.rollouts import Rollouts
from train.tasks import TaskSource, name_of


@dataclass(frozen=True)
class EpisodeRecord:
    """What counts of one episode."""

    env: str
    stop_reason: str
    masked: bool
    reward: float
    """0.0 when masked: read `masked` first."""
    success: bool
    turns: int
    tool_calls: int
    failed_calls: int
    """Calls that were malformed, unknown or failed, and turns with a mistake that left no call to count."""
    images: int
    late_images: int
    """Pictures that arrived after the first turn."""
    sampled_tokens: int
    tokens: int
    failures: dict[str, int] = field(default_factory=dict)


def record_of(trajectory: Trajectory) -> EpisodeRecord:
    """The record of one trajectory."""
    calls = [call for turn in trajectory.turns for call in turn.tool_calls]
    failed = [sum(call.get("status") != "ok" for call in turn.tool_calls) for turn in trajectory.turns]
    mistaken = [turn.error is not None for turn in trajectory.turns]
    return EpisodeRecord(
        env=name_of(trajectory.task) if trajectory.task else trajectory.episode.env_id,
        stop_reason=str(trajectory.stop_reason or "none"),
        masked=trajectory.masked,
        reward=float(trajectory.reward or 0.0),
        success=trajectory.success or trajectory.metrics.get("success", 0.0) > 0,
        turns=len(trajectory.turns),
        tool_calls=len(calls),
        failed_calls=sum(map(max, failed, mistaken)),
        images=len(trajectory.images),
        late_images=sum(turn.images for turn in trajectory.turns),
        sampled_tokens=trajectory.sampled_tokens,
        tokens=len(trajectory.token_ids),
        failures=dict(trajectory.failures),
    )


@dataclass(frozen=True)
class Evaluation:
    """Figures over episodes. Masked ones count nowhere but in `masked`."""

    episodes: int
    successes: int
    masked: int
    reward: float
    """Mean."""
    turns: float
    """Mean."""
    tool_calls: float
    """Mean."""
    failed_calls: int
    """Sum of malformed, unknown and failed calls, and of mistaken turns without a call."""
    late_images: int
    """Sum of the pictures that arrived after the first turn."""
    sampled_tokens: float
    """Mean."""
    stop_reasons: dict[str, int]

    @property
    def success(self) -> float:
        """Share of episodes solved; NaN without episodes."""
        return self.successes / self.episodes if self.episodes else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of `success`."""
        return wilson(self.successes, self.episodes)

    def metrics(self, prefix: str) -> dict[str, float]:
        """Flat figures for a logger."""
        low, high = self.interval
        flat = {
            "success": self.success,
            "success_low": low,
            "success_high": high,
            "reward": self.reward,
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "failed_calls": float(self.failed_calls),
            "late_images": float(self.late_images),
            "sampled_tokens": self.sampled_tokens,
            "episodes": float(self.episodes),
            "masked": float(self.masked),
        }
        counted = max(1, self.episodes)
        flat.update({f"stop/{reason}": n / counted for reason, n in sorted(self.stop_reasons.items())})
        return {f"{prefix}_{name}": value for name, value in flat.items()}


def summarize(records: Sequence[EpisodeRecord]) -> Evaluation:
    """Figures over these episodes."""
    kept = [r for r in records if not r.masked]

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values) if values else 0.0

    return Evaluation(
        episodes=len(kept),
        successes=sum(r.success for r in kept),
        masked=len(records) - len(kept),
        reward=mean([r.reward for r in kept]),
        turns=mean([r.turns for r in kept]),
        tool_calls=mean([r.tool_calls for r in kept]),
        failed_calls=sum(r.failed_calls for r in kept),
        late_images=sum(r.late_images for r in kept),
        sampled_tokens=mean([r.sampled_tokens for r in kept]),
        stop_reasons=dict(Counter(r.stop_reason for r in kept)),
    )


def training_figures(records: Sequence[EpisodeRecord]) -> dict[str, float]:
    """What a training step logs of its episodes: TRL's `completions/...` and ours, `rollout/...`."""
    lengths = [record.sampled_tokens for record in records] or [0]
    figures = {
        "completions/mean_length": sum(lengths) / len(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
    }
    for name, value in summarize(records).metrics("rollout").items():
        figures[name.replace("rollout_", "rollout/", 1)] = value
    return figures


def step_figures(trajectories: Sequence[Trajectory], *, version: int) -> tuple[dict[str, float], int]:
    """What a training step logs of its episodes over all ranks, and how many tokens they have.

    Args:
        trajectories: This rank's.
        version: Names the weights that are trained, for the age of what was sampled.
    """
    records = gather_object([record_of(t) for t in trajectories])
    everyone = gather_object([without_bulk(t) for t in trajectories])
    figures = training_figures(records) | rollout_metrics(everyone, version=version)
    return figures, sum(record.tokens for record in records)


def held_out(
    rollouts: Rollouts, tasks: TaskSource, episodes: int, *, version: int = 0
) -> tuple[Evaluation, list[Trajectory]]:
    """Run held-out episodes, spread over the ranks.

    Args:
        rollouts: Its evaluation sampling settings are used.
        tasks: Where the tasks come from.
        episodes: How many, over all ranks; tasks 0 to `episodes` - 1.
        version: Names the weights.

    Returns:
        Figures over all ranks, and this rank's trajectories.
    """
    state = PartialState()
    mine = [tasks.task(index) for index in range(state.process_index, episodes, state.num_processes)]
    trajectories = rollouts.evaluate(mine, version=version)
    return summarize(gather_object([record_of(t) for t in trajectories])), trajectories


class EvaluatesEpisodes:
    """The part of a trainer that evaluates on held-out episodes in place of a data set."""

    rollouts: Rollouts
    eval_tasks: TaskSource
    eval_episodes: int
    log_completions: bool
    model: Any
    state: Any
    args: Any
    control: Any
    callback_handler: Any
    log: Callable[[dict[str, float]], None]

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Run held-out episodes, spread over the ranks, and log their figures.

        Args:
            eval_dataset: Ignored: the episodes come from `eval_tasks`.
            ignore_keys: Ignored.
            metric_key_prefix: Of the figures' names.

        Returns:
            `{prefix}_success`, its Wilson interval, reward, turns, tool use and stop reasons.
        """
        figures = self.evaluate_episodes()[0].metrics(metric_key_prefix)
        silent, self.log_completions = self.log_completions, False  # the table is of training episodes
        was_training = self.model.training
        self.model.eval()  # TRL files what is logged now under "eval"
        try:
            self.log(dict(figures))
        finally:
            self.log_completions = silent
            self.model.train(was_training)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, figures)
        return figures

    def evaluate_episodes(self) -> tuple[Evaluation, list[Trajectory]]:
        """Run held-out episodes; returns figures over all ranks and this rank's trajectories."""
        version = self.state.global_step
        return held_out(self.rollouts, self.eval_tasks, self.eval_episodes, version=version)
