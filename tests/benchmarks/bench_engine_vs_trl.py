"""Episodes a second: our engine against TRL 1.16's own `environment_factory` loop, and against lockstep.

Same tiny Qwen3-VL (random weights), same environment: an image each turn, latency log-normal with median
100 ms and sigma 1.0, the same draws in both. Random weights call no tool, so TRL's parser is replaced by
one that reads a call out of every response; both loops then run the same number of turns of exactly as
many tokens (stop tokens suppressed). Only TRL's `_generate` is timed, not its scoring.

    python tests/benchmarks/bench_engine_vs_trl.py --episodes 32 --turns 8 --tokens 32
"""

# ruff: noqa: E402  (the paths come first)

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agents")]

import torch
from faulty_env import ENV_ID, FaultyEnv
from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

from agents.engine import Budgets, RolloutEngine
from agents.policies.transformers import TransformersPolicy
from agents.types import Request, Response, SamplingParams, Task
from train.tiny import build_tiny_vlm

PROMISED = 5.0
"""Speed against TRL's loop, at the default load."""


@dataclass(frozen=True)
class Load:
    """What both loops run."""

    episodes: int = 32
    turns: int = 8
    tokens: int = 32
    median: float = 0.1
    """Seconds."""
    sigma: float = 1.0

    @property
    def env_kwargs(self) -> dict[str, Any]:
        return {"length": self.turns, "latency": (self.median, self.sigma)}


@dataclass(frozen=True)
class Measured:
    """One row of the table."""

    name: str
    seconds: float
    sampled_tokens: int
    images: int
    cpu: float
    """Seconds that the process computed: what is left of `seconds` is waiting, or other processes' work."""
    idle: float | None = None
    """Share of the time in which the model did not compute."""


def run_engine(directory: Path, load: Load, lockstep: bool = False) -> Measured:
    """Our engine, or the same with all episodes waiting for each other before and after each turn."""
    model, processor = load_tiny(directory)
    policy = TransformersPolicy(model, processor, max_batch=load.episodes)
    served = Lockstep(policy, load.episodes) if lockstep else policy
    name = "engine, lockstep" if lockstep else "engine"
    return collect(name, served, policy.renderer, load, lambda: policy.stats.busy_seconds)


def collect(name: str, policy: Any, renderer: Any, load: Load, busy: Callable[[], float]) -> Measured:
    """Run the load on a policy; `busy` says how many seconds its model has computed so far."""
    sampling = SamplingParams(
        banned_token_ids=tuple({*renderer.banned_token_ids, *renderer.stop_token_ids}),
    )
    tasks = [Task(ENV_ID, load.env_kwargs, options={"timing": n}, group=n) for n in range(load.episodes)]
    budgets = Budgets(max_tokens_per_turn=load.tokens, cut_response="step")
    with RolloutEngine(policy, renderer, budgets=budgets, sampling=sampling) as engine:
        started, computed, before = time.perf_counter(), time.process_time(), busy()
        trajectories = engine.collect(tasks)
        seconds, cpu = time.perf_counter() - started, time.process_time() - computed
    for t in trajectories:
        assert len(t.turns) == load.turns, f"{t.stop_reason} after {len(t.turns)} turns: {t.failures}"
    return Measured(
        name,
        seconds,
        sum(t.sampled_tokens for t in trajectories),
        sum(len(t.images) for t in trajectories),
        cpu,
        1.0 - (busy() - before) / seconds,
    )


class Lockstep:
    """A policy that hands a turn's requests on only when all episodes have sent theirs."""

    def __init__(self, policy: Any, episodes: int) -> None:
        self._policy = policy
        self._barrier = asyncio.Barrier(episodes)
        self.version = 0
        self.max_context = getattr(policy, "max_context", None)

    async def start(self) -> None:
        await self._policy.start()

    async def stop(self) -> None:
        await self._policy.stop()

    async def generate(self, request: Request) -> Response:
        await self._barrier.wait()
        response = await self._policy.generate(request)
        await self._barrier.wait()
        return response


