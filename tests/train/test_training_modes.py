"""Ways to train, each for a step or two on the tiny model, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.train

MIXED = "mixed_env:test/Mixed-v0"
TEXT_ONLY = {"id": MIXED, "kwargs": {"pictures": 0}}


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def moved(before, model):
    return {name for name, p in model.named_parameters() if not torch.equal(before[name], p)}


def logged(trainer, key):
    return [entry[key] for entry in trainer.state.log_history if key in entry]


def test_accumulation_several_iterations_and_kl(make_trainer):
    trainer = make_trainer(
        per_device_train_batch_size=4, gradient_accumulation_steps=2, num_iterations=2, beta=0.1, max_steps=4
    )
    before = weights(trainer.model)
    trainer.train()
    assert trainer.state.global_step == 4
    assert trainer.task_cursor == 2 * 2, "two generations of two groups serve four steps"
    kl = logged(trainer, "kl")
    assert kl[0] == pytest.approx(0, abs=1e-6)
    assert kl[-1] > 0
    assert any("visual" in name for name in moved(before, trainer.model)), "the vision tower learns too"


def test_ratios_start_at_one_when_a_batch_is_used_twice(make_trainer, tickets):
    trainer = make_trainer(num_iterations=2)
    trainer.model.train()
    inputs = trainer._generate_and_score_completions(tickets(8))
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    old, sampled = inputs["old_per_token_logps"][mask], inputs["sampling_per_token_logps"][mask]
    torch.testing.assert_close(old, sampled, atol=1e-4, rtol=0)


def test_correction_is_on_where_tokens_come_from_other_weights(make_trainer, tickets):
    trainer = make_trainer()
    trainer.model.train()
    assert "importance_sampling_ratio" not in trainer._generate_and_score_completions(tickets(8))
    trajectories = trainer._collect(2)
    turn = trajectories[0].turns[0]
    turn.policy_version = -1  # sampled by older weights: their log-probs are the behaviour's
    for i in range(turn.start, turn.end):
        trajectories[0].logprobs[i] -= 0.5
    trainer._collect = lambda groups: trajectories
    inputs = trainer._generate_and_score_completions(tickets(8))
    ratio = inputs["importance_sampling_ratio"]
    first = slice(turn.start - trajectories[0].prompt_length, turn.end - trajectories[0].prompt_length)
    torch.testing.assert_close(
        ratio[0, first], torch.full_like(ratio[0, first], 0.5).exp(), atol=1e-3, rtol=0
    )
    trainer.current_gradient_accumulation_steps = 1
    assert torch.isfinite(trainer._compute_loss(trainer.model, inputs))
    assert not trainer.args.use_vllm


def test_lora_trains_the_adapter_alone_and_keeps_parity(make_trainer, tickets):
    from peft import LoraConfig

    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    trainer = make_trainer(trainer_kwargs={"peft_config": config}, num_iterations=2)
    before = weights(trainer.model)
    trainer.train()
    changed = moved(before, trainer.model)
    assert changed
    assert all("lora" in name for name in changed)
    trainer.model.train()
    inputs = trainer._generate_and_score_completions(tickets(8))
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    difference = (inputs["old_per_token_logps"] - inputs["sampling_per_token_logps"])[mask].abs().max()
    assert difference < 1e-4
    trainer.save_model(trainer.args.output_dir + "/adapter")
    assert (Path(trainer.args.output_dir) / "adapter" / "adapter_model.safetensors").is_file()


def test_text_tasks_alone_and_mixed_in(make_trainer):
    trainer = make_trainer(TEXT_ONLY, max_steps=1)
    trainer.train()
    assert not any(row.images for row in trainer._rows)
    trainer = make_trainer([MIXED, TEXT_ONLY], max_steps=2, per_device_train_batch_size=16, num_generations=2)
    trainer.train()
    counts = [len(row.images) for row in trainer._rows]
    assert min(counts) == 0 < max(counts)


def test_a_text_model_trains(make_trainer, tiny_folder, tmp_path):
    from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

    from train.arguments import GymGRPOConfig
    from train.rollouts import RolloutConfig
    from train.trainer import GymGRPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(tiny_folder, padding_side="left")
    tokenizer.chat_template = (tiny_folder / "chat_template.jinja").read_text()
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=1, num_key_value_heads=1, head_dim=64, initializer_range=0.1,
    )  # fmt: skip
    trainer = GymGRPOTrainer(
        Qwen3ForCausalLM(config),
        env=TEXT_ONLY,
        args=GymGRPOConfig(
            output_dir=str(tmp_path / "text"), per_device_train_batch_size=8, num_generations=4, max_steps=1,
            bf16=False, gradient_checkpointing=False, report_to="none", disable_tqdm=True,
        ),
        processing_class=tokenizer,
        rollout=RolloutConfig(max_tokens_per_turn=8),
    )  # fmt: skip
    trainer.train()
    trainer.rollouts.close()
    assert trainer.state.global_step == 1


def test_evaluation_during_training_has_its_own_sampling_and_figures(make_trainer):
    trainer = make_trainer(
        rollout={"eval_temperature": 0.0},
        eval_strategy="steps",
        eval_steps=1,
        max_steps=1,
        log_completions=True,
    )
    trainer.train()
    (entry,) = [e for e in trainer.state.log_history if "eval_success" in e]
    assert entry["eval_episodes"] == 8
    assert entry["eval_success_low"] <= entry["eval_success"] <= entry["eval_success_high"]
    assert trainer.rollouts.eval_sampling.temperature == 0.0
    assert trainer.rollouts.train_sampling.temperature == 1.0
    first, second = (trainer.evaluate_episodes()[0] for _ in range(2))
    assert first == second, "greedy on the same tasks"


def test_logged_completions_are_the_episodes_and_not_the_tickets(make_trainer):
    import pandas

    trainer = make_trainer(log_completions=True, max_steps=1)
    trainer.train()
    (path,) = (Path(trainer.args.output_dir) / "completions").glob("*.parquet")
    table = pandas.read_parquet(path)
    assert len(table) == 8
    texts = [message["content"] for row in table["prompt"] for message in row]
    assert all("Look at this." in text for text in texts)
    assert any("[picture]" in text for text in texts)


def test_rewards_of_the_users_join_and_see_live_rows_alone(make_trainer, tickets):
    def longer(completions, env_reward, trajectory, **columns):
        assert all(reward is not None for reward in env_reward)
        return [
            float(len(t.turns)) + 0.0 * len(text) for t, text in zip(trajectory, completions, strict=True)
        ]

    trainer = make_trainer(trainer_kwargs={"reward_funcs": [longer]})
    trajectories = trainer._collect(2)
    trajectories[0].masked, trajectories[0].reward = True, None
    trainer._collect = lambda groups: trajectories
    trainer.model.train()
    inputs = trainer._generate_and_score_completions(tickets(8))
    assert inputs["advantages"][:4].abs().max() == 0
    assert inputs["advantages"][4:].abs().max() > 0
    assert float(inputs["live_share"]) == 0.5


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb", "trackio"])
def test_trackers(make_trainer, tracker, tmp_path, monkeypatch):
    pytest.importorskip(tracker)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "tb"))
    trainer = make_trainer(report_to=tracker, log_completions=True, max_steps=1)
    trainer.train()
    assert trainer.state.global_step == 1


def test_the_saved_model_loads_and_gives_the_same_logits(make_trainer, tmp_path):
    from transformers import AutoModelForImageTextToText, AutoProcessor

    trainer = make_trainer(max_steps=1)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    model = AutoModelForImageTextToText.from_pretrained(tmp_path / "saved").eval()
    assert AutoProcessor.from_pretrained(tmp_path / "saved").chat_template
    ids = torch.arange(50, 90)[None]
    with torch.no_grad():
        trainer.model.eval()
        torch.testing.assert_close(model(input_ids=ids).logits, trainer.policy_model(input_ids=ids).logits)


def test_a_checkpoint_holds_the_task_cursor(make_trainer, tmp_path):
    first = make_trainer(max_steps=2, save_strategy="steps", save_steps=1, output_dir=str(tmp_path / "run"))
    first.train()
    assert first.task_cursor == 4
    second = make_trainer(max_steps=3, save_strategy="steps", save_steps=1, output_dir=str(tmp_path / "run"))
    second.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-1"))
    assert second.state.global_step == 3
    assert second.task_cursor == 6, "the resumed run takes the tasks that the first would have taken next"


def test_settings_that_would_train_something_else_are_refused(make_trainer):
    for config, words in (
        ({"mask_truncated_completions": True}, "stop reasons decide"),
        ({"top_p": 0.9}, "biases the importance ratios"),
        ({"per_device_train_batch_size": 2, "gradient_accumulation_steps": 3, "num_generations": 3}, None),
        ({"per_device_train_batch_size": 6, "num_generations": 4}, "divi"),
    ):
        if words is None:
            make_trainer(**config)
            continue
        with pytest.raises(ValueError, match=words):
            make_trainer(**config)
    make_trainer(top_p=0.9, rollout={"allow_biased_sampling": True})
