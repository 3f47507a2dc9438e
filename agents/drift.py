"""Compares a finished stream with a full render of the same conversation, and counts the differences by kind.

The stream is what the model saw and sampled; a full render is what a trainer that re-renders would feed it.
Knows trajectories and the renderer; changes neither. Logged as metrics: always in tests, a sampled share in
training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from agents.chat import ChatRenderer
from agents.chat.template import RenderError
from agents.types import Trajectory
from mm_gym.messages import with_images

KINDS = ("join", "stripped_thinking", "whitespace", "role")
# Think blocks as the families write them; an open one runs to the end of the turn.
_THINKING = re.compile(
    r"<think>.*?(?:</think>|$)|<\|channel>thought.*?(?:<channel\|>|$)|<\|channel\|>analysis.*?(?:<\|end\|>|$)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Difference:
    """One turn in which stream and full render part."""

    kind: str
    """One of `KINDS`."""
    stream: str
    """The turn's text in the stream."""
    full: str
    """The turn's text in the full render."""
    tokens: int
    """Ids of the stream that the full render does not have in their place."""


def audit(trajectory: Trajectory, renderer: ChatRenderer) -> dict[str, float]:
    """Differences between the stream and a full render of the episode's messages, by kind.

    Returns:
        Numbers of turns: `join` (the same text in other ids: what re-encoding does to sampled tokens),
        `stripped_thinking` (the full render drops or changes a think block), `whitespace` (blanks differ),
        `role` (headers, end tokens, anything else); `tokens`, the ids of the stream that a full render lacks;
        `unrenderable`, 1.0 when the template refuses the conversation. All 0 where a re-render does no harm.
    """
    counts = dict.fromkeys((*KINDS, "tokens", "unrenderable"), 0.0)
    try:
        found = differences(trajectory, renderer)
    except RenderError:
        return {**counts, "unrenderable": 1.0}
    for difference in found:
        counts[difference.kind] += 1.0
        counts["tokens"] += difference.tokens
    return counts


def differences(trajectory: Trajectory, renderer: ChatRenderer) -> list[Difference]:
    """The single differences, in order.

    Raises:
        RenderError: The template refuses the conversation.
    """
    stream = renderer.collapse(trajectory.token_ids, trajectory.images)
    full = renderer.collapse(_full_ids(trajectory, renderer), trajectory.images)
    a, b = _turns(stream, renderer), _turns(full, renderer)
    while (
        a and a[-1] and a[-1][-1] in renderer.stop_token_ids
    ):  # another stop token, nothing appended after it
        a[-1] = a[-1][:-1]
    b = b[: len(a)]
    if a and not a[-1]:
        b[len(a) - 1 :] = [()]  # the blanks that a template writes after the last end-of-turn token
    return [_difference(x, y, renderer) for x, y in _unequal(a, b)]


def _full_ids(trajectory: Trajectory, renderer: ChatRenderer) -> list[int]:
    """A full render of the messages that the stream holds."""
    episode = trajectory.episode
    messages: list[dict[str, Any]] = []
    if episode.system_prompt:
        messages.append({"role": "system", "content": episode.system_prompt})
    answered = True
    for index, observation in enumerate(episode.observations[: len(trajectory.turns) + 1]):
        answered = index == 0 or trajectory.turns[index - 1].end < len(trajectory.token_ids)
        if answered:
            messages += with_images(observation, episode.images)
        if index < len(trajectory.turns):
            messages.append({"role": "assistant", "content": episode.actions[index]})
    whole = renderer.prompt if answered else renderer.full
    return whole(messages, episode.tools).token_ids


def _turns(ids: Sequence[int], renderer: ChatRenderer) -> list[tuple[int, ...]]:
    """Split at end-of-turn tokens; what follows the last one comes last, and may be empty."""
    rules = renderer.rules
    endings = {rules.ending.tokens[-1], *rules.last_ending.tokens[-1:], *rules.tool.ending.tokens[-1:]}
    ends = {renderer.tokenizer.convert_tokens_to_ids(token) for token in endings}
    turns: list[tuple[int, ...]] = []
    start = 0
    for at, token in enumerate(ids):
        if token in ends:
            turns.append(tuple(ids[start:at]))
            start = at + 1
    return [*turns, tuple(ids[start:])]


def _unequal(
    a: Sequence[tuple[int, ...]], b: Sequence[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            for n in range(max(j - i, m - k)):
                yield (a[i + n] if i + n < j else ()), (b[k + n] if k + n < m else ())


def _difference(a: tuple[int, ...], b: tuple[int, ...], renderer: ChatRenderer) -> Difference:
    left, right = (str(renderer.tokenizer.decode(list(x), skip_special_tokens=False)) for x in (a, b))
    same = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    return Difference(_kind(left, right), left, right, len(a) - same)


def _kind(a: str, b: str) -> str:
    if a == b:
        return "join"
    if a.split() == b.split() or "".join(a.split()) == "".join(b.split()):
        return "whitespace"
    if "".join(_THINKING.sub("", a).split()) == "".join(_THINKING.sub("", b).split()):
        return "stripped_thinking"
    return "role"
