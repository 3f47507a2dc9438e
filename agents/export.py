"""Stored trajectories for other programs: a Hugging Face dataset, or conversations to fine-tune on.

Three forms, each a folder that `datasets.load_dataset(folder)` opens, pictures in a column of their own:

- `hf`: one row an episode, everything that happened;
- `sft`: one row an episode that was kept, as `messages`, `images` and `tools`;
- `trl`: one row a turn of such an episode, as `prompt`, `completion` and `images`, so that a loss on the
  completion is a loss on what the model said, and on nothing that the environment wrote.

What answers a tool call stands as a user message in `<tool_response>` (what Qwen's templates make of it):
TRL counts no pictures in tool messages. Knows trajectories and `datasets`; not TRL.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from PIL import Image

from agents.evaluation.figures import outcome_of, solved
from agents.types import Trajectory
from mm_gym.messages import Message

FORMS = ("hf", "sft", "trl")
_SHARD = 500  # rows that are held in memory before a file is written


@dataclass(frozen=True)
class Selection:
    """Which episodes are kept. Those lost to a failure of ours never are."""

    success_only: bool = True
    min_reward: float | None = None
    """In place of `success_only`, where it is given."""
    dedupe: bool = True
    """Keep one of the episodes of a task whose responses are the same."""
    per_task: int | None = None
    """Keep at most so many episodes of a task: the best, and of equal ones those with the fewest words."""

    def choose(self, trajectories: Iterable[Trajectory]) -> list[int]:
        """Numbers of the trajectories that are kept, in order."""
        ranked: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for number, trajectory in enumerate(trajectories):
            if not self._good(trajectory):
                continue
            task, said = trajectory.episode.task_id, tuple(trajectory.episode.actions)
            if self.dedupe and (task, said) in seen:
                continue
            seen.add((task, said))
            length = sum(len(text.split()) for text in said)
            ranked[task].append((-float(trajectory.reward or 0.0), length, number))
        kept = [sorted(of_task)[: self.per_task] for of_task in ranked.values()]
        return sorted(number for of_task in kept for _, _, number in of_task)

    def _good(self, trajectory: Trajectory) -> bool:
        if trajectory.masked or not trajectory.episode.actions:
            return False
        if self.min_reward is not None:
            return (trajectory.reward or 0.0) >= self.min_reward
        return solved(trajectory) or not self.success_only


ALL = Selection(success_only=False, dedupe=False)
"""Every episode that was not lost."""


def export(trajectories: Iterable[Trajectory], form: str, output: str | Path) -> int:
    """Write trajectories in a form; returns the number of rows.

    Args:
        trajectories: With their pictures.
        form: One of `FORMS`.
        output: A folder that is new or empty.

    Raises:
        ValueError: The form is unknown, or the folder is not empty.
        gymnasium.error.DependencyNotInstalled: `datasets` is missing.
    """
    makers = {"hf": _episode_rows, "sft": _conversation, "trl": _turns}
    if form not in makers:
        raise ValueError(f"--to must be one of {FORMS}, got {form!r}")
    folder = Path(output)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: name a new folder")
    rows = (row for trajectory in trajectories for row in makers[form](trajectory))
    return _write(rows, folder, _features(form))


# -- rows ----------------------------------------------------------------------------------------------


def _episode_rows(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    episode, outcome = trajectory.episode, outcome_of(trajectory)
    yield {
        "env_id": episode.env_id,
        "task_id": episode.task_id,
        "seed": episode.seed,
        "messages": _plain(episode.messages),
        "images": _pngs(episode.images),
        "tools": json.dumps(episode.tools, ensure_ascii=False),
        "reward": trajectory.reward,
        "rewards": episode.rewards,
        "success": outcome.success,
        "stop_reason": outcome.stop_reason,
        "turns": outcome.turns,
        "tool_calls": outcome.tool_calls.total(),
        "sampled_tokens": outcome.sampled_tokens,
    }


def _conversation(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """The messages up to the last response: what comes after it teaches nothing."""
    messages = trajectory.episode.messages
    last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    kept = messages[: last + 1]
    yield {
        "messages": _chat(kept),
        "images": _pngs(_pictures(trajectory, kept)),
        "tools": json.dumps(trajectory.episode.tools, ensure_ascii=False),
        "task_id": trajectory.episode.task_id,
        "reward": trajectory.reward,
    }


def _turns(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    messages = trajectory.episode.messages
    turn = 0
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = messages[:number]
        yield {
            "prompt": _chat(before),
            "completion": _chat([message]),
            "images": _pngs(_pictures(trajectory, before)),
            "tools": json.dumps(trajectory.episode.tools, ensure_ascii=False),
            "task_id": trajectory.episode.task_id,
            "turn": turn,
            "reward": trajectory.reward,
        }
        turn += 1


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of one shape each, as a table needs them: image blocks keep their index into `images`."""
    return [
        {
            "role": message["role"],
            "name": message.get("name"),
            "content": [
                {"type": block["type"], "text": block.get("text"), "index": block.get("index")}
                for block in message["content"]
            ],
        }
        for message in messages
    ]


