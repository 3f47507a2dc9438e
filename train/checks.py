"""What is refused before a run starts, each with the number or name to change.

Knows configurations and, for one check, a model's forward; no environments.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from PIL import Image

from agents.chat import ChatRenderer
from train import importance

MIN_EFFECT = 1e-6
"""Smallest change of a log-probability that counts as "the picture matters"."""


def refuse_unsupported(args: Any, *, allow_biased_sampling: bool = False) -> None:
    """Raise for settings that would train something else than what was asked for.

    Args:
        args: TRL's `GRPOConfig`.
        allow_biased_sampling: Accept top-p, top-k and min-p, whose kept mass biases importance ratios.
    """
    if args.mask_truncated_completions:
        raise ValueError(
            "mask_truncated_completions=True would mask every episode whose last token is not an end token, "
            "observations included; stop reasons decide here. Set it to False"
        )
    biased = [
        f"{name}={value}"
        for name, value, off in (
            ("top_p", args.top_p, (None, 1.0)),
            ("top_k", args.top_k, (None, 0, -1)),
            ("min_p", args.min_p, (None, 0.0)),
            ("repetition_penalty", args.repetition_penalty, (None, 1.0)),
        )
        if value not in off
    ]
    if biased and not allow_biased_sampling:
        raise ValueError(
            f"{', '.join(biased)} samples from another distribution than the one that is trained, which "
            "biases the importance ratios: leave them off, or set allow_biased_sampling if you accept that"
        )
    for name, known in (
        ("importance_sampling_level", importance.LEVELS),
        ("vllm_importance_sampling_mode", importance.MODES),
    ):
        if getattr(args, name) not in known:
            raise ValueError(f"unknown {name} {getattr(args, name)!r}: choose one of {', '.join(known)}")
    mode = args.vllm_importance_sampling_mode
    if args.loss_type == "vespo" and args.vllm_importance_sampling_correction and "token" not in mode:
        raise ValueError(
            "loss_type vespo multiplies the ratios of tokens itself, so vllm_importance_sampling_mode must be "
            f"token_truncate or token_mask, not {mode}"
        )
    if args.temperature <= 0:
        raise ValueError(f"training needs a temperature above 0, got {args.temperature}")


def groups_on_one_rank(args: Any) -> None:
    """Raise where a group would be split over ranks: a dropped group could not be seen by either."""
    rows = args.per_device_train_batch_size * args.steps_per_generation
    if rows % args.num_generations:
        raise ValueError(
            f"a rank generates per_device_train_batch_size ({args.per_device_train_batch_size}) x "
            f"steps_per_generation ({args.steps_per_generation}) = {rows} rows, which does not hold whole "
            f"groups of num_generations ({args.num_generations}): change one of the three so that "
            f"{args.num_generations} divides the product"
        )


def refuse_sharded_sampling(args: Any) -> None:
    """Raise where the weights are sharded over ranks and the model itself is to sample."""
    plugin = getattr(args, "deepspeed_plugin", None)
    zero3 = plugin is not None and plugin.zero_stage == 3
    fsdp = (
        bool(getattr(args, "fsdp", None)) or os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"
    )
    if zero3 or fsdp:
        name = "DeepSpeed ZeRO-3" if zero3 else "FSDP"
        raise ValueError(
            f"{name} shards the weights, and sampling with the model itself would gather them for every "
            "token: generate with vLLM (use_vllm: true), or train with DDP or ZeRO-2"
        )


def refuse_shared_generation(apart: bool) -> None:
    """Raise where episodes are to be collected during training by what training itself uses."""
    if not apart:
        raise ValueError(
            "one_step_ahead collects while the model trains, so generation needs weights and a device of its "
            "own: use vLLM on a server (use_vllm: true, vllm_mode: server). Without vLLM the sampler is the "
            "model in training, and a colocated vLLM has the trainer's device: set one_step_ahead to false"
        )


@torch.no_grad()
def pictures_matter(model: Any, renderer: ChatRenderer, *, side: int = 64) -> float:
    """Check that blanking a picture moves the log-probabilities, and say by how much at most.

    A forward that runs without its pictures raises nothing and trains on text alone: a tower that was not
    loaded, tensors that a wrapper drops.

    Raises:
        RuntimeError: It does not.
    """
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    question = {"type": "text", "text": "What is this?"}
    segment = renderer.prompt([{"role": "user", "content": [{"type": "image", "image": picture}, question]}])
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()

    def last_logprobs(image: Image.Image) -> torch.Tensor:
        inputs = renderer.model_inputs(segment.token_ids, [image])
        tensors = {k: torch.as_tensor(v).to(device) for k, v in inputs.items()}
        ids = torch.tensor([segment.token_ids], device=device)
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), **tensors)
        return out.logits[0, -1].float().log_softmax(-1)

    seen, blank = last_logprobs(picture), last_logprobs(Image.new("RGB", picture.size, "white"))
    model.train(was_training)
    moved = float((seen - blank).abs().max())
    if not moved > MIN_EFFECT:
        raise RuntimeError(
            f"blanking the picture moves the next token's log-probabilities by at most {moved:.1e}: "
            f"{type(model).__name__} runs without its pictures. Check that the vision tower's weights are "
            "loaded and that the processor belongs to the model"
        )
    return moved
