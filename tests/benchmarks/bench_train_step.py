"""Memory and time of scoring and its gradient on long episodes: ours against stock TRL 1.16, on the CPU.

    python tests/benchmarks/bench_train_step.py                                    # 8,192 tokens: minutes
    python tests/benchmarks/bench_train_step.py --batch sparse --longest 32768     # as in the target
    python tests/benchmarks/bench_train_step.py --batch ragged --longest 32768     # likewise: most of an hour

Two batches, a full-size vocabulary (151,936) on a tiny body, each in a process of its own. *sparse*: one
episode of the longest length; one in ten of its tokens after the prompt was sampled. *ragged*: eight episodes
of log-normal length between a 32nd of the longest and the longest, one a micro-batch. Time is CPU time of
forward and backward; memory is the peak of the process over what it had before the step. Stock TRL pads a
micro-batch to the longest row of the generation batch and, on a CPU, scores every position after the prompt
in tiles of 4,096 tokens by 32,768 ids. A process that needs more memory than `--limit` is ended.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

TARGETS = {("sparse", "memory"): 0.4, ("sparse", "time"): 0.3, ("ragged", "time"): 0.5}
"""Ours over stock TRL's, at most."""
VOCABULARY = 151_936
PROMPT = 64


@dataclass(frozen=True)
class Cost:
    """What a step cost."""

    seconds: float
    megabytes: float


def model() -> Any:
    """A tiny body under a full-size head."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=64, tie_word_embeddings=True,
    )  # fmt: skip
    return Qwen3ForCausalLM(config).train()


def lengths_of(batch: str, longest: int) -> list[int]:
    """How long the episodes of a batch are, the prompt included."""
    import numpy as np

    if batch == "sparse":
        return [longest]
    drawn = np.random.default_rng(0).lognormal(np.log(longest / 6), 0.9, 7)
    return [longest, *(int(n) for n in np.clip(drawn, longest // 32, longest))]


def rows(lengths: Sequence[int]) -> tuple[Any, Any, Any]:
    """ids, attention mask and loss mask, padded as TRL pads a generation batch: (rows, longest)."""
    import torch

    generator = torch.Generator().manual_seed(0)
    shape = (len(lengths), max(lengths))
    ids = torch.randint(1000, VOCABULARY, shape, generator=generator)
    real = torch.arange(shape[1])[None] < torch.tensor(lengths)[:, None]
    sampled = (torch.rand(shape, generator=generator) < 0.1) & real
    sampled[:, :PROMPT] = False
    return ids, real.long(), sampled.long()


def step_stock(network: Any, ids: Any, attention: Any, sampled: Any) -> None:
    """As `GRPOTrainer._get_per_token_logps_and_entropies` does, then the gradient on sampled tokens."""
    for row in range(len(ids)):
        part = slice(row, row + 1)
        labels = ids[part].masked_fill(attention[part] == 0, -100)
        labels[:, :PROMPT] = -100
        out = network(input_ids=ids[part], attention_mask=attention[part], labels=labels, fused_lm_head=True)
        (out.log_probs * sampled[part, 1:]).sum().backward()


def step_ours(network: Any, scorer: Any, ids: Any, attention: Any, sampled: Any) -> None:
    """As `GymGRPOTrainer` does."""
    for row in range(len(ids)):
        part = slice(row, row + 1)
        logprobs, _, _ = scorer(network, ids[part], attention[part], sampled[part], with_entropy=True)
        logprobs.sum().backward()


def measure(which: str, batch: str, longest: int) -> Cost:
    """One step in this process."""
    network = model()
    data = rows(lengths_of(batch, longest))
    if which == "stock":
        from trl.trainer.utils import add_fused_lm_head

        add_fused_lm_head(network, outputs=("log_probs", "entropy"))
    else:
        from train.forward import Scorer
        from train.logprobs import add_sampled_logprobs

        add_sampled_logprobs(network, temperature=1.0, banned_ids=())
        scorer = Scorer(network, image_token_id=None)
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = memory_of("self", "VmRSS")
    started = time.process_time()
    if which == "stock":
        step_stock(network, *data)
    else:
        step_ours(network, scorer, *data)
    seconds = time.process_time() - started
    return Cost(seconds, memory_of("self", "VmHWM") - before)


def memory_of(process: int | str, field: str) -> float:
    """Megabytes of a process: `VmRSS` now, `VmHWM` at its peak; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), 0.0)


def in_a_process(which: str, batch: str, longest: int, limit: float) -> Cost:
    """`measure` in a fresh process, so that peaks don't mix; `limit` is in gigabytes.

    Raises:
        SystemExit: It needs more memory than the limit.
    """
    arguments = [sys.executable, __file__, "--child", which, batch, "--longest", str(longest)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        while child.poll() is None:
            if memory_of(child.pid, "VmRSS") > 1024 * limit:
                child.kill()
                sys.exit(f"{which} {batch} at {longest} tokens needs more than {limit} GB: ended")
            time.sleep(0.5)
        assert child.stdout is not None
        output = child.stdout.read()
    if child.returncode:
        sys.exit(f"{which} {batch} at {longest} tokens: exit status {child.returncode}")
    return Cost(**json.loads(output.splitlines()[-1]))


def main() -> int:
    """Print the table; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=8192, help="tokens of the longest episode")
    parser.add_argument("--batch", choices=("sparse", "ragged"), action="append", help="default both")
    parser.add_argument("--limit", type=float, default=12.0, help="gigabytes that a process may have")
    parser.add_argument("--child", nargs=2, metavar=("WHICH", "BATCH"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        cost = measure(*args.child, args.longest)
        print(json.dumps({"seconds": cost.seconds, "megabytes": cost.megabytes}))
        return 0
    missed = 0
    for batch in args.batch or ("sparse", "ragged"):
        stock, ours = (in_a_process(which, batch, args.longest, args.limit) for which in ("stock", "ours"))
        ratios = {"time": ours.seconds / stock.seconds, "memory": ours.megabytes / stock.megabytes}
        for what, unit, values in (
            ("time", "s", (stock.seconds, ours.seconds)),
            ("memory", "MB", (stock.megabytes, ours.megabytes)),
        ):
            target = TARGETS.get((batch, what))
            verdict = (
                "" if target is None else f"target {target}: {'ok' if ratios[what] <= target else 'MISSED'}"
            )
            missed += target is not None and ratios[what] > target
            print(
                f"{batch:<8}{what:<8}TRL {values[0]:>9.1f} {unit:<3} ours {values[1]:>9.1f} {unit:<3} "
                f"ratio {ratios[what]:.2f}  {verdict}"
            )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
