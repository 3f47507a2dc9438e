"""Whatever a model says, turn after turn: an answer, finite rewards, an end, and no error."""

from __future__ import annotations

import math

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mm_gym
from mm_gym.geo3k.env import TOOLS

ENVIRONMENTS = {
    "geo3k": gymnasium.make(
        "mm_gym/Geo3k-v0", families=("triangle_angle_sum",), tools=TOOLS, format_penalty=0.5
    ),
    "geo3k that ends early": gymnasium.make(
        "mm_gym/Geo3k-v0", families=("triangle_angle_sum",), end_on="no_tool_call", max_parse_failures=1
    ),
    "pointing": gymnasium.make("mm_gym/Pointing-v0", level=3),
    "pointing, plain": gymnasium.make("mm_gym/Pointing-v0", answer_format="plain", format_reward=0.25),
}
PIECES = [
    '<tool_call>{"name": "zoom", "arguments": {"bbox": [0, 0, 500, 500]}}</tool_call>',
    '<tool_call>{"name": "zoom", "arguments": {"cell": 5}}</tool_call>',
    '<tool_call>{"name": "calculator", "arguments": {"expression": "2^',
    '<tool_call>{"name": "check_answer", "arguments": {"answer": "\\frac{1}{2}"}}</tool_call>',
    '"}}</tool_call>',
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "\\boxed{",
    "}",
    "60",
    "red",
    "500,167",
    "\ud800",
    "<|image_pad|>",
    "\x00",
]
RESPONSES = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=40)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(seed=st.integers(0, 3), responses=st.lists(RESPONSES, min_size=3, max_size=3))
def test_any_response_is_answered(name: str, seed: int, responses: list[str]) -> None:
    env = ENVIRONMENTS[name]
    env.reset(seed=seed)
    for turn, response in enumerate(responses, 1):
        observation, reward, terminated, truncated, info = env.step(response)
        assert env.observation_space.contains(observation)
        assert math.isfinite(reward)
        assert not (terminated and truncated)
        if terminated or truncated:
            assert info["stop_reason"] in set(mm_gym.StopReason)
            assert (reward >= 1.0) == info["success"]
            return
        assert observation["text"] or observation["images"]
        assert turn < 3, "three turns are the cap"
