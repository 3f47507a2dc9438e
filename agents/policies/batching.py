"""The running batch of the transformers policy: admit requests, decode a token a row, let finished ones go.

Runs in the policy's thread, under inference mode. Knows one model and its caches; see `transformers.py`
for the interface around it.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import inspect
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image
from transformers import DynamicCache

from agents.policies import kv
from agents.policies.sampling import Sampler
from agents.types import FinishReason, Request, Response

T = TypeVar("T")


@dataclass
class PolicyStats:
    """What a back end did since it was made. Times in seconds."""

    requests: int = 0
    prefill_tokens: int = 0
    """Tokens computed to read prompts and observations."""
    reused_tokens: int = 0
    """Tokens read from kept keys and values instead."""
    decode_steps: int = 0
    decoded_tokens: int = 0
    busy_seconds: float = 0.0
    """Time in which the model computed."""


@dataclass
class Job:
    """A request being generated."""

    request: Request
    done: concurrent.futures.Future[Response]
    uniforms: np.ndarray
    """The turn's random numbers, one for each token that is asked for."""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    position: int = 0
    """Of the token that comes next."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the turn is over, or None."""
        if self.done.cancelled():
            return "abort"
        if self.token_ids and self.token_ids[-1] in self.request.sampling.stop_token_ids:
            return "stop"
        return "length" if len(self.token_ids) >= self.request.max_tokens else None

    def take(self, token_id: int, logprob: float) -> None:
        self.token_ids.append(token_id)
        self.logprobs.append(logprob)
        if self.request.progress is not None:
            self.request.progress.append((token_id, logprob))

    def resolve(self) -> None:
        """Hand over the response, unless nobody waits for it any more."""
        if self.done.set_running_or_notify_cancel():
            self.done.set_result(Response(self.token_ids, self.logprobs, self.finish_reason or "abort"))

    def fail(self, error: BaseException) -> None:
        if self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


@dataclass
class Chunk:
    """What is to be computed of a new request's stream: all after its kept prefix."""

    token_ids: list[int]
    images: list[Image.Image]
    prefix: kv.Prefix | None
    name: Hashable | None = None
    """Under which the whole stream's cache may serve others, where nothing was kept."""

    @property
    def start(self) -> int:
        """The first token's position."""
        return self.prefix.position if self.prefix else 0


