"""The transformers policy on the tiny Qwen3-VL: batches, kept prefixes, bans, random streams, failures."""

from __future__ import annotations

import asyncio
import functools
import random

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from agents import RolloutEngine, Task, TransformersPolicy
from agents.engine import Budgets
from agents.policies.sampling import Sampler, allowed_logprobs, draw, uniforms
from agents.types import GenerationFailure, Request, Response, SamplingParams


@pytest.fixture(scope="module")
def make_policy(tiny_vlm):
    model, processor = tiny_vlm
    return lambda **options: TransformersPolicy(model, processor, **options)


def picture(seed: int, height: int = 64, width: int = 96) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def prompt(renderer, text: str, *images: Image.Image):
    content = [*({"type": "image", "image": i} for i in images), {"type": "text", "text": text}]
    return renderer.prompt([{"role": "user", "content": content}])


def request(
    policy, text: str = "Hello", images=(), *, episode="e", seed=0, max_tokens=8, **sampling
) -> Request:
    segment = prompt(policy.renderer, text, *images)
    params = SamplingParams(
        **{"banned_token_ids": policy.renderer.banned_token_ids, **sampling},
    )
    return Request(episode, segment.token_ids, segment.images, max_tokens, seed, params)


def generate(policy, *requests: Request) -> list[Response]:
    async def main() -> list[Response]:
        await policy.start()
        try:
            return await asyncio.gather(*(policy.generate(r) for r in requests))
        finally:
            await policy.stop()

    return asyncio.run(main())


def varied(policy, count: int = 6) -> list[Request]:
    """Requests of different lengths, sizes and numbers of pictures."""
    return [
        request(
            policy,
            "word " * (3 * n + 1),
            [picture(i, 32 + 32 * (n % 3)) for i in range(n % 3)],
            episode=str(n),
            seed=n,
            max_tokens=4 + n,
        )
        for n in range(count)
    ]


def test_a_row_of_a_batch_is_what_it_is_alone(make_policy):
    """Different lengths and image counts, some without a picture, in one batch."""
    policy = make_policy()
    together = generate(policy, *varied(policy))
    for one, r in zip(together, varied(policy), strict=True):
        (alone,) = generate(make_policy(), r)
        assert one.token_ids == alone.token_ids
        assert one.logprobs == pytest.approx(alone.logprobs, abs=1e-4)
        assert len(one.token_ids) == r.max_tokens
        assert one.finish_reason == "length"


def test_many_arrivals_are_computed_in_parts_that_fit(make_policy):
    policy, whole = make_policy(max_prefill_tokens=80), make_policy()
    requests = varied(policy)
    shapes: list[tuple[int, int]] = []
    forward = policy.model.forward

    @functools.wraps(forward)
    def recording(*args, **kwargs):
        shapes.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    policy.model.forward = recording
    try:
        responses = generate(policy, *requests)
    finally:
        del policy.model.forward
    longest = max(len(r.token_ids) for r in requests)
    assert all(rows * width <= max(80, longest) for rows, width in shapes)
    assert [r.token_ids for r in responses] == [r.token_ids for r in generate(whole, *requests)]


def test_batch_invariant_tokens_and_logprobs_are_bit_for_bit_equal(make_policy):
    policy = make_policy(batch_invariant=True)
    together = generate(policy, *varied(policy))
    alone = [generate(make_policy(batch_invariant=True), r)[0] for r in varied(policy)]
    assert together == alone


def test_the_next_turn_computes_its_new_tokens_only(make_policy):
    policy, fresh = make_policy(), make_policy(prefix_cache_gib=0)
    first = request(policy, "Look.", [picture(1)])

    async def two_turns(p):
        await p.start()
        one = await p.generate(first)
        delta = p.renderer.answer(
            one.token_ids, "length", [{"role": "user", "content": [{"type": "image", "image": picture(2)}]}]
        )
        ids = [*first.token_ids, *one.token_ids, *delta.token_ids]
        images = [*first.images, *delta.images]
        two = await p.generate(Request("e", ids, images, 8, 5, first.sampling))
        await p.stop()
        return one, two, len(delta.token_ids)

    kept_one, kept_two, new = asyncio.run(two_turns(policy))
    fresh_one, fresh_two, _ = asyncio.run(two_turns(fresh))
    assert kept_one.token_ids == fresh_one.token_ids
    assert kept_two.token_ids == fresh_two.token_ids
    assert kept_two.logprobs == pytest.approx(fresh_two.logprobs, abs=1e-4)
    assert (
        policy.stats.prefill_tokens == len(first.token_ids) + new + 1
    )  # the last sampled id was not computed
    assert fresh.stats.reused_tokens == 0


