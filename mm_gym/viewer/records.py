"""Episodes as the page shows them: a summary row and a detail each, and the pictures by content.

Knows `Episode` records, the tables of a trajectory store (docs/trajectories.md) and, for tokens, a
`tokenizer.json`; nothing of HTML.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mm_gym.episode import Episode
from mm_gym.shards import read_rows

Decode = Callable[[Sequence[int]], list[str]]


@dataclass
class Records:
    """What a page shows."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """One summary an episode, `number` being its index here."""
    details: list[Callable[[], dict[str, Any]]] = field(default_factory=list)
    """The episode itself, built when it is looked at."""
    images: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    """PNG files by content."""

    def add_episodes(self, episodes: Iterable[Episode], run: str = "") -> Records:
        """Add episodes that are in memory."""
        for episode in episodes:
            digests = [self._add_image(image) for image in episode.images]
            detail = _detail(episode.messages, digests, _turns(episode))
            self._add(_summary(episode, run), partial(_same, detail))
        return self

    def add_store(self, folder: str | Path, run: str = "", decode: Decode | None = None) -> Records:
        """Add the trajectories of a store.

        Args:
            folder: With the tables `trajectories` and `images`.
            run: Name shown for them.
            decode: From ids to one text a token; None shows no tokens.

        Raises:
            FileNotFoundError: The folder is no trajectory store.
        """
        folder = Path(folder)
        if not (folder / "trajectories").is_dir():
            raise FileNotFoundError(
                f"{folder} holds no trajectories: name a folder with the tables `trajectories` and `images`, "
                "as a run's `rollouts` folder"
            )
        for row in read_rows(folder / "images"):
            self.images[row["digest"]] = partial(_same, row["image"]["bytes"])
        for row in read_rows(folder / "trajectories"):
            episode, turns = _stored(row)
            summary = _summary(episode, run) | {
                "reward": row["reward"],
                "stop_reason": row["stop_reason"],
                "step": row["step"],
            }
            self._add(summary, partial(_stored_detail, row, episode, turns, decode))
        return self

    def _add(self, summary: dict[str, Any], detail: Callable[[], dict[str, Any]]) -> None:
        self.rows.append({"number": len(self.rows), **summary})
        self.details.append(detail)

    def _add_image(self, image: np.ndarray) -> str:
        digest = hashlib.blake2b(
            repr(image.shape).encode() + np.ascontiguousarray(image).tobytes(), digest_size=16
        ).hexdigest()
        self.images.setdefault(digest, partial(_png, image))
        return digest


def read_episode(folder: str | Path, number: int) -> Episode:
    """One episode of a trajectory store, with its pictures.

    Args:
        folder: With the tables `trajectories` and `images`.
        number: Its place in the store, from 0, as the page counts.

    Raises:
        FileNotFoundError: The folder is no trajectory store.
        IndexError: It has fewer episodes.
    """
    records = Records().add_store(folder)
    if not 0 <= number < len(records.rows):
        raise IndexError(f"{folder} has episodes 0 to {len(records.rows) - 1}, and no number {number}")
    row = next(islice(read_rows(Path(folder) / "trajectories"), number, None))
    episode, _ = _stored(row)
    pngs = [records.images[digest]() for digest in row["images"]]
    episode.images = [np.array(Image.open(io.BytesIO(png)).convert("RGB")) for png in pngs]
    return episode


def token_decoder(model: str | Path) -> Decode:
    """One text a token, from the `tokenizer.json` of a model folder.

    Raises:
        FileNotFoundError: There is none.
    """
    from tokenizers import Tokenizer

    path = Path(model) / "tokenizer.json" if Path(model).is_dir() else Path(model)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name a model folder with a tokenizer.json")
    tokenizer = Tokenizer.from_file(str(path))

    def decode(ids: Sequence[int]) -> list[str]:
        return tokenizer.decode_batch([[i] for i in ids], skip_special_tokens=False)

    return decode


def _summary(episode: Episode, run: str) -> dict[str, Any]:
    calls = [call["name"] for info in episode.infos for call in info.get("tool_calls", [])]
    errors = [info["error"]["kind"] for info in episode.infos if "error" in info]
    return {
        "run": run,
        "env_id": episode.env_id,
        "task_id": episode.task_id,
        "seed": episode.seed,
        "step": None,
        "reward": episode.episode_return,
        "success": episode.success,
        "stop_reason": episode.stop_reason,
        "turns": len(episode.actions),
        "tools": ", ".join(f"{name} x{calls.count(name)}" for name in dict.fromkeys(calls)),
        "error": ", ".join(dict.fromkeys(errors)),
    }


def _detail(messages: list[dict[str, Any]], images: list[str], turns: list[dict[str, Any]]) -> dict[str, Any]:
    return {"messages": messages, "images": images, "turns": turns, "tokens": None}


def _turns(episode: Episode) -> list[dict[str, Any]]:
    return [
        {
            "reward": reward,
            "tool_calls": info.get("tool_calls", []),
            "error": info.get("error"),
            "metrics": info.get("metrics", {}),
        }
        for reward, info in zip(episode.rewards, episode.infos, strict=True)
    ]


def _stored(row: dict[str, Any]) -> tuple[Episode, list[dict[str, Any]]]:
    episode = Episode(
        env_id=row["env_id"],
        seed=row["seed"],
        task_id=row["task_id"],
        system_prompt=row["system_prompt"],
        observations=json.loads(row["observations"]),
        actions=row["actions"],
        rewards=row["rewards"],
        infos=json.loads(row["infos"]),
        stop_reason=row["stop_reason"],
        success=row["success"],
    )
    turns = _turns(episode)
    for turn, stored in zip(turns, row["turns"], strict=False):
        turn["seconds"] = json.loads(stored["seconds"])
        turn["retries"] = json.loads(stored["retries"])
    return episode, turns


def _stored_detail(
    row: dict[str, Any], episode: Episode, turns: list[dict[str, Any]], decode: Decode | None
) -> dict[str, Any]:
    detail = _detail(episode.messages, row["images"], turns)
    if decode is not None and row["token_ids"]:
        detail["tokens"] = {
            "ids": row["token_ids"],
            "text": decode(row["token_ids"]),
            "mask": row["loss_mask"],
            "logprobs": row["logprobs"],
        }
    return detail


def _same(value: Any) -> Any:
    return value


def _png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
