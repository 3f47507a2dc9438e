"""SmolLM2 from its package: what is missing is named; the converted folder is the stored model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("present", "command"), [((), "mm-gym\\[smollm\\]"), (("gguf",), "--no-deps")])
def test_what_is_not_installed_is_named_with_its_command(monkeypatch, present, command):
    from gymnasium.error import DependencyNotInstalled

    from train.smollm import find_gguf

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in present else None)
    with pytest.raises(DependencyNotInstalled, match=command):
        find_gguf()


def test_the_recipe_trains_on_tasks_that_it_is_not_evaluated_on():
    recipe = yaml.safe_load((ROOT / "configs/smollm_tools.yaml").read_text())
    trained, held_out = (recipe[which][0] for which in ("environments", "eval_environments"))
    assert trained["kwargs"].get("split", "train") != held_out["kwargs"]["split"] == "test"
    assert (ROOT / trained["kwargs"]["config"]).is_file()
    assert (
        recipe["per_device_train_batch_size"]
        * recipe["gradient_accumulation_steps"]
        % recipe["num_generations"]
        == 0
    )


@pytest.mark.slow
def test_the_converted_folder_is_the_stored_model_and_renders_exactly(tmp_path):
    from gymnasium.error import DependencyNotInstalled
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from agents.chat import ChatRenderer
    from train.smollm import build_smollm, find_gguf

    try:
        file = find_gguf()
    except DependencyNotInstalled as error:
        pytest.skip(str(error))
    folder = build_smollm(tmp_path / "smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    assert not hasattr(model.config, "quantization_config")
    stored = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name).eval()
    renderer = ChatRenderer(tokenizer)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = renderer.prompt(question).token_ids
    ids = torch.tensor([prompt])
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, stored(ids).logits, atol=1e-3, rtol=0)
        sampled = model.generate(ids, max_new_tokens=20, do_sample=False)[0, len(prompt) :].tolist()
    answer = tokenizer.decode(sampled, skip_special_tokens=True)
    assert "Paris" in answer
    assert sampled[-1] == renderer.end_of_turn_id
    more = [{"role": "user", "content": "And of Italy?"}]
    stream = prompt + sampled + renderer.delta(more).token_ids
    whole = tokenizer.apply_chat_template(
        [*question, {"role": "assistant", "content": answer}, *more],
        add_generation_prompt=True,
        tokenize=False,
    )
    assert tokenizer.decode(stream) == whole
