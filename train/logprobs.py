"""Log-probabilities and entropies of sampled tokens, without logits for any other position.

The policy is the softmax over the ALLOWED ids at the sampling temperature, so banned ids are left out
here exactly as the sampler leaves them out. Knows the model's body and output head; neither trainers
nor images. Over a long episode most tokens are observations: a head over them is waste.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

CHUNK_LOGITS = 2**25
"""Logits held at once (128 MiB in float32)."""

_SCALED_LOGITS = ("logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")


@dataclass
class SampledLogprobs(ModelOutput):
    """What the forward returns when called with `scored_labels`."""

    logprobs: torch.Tensor | None = None
    """float32 (batch, length - 1): of each label, zero where the label is -100."""
    entropy: torch.Tensor | None = None
    """Same shape: of the distribution over the allowed ids; None unless asked for."""
    aux_loss: torch.Tensor | None = None
    """A mixture-of-experts model's load-balancing loss, when asked for."""


def add_sampled_logprobs(
    model: PreTrainedModel,
    *,
    temperature: float,
    banned_ids: Sequence[int],
    float32_head: bool = False,
    gather_head: Callable[..., AbstractContextManager[Any]] | None = None,
) -> None:
    """Teach `model.forward` the arguments `scored_labels` and `with_entropy`; without them it is unchanged.

    It is the forward, and not a function beside it, so that DDP's and FSDP's hooks run. Call it before the
    model is wrapped; under PEFT, on the base model.

    Args:
        model: A causal language model or vision-language model. Patched in place.
        temperature: Of sampling; logits are divided by it.
        banned_ids: Left out of the softmax.
        float32_head: Multiply by the output head in float32.
        gather_head: `gather_head(weight, bias)` is a context in which a sharded head is whole.
    """
    _refuse_scaled_logits(model)
    original = model.forward
    vocabulary = model.get_output_embeddings().weight.shape[0]
    outside = [i for i in banned_ids if not 0 <= i < vocabulary]
    if outside:
        raise ValueError(f"banned ids {outside} lie outside the model's vocabulary of {vocabulary}")
    banned = torch.tensor(sorted(banned_ids), dtype=torch.long)
    gather = gather_head or (lambda *_: nullcontext())

    def forward(
        self: PreTrainedModel,
        *args: Any,
        scored_labels: torch.Tensor | None = None,
        with_entropy: bool = False,
        **kwargs: Any,
    ) -> Any:
        if scored_labels is None:
            return original(*args, **kwargs)
        kwargs.pop("labels", None)  # PEFT passes every argument on
        body = self.base_model(*args, **kwargs, use_cache=False)
        # Position t predicts token t + 1.
        labels = scored_labels[:, 1:]
        scored = labels != -100
        hidden = body.last_hidden_state[:, :-1][scored]
        head = self.get_output_embeddings()
        weight, bias = head.weight, head.bias
        if isinstance(weight, DTensor):  # FSDP2 shards the head; one gather serves all chunks
            weight = weight.full_tensor()
            bias = bias.full_tensor() if bias is not None else None
        with gather(weight, bias):
            logprobs, entropy = _score(
                hidden,
                labels[scored],
                weight,
                bias,
                banned.to(hidden.device),
                temperature,
                float32_head,
                with_entropy,
            )
        # masked_scatter keeps the graph even when nothing is scored: backward still reaches the model.
        blank = torch.zeros(labels.shape, dtype=torch.float32, device=hidden.device)
        return SampledLogprobs(
            logprobs=blank.masked_scatter(scored, logprobs),
            entropy=blank.masked_scatter(scored, entropy) if entropy is not None else None,
            aux_loss=_aux_loss(self, body, kwargs),
        )

    forward.__wrapped__ = type(model).forward  # type: ignore[attr-defined]  # `generate` reads the signature
    model.forward = types.MethodType(forward, model)  # type: ignore[method-assign]


def _score(
    hidden: torch.Tensor,
    labels: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    banned: torch.Tensor,
    temperature: float,
    float32_head: bool,
    with_entropy: bool,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Log-probs (n,) and entropies (n,) from hidden states (n, width), chunk by chunk."""

    def chunk_scores(states: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if float32_head:
            logits = torch.nn.functional.linear(
                states.float(), weight.float(), bias.float() if bias is not None else None
            )
        else:
            logits = torch.nn.functional.linear(states, weight, bias).float()
        # The lowest float and not -inf: 0 * -inf would make the entropy NaN.
        logits = (logits / temperature).index_fill(1, banned, torch.finfo(torch.float32).min)
        normalizer = logits.logsumexp(-1)
        chosen = logits.gather(1, targets[:, None]).squeeze(1) - normalizer
        if not with_entropy:
            return chosen, chosen.new_zeros(chosen.shape)
        entropy = normalizer - ((logits - normalizer[:, None]).exp() * logits).sum(-1)
        return chosen, entropy

    rows = max(1, CHUNK_LOGITS // weight.shape[0])
    parts = [
        # A chunk's logits are computed again in backward rather than kept.
        checkpoint(chunk_scores, states, targets, use_reentrant=False)
        for states, targets in zip(hidden.split(rows), labels.split(rows), strict=True)
    ]
    logprobs = torch.cat([part[0] for part in parts])
    return logprobs, torch.cat([part[1] for part in parts]) if with_entropy else None


def _aux_loss(model: PreTrainedModel, body: Any, kwargs: dict[str, Any]) -> torch.Tensor | None:
    if not kwargs.get("output_router_logits"):
        return None
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

    text = model.config.get_text_config()
    loss = load_balancing_loss_func(
        body.router_logits, text.num_experts, text.num_experts_per_tok, kwargs.get("attention_mask")
    )
    return torch.as_tensor(loss)


def _refuse_scaled_logits(model: PreTrainedModel) -> None:
    """Some families scale or cap their logits after the head, which is not done here."""
    text = model.config.get_text_config()
    caps = [name for name in _SCALED_LOGITS if getattr(text, name, None) not in (None, 1, 1.0)]
    if getattr(text, "final_logit_softcapping", None):
        caps.append("final_logit_softcapping")
    if caps:
        raise ValueError(
            f"{type(model).__name__} changes its logits after the output head ({', '.join(caps)}), which "
            "log-probabilities over sampled tokens do not do yet: use a model without it"
        )
