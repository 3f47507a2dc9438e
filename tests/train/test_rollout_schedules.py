"""Partial rollouts and redraws in training, what is logged of a step, and what is kept of it."""

from __future__ import annotations

import json
import threading

import pytest

pytest.importorskip("trl")

from agents.store import read_trajectories

pytestmark = pytest.mark.train


def logged(trainer, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_partial_rollouts_train_on_carried_groups_with_the_samplers_logprobs(make_trainer, tmp_path):
    trainer = make_trainer(
        max_steps=4,
        save_strategy="steps",
        save_steps=4,
        output_dir=str(tmp_path / "run"),
        rollout={"over_provision": 2.0, "max_staleness": 2},
    )
    trainer.train()
    assert trainer.state.global_step == 4
    assert sum(logged(trainer, "rollout/groups_carried_out")) > 0
    state = json.loads((tmp_path / "run" / "checkpoint-4" / "gym_state.json").read_text())
    (groups,) = state["groups"]
    assert groups["cursor"] >= 8
    assert groups == trainer._collector.state_dict()
    resumed = make_trainer(
        max_steps=5, output_dir=str(tmp_path / "run"), rollout={"over_provision": 2.0, "max_staleness": 2}
    )
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-4"))
    assert resumed.state.global_step == 5


def test_groups_of_equal_reward_are_redrawn(make_trainer):
    trainer = make_trainer(max_steps=1, rollout={"redraws": 1.0})
    trainer.train()
    (dropped,) = logged(trainer, "rollout/groups_dropped_equal")
    assert 0 <= dropped <= 2
    assert trainer._collector.cursor == 2 + dropped


def test_a_step_is_logged_by_task_and_kept_with_its_tokens(make_trainer, tmp_path):
    trainer = make_trainer(max_steps=2, output_dir=str(tmp_path / "run"), rollout={"audit_share": 1.0})
    trainer.train()
    names = set().union(*trainer.state.log_history)
    for metric in (
        "reward",
        "success_low",
        "turns",
        "tokens_sampled",
        "repetition",
        "staleness",
        "drift_tokens",
    ):
        assert f"rollout/Mixed/{metric}" in names
    kept = list(read_trajectories(tmp_path / "run" / "rollouts"))
    assert len(kept) == 16
    assert all(t.sampled_tokens for t in kept)


def test_the_store_can_be_left_off(make_trainer, tmp_path):
    trainer = make_trainer(max_steps=1, output_dir=str(tmp_path / "run"), rollout={"store": False})
    trainer.train()
    assert not (tmp_path / "run" / "rollouts").exists()


@pytest.fixture
def make_ahead(make_trainer, tiny_folder):
    """Trainers that collect a step ahead with a copy of the model, which they push their weights to."""

    def make(**config):
        from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

        from agents import TransformersPolicy
        from train.generation import Generator

        copy = Qwen3VLForConditionalGeneration.from_pretrained(tiny_folder)
        trainers: list = []
        generator = Generator(
            TransformersPolicy(copy, AutoProcessor.from_pretrained(tiny_folder)),
            lambda: copy.load_state_dict(trainers[0].policy_model.state_dict()),
            apart=True,
        )
        rollout = {"one_step_ahead": True, "store": False, **config.pop("rollout", {})}
        kwargs = {"policy": generator, **config.pop("trainer_kwargs", {})}
        trainers.append(make_trainer(rollout=rollout, trainer_kwargs=kwargs, **config))
        return trainers[0]

    return make


def collecting(trainer) -> bool:
    return trainer._collector._pending is not None


def test_one_step_ahead_trains_on_the_step_before_with_its_staleness_logged_and_corrected(make_ahead):
    trainer = make_ahead(max_steps=3, learning_rate=1e-2)
    trainer.train()
    assert logged(trainer, "rollout/Mixed/staleness") == [0.0, 1.0, 1.0]
    first, *later = logged(trainer, "sampling/sampling_logp_difference/max")
    assert first < 1e-3, "the first step is sampled with the weights it trains"
    assert min(later) > 1e-3, "the ratios are those of the weights that sampled"
    assert trainer._collector.state_dict()["cursor"] == 6, "no step is begun that would not be trained"
    assert not collecting(trainer)


def test_one_step_ahead_is_in_the_checkpoint_and_evaluation_waits_for_it(make_ahead, tmp_path):
    folder = tmp_path / "ahead"
    settings = {
        "output_dir": str(folder),
        "save_strategy": "steps",
        "save_steps": 1,
        "eval_strategy": "steps",
    }
    trainer = make_ahead(max_steps=2, eval_steps=1, **settings)
    trainer.train()
    states = [json.loads((folder / f"checkpoint-{n}" / "gym_state.json").read_text()) for n in (1, 2)]
    assert [s["groups"][0]["cursor"] for s in states] == [2, 4], "what was not trained on is drawn again"
    assert len(logged(trainer, "eval_success")) == 2
    resumed = make_ahead(max_steps=2, output_dir=str(folder))
    resumed.train(resume_from_checkpoint=str(folder / "checkpoint-1"))
    assert logged(resumed, "rollout/Mixed/staleness") == [0.0, 0.0], "the step after is collected anew"
    assert resumed._collector.state_dict()["cursor"] == 4


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_in_training_leaves_nothing_collecting_and_nothing_open(make_ahead, error):
    from transformers import TrainerCallback

    class Breaks(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            assert collecting(trainer)
            raise error("in the midst of training")

    trainer = make_ahead(max_steps=4, trainer_kwargs={"callbacks": [Breaks()]})
    with pytest.raises(error, match="in the midst"):
        trainer.train()
    assert not collecting(trainer)
    assert trainer.rollouts.engine.open_environments == 0
    assert not [t for t in threading.enumerate() if t.name == "transformers-policy"]


def test_stopping_early_drops_the_step_that_was_being_collected(make_ahead):
    from transformers import TrainerCallback

    class Stops(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = True

    trainer = make_ahead(max_steps=4, trainer_kwargs={"callbacks": [Stops()]})
    trainer.train()
    assert trainer.state.global_step == 1
    assert not collecting(trainer)
    assert trainer.rollouts.engine.open_environments == 0


def test_one_step_ahead_is_refused_where_generation_uses_what_trains(make_trainer):
    with pytest.raises(ValueError, match="vllm_mode: server"):
        make_trainer(rollout={"one_step_ahead": True})
