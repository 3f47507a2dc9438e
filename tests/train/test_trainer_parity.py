"""The trainer scores exactly what was sampled: same ids, same pictures, same distribution."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.train

MIXED = "mixed_env:test/Mixed-v0"


def scored_by_trainer(trainer, output):
    """Log-probs of the trainer and of the sampler, where the mask is 1."""
    ids = torch.cat([output["prompt_ids"], output["completion_ids"]], 1)
    attention = torch.cat([output["prompt_mask"], output["completion_mask"]], 1)
    mask = (output["completion_mask"] * output["tool_mask"]).bool()
    trainer._row_mask = mask.long()
    pictures = {k: output.get(k) for k in ("pixel_values", "image_grid_thw", "num_images")}
    with torch.no_grad():
        logprobs, entropies, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids, attention, mask.shape[1], batch_size=3, compute_entropy=True, **pictures
        )
    trainer._row_mask = None
    return logprobs[mask], output["sampling_per_token_logps"][mask], entropies[mask]


@pytest.fixture
def batch(make_trainer, tickets):
    trainer = make_trainer(
        [{"id": MIXED, "weight": 2}, {"id": MIXED, "kwargs": {"pictures": 0}}],
        temperature=0.7,
        per_device_train_batch_size=16,
        num_generations=2,
    )
    trainer.model.train()
    return trainer, trainer._generate_and_score_completions(tickets(16))


def test_log_probs_of_every_sampled_token_equal_the_rollouts_with_bans_and_mixed_pictures(batch):
    trainer, output = batch
    counts = output["num_images"]
    assert {0, 2} <= set(counts), "the batch should mix picture counts"
    assert max(len(row.trajectory.turns) for row in trainer._rows) == 3
    assert len(trainer.rollouts.banned_token_ids) > 4
    ours, sampled, entropies = scored_by_trainer(trainer, output)
    assert len(ours) > 100
    torch.testing.assert_close(ours, sampled, atol=1e-4, rtol=0)
    allowed = trainer.policy_model.config.text_config.vocab_size - len(trainer.rollouts.banned_token_ids)
    assert entropies.min() > 0
    assert entropies.max() <= torch.tensor(float(allowed)).log() + 1e-4


def test_no_banned_token_was_sampled(batch):
    trainer, output = batch
    mask = (output["completion_mask"] * output["tool_mask"]).bool()
    sampled = set(output["completion_ids"][mask].tolist())
    assert not sampled & set(trainer.rollouts.banned_token_ids)


def test_blanking_the_pictures_moves_the_log_probs(batch):
    trainer, output = batch
    ours, sampled, _ = scored_by_trainer(trainer, {**output, "pixel_values": output["pixel_values"] * 0 + 1})
    assert (ours - sampled).abs().max() > 1e-3


def test_pads_and_features_agree_and_no_picture_is_dropped(batch):
    trainer, output = batch
    pads = (
        torch.cat([output["prompt_ids"], output["completion_ids"]], 1) == trainer._image_pad_token_id
    ).sum()
    assert int(pads) * 4 == len(output["pixel_values"])
    assert (
        len(output["image_grid_thw"])
        == sum(output["num_images"])
        == sum(len(r.images) for r in trainer._rows)
    )


def test_a_wrong_pad_count_is_an_error_and_not_a_batch_without_pictures(batch):
    from train.rows import row_of

    trainer, _ = batch
    trajectory = next(r.trajectory for r in trainer._rows if r.images)
    trajectory.images.pop()
    with pytest.raises(ValueError, match="image pads stand for"):
        row_of(trajectory, trainer.renderer)


def test_a_forward_that_ignores_its_pictures_is_refused(make_trainer):
    from train.checks import pictures_matter

    trainer = make_trainer()
    model = trainer.policy_model
    assert pictures_matter(model, trainer.renderer) > 1e-3
    original = model.forward
    model.forward = lambda **kwargs: original(
        input_ids=kwargs["input_ids"].masked_fill(kwargs["input_ids"] == trainer._image_pad_token_id, 5),
        attention_mask=kwargs["attention_mask"],
    )
    with pytest.raises(RuntimeError, match="blanking the picture"):
        pictures_matter(model, trainer.renderer)
