"""Advantages of turns, by hand and against TRL's of episodes."""

from __future__ import annotations

import pytest
import torch


def row(rewards, reward=None, live=True):
    """A row whose turns paid these rewards."""
    from train.rows import Row

    turns = [(3 * i, 3 * i + 2) for i in range(len(rewards))]
    width = 3 * len(rewards)
    total = sum(rewards) if reward is None else reward
    return Row(
        [1], [2] * width, [1, 1, 0] * len(rewards), [0.0] * width, total if live else None,
        turns=turns if live else [], turn_rewards=list(rewards) if live else [],
    )  # fmt: skip


def advantages(rows, credit=None, *, group_size=None, **kwargs):
    from train.credit import TurnCredit, turn_advantages

    rewards = [float("nan") if r.reward is None else r.reward for r in rows]
    return turn_advantages(
        rows, rewards, credit or TurnCredit(), group_size=group_size or len(rows), **kwargs
    )


def test_three_turns_by_hand():
    from train.credit import TurnCredit

    rows = [row([1.0, 0.0, 2.0]), row([0.0, 1.0, 0.0])]
    # returns at a discount of 0.5: (1.5, 1, 2) and (0.5, 1, 0); the second turns are equal
    root = 2**0.5
    expected = [[0.5 / (root / 2 + 1e-4), 0.0, 1 / (root + 1e-4)]]
    expected.append([-value for value in expected[0]])
    torch.testing.assert_close(advantages(rows, TurnCredit(0.5)), torch.tensor(expected))
    centred = advantages(rows, TurnCredit(0.5, "none"))
    torch.testing.assert_close(centred, torch.tensor([[0.5, 0.0, 1.0], [-0.5, 0.0, -1.0]]))
    scaled = advantages(rows, TurnCredit(0.5, "batch"), batch_std=0.5)
    torch.testing.assert_close(scaled, centred / (0.5 + 1e-4))


@pytest.mark.parametrize("lengths", [(3, 3, 3, 3), (1, 4, 2, 3)], ids=["even", "ragged"])
def test_a_reward_at_the_end_alone_makes_every_turns_advantage_the_episodes(lengths):
    paid = torch.tensor([1.0, 0.0, 0.3, 1.0])
    rows = [row([0.0] * (n - 1) + [float(p)]) for n, p in zip(lengths, paid, strict=True)]
    episode = (paid - paid.mean()) / (paid.std() + 1e-4)  # as TRL
    result = advantages(rows)
    for i, length in enumerate(lengths):
        torch.testing.assert_close(result[i, :length], episode[i].expand(length))
        assert not result[i, length:].any()


def test_an_episode_that_has_ended_takes_part_with_its_last_return():
    from train.credit import TurnCredit

    rows = [row([1.0]), row([0.0, 0.0, 0.0, 0.5])]
    result = advantages(rows, TurnCredit(0.5, "none"))
    returns = torch.tensor([0.0625, 0.125, 0.25, 0.5])
    torch.testing.assert_close(result[1], (returns - 1.0) / 2)
    assert result[0].tolist() == pytest.approx([(1 - 0.0625) / 2, 0, 0, 0])


def test_dead_rows_and_lone_ones_have_no_advantage_and_change_nobodys():
    rows = [row([1.0, 0.0]), row([0.0, 0.0]), row([0.0, 1.0])]
    with_dead = advantages([*rows, row([5.0], live=False)])
    torch.testing.assert_close(with_dead[:3], advantages(rows))
    assert not with_dead[3].any()
    assert not advantages([row([1.0]), row([9.0], live=False)]).any()


def test_groups_are_compared_within_themselves():
    first, second = [row([1.0]), row([0.0])], [row([9.0]), row([7.0])]
    both = advantages(first + second, group_size=2)
    torch.testing.assert_close(both[:2], advantages(first))
    torch.testing.assert_close(both[2:], advantages(second))


def test_what_is_earned_beside_the_turns_is_earned_by_the_last_one():
    from train.credit import turn_returns

    assert turn_returns(row([0.5, 0.5]), 2.0, 1.0, 1.0) == [2.0, 1.5]
    assert turn_returns(row([0.5, 0.5]), 2.0, 2.0, 1.0) == [2.0, 1.0], "a weight of two, and nothing beside"
    assert turn_returns(row([]), 1.0, 1.0, 1.0) == []


def test_float_noise_is_no_difference():
    rows = [row([0.1, 0.2, 0.0], reward=0.30000001192092896), row([0.2, 0.1, 0.0], reward=0.3)]
    result = advantages(rows)
    assert result[:, 0].tolist() == [0.0, 0.0]
    assert result[:, 2].tolist() == [0.0, 0.0]
    assert result[0, 1] > 0.7 > -0.7 > result[1, 1]


def test_settings_that_mean_nothing_are_refused():
    from train.arguments import GymGRPOConfig
    from train.credit import TurnCredit, credit_of

    def config(**settings):
        return GymGRPOConfig(output_dir="none", bf16=False, report_to="none", **settings)

    assert credit_of(config()) is None
    assert credit_of(config(turn_credit="turn", turn_discount=0.9)) == TurnCredit(0.9, "group")
    for settings, words in (
        ({"turn_credit": "token"}, "unknown turn_credit 'token'"),
        ({"turn_credit": "turn", "turn_discount": 1.5}, "between 0 and 1, got 1.5"),
        ({"turn_discount": 0.9}, "turn alone"),
        ({"turn_credit": "turn", "multi_objective_aggregation": "normalize_then_sum"}, "sum_then_normalize"),
    ):
        with pytest.raises(ValueError, match=words):
            credit_of(config(**settings))
