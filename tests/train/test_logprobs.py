"""Log-probs of sampled tokens against the plain softmax over the allowed ids."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.train

BANNED = (0, 7, 31)


@pytest.fixture
def model(tiny_folder):
    from transformers import Qwen3VLForConditionalGeneration

    return Qwen3VLForConditionalGeneration.from_pretrained(tiny_folder).eval()


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(40, 200, (3, 17), generator=generator)
    scored = (torch.rand(3, 17, generator=generator) < 0.4).long()
    scored[:, 0] = 0  # nothing predicts the first token
    return ids, scored


def plain(model, ids, temperature=1.0):
    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, :-1].float() / temperature
    logits[..., list(BANNED)] = -torch.inf
    return logits.log_softmax(-1)


def test_values_entropies_and_gradients_equal_the_plain_softmax(model, rows, monkeypatch):
    from train import logprobs as module

    monkeypatch.setattr(module, "CHUNK_LOGITS", 4 * model.lm_head.weight.shape[0])  # several chunks
    ids, scored = rows
    reference = plain(model, ids, 0.8)
    module.add_sampled_logprobs(model, temperature=0.8, banned_ids=BANNED)
    out = model(input_ids=ids, scored_labels=ids.masked_fill(scored == 0, -100), with_entropy=True)
    mask = scored[:, 1:].bool()
    chosen = reference.gather(-1, ids[:, 1:, None]).squeeze(-1) * mask
    entropy = -(reference.exp() * reference.masked_fill(reference.isinf(), 0)).sum(-1) * mask
    torch.testing.assert_close(out.logprobs, chosen, atol=1e-5, rtol=0)
    torch.testing.assert_close(out.entropy, entropy, atol=1e-5, rtol=0)

    ours = torch.autograd.grad(
        out.logprobs.sum() + out.entropy.sum(), list(model.parameters()), allow_unused=True
    )
    wanted = torch.autograd.grad(chosen.sum() + entropy.sum(), list(model.parameters()), allow_unused=True)
    for a, b in zip(ours, wanted, strict=True):
        if b is not None:
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_without_labels_the_forward_is_unchanged(model, rows):
    from train.logprobs import add_sampled_logprobs

    ids, _ = rows
    before = model(input_ids=ids).logits
    add_sampled_logprobs(model, temperature=2.0, banned_ids=BANNED)
    assert torch.equal(model(input_ids=ids).logits, before)


def test_nothing_to_score_is_a_differentiable_zero(model, rows):
    from train.logprobs import add_sampled_logprobs

    ids, _ = rows
    add_sampled_logprobs(model, temperature=1.0, banned_ids=BANNED)
    out = model(input_ids=ids, scored_labels=torch.full_like(ids, -100))
    out.logprobs.sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_a_banned_id_outside_the_vocabulary_is_refused(model):
    from train.logprobs import add_sampled_logprobs

    with pytest.raises(ValueError, match="outside the model's vocabulary"):
        add_sampled_logprobs(model, temperature=1.0, banned_ids=[10**6])


def test_logits_that_the_head_does_not_finish_are_refused(model):
    from train.logprobs import add_sampled_logprobs

    model.config.text_config.final_logit_softcapping = 30.0
    with pytest.raises(ValueError, match="final_logit_softcapping"):
        add_sampled_logprobs(model, temperature=1.0, banned_ids=())


def test_padding_anywhere_gives_the_same_log_probs(model, rows):
    from train.forward import Scorer
    from train.logprobs import add_sampled_logprobs

    ids, scored = rows
    add_sampled_logprobs(model, temperature=1.0, banned_ids=BANNED)
    scorer = Scorer(model, image_token_id=None)
    with torch.no_grad():
        tight, _, _ = scorer(model, ids, torch.ones_like(ids), scored)
        # as TRL pads: prompts on the left, completions on the right
        wide_ids, wide_scored = (torch.nn.functional.pad(t, (5, 9)) for t in (ids, scored))
        attention = torch.nn.functional.pad(torch.ones_like(ids), (5, 9))
        wide, entropies, _ = scorer(model, wide_ids, attention, wide_scored, batch_size=2, with_entropy=True)
    torch.testing.assert_close(wide[:, 5:-9], tight, atol=1e-5, rtol=0)
    assert entropies.shape == wide.shape
    assert not wide[:, :5].any()
    assert not wide[:, -9:].any()