def test_equal_prompts_of_a_group_are_computed_once(make_policy):
    policy = make_policy()
    requests = [request(policy, "Same.", [picture(1)], episode=str(n), seed=n) for n in range(4)]
    responses = generate(policy, *requests)
    assert policy.stats.prefill_tokens <= 2 * len(requests[0].token_ids)
    assert len({tuple(r.token_ids) for r in responses}) == 4
    (alone,) = generate(make_policy(), requests[3])
    assert responses[3].token_ids == alone.token_ids


def test_a_picture_changed_in_place_of_an_equal_stream_is_not_taken_from_the_cache(make_policy):
    """The same ids with another picture: neither the episode's nor the prompt's kept prefix may serve."""
    policy = make_policy()

    async def main():
        await policy.start()
        out = [
            await policy.generate(request(policy, "Look.", [picture(seed)], max_tokens=3)) for seed in (1, 2)
        ]
        await policy.stop()
        return out

    a, b = asyncio.run(main())
    assert a.logprobs != pytest.approx(b.logprobs, abs=1e-5)


def test_new_weights_forget_the_kept_prefixes(make_policy, tiny_vlm):
    model, _ = tiny_vlm
    policy = make_policy()
    (before,) = generate(policy, request(policy))
    weight = model.get_input_embeddings().weight
    original = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)) * 0.1)
        (changed,) = generate(policy, request(policy))
        (fresh,) = generate(make_policy(), request(policy))
    finally:
        with torch.no_grad():
            weight.copy_(original)
    assert changed == fresh
    assert changed.logprobs != before.logprobs


def test_a_forward_that_takes_no_pixels_is_not_run_without_them(make_policy, tiny_vlm, monkeypatch):
    model, _ = tiny_vlm
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda input_ids, **kwargs: forward(input_ids, **kwargs))
    policy = make_policy()
    with pytest.raises(GenerationFailure, match="takes no pixel_values"):
        generate(policy, request(policy, "Look.", [picture(1)]))


def test_stop_ids_end_a_turn_and_stay_in_it(make_policy):
    policy = make_policy()
    every = tuple(range(len(policy.renderer.tokenizer)))
    (response,) = generate(policy, request(policy, stop_token_ids=every))
    assert len(response.token_ids) == 1
    assert response.finish_reason == "stop"


def test_banned_ids_are_never_sampled_and_leave_the_softmax(make_policy):
    policy = make_policy()
    allowed = (40, 41, 42)
    size = policy.model.get_output_embeddings().weight.shape[0]
    banned = tuple(i for i in range(size) if i not in allowed)
    (response,) = generate(policy, request(policy, banned_token_ids=banned, max_tokens=32))
    assert set(response.token_ids) <= set(allowed)
    ids = torch.tensor([[*request(policy).token_ids, *response.token_ids]])
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits[0, -33:-1].float()
    logits[:, list(banned)] = float("-inf")
    expected = logits.log_softmax(-1).gather(1, torch.tensor(response.token_ids)[:, None]).squeeze(1)
    assert response.logprobs == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_ban_outside_the_vocabulary_is_a_failure_that_names_it(make_policy):
    policy = make_policy()
    with pytest.raises(GenerationFailure, match="10000000"):
        generate(policy, request(policy, banned_token_ids=(10_000_000,)))


def test_greedy_takes_the_likeliest_and_needs_no_seed(make_policy):
    policy = make_policy()
    a, b = generate(
        policy,
        request(policy, episode="a", seed=1, temperature=0.0),
        request(policy, episode="b", seed=2, temperature=0.0),
    )
    assert a.token_ids == b.token_ids


def test_beyond_the_context_is_refused_with_the_numbers(make_policy):
    policy = make_policy(max_context=40)
    r = request(policy, "Hello", max_tokens=40)
    with pytest.raises(ValueError, match=f"prompt \\({len(r.token_ids)}\\) plus max_tokens \\(40\\)"):
        generate(policy, r)


def test_a_policy_that_is_not_running_says_so(make_policy):
    policy = make_policy()
    with pytest.raises(GenerationFailure, match="start"):
        asyncio.run(policy.generate(request(policy)))


def test_a_model_that_raises_fails_its_requests_and_the_policy_lives_on(make_policy, tiny_vlm, monkeypatch):
    model, _ = tiny_vlm
    policy = make_policy()
    calls = {"n": 0}
    forward = model.forward

    def breaks_once(*args, **kwargs):
        calls["n"] += 1
        if calls["n"] == 2:
            raise RuntimeError("out of memory")
        return forward(*args, **kwargs)

    monkeypatch.setattr(model, "forward", breaks_once)

    async def main():
        await policy.start()
        with pytest.raises(GenerationFailure, match="out of memory"):
            await policy.generate(request(policy))
        again = await policy.generate(request(policy))
        await policy.stop()
        return again

    assert len(asyncio.run(main()).token_ids) == 8


