"""GRPO with a fault put in on purpose: the loss is taken on all that follows the prompt, observations too.

    python train/learning_mask.py --config configs/learning/pointing.yaml

Takes the arguments of `train/grpo.py` and differs from it in the loss mask alone; `train/learning.py` shows
what that does. Knows the trainer; the fault can't be switched on anywhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Container
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout, not this folder

from agents.types import Trajectory
from train import grpo
from train.trainer import GymGRPOTrainer


class UnmaskedTrainer(GymGRPOTrainer):
    """The loss mask is 1 on every token after the prompt, as in code that forgot whose tokens they are.

    Figures of training that count sampled tokens count these tokens too; held-out figures are as always.
    """

    def _collect(self, groups: int) -> list[Trajectory]:
        banned = frozenset(self.rollouts.banned_token_ids)
        return [unmasked(trajectory, banned) for trajectory in super()._collect(groups)]


def unmasked(trajectory: Trajectory, banned: Container[int]) -> Trajectory:
    """A copy whose mask is 1 on all that follows the prompt, but for ids that have no probability.

    Args:
        trajectory: As the rollout made it.
        banned: Ids that are left out of the softmax: the pads of pictures, the marks of roles.
    """
    cut = trajectory.prompt_length
    after = [int(token not in banned) for token in trajectory.token_ids[cut:]]
    return replace(trajectory, loss_mask=[0] * cut + after)


if __name__ == "__main__":
    grpo.main(UnmaskedTrainer)
