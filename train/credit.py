"""Credit by turn: what each turn of an episode earned from there on, against the rest of its group.

GRPO gives all tokens of an episode the same advantage. Here the tokens of a turn get one from the rewards of
that turn and the later ones, as process supervision does for steps of reasoning (Shao et al. 2024, arXiv
2402.03300, section 4.1.3) and GTPO for turns with tools (Ding et al. 2025, arXiv 2511.14846): discounted
returns, normalised within the group. Knows rows and rewards; no trainer.

- The k-th turn's return is `r_k + discount * r_(k+1) + discount^2 * r_(k+2) + ...`.
- It is compared with the k-th turns of the group. An episode that has ended by then takes part with the
  return of its last turn: an early success stays what the others are measured by, and a turn that only one
  episode reached still has something to be measured by.
- So with rewards at the end alone and a discount of 1, every turn's advantage is that of the episode, also
  where the episodes of a group have different numbers of turns.
- What an episode earned beside its turns, such as further reward functions, is earned by its last turn.
- Dead rows are in no comparison and have advantages of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from train.rows import Row

CREDITS = ("episode", "turn")
EQUAL = 1e-9
"""Returns that differ by less, relative to their size, are equal: sums of floats are not exact."""


@dataclass(frozen=True)
class TurnCredit:
    """How turns share in an episode's rewards."""

    discount: float = 1.0
    """What a reward counts for one turn earlier."""
    scale: str = "group"
    """As TRL's `scale_rewards`: "group" divides by the standard deviation of the returns at that turn within
    the group, "batch" by that of the batch's episode rewards, "none" by nothing."""


def credit_of(args: Any) -> TurnCredit | None:
    """What a configuration asks for; None is one advantage an episode, TRL's own.

    Args:
        args: TRL's configuration, or `train.arguments.GymGRPOConfig`, which has `turn_credit` and
            `turn_discount`.

    Raises:
        ValueError: It asks for something unknown, or for credit by turn along with normalisation of each
            reward function by itself.
    """
    kind, discount = getattr(args, "turn_credit", "episode"), getattr(args, "turn_discount", 1.0)
    if kind not in CREDITS:
        raise ValueError(f"unknown turn_credit {kind!r}: choose one of {', '.join(CREDITS)}")
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"turn_discount must lie between 0 and 1, got {discount}")
    if kind == "episode":
        if discount != 1.0:
            raise ValueError(f"turn_discount {discount} is for turn_credit: turn alone, not for episode")
        return None
    if args.multi_objective_aggregation != "sum_then_normalize":
        raise ValueError(
            "turn_credit: turn compares returns, which are sums over reward functions: set "
            f"multi_objective_aggregation to sum_then_normalize, not {args.multi_objective_aggregation}"
        )
    return TurnCredit(discount, args.scale_rewards)


def equal_groups(rewards: torch.Tensor, group_size: int) -> torch.Tensor:
    """bool (rows,): whether a row is of a group whose rewards are all equal, compared exactly.

    The mean of eight times 0.1 is not 0.1 in float32: divided by a standard deviation of 0 + 1e-4, the
    difference would be an advantage.

    Args:
        rewards: (rows, reward functions), NaN where a function gave none.
        group_size: Rows of a group.
    """
    groups = rewards.view(-1, group_size, rewards.shape[1])
    low = groups.nan_to_num(nan=torch.inf).amin(1)
    high = groups.nan_to_num(nan=-torch.inf).amax(1)
    return (low >= high).all(1).repeat_interleave(group_size)


def turn_returns(row: Row, reward: float, weight: float, discount: float) -> list[float]:
    """What each turn of a row earned from there on.

    Args:
        row: A live one.
        reward: Of the episode, over all reward functions.
        weight: Of the environment's reward among them.
        discount: See `TurnCredit`.
    """
    earned = [weight * r for r in row.turn_rewards]
    if not earned:
        return []
    beside = reward - sum(earned)
    if abs(beside) > 1e-6 * max(1.0, abs(reward)):  # `reward` is a float32
        earned[-1] += beside
    returns, later = [], 0.0
    for value in reversed(earned):
        later = value + discount * later
        returns.append(later)
    return returns[::-1]


def turn_advantages(
    rows: Sequence[Row],
    rewards: Sequence[float],
    credit: TurnCredit,
    *,
    group_size: int,
    weight: float = 1.0,
    batch_std: float = 1.0,
) -> torch.Tensor:
    """Advantages of the turns of a batch.

    Args:
        rows: Whole groups, one after another.
        rewards: Of the episodes, over all reward functions; of a dead row anything.
        credit: How turns share in them.
        group_size: Rows of a group.
        weight: Of the environment's reward among the reward functions.
        batch_std: Standard deviation of the episode rewards, for `scale` "batch".

    Returns:
        float32 (rows, most turns): 0 for turns that a row does not have.
    """
    returns = [
        turn_returns(row, float(reward), weight, credit.discount) if row.live else []
        for row, reward in zip(rows, rewards, strict=True)
    ]
    most = max((len(of_row) for of_row in returns), default=0)
    advantages = torch.zeros(len(rows), most, dtype=torch.float64)
    for start in range(0, len(rows), group_size):
        group = [i for i in range(start, min(start + group_size, len(rows))) if returns[i]]
        for turn in range(max((len(returns[i]) for i in group), default=0)):
            compared = [returns[i][min(turn, len(returns[i]) - 1)] for i in group]
            values = _normalised(torch.tensor(compared, dtype=torch.float64), credit.scale, batch_std)
            for i, value in zip(group, values, strict=True):
                if turn < len(returns[i]):
                    advantages[i, turn] = value
    return advantages.float()


def _normalised(returns: torch.Tensor, scale: str, batch_std: float) -> torch.Tensor:
    """Less their mean, over a standard deviation plus 1e-4 as in TRL; exactly 0 where all are equal."""
    if float(returns.max() - returns.min()) <= EQUAL * max(1.0, float(returns.abs().max())):
        return torch.zeros_like(returns)
    centred = returns - returns.mean()
    if scale == "none":
        return centred
    return centred / ((returns.std() if scale == "group" else batch_std) + 1e-4)
