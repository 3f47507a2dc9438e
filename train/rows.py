"""From trajectories to the rows of a training batch: one row an episode, dead rows as placeholders.

A row is checked here, before any tensor is built: the ids, mask and log-probs are equally long, and the
image pads are exactly what the pictures need. TRL would drop the images of a WHOLE batch without a word
when one row's count is off. Knows trajectories and the renderer; no trainer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from agents.chat import ChatRenderer
from agents.types import Trajectory


@dataclass(frozen=True)
class Row:
    """One row of a generation batch."""

    prompt_ids: list[int]
    completion_ids: list[int]
    """Never empty."""
    mask: list[int]
    """1 on sampled ids."""
    logprobs: list[float]
    """The sampler's; 0.0 where the mask is 0."""
    reward: float | None
    """None for a dead row: it is in neither the loss nor the baseline."""
    turns: list[tuple[int, int]] = field(default_factory=list)
    """Where each turn's sampled ids lie in `completion_ids`: first, and one past the last."""
    turn_rewards: list[float] = field(default_factory=list)
    """What the environment gave in each turn; they add up to `reward`."""
    images: list[Image.Image] = field(default_factory=list)
    prompt: list[dict[str, str]] = field(default_factory=list)
    """The opening messages as text, for logs and reward functions."""
    completion: list[dict[str, str]] = field(default_factory=list)
    """What followed, as text."""
    trajectory: Trajectory | None = None

    @property
    def live(self) -> bool:
        return self.reward is not None


def rows_of(
    trajectories: Sequence[Trajectory],
    renderer: ChatRenderer,
    *,
    group_size: int,
    keep_survivors: bool = False,
) -> list[Row]:
    """Rows in the order of the trajectories.

    Args:
        trajectories: Groups of `group_size`, one after another.
        renderer: Gives the placeholder's ids and counts image features.
        group_size: Episodes of one task.
        keep_survivors: Keep the other rows of a group that lost some. By default the group is dropped
            whole: the survivors of a failure are not a fair sample.
    """
    rows: list[Row] = []
    for start in range(0, len(trajectories), group_size):
        group = trajectories[start : start + group_size]
        lost = any(t.masked for t in group)
        alive = sum(not t.masked for t in group)
        for trajectory in group:
            dead = trajectory.masked or (lost and (not keep_survivors or alive < 2))
            rows.append(placeholder(renderer, trajectory) if dead else row_of(trajectory, renderer))
    return rows


def placeholder(renderer: ChatRenderer, trajectory: Trajectory | None = None) -> Row:
    """A row that trains nothing: one prompt id, one end token with mask 0, no reward."""
    text = f"[dropped: {trajectory.stop_reason if trajectory else 'none'}]"
    message = [{"role": "user", "content": text}]
    end = renderer.end_of_turn_id
    return Row([end], [end], [0], [0.0], None, prompt=message, completion=message, trajectory=trajectory)


def row_of(trajectory: Trajectory, renderer: ChatRenderer) -> Row:
    """The row of a live trajectory.

    Raises:
        ValueError: The trajectory breaks the token contract.
    """
    ids, mask, logprobs = trajectory.token_ids, trajectory.loss_mask, trajectory.logprobs
    if not len(ids) == len(mask) == len(logprobs):
        raise ValueError(
            f"a stream has {len(ids)} ids, {len(mask)} mask values and {len(logprobs)} log-probs"
        )
    if any(mask[: trajectory.prompt_length]):
        raise ValueError("the loss mask is 1 on a prompt token")
    pads = renderer.count_pads(ids)
    features = sum(renderer.count_image_tokens(image) for image in trajectory.images)
    if pads != features:
        raise ValueError(
            f"{pads} image pads stand for {len(trajectory.images)} pictures of {features} features: "
            "a back end let a vision token through, or an observation was cut"
        )
    cut = trajectory.prompt_length
    opening, rest = _as_text(trajectory)
    completion = ids[cut:] or [renderer.end_of_turn_id]  # an empty completion crashes TRL
    return Row(
        prompt_ids=list(ids[:cut]),
        completion_ids=list(completion),
        mask=list(mask[cut:]) or [0],
        logprobs=list(logprobs[cut:]) or [0.0],
        reward=float(trajectory.reward or 0.0),
        turns=[(turn.start - cut, turn.end - cut) for turn in trajectory.turns],
        turn_rewards=[float(turn.reward or 0.0) for turn in trajectory.turns],
        images=list(trajectory.images),
        prompt=opening,
        completion=rest,
        trajectory=trajectory,
    )


def _as_text(trajectory: Trajectory) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    messages = [
        {"role": m["role"], "content": "\n".join(_block_text(b) for b in m["content"])}
        for m in trajectory.episode.messages
    ]
    first = next((i for i, m in enumerate(messages) if m["role"] == "assistant"), len(messages))
    empty = [{"role": "assistant", "content": ""}]
    return messages[:first], messages[first:] or empty


def _block_text(block: dict[str, Any]) -> str:
    return block["text"] if block["type"] == "text" else "[picture]"