def test_a_cancelled_request_leaves_the_batch(make_policy):
    policy = make_policy()

    async def main():
        await policy.start()
        long = asyncio.ensure_future(policy.generate(request(policy, episode="long", max_tokens=400)))
        await asyncio.sleep(0.3)
        long.cancel()
        short = await policy.generate(request(policy, episode="short", max_tokens=4))
        await policy.stop()
        return short

    assert len(asyncio.run(main()).token_ids) == 4
    assert policy.stats.decoded_tokens < 400


def test_the_models_mode_is_put_back(make_policy, tiny_vlm):
    model, _ = tiny_vlm
    policy = make_policy()
    model.train()
    try:
        generate(policy, request(policy))
        assert model.training
    finally:
        model.eval()


@pytest.mark.parametrize("exact", [False, True])
def test_tokens_do_not_depend_on_the_timing_of_environments(tiny_vlm, exact):
    """Five shuffled timings. In the exact mode log-probs are equal bit for bit, else to 1e-4."""
    model, processor = tiny_vlm
    runs = []
    for timing in range(5):
        rng = random.Random(timing)
        tasks = [
            Task(
                "faulty_env:test/Faulty-v0",
                {"length": 3, "latency": (0.01, 1.0)},
                seed=n // 2,
                options={"timing": rng.random()},
                group=n // 2,
            )
            for n in range(6)
        ]
        policy = TransformersPolicy(model, processor, batch_invariant=exact)
        budgets = Budgets(max_tokens_per_turn=6, cut_response="step")
        with RolloutEngine(policy, budgets=budgets, seed=7) as engine:
            runs.append(engine.collect(tasks))
    for run in runs[1:]:
        for a, b in zip(runs[0], run, strict=True):
            assert a.token_ids == b.token_ids
            assert a.logprobs == (b.logprobs if exact else pytest.approx(b.logprobs, abs=1e-4))
    assert len({tuple(t.token_ids) for t in runs[0]}) == 6, "each sample has a stream of its own"


# -- sampling ------------------------------------------------------------------------------------------


def test_draws_follow_the_distribution():
    logits = torch.tensor([[0.0, 1.0, 2.0, -1.0]])
    banned = torch.tensor([[False, False, True, False]])
    logprobs = allowed_logprobs(logits, banned, torch.tensor([0.7]))
    assert logprobs[0, 2] == float("-inf")
    assert float(logprobs.exp().sum()) == pytest.approx(1.0)
    u = torch.from_numpy(uniforms(3, 20_000))
    counts = torch.bincount(draw(logprobs.expand(20_000, -1), u), minlength=4) / 20_000
    assert counts.tolist() == pytest.approx(logprobs[0].exp().tolist(), abs=0.015)


@settings(derandomize=True, max_examples=100)
@given(
    st.lists(st.floats(-60, 60), min_size=2, max_size=12),
    st.sets(st.integers(0, 10)),
    st.sampled_from([0.0, 1e-300, 0.25, 0.5, 1 - 2**-53]),
)
def test_an_impossible_id_is_never_drawn(logits, banned, u):
    banned = {i for i in banned if i < len(logits) - 1}
    mask = torch.tensor([[i in banned for i in range(len(logits))]])
    logprobs = allowed_logprobs(torch.tensor([logits]), mask, torch.tensor([1.0]))
    chosen = int(draw(logprobs, torch.tensor([u], dtype=torch.float64)))
    assert chosen not in banned
    assert 0 <= chosen < len(logits)


def test_truncation_keeps_the_logprobs_of_the_whole_softmax():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    sampler = Sampler(torch.device("cpu"))
    for params, possible in [
        (SamplingParams(top_k=2), {0, 1}),
        (SamplingParams(top_p=0.5), {0}),
        (SamplingParams(top_p=0.79), {0, 1}),
        (SamplingParams(min_p=0.25), {0, 1, 2}),
    ]:
        assert params.biased
        seen = {}
        for u in np.linspace(0, 0.999, 60):
            (token,), (logprob,) = sampler(logits, [params], [float(u)])
            seen[token] = logprob
        assert set(seen) == possible
        for token, logprob in seen.items():
            assert logprob == pytest.approx(float(logits[0, token]), abs=1e-6)
