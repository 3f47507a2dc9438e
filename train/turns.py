"""Where the turns of episodes lie in a batch of rows, and sums over them.

A batch is padded at its right; its turns are an integer a token, so that they can be shuffled and split into
micro-batches like any other tensor. Knows rows and tensors; neither rewards nor losses.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from train.rows import Row


def turn_index(rows: Sequence[Row], width: int) -> torch.Tensor:
    """int64 (rows, width): k on the tokens that a row's k-th turn sampled, counted from 1; 0 elsewhere.

    Args:
        rows: Of the batch, in order. A dead row has no turns.
        width: Of the padded completions.
    """
    index = torch.zeros(len(rows), width, dtype=torch.long)
    for row, places in enumerate(rows):
        for number, (start, end) in enumerate(places.turns, 1):
            index[row, start:end] = number
    return index


def loss_mask(rows: Sequence[Row], width: int) -> torch.Tensor:
    """int64 (rows, width): the rows' masks, padded."""
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, row in enumerate(rows):
        mask[i, : len(row.mask)] = torch.tensor(row.mask)
    return mask


def turn_sums(values: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """On each token of a turn, the sum of `values` over that turn; 0 elsewhere.

    Args:
        values: (rows, width). What stands outside turns is not looked at.
        turns: From `turn_index`.
    """
    inside = values.masked_fill(turns == 0, 0.0)
    sums = values.new_zeros(len(values), int(turns.max()) + 1).scatter_add(1, turns, inside)
    return sums.gather(1, turns)


def on_tokens(values: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Values of turns (rows, turns) on their tokens (rows, width); 0 elsewhere."""
    return torch.nn.functional.pad(values, (1, 0)).gather(1, turns)
