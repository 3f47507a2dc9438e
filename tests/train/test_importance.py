"""Ratios of turns: what small noise over a long episode does to them, and what a spoilt turn does."""

from __future__ import annotations

import pytest
import torch

TURNS, TOKENS, GAP = 20, 100, 30
CAP = 3.0


@pytest.fixture
def turns():
    """(1, width): twenty turns of a hundred tokens, with observations between them."""
    blocks = [torch.tensor([k] * TOKENS + [0] * GAP) for k in range(1, TURNS + 1)]
    return torch.cat(blocks)[None]


@pytest.fixture
def noise(turns):
    """Log-ratios as half precision gives them: 0.001 a token on average, and 0.02 of scatter."""
    generator = torch.Generator().manual_seed(0)
    return (0.001 + 0.02 * torch.randn(turns.shape, generator=generator)) * (turns > 0)


def test_noise_that_masks_a_long_episode_whole_leaves_its_turns(turns, noise):
    from train.importance import turn_ratios

    episode = noise.sum(-1).exp()  # TRL's sequence_mask: outside [0, 3] it is 0 for the whole episode
    assert episode > CAP
    ratio = turn_ratios(noise, turns, "turn_mask", highest=CAP)
    assert (ratio > 0).all()
    assert ratio.max() < 2
    assert ratio[turns == 0].eq(1).all()
    for turn in (1, 7, 20):
        inside = turns == turn
        torch.testing.assert_close(ratio[inside], noise[inside].sum().exp().expand(TOKENS))


def test_a_turn_that_other_weights_sampled_is_masked_alone(turns, noise):
    from train.importance import turn_ratios

    spoilt = noise + 0.1 * (turns == 7)  # e^10 over the turn
    masked = turn_ratios(spoilt, turns, "turn_mask", highest=CAP)
    assert masked[turns == 7].eq(0).all()
    assert masked[turns != 7].gt(0).all()
    truncated = turn_ratios(spoilt, turns, "turn_truncate", highest=CAP)
    assert truncated[turns == 7].eq(CAP).all()
    torch.testing.assert_close(truncated[turns != 7], masked[turns != 7])
    below = turn_ratios(-spoilt, turns, "turn_mask", lowest=0.1, highest=CAP)
    assert below[turns == 7].eq(0).all()
    assert below[turns != 7].gt(0).all()
    assert turn_ratios(-spoilt, turns, "turn_truncate", lowest=0.1)[turns == 7].eq(0.1).all()


def test_tokens_without_a_log_prob_correct_nothing_and_outside_values_do_not_count(turns, noise):
    from train.importance import turn_ratios

    holes = noise.clone()
    holes[turns == 3] = torch.nan
    holes[turns == 0] = torch.inf
    ratio = turn_ratios(holes, turns, "turn_mask", highest=CAP)
    assert ratio[turns == 3].eq(1).all()
    torch.testing.assert_close(
        ratio[turns != 3], turn_ratios(noise, turns, "turn_mask", highest=CAP)[turns != 3]
    )


def test_the_loss_by_tokens_computes_the_geometric_mean_of_each_turn():
    from train.importance import old_logprobs_by_turn

    turns = torch.tensor([[1, 1, 0, 2, 2, 2], [0, 1, 1, 1, 0, 0]])
    generator = torch.Generator().manual_seed(0)
    logprobs = torch.randn(2, 6, generator=generator).requires_grad_()
    old = torch.randn(2, 6, generator=generator)
    ratio = (logprobs - old_logprobs_by_turn(logprobs, old, turns)).exp()
    difference = (logprobs - old).detach()
    for row, turn in ((0, 1), (0, 2), (1, 1)):
        inside = turns[row] == turn
        mean = difference[row][inside].mean().exp()
        torch.testing.assert_close(ratio[row][inside].detach(), mean.expand(int(inside.sum())))
        (gradient,) = torch.autograd.grad(ratio[row][inside].sum(), logprobs, retain_graph=True)
        torch.testing.assert_close(gradient[row][inside], mean.expand(int(inside.sum())))
        assert not gradient[row][~inside].any()


def test_an_unknown_mode_is_refused(turns, noise):
    from train.importance import turn_ratios

    with pytest.raises(ValueError, match="turn_truncate, turn_mask"):
        turn_ratios(noise, turns, "sequence_mask")
