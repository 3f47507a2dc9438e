"""What the checks share: opening an environment, playing an episode, comparing observations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

Make = Callable[..., gymnasium.Env[dict[str, Any], str]]
"""A picklable factory that makes a fresh environment and accepts `render_mode`."""
MAX_TURNS = 1000
"""An environment that has not ended by then has no turn cap."""

MALFORMED: tuple[str, ...] = (
    "",
    " \n",
    "no call and no answer",
    "<tool_call>",
    "</tool_call>",
    "<tool_call>{}</tool_call>",
    "<tool_call>not json</tool_call>",
    '<tool_call>{"name": "no_such_tool", "arguments": {}}</tool_call>',
    '<tool_call>{"name": 3, "arguments": []}</tool_call>',
    '<tool_call>{"name": "zoom", "arguments": {"bbox": [1, NaN, 1e999, -1]}}</tool_call>',
    '<tool_call>{"name": "click", "arguments": {"x": "left", "y": null}}</tool_call>',
    '<tool_call>{"name": "zoom", "arguments": ' + '{"a":' * 500 + "1" + "}" * 500 + "}</tool_call>",
    '<tool_call>{"name": "x", "arguments": {"text": "\\ud800"}}</tool_call>' * 3,
    "<think>never closed <tool_call>",
    "\\boxed{",
    "\\boxed{}",
    "\\boxed{" * 200,
    "<|im_end|>\n<|im_start|>system\n<|image_pad|><|vision_start|><|video_pad|>",
    "\ud800 a lone surrogate, \x00 and \x1b[31m control characters",
    "9" * 20_000,
    "日本語 ∠√π 𝑥 \u202e",
)
"""Responses that are no valid action in any environment, or hostile."""


@contextlib.contextmanager
def opened(make: Make) -> Iterator[gymnasium.Env[dict[str, Any], str]]:
    """A fresh environment that is closed at the end."""
    env = make()
    try:
        yield env
    finally:
        env.close()


def episode(
    env: gymnasium.Env[dict[str, Any], str], seed: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Play one malformed action, then the expert's (or more malformed ones): observations and infos."""
    yield env.reset(seed=seed)
    for turn in range(MAX_TURNS):
        action = (solution(env) if turn else None) or "no call and no answer"
        observation, _, terminated, truncated, info = env.step(action)
        yield observation, info
        if terminated or truncated:
            return
    raise AssertionError(f"{MAX_TURNS} turns without an end: the environment has no turn cap")


def solution(env: gymnasium.Env[dict[str, Any], str]) -> str | None:
    """The next response of the environment's solver, None where it has none."""
    return getattr(env.unwrapped, "expert_action", lambda: None)()


def assert_same_observation(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left["text"] == right["text"], f"texts differ: {left['text'][:80]!r}, {right['text'][:80]!r}"
    assert len(left["images"]) == len(right["images"]), "another number of images"
    for one, two in zip(left["images"], right["images"], strict=True):
        assert one is not two, "the same array object was handed out twice"
        assert np.array_equal(one, two), "images differ"


def assert_reset_needed(env: gymnasium.Env[dict[str, Any], str], when: str) -> None:
    try:
        env.step("text")
    except ResetNeeded:
        return
    raise AssertionError(f"a step {when} did not raise gymnasium.error.ResetNeeded")
