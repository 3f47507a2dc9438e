"""Episodes a second with vLLM in process on the CPU: the engine against its own lockstep mode.

The same load as `bench_engine_vs_trl.py`; needs vLLM (a CPU build will do). Idle is the share of the time in
which vLLM's engine did not step.

    python tests/benchmarks/bench_engine_vllm.py --episodes 32 --turns 8 --tokens 32
"""

# ruff: noqa: E402  (the paths come first)

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROMISED = 1.6
"""Speed against lockstep, at the default load."""
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
for setting in SETTINGS.items():
    os.environ.setdefault(*setting)
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_engine_vs_trl import Load, Lockstep, Measured, collect, table
from transformers import AutoProcessor

from agents.chat import ChatRenderer
from agents.policies.vllm import VLLMPolicy, whole_prompts_on_a_cpu
from train.tiny import build_tiny_vlm


def run_both(directory: Path, load: Load) -> list[Measured]:
    """Lockstep, then the engine, on one vLLM engine after a short run that warms it up."""
    from vllm import LLM

    renderer = ChatRenderer(AutoProcessor.from_pretrained(directory))
    llm = LLM(
        str(directory),
        dtype="float32",
        max_model_len=2048,
        enforce_eager=True,
        limit_mm_per_prompt={"image": load.turns + 1, "video": 0},
        logprobs_mode="processed_logprobs",
        max_num_seqs=load.episodes,
        **whole_prompts_on_a_cpu(),
    )
    clock = _Clock(llm.llm_engine)
    policy = VLLMPolicy(llm, renderer)
    short = Load(load.episodes, 1, 2, 0.0)
    collect("warm-up", policy, renderer, short, lambda: clock.seconds)
    lockstep = Lockstep(policy, load.episodes)
    return [
        collect("vLLM, lockstep", lockstep, renderer, load, lambda: clock.seconds),
        collect("vLLM, engine", policy, renderer, load, lambda: clock.seconds),
    ]


class _Clock:
    """Adds up the time in the engine's `step`."""

    def __init__(self, engine: Any) -> None:
        self.seconds = 0.0
        step = engine.step

        def timed() -> Any:
            started = time.perf_counter()
            try:
                return step()
            finally:
                self.seconds += time.perf_counter() - started

        engine.step = timed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    arguments = parser.parse_args()
    if importlib.util.find_spec("vllm") is None:
        print("vLLM is not installed: nothing to measure")
        return
    load = Load(arguments.episodes, arguments.turns, arguments.tokens)
    with tempfile.TemporaryDirectory() as folder:
        rows = run_both(build_tiny_vlm(folder, max_pixels=96 * 96), load)
    print(table(rows, load))
    if load == Load() and rows[0].seconds < PROMISED * rows[1].seconds:
        sys.exit(f"the engine is not {PROMISED} times as fast as lockstep")


if __name__ == "__main__":
    main()
