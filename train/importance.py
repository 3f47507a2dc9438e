"""Importance ratios of whole turns, where TRL has those of tokens and of whole episodes.

TRL's sequence forms treat an episode as one action. Over twenty turns of some hundred tokens each, rounding
differences between sampler and trainer that no token shows add up until the product leaves its bounds, and
the whole episode is masked out. A turn is the action that the policy took, so its tokens stand or fall
together, and one that an outdated or broken sampler spoilt leaves the others alone. Knows log-probabilities
and turns; no trainer.
"""

from __future__ import annotations

import torch

from train.turns import turn_sums

LEVELS = ("token", "turn", "sequence")
"""Of `importance_sampling_level`: TRL's and "turn"."""
TURN_MODES = ("turn_truncate", "turn_mask")
"""Of `vllm_importance_sampling_mode`, beside TRL's token_* and sequence_*."""
MODES = ("token_truncate", "token_mask", *TURN_MODES, "sequence_truncate", "sequence_mask")


def turn_ratios(
    log_ratio: torch.Tensor,
    turns: torch.Tensor,
    mode: str,
    *,
    lowest: float | None = None,
    highest: float | None = None,
) -> torch.Tensor:
    """The probability of each turn under the trainer over that under the sampler, within bounds.

    Args:
        log_ratio: (rows, width) log-probs of the trainer less those of the sampler; NaN where the sampler gave
            none, which corrects nothing.
        turns: From `train.turns.turn_index`.
        mode: "turn_truncate" brings a ratio outside the bounds to the nearer one, "turn_mask" makes it 0.
        lowest, highest: The bounds; None is none.

    Returns:
        (rows, width): a turn's ratio on each of its tokens; 1 elsewhere.
    """
    ratio = turn_sums(log_ratio.nan_to_num(nan=0.0), turns).exp()
    low = 0.0 if lowest is None else lowest
    high = torch.inf if highest is None else highest
    if mode == "turn_truncate":
        return ratio.clamp(low, high)
    if mode == "turn_mask":
        return ratio.masked_fill((ratio < low) | (ratio > high), 0.0)
    raise ValueError(f"unknown mode {mode!r} of turns: choose one of {', '.join(TURN_MODES)}")


def spread_of(ratio: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """(3,): lowest, mean and highest ratio over the tokens of turns; 1 where there are none."""
    kept = ratio[turns > 0] if turns.any() else ratio.new_ones(1)
    return torch.stack([kept.min(), kept.mean(), kept.max()])


def over_ranks(spreads: torch.Tensor) -> tuple[float, float, float]:
    """Lowest, mean and highest of the spreads (ranks, 3)."""
    return float(spreads[:, 0].min()), float(spreads[:, 1].mean()), float(spreads[:, 2].max())


def old_logprobs_by_turn(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, turns: torch.Tensor
) -> torch.Tensor:
    """Old log-probs from which a loss by tokens computes the ratios of turns.

    `exp(logprobs - result)` is, on each token, the geometric mean of its turn's ratios, and its gradient is the
    token's own: GSPO-token (Zheng et al. 2025, arXiv 2507.18071, section 4.3) with a turn in the place of a
    sequence. Clipping then takes or leaves a turn as a whole.

    Args:
        logprobs: (rows, width) of the weights in training.
        old_logprobs: (rows, width) of the weights when the batch was generated.
        turns: From `train.turns.turn_index`.

    Returns:
        (rows, width), without gradient; `old_logprobs` outside turns.
    """
    current = logprobs.detach()
    tokens = turn_sums(torch.ones_like(current), turns).clamp(min=1.0)
    mean = turn_sums(current - old_logprobs, turns) / tokens
    return torch.where(turns > 0, current - mean, old_logprobs)
