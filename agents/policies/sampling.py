"""From logits to one sampled id a row, and its log-probability. Knows neither models nor episodes.

The distribution is the softmax over the ids that are not banned, at the sampling temperature, in
float32. A row draws by inverting its cumulative distribution (float64) at a uniform number of its own
stream, so which id it takes depends on its logits, its seed and the position alone, not on its
neighbours in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from agents.types import SamplingParams


def allowed_logprobs(
    logits: torch.Tensor, banned: torch.Tensor | None, temperature: torch.Tensor
) -> torch.Tensor:
    """Log-probabilities over the allowed ids.

    Args:
        logits: (rows, vocabulary), any float type.
        banned: (rows, vocabulary) bool, or None.
        temperature: (rows,), above 0.

    Returns:
        float32 (rows, vocabulary), -inf on banned ids.
    """
    scaled = logits.float() / temperature[:, None]
    if banned is not None:
        scaled = scaled.masked_fill(banned, float("-inf"))
    return torch.log_softmax(scaled, dim=-1)


def truncated(logprobs: torch.Tensor, params: Sequence[SamplingParams]) -> torch.Tensor:
    """Log-probabilities (unnormalised) with what top-k, top-p and min-p leave out at -inf."""
    out = logprobs.clone()
    for row, p in enumerate(params):
        if p.top_k > 0:
            kth = out[row].topk(min(p.top_k, out.shape[1])).values[-1]
            out[row].masked_fill_(out[row] < kth, float("-inf"))
        if p.min_p > 0.0:
            out[row].masked_fill_(out[row] < out[row].max() + float(np.log(p.min_p)), float("-inf"))
        if p.top_p < 1.0:
            order = out[row].argsort(descending=True)
            mass = out[row][order].softmax(-1).cumsum(-1)
            dropped = order[1:][mass[:-1] >= p.top_p]
            out[row][dropped] = float("-inf")
    return out


def draw(logprobs: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """One id a row by inversion of the cumulative distribution.

    Args:
        logprobs: (rows, vocabulary), -inf where impossible; need not be normalised.
        uniforms: float64 (rows,) in [0, 1).

    Returns:
        int64 (rows,). Never an id of probability 0.
    """
    cumulative = logprobs.double().exp().cumsum(-1)
    total = cumulative[:, -1:]
    target = torch.minimum(uniforms[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, target, right=True).squeeze(1)


class Sampler:
    """Samples for rows with parameters of their own; keeps the masks of banned ids it has built."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._masks: dict[tuple[int, ...], torch.Tensor] = {}

    def __call__(
        self, logits: torch.Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]
    ) -> tuple[list[int], list[float]]:
        """Sample one id a row.

        Args:
            logits: (rows, vocabulary).
            params: One a row. Temperature 0 is greedy; its log-probs are those at temperature 1.
            uniforms: One a row, in [0, 1).

        Returns:
            The ids, and their log-probs before any top-k, top-p or min-p.
        """
        temperature = torch.tensor([p.temperature or 1.0 for p in params], device=self.device)
        logprobs = allowed_logprobs(logits, self._banned(params, logits.shape[1]), temperature)
        source = truncated(logprobs, params) if any(p.biased for p in params) else logprobs
        ids = draw(source, torch.tensor(uniforms, dtype=torch.float64, device=self.device))
        greedy = [p.temperature == 0 for p in params]
        if any(greedy):
            ids = torch.where(torch.tensor(greedy, device=self.device), logprobs.argmax(-1), ids)
        chosen = logprobs.gather(1, ids[:, None]).squeeze(1)
        return ids.tolist(), chosen.tolist()

    def _banned(self, params: Sequence[SamplingParams], vocabulary: int) -> torch.Tensor | None:
        distinct = {p.banned_token_ids for p in params}
        if distinct == {()}:
            return None
        if len(distinct) == 1:
            return self._mask(params[0].banned_token_ids, vocabulary)[None]
        return torch.stack([self._mask(p.banned_token_ids, vocabulary) for p in params])

    def _mask(self, banned: tuple[int, ...], vocabulary: int) -> torch.Tensor:
        if banned not in self._masks:
            out_of_range = [i for i in banned if not 0 <= i < vocabulary]
            if out_of_range:
                raise ValueError(
                    f"banned ids {out_of_range} lie outside the model's vocabulary of {vocabulary}: "
                    "the tokenizer and the model do not belong together"
                )
            mask = torch.zeros(vocabulary, dtype=torch.bool, device=self.device)
            mask[list(banned)] = True
            self._masks[banned] = mask
        return self._masks[banned]


def uniforms(seed: int, count: int) -> np.ndarray:
    """The `count` uniform numbers of a turn's own stream: float64 in [0, 1)."""
    return np.random.Generator(np.random.Philox(seed)).random(count)