def run_trl(directory: Path, load: Load) -> Measured:
    """TRL's loop: environments one after another, all waiting for the slowest."""
    import datasets
    import trl.trainer.grpo_trainer as module
    from trl import GRPOConfig, GRPOTrainer

    module.parse_response = _always_calls_look
    model, processor = load_tiny(directory)
    processor.tokenizer.response_schema = {"type": "object"}  # or TRL refuses a template it does not know
    renderer = TransformersPolicy(model, processor).renderer
    numbers = iter(range(10**9))

    class LookEnvironment:
        """The same environment behind TRL's interface."""

        def reset(self, **kwargs: Any) -> None:
            if not hasattr(self, "env"):
                self.env = FaultyEnv(**load.env_kwargs)
                self.number = next(numbers)
            self.env.reset(seed=0, options={"timing": self.number})

        def look(self) -> list[dict[str, Any]]:
            """Look at the scene again.

            Returns:
                The picture.
            """
            observation, *_ = self.env.step("look")
            pictures = [{"type": "image", "image": _pil(i)} for i in observation["images"]]
            return [*pictures, {"type": "text", "text": observation["text"]}]

    prompt = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Go. "}]}]
    first = FaultyEnv(**load.env_kwargs).reset(seed=0)[0]["images"][0]
    rows = [{"prompt": prompt, "image": _pil(first)} for _ in range(load.episodes)]
    with tempfile.TemporaryDirectory() as output:
        args = GRPOConfig(
            output_dir=output,
            per_device_train_batch_size=load.episodes,
            num_generations=load.episodes,
            max_completion_length=load.turns * (load.tokens + 200),
            max_tool_calling_iterations=load.turns - 1,
            generation_kwargs={
                "min_new_tokens": load.tokens,
                "suppress_tokens": list(renderer.banned_token_ids),
            },
            use_cpu=True,
            bf16=False,
            report_to="none",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model,
            reward_funcs=lambda completions, **kwargs: [0.0] * len(completions),
            args=args,
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=processor,
            environment_factory=LookEnvironment,
        )
        trainer.generation_config.max_new_tokens = load.tokens
        timed: dict[str, Any] = {}
        generate = trainer._generate

        def timing(prompts: list[Any]) -> Any:
            started, computed = time.perf_counter(), time.process_time()
            timed["output"] = generate(prompts)
            timed["seconds"] = time.perf_counter() - started
            timed["cpu"] = time.process_time() - computed
            return timed["output"]

        trainer._generate = timing
        trainer._generate_and_score_completions([trainer.train_dataset[i] for i in range(load.episodes)])
    masks, images, late = timed["output"][2], timed["output"][6], timed["output"][7]
    calls = sum(len(i) for i in late)
    assert calls == load.episodes * (load.turns - 1), calls
    return Measured(
        "TRL environment_factory",
        timed["seconds"],
        sum(map(sum, masks)),
        sum(len(i or []) for i in images),
        timed["cpu"],
    )


def _always_calls_look(tokenizer: Any, ids: Sequence[int], **kwargs: Any) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "look", "arguments": {}}}
    return {"role": "assistant", "content": tokenizer.decode(ids), "tool_calls": [call]}


def _pil(image: Any) -> Any:
    from PIL import Image

    return Image.fromarray(image)


def load_tiny(directory: Path) -> tuple[Any, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Qwen3VLForConditionalGeneration.from_pretrained(directory)
    return model, AutoProcessor.from_pretrained(directory)


def table(rows: Sequence[Measured], load: Load) -> str:
    """The results as a table; the first row is what the others are compared with."""
    base = rows[0].seconds
    lines = [
        f"{load.episodes} episodes x {load.turns} turns x {load.tokens} tokens, an image each, latency "
        f"log-normal (median {load.median * 1000:.0f} ms, sigma {load.sigma:g})",
        f"{'loop':<26}{'seconds':>9}{'episodes/s':>12}{'speed':>8}{'tokens':>8}{'images':>8}"
        f"{'CPU s':>8}{'idle':>7}",
    ]
    for row in rows:
        idle = "" if row.idle is None else f"{row.idle:.0%}"
        lines.append(
            f"{row.name:<26}{row.seconds:>9.2f}{load.episodes / row.seconds:>12.2f}"
            f"{base / row.seconds:>7.1f}x{row.sampled_tokens:>8}{row.images:>8}{row.cpu:>8.1f}{idle:>7}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    arguments = parser.parse_args()
    load = Load(arguments.episodes, arguments.turns, arguments.tokens)
    with tempfile.TemporaryDirectory() as folder:
        directory = build_tiny_vlm(folder, max_pixels=96 * 96)
        rows = [
            run_trl(directory, load),
            run_engine(directory, load, lockstep=True),
            run_engine(directory, load),
        ]
    print(table(rows, load))
    if load == Load() and rows[0].seconds < PROMISED * rows[-1].seconds:
        sys.exit(f"the engine is not {PROMISED} times as fast as TRL's loop")


if __name__ == "__main__":
    main()