class Decoder:
    """Holds the rows that are decoded together; `step` computes one token for each.

    Args:
        model: In eval mode.
        renderer: Gives `model_inputs(token_ids, images)`, `merge_inputs(rows, width=)` and `pad_id`.
        prefixes: Kept keys and values; with `max_bytes` 0 nothing is kept and nothing shared.
        stats: Counted into.
        max_prefill_tokens: Largest rows times width that new requests are computed in.
    """

    def __init__(
        self,
        model: Any,
        renderer: Any,
        prefixes: kv.PrefixStore,
        stats: PolicyStats,
        max_prefill_tokens: int = 32_768,
    ) -> None:
        self.model = model
        self.renderer = renderer
        self.prefixes = prefixes
        self.stats = stats
        self.max_prefill_tokens = max_prefill_tokens
        self.device = next(model.parameters()).device
        self.jobs: list[Job] = []
        self.batch: kv.Batch | None = None
        self._sampler = Sampler(self.device)
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._accepted = set(inspect.signature(base.forward).parameters)
        self._rope = next((m for m in model.modules() if hasattr(m, "get_rope_index")), None)

    def step(self, arrivals: Sequence[Job]) -> None:
        """Take in `arrivals`, compute a token for every row, and resolve the turns that end."""
        started = time.perf_counter()
        if self.jobs:
            self._decode()
        waiting = [job for job in arrivals if not job.done.cancelled()]
        for part in within(waiting, self.max_prefill_tokens, lambda job: len(job.request.token_ids)):
            self._admit(part)
        self._release()
        self.stats.busy_seconds += time.perf_counter() - started

    def fail(self, error: BaseException, arrivals: Sequence[Job] = ()) -> None:
        """Give up every row."""
        for job in [*self.jobs, *arrivals]:
            if not job.done.done():
                job.fail(error)
        self.jobs, self.batch = [], None

    # -- one token a row ------------------------------------------------------------------------------

    def _decode(self) -> None:
        assert self.batch is not None
        ids = torch.tensor([[job.token_ids[-1]] for job in self.jobs], device=self.device)
        positions = torch.tensor([[job.position] for job in self.jobs], device=self.device)
        self.batch.mask = torch.nn.functional.pad(self.batch.mask, (0, 1), value=1)
        logits = self._forward(
            self.batch, ids, positions if self._rope is None else positions.expand(3, -1, -1)
        )
        for job in self.jobs:
            job.position += 1
        self._sample(self.jobs, logits)
        self.stats.decode_steps += 1

    def _sample(self, jobs: Sequence[Job], logits: torch.Tensor) -> None:
        draws = [float(job.uniforms[len(job.token_ids)]) for job in jobs]
        ids, logprobs = self._sampler(logits, [job.request.sampling for job in jobs], draws)
        for job, token_id, logprob in zip(jobs, ids, logprobs, strict=True):
            job.take(token_id, logprob)
        self.stats.decoded_tokens += len(jobs)

    def _forward(
        self, batch: kv.Batch, ids: torch.Tensor, positions: torch.Tensor, **inputs: torch.Tensor
    ) -> torch.Tensor:
        """Logits (rows, vocabulary) after the last of `ids`; extends the batch's cache."""
        output = self.model(
            input_ids=ids,
            attention_mask=batch.mask,
            position_ids=positions,
            past_key_values=batch.cache,
            use_cache=True,
            logits_to_keep=1,
            **inputs,
        )
        return output.logits[:, -1].to(self.device)  # a model may be spread over devices

    # -- arrivals -------------------------------------------------------------------------------------

    def _admit(self, arrivals: Sequence[Job]) -> None:
        """Compute the new part of each arrival's stream (equal streams once) and sample its first token."""
        chunks: list[Chunk] = []
        row_of: dict[Hashable, int] = {}
        rows: list[int] = []
        for index, job in enumerate(arrivals):
            chunk = self._chunk(job.request)
            row = row_of.setdefault(chunk.name if chunk.name is not None else index, len(chunks))
            if row == len(chunks):
                chunks.append(chunk)
            else:
                self.stats.reused_tokens += len(chunk.token_ids)
            rows.append(row)
        batch, logits, positions = self._prefill(chunks)
        if self.prefixes.max_bytes:
            self._share(batch, chunks, positions)
        if len(chunks) < len(arrivals):
            repeated = kv.select(batch, rows)
            assert repeated is not None
            batch, logits = repeated, logits[torch.tensor(rows, device=self.device)]
        for job, row in zip(arrivals, rows, strict=True):
            job.position = positions[row]
        self._sample(arrivals, logits)
        self.batch = kv.merge(self.batch, batch) if self.jobs else kv.growing(batch)
        self.jobs.extend(arrivals)
        self.stats.requests += len(arrivals)

    def _chunk(self, request: Request) -> Chunk:
        ids, images = list(request.token_ids), list(request.images)
        if not self.prefixes.max_bytes:
            return Chunk(ids, images, None)
        prefix = self.prefixes.find(request.episode, ids, images)
        name = None
        if prefix is None:
            name = ("prompt", _content(ids, images))
            prefix = self.prefixes.find(name, ids)
        if prefix is None:
            return Chunk(ids, images, None, name)
        count = len(prefix.token_ids)
        self.stats.reused_tokens += count
        return Chunk(ids[count:], images[prefix.image_count :], prefix)

    def _prefill(self, chunks: Sequence[Chunk]) -> tuple[kv.Batch, torch.Tensor, list[int]]:
        """The batch after the chunks, logits after each, and each row's next position."""
        batch = kv.gather([c.prefix for c in chunks], self.device, self._empty_cache)
        width = max(len(c.token_ids) for c in chunks)
        ids = torch.full((len(chunks), width), self.renderer.pad_id, device=self.device)
        mask = torch.zeros_like(ids)
        axes = 1 if self._rope is None else 3
        positions = torch.zeros(axes, len(chunks), width, dtype=torch.long, device=self.device)
        parts: list[dict[str, torch.Tensor]] = []
        for row, chunk in enumerate(chunks):
            inputs = {
                "input_ids": [chunk.token_ids],
                **self.renderer.model_inputs(chunk.token_ids, chunk.images),
            }
            inputs = {key: torch.as_tensor(value, device=self.device) for key, value in inputs.items()}
            parts.append(inputs)
            ids[row, width - len(chunk.token_ids) :] = inputs["input_ids"][0]
            mask[row, width - len(chunk.token_ids) :] = 1
            positions[:, row, width - len(chunk.token_ids) :] = self._positions(inputs) + chunk.start
        self.stats.prefill_tokens += int(mask.sum())
        batch.mask = torch.cat([batch.mask, mask], dim=1)
        after = [int(positions[:, row].max()) + 1 for row in range(len(chunks))]
        extra = self._extra_inputs(parts, width)
        logits = self._forward(batch, ids, positions if self._rope is not None else positions[0], **extra)
        return batch, logits, after

    def _empty_cache(self) -> DynamicCache:
        """A cache of the kinds of layers that the model has."""
        return DynamicCache(config=self.model.config.get_text_config())

    def _positions(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Positions within a chunk, counted from 0: (axes, tokens)."""
        count = inputs["input_ids"].shape[1]
        if self._rope is None or "image_grid_thw" not in inputs:
            return torch.arange(count, device=self.device)[None]
        positions, _ = self._rope.get_rope_index(
            inputs["input_ids"],
            mm_token_type_ids=inputs["mm_token_type_ids"],
            image_grid_thw=inputs["image_grid_thw"],
        )
        return positions[:, 0]

    def _extra_inputs(self, parts: Sequence[dict[str, torch.Tensor]], width: int) -> dict[str, torch.Tensor]:
        """What the model takes beside ids, mask and positions: per image, and per token padded."""
        keys = {key for part in parts for key in part} & self._accepted - {"input_ids", "attention_mask"}
        dropped = {key for part in parts for key in part if key.startswith("pixel_values")} - keys
        if dropped:  # a forward without its pictures would run and say nothing
            raise TypeError(f"{type(self.model).__name__}.forward takes no {', '.join(sorted(dropped))}")
        rows = [{key: value for key, value in part.items() if key in keys} for part in parts]
        merged: dict[str, torch.Tensor] = self.renderer.merge_inputs(rows, width=width)
        return merged

    def _share(self, batch: kv.Batch, chunks: Sequence[Chunk], positions: Sequence[int]) -> None:
        """Keep whole prompts for the other episodes of their groups, up to the last token."""
        for row, chunk in enumerate(chunks):
            if chunk.name is not None and len(chunk.token_ids) > 1:
                kept = chunk.token_ids[:-1]
                prefix = kv.cut(batch, row, kept, positions[row] - 1, chunk.images)
                self.prefixes.put(chunk.name, prefix)

    # -- departures -----------------------------------------------------------------------------------

    def _release(self) -> None:
        """Resolve the turns that ended; keep their caches for the next turn."""
        over = [row for row, job in enumerate(self.jobs) if job.finish_reason is not None]
        if not over:
            return
        assert self.batch is not None
        for row in over:
            job = self.jobs[row]
            if self.prefixes.max_bytes and not job.done.cancelled():
                stream = [*job.request.token_ids, *job.token_ids[:-1]]
                prefix = kv.cut(self.batch, row, stream, job.position, list(job.request.images))
                self.prefixes.put(job.request.episode, prefix)
            job.resolve()
        left = [row for row, job in enumerate(self.jobs) if job.finish_reason is None]
        self.batch = kv.select(self.batch, left)
        self.jobs = [self.jobs[row] for row in left]


def within(items: Sequence[T], limit: int, width: Callable[[T], int]) -> Iterator[list[T]]:
    """Parts of `items` (by width, so that little is padding) whose count times largest width fits `limit`.

    >>> list(within([5, 1, 2, 9], 6, lambda n: n))
    [[1, 2], [5], [9]]
    """
    part: list[T] = []
    for item in sorted(items, key=width):
        if part and (len(part) + 1) * width(item) > limit:
            yield part
            part = []
        part.append(item)
    if part:
        yield part


def _content(ids: Sequence[int], images: Sequence[Image.Image]) -> str:
    """A name for a stream by what it says and shows."""
    digest = hashlib.blake2b(np.asarray(ids, dtype=np.int64).tobytes(), digest_size=16)
    for image in images:
        digest.update(f"{image.size}".encode())
        digest.update(image.tobytes())
    return digest.hexdigest()
