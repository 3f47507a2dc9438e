"""The pantry: text tasks with two native tools, for small language models."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

from mm_gym.episode import expert, play
from mm_gym.mcp.servers.tasks_pantry import THINGS, tasks
from mm_gym.testing import check_environment

CONFIG = Path(__file__).resolve().parents[3] / "configs" / "mcp" / "pantry.yaml"


def make(**kwargs):
    settings = {"config": str(CONFIG), "taskset": "mm_gym.mcp.servers.tasks_pantry:tasks", **kwargs}
    return gymnasium.make("mm_gym/MCP-v0", **settings)


def call(name, **arguments):
    import json

    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_the_solver_looks_up_and_answers():
    env = make(split="test")
    for seed in range(3):
        episode = play(env, expert(env), seed=seed)
        assert episode.success
        assert episode.rewards == [0.0, 1.0]
    env.close()


def test_schemas_are_left_out_where_the_configuration_says_so_and_calls_run_all_the_same():
    env = make()
    _, info = env.reset(seed=0)
    assert info["tools"] == []
    assert "look_up" in info["system_prompt"]
    _, _, _, _, info = env.step(call("look_up", thing=info["task"].prompt.split()[2]))
    assert info["tool_calls"][0]["status"] == "ok"
    env.close()


def test_a_wrong_answer_earns_what_its_calls_are_worth_and_no_more():
    env = make()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(call("answer", number=1))
    assert terminated
    assert reward == pytest.approx(0.2)
    assert not info["success"]
    env.close()


def test_an_unknown_thing_is_said_to_be_unknown_and_the_episode_goes_on():
    env = make()
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step(call("look_up", thing="gold"))
    assert "there is no 'gold'; there are " in observation["text"]
    assert info["tool_calls"][0]["status"] == "failed"
    assert not terminated
    env.close()


def test_held_out_tasks_ask_for_other_things():
    assert not set(THINGS["train"]) & set(THINGS["test"])
    questions = {split: {row["prompt"] for row in tasks(split)} for split in THINGS}
    assert {split: len(asked) for split, asked in questions.items()} == {"train": 59, "test": 20}
    assert not questions["train"] & questions["test"]


def test_it_keeps_the_contract():
    check_environment(make)
