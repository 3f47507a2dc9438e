"""Who is evaluated: a model in this process, an endpoint, a solver; and any of them with blank pictures.

Knows back ends and how they are loaded; not tasks.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from PIL import Image

from agents.policies.solver import KINDS
from agents.types import EpisodePolicy, Policy, Request, Response, SamplingParams, TextResponse
from mm_gym.episode import Episode

BACKENDS = ("transformers", "vllm")


def backend_of(model: str, base_url: str | None, backend: str) -> str:
    """Which kind of back end is meant: "solver", "endpoint", "transformers" or "vllm"."""
    if model in KINDS:
        return "solver"
    if base_url is not None:
        return "endpoint"
    if backend not in BACKENDS:
        raise ValueError(f"--backend must be one of {BACKENDS}, got {backend!r}")
    return backend


def endpoint(
    model: str, base_url: str, *, temperature: float, concurrency: int, tools: str = "native"
) -> EpisodePolicy:
    """An OpenAI-compatible endpoint; its key is `OPENAI_API_KEY`."""
    from agents.policies.openai import OpenAIPolicy

    return OpenAIPolicy(
        model, base_url=base_url, temperature=temperature, max_concurrent=concurrency, tools=tools
    )


def transformers_policy(folder: str, *, dtype: str, device: str, max_batch: int) -> tuple[Policy, int]:
    """A model loaded by transformers, and the rows of its output head.

    Args:
        folder: A local folder or a name on the hub; a LoRA adapter's folder loads its base model too.
        dtype: "auto", "float32", "bfloat16", ...
        device: "auto" takes the first GPU where there is one.
        max_batch: Episodes decoded at once.
    """
    import torch

    from agents.chat import ChatRenderer, load_processor
    from agents.policies.transformers import TransformersPolicy

    model = _load(folder, dtype)
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    model = model.to(where).eval()
    policy = TransformersPolicy(model, ChatRenderer(load_processor(folder)), max_batch=max_batch)
    return policy, model.get_output_embeddings().weight.shape[0]


def vllm_policy(
    folder: str, *, dtype: str, max_batch: int, context: int | None, engine_args: dict[str, Any]
) -> tuple[Policy, int]:
    """A model in a vLLM engine of this process, and the rows of its output head.

    Args:
        folder: A local folder or a name on the hub.
        dtype: vLLM's.
        max_batch: Episodes at a time.
        context: Longest stream; None for the model's own limit.
        engine_args: Further arguments of `vllm.LLM`.
    """
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine in this process; read at import
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # what is printed is the figures
    try:
        from vllm import LLM
    except ImportError as error:
        raise DependencyNotInstalled('--backend vllm needs vLLM: pip install "mm-gym[vllm]"') from error
    import torch
    from transformers import AutoConfig

    from agents.chat import ChatRenderer, load_processor
    from agents.policies.vllm import VLLMPolicy, whole_prompts_on_a_cpu

    arguments: dict[str, Any] = {"dtype": dtype, "max_model_len": context, "max_num_seqs": max_batch}
    if not torch.cuda.is_available():
        arguments |= {"enforce_eager": True, **whole_prompts_on_a_cpu()}  # compiling takes minutes there
    llm = LLM(folder, **(arguments | engine_args), logprobs_mode="processed_logprobs")
    renderer = ChatRenderer(load_processor(folder))
    policy: Any = VLLMPolicy(llm, renderer)
    policy.renderer = renderer
    policy.max_context = llm.llm_engine.vllm_config.model_config.max_model_len
    return policy, AutoConfig.from_pretrained(folder).get_text_config().vocab_size


def sampling_of(policy: Policy, vocabulary: int, temperature: float) -> SamplingParams:
    """Sampling with the template's stop and banned ids, and without the head's unused rows."""
    renderer: Any = policy.renderer  # type: ignore[attr-defined]
    unused = range(len(renderer.tokenizer), vocabulary)
    return SamplingParams(
        temperature=temperature,
        stop_token_ids=tuple(renderer.stop_token_ids),
        banned_token_ids=tuple(sorted({*renderer.banned_token_ids, *unused})),
    )


def _load(folder: str, dtype: str) -> Any:
    """The model of the class that its config names, with the adapter of the folder, if any."""
    import transformers

    adapter = Path(folder) / "adapter_config.json"
    base = json.loads(adapter.read_text())["base_model_name_or_path"] if adapter.is_file() else folder
    try:
        config = transformers.AutoConfig.from_pretrained(base)
    except (OSError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"no model could be loaded from {base!r}: give a folder with config.json, a name on the hub, "
            f"{' or '.join(KINDS)}, or an endpoint by --base-url ({first})"
        ) from error
    name = (config.architectures or ["none"])[0]
    if not hasattr(transformers, name):
        raise ValueError(f"{base} names the architecture {name!r}, which transformers does not have")
    model = getattr(transformers, name).from_pretrained(base, config=config, dtype=dtype)
    if adapter.is_file():
        model.load_adapter(folder)
    return model


class _Blank:
    """Another policy, started and stopped with this one."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    @property
    def version(self) -> int:
        return self._policy.version

    async def start(self) -> None:
        await self._policy.start()

    async def stop(self) -> None:
        await self._policy.stop()


class BlankPolicy(_Blank):
    """Another policy whose pictures are all black: does it see what it answers?

    Sizes stay, so streams are as long as before.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.renderer: Any = getattr(policy, "renderer", None)
        self.max_context = getattr(policy, "max_context", None)

    async def generate(self, request: Request) -> Response:
        blank = [_black(image.size) for image in request.images]
        return await self._policy.generate(replace(request, images=blank))


class BlankEpisodePolicy(_Blank):
    """`BlankPolicy` for back ends that answer with text."""

    async def respond(self, episode: Episode, *, max_tokens: int, seed: int) -> TextResponse:
        blank = replace(episode, images=[np.zeros_like(image) for image in episode.images])
        return await self._policy.respond(blank, max_tokens=max_tokens, seed=seed)


@lru_cache(maxsize=64)
def _black(size: tuple[int, int]) -> Image.Image:
    """One object for each size: back ends tell pictures that they know by identity."""
    return Image.new("RGB", size)


def blanked(policy: Policy | EpisodePolicy) -> Any:
    """The policy, seeing black pictures only."""
    return BlankEpisodePolicy(policy) if isinstance(policy, EpisodePolicy) else BlankPolicy(policy)
