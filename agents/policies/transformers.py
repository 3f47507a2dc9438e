"""A policy that samples with a transformers model: continuous batches of whatever is ready.

Requests join the running batch between two decoding steps and leave it when their turn ends, so no
episode waits for another. A turn's keys and values are kept, so that the next turn of the episode
computes its new tokens only; equal prompts (the episodes of a group) are computed once.

Knows models and caches; not environments, budgets or the trainer. What batching does: the same row in
another batch has logits that differ in the last bits (about 1e-6 in float32), which changes a sampled
token only where a uniform number falls that close to an edge of the distribution. `batch_invariant=True`
computes every turn alone and from its first token: then tokens depend on the request only.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from typing import Any

import torch

from agents.policies import kv
from agents.policies.batching import Decoder, Job, PolicyStats
from agents.policies.sampling import uniforms
from agents.types import GenerationFailure, Request, Response


class TransformersPolicy:
    """Samples with a transformers model, in this process.

    Args:
        model: A causal language model or vision-language model. It is put into `eval()` while
            generating and back into its mode after.
        renderer: An `agents.ChatRenderer`, or the processor or tokenizer to make one from.
        max_batch: Episodes decoded at once.
        prefix_cache_gib: Memory for kept keys and values; 0 recomputes the stream each turn.
        max_prefill_tokens: Prompts and observations are computed in batches of at most this size (rows times
            longest): what bounds the memory of a step in which many arrive.
        max_context: Largest prompt plus `max_tokens`; default the model's own limit.
        batch_invariant: Compute each request alone and whole: slower, exact under any timing.
    """

    def __init__(
        self,
        model: Any,
        renderer: Any,
        *,
        max_batch: int = 64,
        prefix_cache_gib: float = 1.0,
        max_prefill_tokens: int = 32_768,
        max_context: int | None = None,
        batch_invariant: bool = False,
    ) -> None:
        self.model = model
        self.renderer = _as_renderer(renderer)
        self.version = 0
        self.stats = PolicyStats()
        config = model.config.get_text_config()
        self.max_context = int(max_context or config.max_position_embeddings)
        alone = batch_invariant or _has_other_caches(config)
        self.max_batch = 1 if alone else max_batch
        self.batch_invariant = batch_invariant
        self.prefixes = kv.PrefixStore(0 if alone else int(prefix_cache_gib * 2**30))
        self.max_prefill_tokens = max_prefill_tokens
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._was_training = False

    # -- the interface of a policy --------------------------------------------------------------------

    async def start(self) -> None:
        """Start the batching loop. Prefixes of older weights are forgotten."""
        if self._thread is not None:
            return
        self.prefixes.clear()
        self._was_training = self.model.training
        self.model.eval()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._loop, name="transformers-policy", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop the batching loop; what it still generates fails."""
        if self._thread is None:
            return
        self._stopping.set()
        self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)
        self._thread = None
        self.prefixes.clear()
        self.model.train(self._was_training)

    async def generate(self, request: Request) -> Response:
        """Sample one turn.

        Raises:
            ValueError: The request asks for no token, or for more than the context holds.
            GenerationFailure: The model raised, or the policy was stopped meanwhile.
        """
        if self._thread is None:
            raise GenerationFailure("the policy is not running: await policy.start() first", kind="stopped")
        if request.max_tokens < 1 or not request.token_ids:
            raise ValueError(
                f"a request needs a prompt and max_tokens of at least 1, got {len(request.token_ids)} "
                f"tokens and max_tokens={request.max_tokens}"
            )
        needed = len(request.token_ids) + request.max_tokens
        if needed > self.max_context:
            raise ValueError(
                f"prompt ({len(request.token_ids)}) plus max_tokens ({request.max_tokens}) is {needed}, "
                f"beyond the context of {self.max_context}: lower max_tokens by {needed - self.max_context}"
            )
        done: concurrent.futures.Future[Response] = concurrent.futures.Future()
        stream = uniforms(request.seed, request.sampled + request.max_tokens)
        self._inbox.put(Job(request, done, stream[request.sampled :]))
        return await asyncio.wrap_future(done)

    # -- the batching loop, in its own thread ---------------------------------------------------------

    def _loop(self) -> None:
        decoder = Decoder(self.model, self.renderer, self.prefixes, self.stats, self.max_prefill_tokens)
        with torch.inference_mode():
            while not self._stopping.is_set():
                jobs = self._receive(wait=not decoder.jobs, room=self.max_batch - len(decoder.jobs))
                try:
                    decoder.step(jobs)
                except Exception as error:  # the loop must outlive any request; the engine counts the failure
                    failure = GenerationFailure(f"the model raised {type(error).__name__}: {error}")
                    failure.__cause__ = error
                    decoder.fail(failure, jobs)
        stopped = GenerationFailure("the policy was stopped while generating", kind="stopped")
        decoder.fail(stopped, self._receive(wait=False, room=self._inbox.qsize() + 1))

    def _receive(self, *, wait: bool, room: int) -> list[Job]:
        """Jobs to add to the batch; waits for the first when asked."""
        jobs: list[Job] = []
        while len(jobs) < room:
            try:
                job = self._inbox.get(block=wait and not jobs)
            except queue.Empty:
                break
            if job is None:
                break
            jobs.append(job)
        return jobs


def _as_renderer(renderer: Any) -> Any:
    if hasattr(renderer, "model_inputs"):
        return renderer
    from agents.chat import ChatRenderer

    return ChatRenderer(renderer)


def _has_other_caches(config: Any) -> bool:
    """Whether a layer keeps something else than every position (sliding window, linear attention)."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return kinds != {"full_attention"}
