"""Trajectories on disk: parquet, pictures once by content, whole up to the last episode after a crash.

Two tables in a folder: `trajectories/`, one row an episode, and `images/`, one row a picture, named by
its content. Both open with `datasets` (`load_dataset("parquet", data_dir=...)`). The schema is described
in docs/trajectories.md, which a test compares with this file. Knows trajectories; not engines or trainers.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from agents.types import Task, Trajectory, Turn
from mm_gym.episode import Episode
from mm_gym.shards import ShardedTable, read_rows
from mm_gym.stop import StopReason

TURN = pa.struct(
    [
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("reward", pa.float64()),
        ("finish_reason", pa.string()),
        ("policy_version", pa.int64()),
        ("images", pa.int32()),
        ("metrics", pa.string()),
        ("tool_calls", pa.string()),
        ("error", pa.string()),
        ("seconds", pa.string()),
        ("retries", pa.string()),
        ("pieces", pa.string()),
    ]
)
TRAJECTORIES = pa.schema(
    [
        ("step", pa.int64()),
        ("env_id", pa.string()),
        ("env_kwargs", pa.string()),
        ("seed", pa.int64()),
        ("options", pa.string()),
        ("group", pa.int64()),
        ("task_id", pa.string()),
        ("reward", pa.float64()),
        ("success", pa.bool_()),
        ("masked", pa.bool_()),
        ("stop_reason", pa.string()),
        ("failures", pa.string()),
        ("metrics", pa.string()),
        ("token_ids", pa.list_(pa.int32())),
        ("loss_mask", pa.list_(pa.int8())),
        ("logprobs", pa.list_(pa.float32())),
        ("prompt_length", pa.int32()),
        ("turns", pa.list_(TURN)),
        ("images", pa.list_(pa.string())),
        ("stream_images", pa.int32()),
        ("system_prompt", pa.string()),
        ("tools", pa.string()),
        ("observations", pa.string()),
        ("actions", pa.list_(pa.string())),
        ("rewards", pa.list_(pa.float64())),
        ("infos", pa.string()),
    ]
)
_IMAGE_FEATURES = {
    "info": {
        "features": {
            "digest": {"dtype": "string", "_type": "Value"},
            "width": {"dtype": "int32", "_type": "Value"},
            "height": {"dtype": "int32", "_type": "Value"},
            "image": {"_type": "Image"},
        }
    }
}
IMAGES = pa.schema(
    [
        ("digest", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    ],
    metadata={"huggingface": json.dumps(_IMAGE_FEATURES)},
)


class TrajectoryStore:
    """Appends trajectories to a folder; safe to call from several threads.

    Args:
        folder: Made when missing; an existing store is continued.
        rank: Of the writing process: ranks may share a folder.
        rotate_bytes: Size at which small files are merged.
    """

    def __init__(self, folder: str | Path, *, rank: int = 0, rotate_bytes: int = 64 * 2**20) -> None:
        self.folder = Path(folder)
        stem = f"rank{rank}"
        self._rows = ShardedTable(self.folder / "trajectories", TRAJECTORIES, stem, rotate_bytes)
        self._images = ShardedTable(self.folder / "images", IMAGES, stem, rotate_bytes)
        self._known = {row["digest"] for row in read_rows(self.folder / "images", ["digest"])}
        self._lock = threading.Lock()

    def append(self, trajectories: Trajectory | Sequence[Trajectory], *, step: int = 0) -> None:
        """Write trajectories; they are on disk when this returns, their pictures first."""
        batch = [trajectories] if isinstance(trajectories, Trajectory) else list(trajectories)
        named = [[(image_digest(i), i) for i in t.episode.images] for t in batch]
        with self._lock:
            fresh = {d: i for images in named for d, i in images if d not in self._known}
            self._images.append([_image_row(digest, image) for digest, image in fresh.items()])
            self._known.update(fresh)
            self._rows.append(
                [_row(t, [d for d, _ in images], step) for t, images in zip(batch, named, strict=True)]
            )

    def close(self) -> None:
        """Merge what small files there are."""
        with self._lock:
            self._rows.merge()
            self._images.merge()

    def __enter__(self) -> TrajectoryStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_trajectories(folder: str | Path, *, images: bool = True) -> Iterator[Trajectory]:
    """The trajectories of a store, in the order in which each rank wrote them.

    Args:
        folder: Of the store; it may be in use.
        images: Whether to load the pictures (each is decoded once and shared).
    """
    pictures: dict[str, np.ndarray] = {}
    if images:
        for row in read_rows(Path(folder) / "images"):
            pictures[row["digest"]] = np.array(Image.open(io.BytesIO(row["image"]["bytes"])).convert("RGB"))
    for row in read_rows(Path(folder) / "trajectories"):
        yield _trajectory(row, pictures)


def image_digest(image: np.ndarray) -> str:
    """The name of a picture by its content: uint8 (H, W, 3)."""
    digest = hashlib.blake2b(str(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).tobytes())
    return digest.hexdigest()


# -- rows ----------------------------------------------------------------------------------------------


def _image_row(digest: str, image: np.ndarray) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG", compress_level=1)
    height, width = image.shape[:2]
    picture = {"bytes": buffer.getvalue(), "path": f"{digest}.png"}
    return {"digest": digest, "width": width, "height": height, "image": picture}


def _row(trajectory: Trajectory, digests: list[str], step: int) -> dict[str, Any]:
    task, episode = trajectory.task, trajectory.episode
    return {
        "step": step,
        "env_id": task.env_id if task else episode.env_id,
        "env_kwargs": _json(task.env_kwargs if task else episode.env_kwargs),
        "seed": task.seed if task else episode.seed,
        "options": _json(task.options if task else episode.options),
        "group": task.group if task else 0,
        "task_id": episode.task_id,
        "reward": trajectory.reward,
        "success": episode.success,
        "masked": trajectory.masked,
        "stop_reason": str(trajectory.stop_reason or ""),
        "failures": _json(trajectory.failures),
        "metrics": _json(trajectory.metrics),
        "token_ids": trajectory.token_ids,
        "loss_mask": trajectory.loss_mask,
        "logprobs": trajectory.logprobs,
        "prompt_length": trajectory.prompt_length,
        "turns": [_turn_row(turn) for turn in trajectory.turns],
        "images": digests,
        "stream_images": len(trajectory.images),
        "system_prompt": episode.system_prompt,
        "tools": _json(episode.tools),
        "observations": _json(episode.observations),
        "actions": episode.actions,
        "rewards": episode.rewards,
        "infos": _json(episode.infos),
    }


def _turn_row(turn: Turn) -> dict[str, Any]:
    row = asdict(turn)
    for name in ("metrics", "tool_calls", "seconds", "retries", "pieces"):
        row[name] = _json(row[name])
    return row


def _trajectory(row: dict[str, Any], pictures: dict[str, np.ndarray]) -> Trajectory:
    read = {
        name: json.loads(row[name]) for name in ("env_kwargs", "options", "tools", "observations", "infos")
    }
    images = [pictures[d] for d in row["images"] if d in pictures]
    task = Task(row["env_id"], read["env_kwargs"], row["seed"] or 0, read["options"], row["group"])
    episode = Episode(
        env_id=row["env_id"],
        env_kwargs=read["env_kwargs"],
        seed=row["seed"],
        options=read["options"],
        task_id=row["task_id"],
        system_prompt=row["system_prompt"],
        tools=read["tools"],
        observations=read["observations"],
        images=images,
        actions=row["actions"],
        rewards=row["rewards"],
        infos=read["infos"],
        stop_reason=row["stop_reason"],
        success=row["success"],
    )
    return Trajectory(
        task=task,
        token_ids=row["token_ids"],
        loss_mask=row["loss_mask"],
        logprobs=row["logprobs"],
        images=[Image.fromarray(i) for i in images[: row["stream_images"]]],
        prompt_length=row["prompt_length"],
        turns=[_turn(t) for t in row["turns"]],
        reward=row["reward"],
        masked=row["masked"],
        stop_reason=StopReason(row["stop_reason"]) if row["stop_reason"] else None,
        failures=json.loads(row["failures"]),
        metrics=json.loads(row["metrics"]),
        episode=episode,
    )


def _turn(row: dict[str, Any]) -> Turn:
    for name in ("metrics", "tool_calls", "seconds", "retries"):
        row[name] = json.loads(row[name])
    row["pieces"] = [tuple(piece) for piece in json.loads(row.get("pieces") or "[]")]
    return Turn(**row)


def _json(value: Any) -> str:
    """JSON; what is not plain data stands as its repr."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return repr(value)
