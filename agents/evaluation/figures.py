"""What an evaluation found: success and pass@k with intervals, turns, tool use, cost, stop reasons.

Knows stored trajectories. Episodes lost to a failure of ours count as lost and nowhere else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agents.evaluation.statistics import pass_at_k
from agents.metrics import wilson_interval
from agents.types import Trajectory


@dataclass(frozen=True)
class Outcome:
    """What counts of one episode."""

    group: int
    """Number of its task in the evaluation."""
    task_id: str
    success: bool
    reward: float
    turns: int
    tool_calls: Counter[str]
    """By the tool's name."""
    failed_calls: int
    """Calls that were malformed, unknown or failed."""
    mistakes: int
    """Turns in which the agent did something wrong (no call, no answer, a broken call)."""
    images: int
    late_images: int
    """Pictures that arrived after the first turn."""
    sampled_tokens: int
    prompt_tokens: int
    """What the turns' requests held together: the whole conversation so far, each turn anew."""
    seconds: float
    stop_reason: str


def solved(trajectory: Trajectory) -> bool:
    """Whether the task was solved, also where the engine ended the episode and `finish` graded it."""
    return trajectory.success or trajectory.metrics.get("success", 0.0) > 0


def outcome_of(trajectory: Trajectory) -> Outcome:
    """What counts of a trajectory; its pictures need not be loaded."""
    calls = [call for turn in trajectory.turns for call in turn.tool_calls]
    sampled, prompt = _tokens(trajectory)
    late = sum(turn.images for turn in trajectory.turns)
    blocks = [b for o in trajectory.episode.observations for m in o for b in m["content"]]
    return Outcome(
        group=trajectory.task.group if trajectory.task else 0,
        task_id=trajectory.episode.task_id,
        success=solved(trajectory),
        reward=float(trajectory.reward or 0.0),
        turns=len(trajectory.turns),
        tool_calls=Counter(str(call.get("name")) for call in calls),
        failed_calls=sum(call.get("status") != "ok" for call in calls),
        mistakes=sum(turn.error is not None for turn in trajectory.turns),
        images=sum(block["type"] == "image" for block in blocks),
        late_images=late,
        sampled_tokens=sampled,
        prompt_tokens=prompt,
        seconds=sum(s for turn in trajectory.turns for s in turn.seconds.values()),
        stop_reason=str(trajectory.stop_reason or "none"),
    )


def _tokens(trajectory: Trajectory) -> tuple[int, int]:
    """Tokens sampled, and tokens of all requests: from the stream, or as the endpoint counted."""
    if trajectory.token_ids:
        return trajectory.sampled_tokens, sum(turn.start for turn in trajectory.turns)
    sampled = sum(turn.metrics.get("sampled_tokens", 0.0) for turn in trajectory.turns)
    context = sum(turn.metrics.get("context_tokens", 0.0) for turn in trajectory.turns)
    return int(sampled), int(max(0.0, context - sampled))


@dataclass(frozen=True)
class Share:
    """A share with its 95% interval."""

    value: float
    low: float
    high: float
    tasks: int
    """Over so many tasks."""


@dataclass(frozen=True)
class Figures:
    """An evaluation in figures. Means are over the episodes that were not lost."""

    tasks: int
    episodes: int
    lost: int
    """Episodes lost to a failure of ours, after all retries."""
    success: Share
    """Mean over tasks of the share of solved episodes. The interval is Wilson's, over tasks: episodes of one
    task are not independent, so more samples of the same tasks don't narrow it."""
    pass_at: dict[int, Share]
    """By k; only tasks with at least k episodes count."""
    reward: float
    turns: float
    tool_calls: float
    episodes_with_tools: float
    """Share of the episodes in which a tool was called."""
    tools: dict[str, int]
    """Calls by the tool's name."""
    failed_calls: int
    mistakes: int
    images: float
    late_images: float
    sampled_tokens: float
    prompt_tokens: float
    seconds: float
    cost: float | None
    """Of all episodes, in the prices' currency; None without prices."""
    stop_reasons: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def figures(
    outcomes: Sequence[Outcome],
    *,
    lost: int = 0,
    samples: int = 1,
    price_in: float | None = None,
    price_out: float | None = None,
) -> Figures:
    """Figures over these episodes.

    Args:
        outcomes: Of the episodes that were not lost.
        lost: How many were.
        samples: Episodes of a task that were asked for: the largest k of pass@k.
        price_in: Of a million prompt tokens.
        price_out: Of a million sampled tokens.
    """
    by_task: dict[int, list[bool]] = defaultdict(list)
    tools: Counter[str] = Counter()
    for outcome in outcomes:
        by_task[outcome.group].append(outcome.success)
        tools.update(outcome.tool_calls)
    return Figures(
        tasks=len(by_task),
        episodes=len(outcomes),
        lost=lost,
        success=_share([sum(solved) / len(solved) for solved in by_task.values()]),
        pass_at={k: _pass_at(k, by_task.values()) for k in _ks(samples)},
        reward=_mean(o.reward for o in outcomes),
        turns=_mean(o.turns for o in outcomes),
        tool_calls=_mean(o.tool_calls.total() for o in outcomes),
        episodes_with_tools=_mean(bool(o.tool_calls) for o in outcomes),
        tools=dict(tools.most_common()),
        failed_calls=sum(o.failed_calls for o in outcomes),
        mistakes=sum(o.mistakes for o in outcomes),
        images=_mean(o.images for o in outcomes),
        late_images=_mean(o.late_images for o in outcomes),
        sampled_tokens=_mean(o.sampled_tokens for o in outcomes),
        prompt_tokens=_mean(o.prompt_tokens for o in outcomes),
        seconds=_mean(o.seconds for o in outcomes),
        cost=_cost(outcomes, price_in, price_out),
        stop_reasons=dict(Counter(o.stop_reason for o in outcomes).most_common()),
    )


def _ks(samples: int) -> list[int]:
    """1, 2, 4, ... and the number of samples itself; nothing for a single sample."""
    powers = [2**i for i in range(samples.bit_length()) if 2**i < samples]
    return [*powers, samples] if samples > 1 else []


def _pass_at(k: int, by_task: Iterable[Sequence[bool]]) -> Share:
    return _share([pass_at_k(len(solved), sum(solved), k) for solved in by_task if len(solved) >= k])


def _share(values: Sequence[float]) -> Share:
    """The mean of values in [0, 1], one a task; its interval is Wilson's, wide enough for shares too."""
    total = sum(values)
    low, high = wilson_interval(total, len(values))
    return Share(total / len(values) if values else 0.0, low, high, len(values))


def _cost(outcomes: Sequence[Outcome], price_in: float | None, price_out: float | None) -> float | None:
    if price_in is None and price_out is None:
        return None
    prompt = sum(o.prompt_tokens for o in outcomes)
    sampled = sum(o.sampled_tokens for o in outcomes)
    return (prompt * (price_in or 0.0) + sampled * (price_out or 0.0)) / 1e6


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(sum(listed)) / len(listed) if listed else 0.0
