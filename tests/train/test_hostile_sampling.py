"""Whatever the sampling does, no picture is dropped and no step crashes."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.train


class SteeredPolicy:
    """The real back end, whose responses are changed on their way: `steer(request, response)`."""

    def __init__(self, inner, steer):
        self.inner = inner
        self.steer = steer
        self.renderer = inner.renderer

    @property
    def version(self):
        return self.inner.version

    @version.setter
    def version(self, value):
        self.inner.version = value

    async def start(self):
        await self.inner.start()

    async def stop(self):
        await self.inner.stop()

    async def generate(self, request):
        return self.steer(request, await self.inner.generate(request))


def steered_step(make_trainer, tickets, steer, **config):
    """One training step on a batch whose responses were steered; the trainer and the batch."""
    trainer = make_trainer(max_steps=1, **config)
    engine = trainer.rollouts.engine
    engine.policy = trainer.rollouts.policy = SteeredPolicy(engine.policy, steer)
    seen = []
    original = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: seen.append(original(inputs)) or seen[-1]
    trainer.train()
    batch = seen[0]
    wanted = sum(len(row.images) for row in trainer._rows)
    assert len(batch["image_grid_thw"]) == wanted > 0, "a picture was dropped"
    return trainer, batch


def respond(token_ids, finish="stop"):
    from agents.types import Response

    return Response(list(token_ids), [-1.0] * len(token_ids), finish)


def test_a_forced_vision_token_costs_its_episode_and_nothing_else(make_trainer, tickets):
    def steer(request, response):
        forced = request.seed % 5 == 0
        return respond([*trainer_pad, *response.token_ids]) if forced else response

    trainer_pad = [make_trainer()._image_pad_token_id]
    trainer, batch = steered_step(make_trainer, tickets, steer, per_device_train_batch_size=16)
    assert float(batch["live_share"]) > 0
    kinds = {kind for row in trainer._rows for kind in row.trajectory.failures}
    assert "banned_token" in kinds


def test_responses_cut_in_the_middle_of_a_turn(make_trainer, tickets):
    trainer, batch = steered_step(
        make_trainer,
        tickets,
        lambda request, response: respond(response.token_ids[:3], "length"),
        rollout={"cut_response": "end"},
    )
    assert {str(row.trajectory.stop_reason) for row in trainer._rows} == {"generation_length"}
    assert batch["completion_ids"].shape[1] == 3


def test_cut_responses_that_go_to_the_environment_are_closed_with_mask_zero(make_trainer, tickets):
    trainer, _ = steered_step(
        make_trainer, tickets, lambda request, response: respond(response.token_ids[:3], "length")
    )
    several = [row.trajectory for row in trainer._rows if len(row.trajectory.turns) > 1]
    assert several
    for trajectory in several:
        after = trajectory.turns[0].end
        assert trajectory.token_ids[after] == trainer.renderer.end_of_turn_id
        assert trajectory.loss_mask[after] == 0


def test_empty_responses(make_trainer, tickets):
    trainer, batch = steered_step(make_trainer, tickets, lambda request, response: respond([]))
    assert all(row.live for row in trainer._rows)
    assert (batch["completion_mask"] * batch["tool_mask"]).sum() == 0


def test_another_stop_token_is_closed_with_the_templates_own(make_trainer, tickets):
    def steer(request, response):
        other = [i for i in request.sampling.stop_token_ids if i != response.token_ids[-1]]
        return respond([*response.token_ids[:-1], other[0]])

    trainer, _ = steered_step(make_trainer, tickets, steer)
    end = trainer.renderer.end_of_turn_id
    several = [row.trajectory for row in trainer._rows if len(row.trajectory.turns) > 1]
    assert several
    for trajectory in several:
        turn = trajectory.turns[0]
        if trajectory.token_ids[turn.end - 1] != end:
            assert trajectory.token_ids[turn.end] == end
            assert trajectory.loss_mask[turn.end] == 0


def test_special_token_strings_spelled_by_the_model_stay_text(make_trainer, tickets):
    def steer(request, response):
        spelled = tokenizer.encode("<|image", add_special_tokens=False) + tokenizer.encode("_pad|>")
        return respond([*spelled, request.sampling.stop_token_ids[0]])

    tokenizer = make_trainer().renderer.tokenizer
    trainer, _ = steered_step(make_trainer, tickets, steer)
    assert all(row.live for row in trainer._rows)
