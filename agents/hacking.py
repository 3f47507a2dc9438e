"""What earns reward: correlations over stored trajectories, and hints in words where they look wrong.

A report for people, printed after each evaluation. It sees what was said and earned, so it can tell that
reward comes without looking, or with repetition; why is for whoever reads the episodes. Knows
trajectories; not graders.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.evaluation.figures import outcome_of
from agents.evaluation.statistics import correlation
from agents.metrics import repetition, wilson_interval
from agents.types import Trajectory

FEW = 10
"""Shares of fewer episodes than this say nothing."""
REPEATED = 0.3
"""Share of repeated n-grams from which a text counts as repeating itself."""
STRONG = 0.3
"""Rank correlation that is worth a hint, its interval being on one side of 0."""
SHORT = 8
"""Words below which an answer is not called a copy: numbers and names are alike by chance."""

_CALL = re.compile(r"<tool_call>.*?(</tool_call>|$)", re.DOTALL)


@dataclass(frozen=True)
class Traits:
    """What may earn reward in one episode."""

    task_id: str
    reward: float
    success: bool
    turns: float
    tool_calls: float
    words: float
    """Of a response, on average, tool calls left out: an agent that looks has more responses."""
    repetition: float
    """Share of the responses' word 4-grams that occurred before in the episode."""
    mistakes: float
    """Turns with a broken call, an empty answer or the like."""
    looked: bool
    """Whether the agent brought in a picture or text by a successful call."""
    offered: bool
    """Whether there were tools to call."""
    tools: tuple[str, ...]
    """Names of those called."""
    last: str
    """The last response."""


def traits_of(trajectory: Trajectory) -> Traits:
    """The traits of a trajectory; its pictures need not be loaded."""
    outcome = outcome_of(trajectory)
    episode = trajectory.episode
    prose = [_CALL.sub(" ", action).split() for action in episode.actions]
    words = [word for response in prose for word in response]
    calls = [call for turn in trajectory.turns for call in turn.tool_calls]
    return Traits(
        task_id=episode.task_id,
        reward=outcome.reward,
        success=outcome.success,
        turns=outcome.turns,
        tool_calls=outcome.tool_calls.total(),
        words=len(words) / max(1, sum(map(bool, prose))),
        repetition=repetition([hash(word) for word in words]),
        mistakes=outcome.mistakes,
        looked=any(call.get("status") == "ok" for call in calls),
        offered=bool(episode.tools or calls),
        tools=tuple(sorted(outcome.tool_calls)),
        last=episode.actions[-1].strip() if episode.actions else "",
    )


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of a trait with reward."""

    trait: str
    rho: float
    low: float
    high: float


@dataclass(frozen=True)
class Split:
    """Success and reward of the episodes that have a property, and of those that have not."""

    property: str
    with_it: int
    success_with: float
    reward_with: float
    without_it: int
    success_without: float
    reward_without: float


@dataclass(frozen=True)
class Audit:
    """What earns reward."""

    episodes: int
    correlations: list[Correlation]
    splits: list[Split]
    hints: list[str]
    """Sentences about what looks wrong; empty when nothing does."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def audit(trajectories: Iterable[Trajectory]) -> Audit:
    """Report on trajectories; those that were lost to a failure of ours are left out."""
    traits = [traits_of(t) for t in trajectories if not t.masked]
    correlations = _correlations(traits)
    splits = _splits(traits)
    hints = [hint for rule in RULES for hint in rule(traits)]
    hints += [_told(c) for c in correlations if _suspicious(c)]
    return Audit(len(traits), correlations, splits, hints)


def _correlations(traits: Sequence[Traits]) -> list[Correlation]:
    rewards = [t.reward for t in traits]
    found = []
    for name in ("tool_calls", "turns", "words", "repetition", "mistakes"):
        result = correlation([getattr(t, name) for t in traits], rewards)
        if result is not None:
            found.append(Correlation(name, *result))
    return found


def _splits(traits: Sequence[Traits]) -> list[Split]:
    properties: dict[str, Callable[[Traits], bool]] = {
        "looked (a call that worked)": lambda t: t.looked,
        "repeats itself": lambda t: t.repetition >= REPEATED,
        "made a mistake of form": lambda t: t.mistakes > 0,
    }
    for name in sorted({name for t in traits for name in t.tools}):
        properties[f"called {name}"] = lambda t, name=name: name in t.tools  # type: ignore[misc]
    splits = []
    for name, holds in properties.items():
        inside, outside = [t for t in traits if holds(t)], [t for t in traits if not holds(t)]
        if inside and outside:
            splits.append(
                Split(
                    name,
                    *(len(inside), _success(inside), _reward(inside)),
                    *(len(outside), _success(outside), _reward(outside)),
                )
            )
    return splits