def _chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as TRL takes them: pictures are placeholders, filled from `images` in order.

    Answers to several calls of a turn become one user message, as in Qwen's templates.
    """
    chat: list[dict[str, Any]] = []
    joined = False
    for message in messages:
        is_result = message["role"] == "tool"
        content = _blocks(message)
        if is_result and joined:
            chat[-1]["content"] += [_text("\n"), *content]
        else:
            chat.append({"role": "user" if is_result else message["role"], "content": content})
        joined = is_result
    return chat


def _blocks(message: Message) -> list[dict[str, Any]]:
    blocks = [
        _text(block["text"]) if block["type"] == "text" else {"type": "image", "text": None}
        for block in message["content"]
    ]
    if message["role"] != "tool":
        return blocks
    return [_text("<tool_response>\n"), *blocks, _text("\n</tool_response>")]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _pictures(trajectory: Trajectory, messages: Sequence[Message]) -> list[np.ndarray]:
    """The pictures of these messages, in the order in which they stand."""
    blocks = [block for message in messages for block in message["content"] if block["type"] == "image"]
    return [trajectory.episode.images[block["index"]] for block in blocks]


def _pngs(images: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    return [{"bytes": _png(image), "path": None} for image in images]


def _png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


# -- files ---------------------------------------------------------------------------------------------


def _features(form: str) -> Any:
    try:
        from datasets import Features, List, Value
        from datasets import Image as Picture
    except ImportError as error:
        raise DependencyNotInstalled('mm-gym export needs datasets: pip install "mm-gym[train]"') from error
    text, number, whole = Value("string"), Value("float64"), Value("int64")
    chat = List({"role": text, "content": List({"type": text, "text": text})})
    record = List({"role": text, "name": text, "content": List({"type": text, "text": text, "index": whole})})
    shared = {"images": List(Picture()), "tools": text, "task_id": text, "reward": number}
    own: dict[str, dict[str, Any]] = {
        "hf": {
            **{"env_id": text, "seed": whole, "messages": record, "rewards": List(number)},
            **{"success": Value("bool"), "stop_reason": text},
            **{"turns": whole, "tool_calls": whole, "sampled_tokens": whole},
        },
        "sft": {"messages": chat},
        "trl": {"prompt": chat, "completion": chat, "turn": whole},
    }
    return Features({**own[form], **shared})


def _write(rows: Iterable[dict[str, Any]], folder: Path, features: Any) -> int:
    """Parquet files that `load_dataset(folder)` opens, with the features in them."""
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    count, files = 0, 0
    batch: list[dict[str, Any]] = []

    def flush() -> None:
        nonlocal files
        if batch:
            (folder / "data").mkdir(parents=True, exist_ok=True)
            made = Dataset.from_list(batch, features=features)
            made.to_parquet(folder / "data" / f"train-{files:05d}.parquet")
            files += 1
            batch.clear()

    for row in rows:
        batch.append(row)
        count += 1
        if len(batch) >= _SHARD:
            flush()
    flush()
    return count
