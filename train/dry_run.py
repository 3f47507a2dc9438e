"""`train/grpo.py --dry-run`: checks a recipe without loading the model.

Batch arithmetic, the chat template's rules, prompts of real tasks against the context, environments that
start, and an estimate of memory. Knows arguments, environments and configs; loads no weights.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from rich.console import Console
from rich.table import Table
from transformers import AutoConfig

from agents.chat import ChatRenderer
from agents.chat.report import rule_lines
from agents.token_env import TokenEnv
from train import checks
from train.arguments import ScriptArguments
from train.rollouts import RolloutConfig
from train.tasks import EnvMember, TaskSource

TASKS = 16
"""Tasks of each environment whose prompts are tokenized."""
GIB = 2**30


@dataclass(frozen=True)
class Line:
    """One thing that was checked."""

    area: str
    text: str
    problem: bool = False


def dry_run(
    folder: str, processor: Any, script: ScriptArguments, rollout: RolloutConfig, args: Any, lora: bool
) -> list[Line]:
    """Check a recipe; prints a table and returns its lines.

    Args:
        folder: Name or path of the model; its config is read, its weights are not.
        processor: Of the model.
        script, rollout, args: The recipe.
        lora: Whether adapters are trained in place of the weights.
    """
    lines = _batch(args, rollout)
    renderer = ChatRenderer(processor)
    lines += [Line("template", f"{rule}: {found}") for rule, found in rule_lines(renderer)]
    for member in script.members():
        lines += _environment(member, renderer, rollout, args)
    lines += _memory(folder, args, lora)
    table = Table("checked", "found", title="dry run", title_justify="left")
    for line in lines:
        table.add_row(line.area, f"[red]{line.text}[/]" if line.problem else line.text)
    Console().print(table)
    return lines


def _batch(args: Any, rollout: RolloutConfig) -> list[Line]:
    try:
        checks.refuse_unsupported(args, allow_biased_sampling=True)
        checks.groups_on_one_rank(args)
        if rollout.one_step_ahead:
            checks.refuse_shared_generation(args.use_vllm and args.vllm_mode == "server")
    except ValueError as error:
        return [Line("batch", str(error), problem=True)]
    rows = args.per_device_train_batch_size * args.steps_per_generation
    episodes = rows * args.world_size
    updates = args.steps_per_generation // args.gradient_accumulation_steps * args.num_iterations
    return [
        Line(
            "batch",
            f"{args.world_size} process(es) x {rows} episodes = {episodes // args.num_generations} groups of "
            f"{args.num_generations} a rollout; {updates} optimizer step(s) on each",
        )
    ]


def _environment(member: EnvMember, renderer: ChatRenderer, rollout: RolloutConfig, args: Any) -> list[Line]:
    try:
        env = gymnasium.make(member.id, **member.kwargs)
    except Exception as error:  # whatever a constructor says is what the user needs to read
        return [Line(member.id, f"does not start: {error}", problem=True)]
    source = TaskSource([member], seed=args.seed)
    tokens = TokenEnv(env, renderer)
    lengths, pictures = [], []
    try:
        for index in range(TASKS):
            task = source.task(index)
            prompt, _ = tokens.reset(seed=task.seed, options=task.options)
            lengths.append(len(prompt.token_ids))
            pictures.append(len(prompt.images))
    except Exception as error:
        return [Line(member.id, f"does not reset: {error}", problem=True)]
    finally:
        tokens.close()
    own_cap: int = getattr(env.unwrapped, "max_turns", 1)
    turns = rollout.max_turns or own_cap
    lines = [
        Line(
            member.id,
            f"prompts of {len(lengths)} tasks: {min(lengths)} to {max(lengths)} tokens, median "
            f"{statistics.median(lengths):.0f}; {statistics.mean(pictures):.1f} pictures each; "
            f"up to {turns} turns",
        )
    ]
    return lines + _context(member, max(lengths), turns, rollout, args)


def _context(member: EnvMember, prompt: int, turns: int, rollout: RolloutConfig, args: Any) -> list[Line]:
    """The longest prompt and a full response each turn against the limits of the recipe."""
    responses = turns * rollout.max_tokens_per_turn
    lines = []
    limits = {
        "max_completion_length": (args.max_completion_length, responses),
        "max_tokens_per_episode": (rollout.max_tokens_per_episode, prompt + responses),
        "vllm_max_model_length": (args.vllm_max_model_length if args.use_vllm else None, prompt + responses),
    }
    for name, (limit, needed) in limits.items():
        if limit is None:
            continue
        first = prompt + rollout.max_tokens_per_turn if name != "max_completion_length" else 1
        text = f"{name} {limit}: full responses in every turn would take {needed} tokens, observations not counted"
        lines.append(Line(member.id, text, problem=first > limit))
    return lines


def _memory(folder: str, args: Any, lora: bool) -> list[Line]:
    """Weights, gradients and Adam's moments of one device, before activations and the engine's share.

    bf16 weights count 2 bytes, with float32 masters 4; trained ones add gradients of the same width and two
    float32 moments of 8 bytes together. Sharding (FSDP, ZeRO-3) divides by the processes.
    """
    parameters = count_parameters(folder)
    width = 2 if args.bf16 and lora else 4
    trained = 0.01 * parameters if lora else parameters
    total = parameters * width + trained * (width + 8)
    text = (
        f"{parameters / 1e9:.2f} B parameters ({Path(folder).name}); weights {parameters * width / GIB:.1f} GiB, "
        f"gradients and Adam {trained * (width + 8) / GIB:.1f} GiB"
    )
    lines = [Line("memory", f"{text}: {total / GIB:.1f} GiB without sharding, activations not counted")]
    if args.use_vllm and args.vllm_mode == "colocate":
        share = args.vllm_gpu_memory_utilization
        lines.append(Line("memory", f"vLLM takes {share:.0%} of each GPU (weights and KV cache)"))
    return lines


def count_parameters(folder: str) -> int:
    """Parameters of the model that a config describes, without allocating it."""
    import transformers
    from accelerate import init_empty_weights

    config = AutoConfig.from_pretrained(folder)
    name = (config.architectures or ["none"])[0]
    with init_empty_weights():
        model = getattr(transformers, name)(config)
    return sum(p.numel() for p in model.parameters())