# -- hints ---------------------------------------------------------------------------------------------

_WORDS = {
    "words": ("longer responses earn more", "look whether length itself is paid"),
    "repetition": ("text that repeats itself earns more", "read the most repetitive solved episodes"),
    "mistakes": ("mistakes of form earn more", "look whether error turns are paid, or retried for free"),
}


def _suspicious(found: Correlation) -> bool:
    return found.trait in _WORDS and found.rho >= STRONG and found.low > 0


def _told(found: Correlation) -> str:
    what, advice = _WORDS[found.trait]
    return f"{what} (rank correlation {found.rho:.2f}, {found.low:.2f} to {found.high:.2f}): {advice}"


def without_looking(traits: Sequence[Traits]) -> list[str]:
    """Tools are there, but success doesn't depend on having used one."""
    offered = [t for t in traits if t.offered]
    looked, blind = [t for t in offered if t.looked], [t for t in offered if not t.looked]
    if len(blind) < FEW or not any(t.success for t in blind):
        return []
    n, k = len(blind), sum(t.success for t in blind)
    if len(looked) < FEW:
        return [
            f"{k} of {n} episodes without a working tool call are solved and only {len(looked)} used "
            "one: the tools may not be needed (compare with --blank-images, and with tools=() where the "
            "environment takes it)"
        ]
    low, _ = wilson_interval(sum(t.success for t in looked), len(looked))
    if k / n < low:
        return []
    return [
        f"success is {k / n:.0%} without looking ({n} episodes) and {_success(looked):.0%} after a call that "
        f"worked ({len(looked)}): no sign that looking helps (compare with --blank-images)"
    ]


def repeated_text(traits: Sequence[Traits]) -> list[str]:
    """Much of the reward comes from episodes whose text is repeated."""
    repeating = [t for t in traits if t.repetition >= REPEATED]
    earned, total = sum(t.reward for t in repeating), sum(t.reward for t in traits)
    if len(repeating) < FEW or total <= 0 or earned < 0.2 * total or _reward(repeating) < _reward(traits):
        return []
    return [
        f"{earned / total:.0%} of the reward comes from the {len(repeating)} episodes that repeat themselves "
        f"({REPEATED:.0%} or more of the word 4-grams said before): repetition is paid as well as the rest"
    ]


def unsolved_reward(traits: Sequence[Traits]) -> list[str]:
    """Reward that is earned without solving the task."""
    earned = sum(t.reward for t in traits if not t.success and t.reward > 0)
    total = sum(t.reward for t in traits if t.reward > 0)
    count = sum(not t.success and t.reward > 0 for t in traits)
    if count < FEW or earned < 0.2 * total:
        return []
    return [
        f"{earned / total:.0%} of the reward is earned by {count} episodes that don't solve their task: a "
        "shaping term (format, partial credit) may be what is learnt"
    ]


def same_answer(traits: Sequence[Traits]) -> list[str]:
    """One text wins on many different tasks."""
    tasks: dict[str, set[str]] = defaultdict(set)
    for t in traits:
        if t.reward > 0 and len(t.last.split()) >= SHORT:
            tasks[t.last].add(t.task_id)
    winners = len({t.task_id for t in traits if t.reward > 0})
    text, won = max(((text, len(ids)) for text, ids in tasks.items()), key=lambda x: x[1], default=("", 0))
    if won < FEW or won < 0.2 * winners:
        return []
    return [f"the same last response earns reward on {won} of {winners} rewarded tasks: {text[:80]!r}"]


def guessing(traits: Sequence[Traits]) -> list[str]:
    """Solved episodes that call one tool over and over: an oracle can be asked until it says yes."""
    solved = [t for t in traits if t.success]
    many = [t for t in solved if len(t.tools) == 1 and t.tool_calls >= 4]
    if len(many) < FEW or len(many) < 0.2 * len(solved):
        return []
    tool, _ = Counter(t.tools[0] for t in many).most_common(1)[0]
    return [
        f"{len(many)} of {len(solved)} solved episodes call one tool four times or more (mostly {tool}): if "
        "it tells right from wrong, they may be guessing against it"
    ]


Rule = Callable[[Sequence[Traits]], list[str]]
RULES: tuple[Rule, ...] = (without_looking, repeated_text, unsolved_reward, same_answer, guessing)


def _success(traits: Sequence[Traits]) -> float:
    return sum(t.success for t in traits) / len(traits) if traits else 0.0


def _reward(traits: Sequence[Traits]) -> float:
    return sum(t.reward for t in traits) / len(traits) if traits else 0.0
