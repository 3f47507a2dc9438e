"""A foreign interaction environment, unchanged, keeps our contract."""

from __future__ import annotations

import io
import json
from pathlib import Path

import gymnasium
import pytest
from PIL import Image

import mm_gym

FOREIGN = str(Path(__file__).with_name("foreign_env.py"))
ID = "mm_gym.adapters.interaction:Interaction-v0"


@pytest.fixture
def make(tmp_path):
    rows = [{"prompt": "Say the word. <image>Which?", "label": word} for word in ("red", "blue")]
    buffer = io.BytesIO()
    Image.new("RGB", (20, 10), "red").save(buffer, "PNG")
    (tmp_path / "red.png").write_bytes(buffer.getvalue())
    for row in rows:
        row["images"] = [str(tmp_path / "red.png")]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "args.yaml").write_text("max_turns: 3\nbonus: 1.0\n")

    def made(**kwargs):
        defaults = {
            "module": FOREIGN,
            "data": str(tmp_path / "rows.jsonl"),
            "reward": f"{FOREIGN}:reward",
            "args": str(tmp_path / "args.yaml"),
        }
        return gymnasium.make(ID, **{**defaults, **kwargs})

    return made


def test_prompt_pictures_turns_and_reward(make):
    env = make()
    observation, info = env.reset(seed=0, options={"task": "0"})
    assert observation["text"] == "Say the word. \nWhich?"
    assert [image.shape for image in observation["images"]] == [(10, 20, 3)]
    assert "<image>" not in observation["text"]

    observation, reward, terminated, truncated, info = env.step("green")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert observation["text"] == "no, 1"
    assert observation["images"][0].shape == (30, 40, 3)
    assert info["messages"][0]["role"] == "tool"

    _, reward, terminated, _, info = env.step("red")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_the_turn_cap_of_its_own_arguments_holds_and_scores(make):
    env = make()
    env.reset(seed=0, options={"task": "1"})
    for _ in range(2):
        env.step("green")
    _, reward, terminated, _, info = env.step("green")
    assert (reward, terminated, info["success"]) == (0.0, True, False)


def test_only_the_models_own_text_is_scored(make):
    env = make(args={"max_turns": 3, "bonus": 1.0})
    env.reset(seed=0, options={"task": "0"})
    env.step("one")
    env.step("two")
    assert env.unwrapped._sample.response == "one\ntwo"


def test_a_cut_episode_is_scored_on_what_was_said(make):
    env = make(args={"max_turns": 9, "bonus": 0.5}, success_at=0.5)
    env.reset(seed=0, options={"task": "0"})
    env.step("nothing")
    env.unwrapped._sample.response += " red"
    assert env.unwrapped.finish("token_budget") == (0.5, {"success": 1.0})


def test_what_breaks_inside_is_our_failure_and_not_a_reward(make):
    env = make()
    env.reset(seed=0)
    with pytest.raises(mm_gym.EnvironmentFailure, match="simulator is gone"):
        env.step("break")


def test_it_is_closed_with_the_adapter_and_between_episodes(make):
    env = make()
    env.reset(seed=0)
    first = env.unwrapped._inner
    env.reset(seed=1)
    assert first.closed
    second = env.unwrapped._inner
    env.close()
    env.close()
    assert second.closed


def test_rows_are_drawn_by_the_seed_and_listed(make):
    env = make()
    assert env.unwrapped.task_ids == ("0", "1")
    drawn = {env.reset(seed=seed)[1]["task_id"] for seed in range(12)}
    assert drawn == {"0", "1"}


def test_a_wrong_reward_path_is_named(make):
    with pytest.raises(ValueError, match="module:function"):
        make(reward=f"{FOREIGN}:nothing")
