"""Checks of what an environment returns, of its answers to bad actions, and of how episodes end."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import numpy as np

from mm_gym.stop import StopReason
from mm_gym.testing.common import (
    MALFORMED,
    MAX_TURNS,
    Make,
    assert_reset_needed,
    assert_same_observation,
    episode,
    opened,
    solution,
)
from mm_gym.text import scalar_text


def spaces_contain_what_is_returned(make: Make) -> None:
    """Observations lie in the observation space, actions in the action space, no image marks in texts."""
    with opened(make) as env:
        for seed in range(3):
            for observation, _ in episode(env, seed):
                assert env.observation_space.contains(observation), "an observation is not in the space"
                assert "<image>" not in observation["text"], "a literal <image> mark in the text"
        assert env.action_space.contains("any text ∠"), "the action space must hold any text"


def infos_keep_the_contract(make: Make) -> None:
    """The keys of `info` after reset, step and the last step, their types, and their views of the images."""
    with opened(make) as env:
        for seed in range(3):
            steps = list(episode(env, seed))
            _check_reset_info(steps[0][1])
            for observation, info in steps:
                _check_messages(observation, info["messages"])
            for _, info in steps[1:]:
                _check_step_info(info)
            for _, info in steps[:-1]:
                assert "stop_reason" not in info, "`stop_reason` before the last step"
            last = steps[-1][1]
            assert last["stop_reason"] in set(StopReason), f"no stop reason: {last['stop_reason']!r}"
            assert type(last["success"]) is bool, "`success` must be a bool"


def _check_reset_info(info: dict[str, Any]) -> None:
    assert isinstance(info["system_prompt"], str), "`system_prompt` must be a str, empty for none"
    assert isinstance(info["task_id"], str), "`task_id` must be a str"
    assert info["task_id"], "`task_id` must not be empty"
    for tool in json.loads(json.dumps(info["tools"])):
        assert tool["type"] == "function", "tools are JSON-schema functions"
        assert tool["function"]["parameters"]["type"] == "object", "a tool's parameters are an object"
    if "task" in info:
        task = pickle.loads(pickle.dumps(info["task"]))
        assert dataclasses.is_dataclass(task), "`task` must be a dataclass"
        parameters = getattr(task, "__dataclass_params__")  # noqa: B009  (mypy does not know it)
        assert parameters.frozen, "`task` must be frozen"


def _check_messages(observation: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    indices, texts = [], []
    for message in json.loads(json.dumps(messages)):
        assert message["role"] in ("user", "tool"), f"role {message['role']!r}"
        if message["role"] == "tool":
            assert isinstance(message["name"], str), "a tool message names its tool"
            assert isinstance(message["call"], int), "a tool message has the index of its call"
        for block in message["content"]:
            assert block["type"] in ("text", "image"), f"block type {block['type']!r}"
            if block["type"] == "image":
                indices.append(block["index"])
            else:
                texts.append(block["text"])
    assert sorted(indices) == list(range(len(observation["images"]))), "image blocks do not match the images"
    assert all(text in observation["text"] for text in texts), "the flat text lacks a block's text"


def _check_step_info(info: dict[str, Any]) -> None:
    for record in info["tool_calls"]:
        assert {"name", "arguments", "status"} <= set(record), f"incomplete tool-call record {record}"
    for name, value in info["metrics"].items():
        assert type(value) is float, f"metric {name} is a {type(value).__name__}, not a float"
    if "error" in info:
        assert isinstance(info["error"], dict), "an error is a dict; leave the key out where there is none"
        assert isinstance(info["error"]["kind"], str), "an error has a kind"
        assert isinstance(info["error"]["text"], str), "an error has a text"


def same_seed_gives_the_same_episode(make: Make) -> None:
    """Observations and infos repeat, in new objects, in the same and in a second environment."""
    with opened(make) as env, opened(make) as other:
        first, again, second = (list(episode(e, 11)) for e in (env, env, other))
        for repeated in (again, second):
            assert len(first) == len(repeated), "the same seed gave an episode of another length"
            for (o1, i1), (o2, i2) in zip(first, repeated, strict=True):
                assert_same_observation(o1, o2)
                assert i1 is not i2, "the same info object twice"
                assert _plain(i1) == _plain(i2), "the same seed gave another info"


def _plain(info: dict[str, Any]) -> str:
    return repr(sorted(info.items()))


def text_holds_scalar_values(make: Make) -> None:
    """A lone surrogate in an action never comes back in an observation."""
    with opened(make) as env:
        env.reset(seed=0)
        text = '<tool_call>{"name": "\ud800", "arguments": {"\udfff": "\\ud800"}}</tool_call>'
        observation, *_, info = env.step(text)
        assert observation["text"] == scalar_text(observation["text"]), "a lone surrogate in the text"
        json.dumps(info["tool_calls"], ensure_ascii=False).encode()


def malformed_actions_never_raise(make: Make) -> None:
    """Each gets an ordinary answer, and none is a success."""
    with opened(make) as env:
        for start in range(0, len(MALFORMED), 3):
            env.reset(seed=start)
            for action in MALFORMED[start : start + 3]:
                observation, reward, terminated, truncated, info = env.step(action)
                assert env.observation_space.contains(observation), f"after {action[:40]!r}"
                assert isinstance(reward, float), f"reward {reward!r}"
                assert np.isfinite(reward), f"reward {reward!r}"
                if terminated or truncated:
                    assert info["success"] is False, f"success from {action[:40]!r}"
                    break
                assert observation["text"] or observation["images"], f"no answer to {action[:40]!r}"


def malformed_actions_reach_an_end(make: Make) -> None:
    """An agent that never makes sense is truncated or terminated, and not both."""
    with opened(make) as env:
        env.reset(seed=0)
        for _ in range(MAX_TURNS):
            *_, terminated, truncated, _ = env.step("no call and no answer")
            assert (type(terminated), type(truncated)) == (bool, bool), "flags must be plain bools"
            assert not (terminated and truncated), "both terminated and truncated"
            if terminated or truncated:
                return
        raise AssertionError(f"{MAX_TURNS} turns without an end: the environment has no turn cap")


def a_step_outside_an_episode_raises_reset_needed(make: Make) -> None:
    """Before the first reset (on the bare environment) and after the end."""
    with opened(make) as env:
        assert_reset_needed(env.unwrapped, "before the first reset")
        for _ in episode(env, 0):
            pass
        assert_reset_needed(env, "after the end")


def an_action_that_is_no_text_is_the_callers_mistake(make: Make) -> None:
    """It raises TypeError, and the episode goes on."""
    with opened(make) as env:
        env.reset(seed=0)
        bare: Any = env.unwrapped
        try:
            bare.step(b"bytes")
        except TypeError:
            env.step("text")
        else:
            raise AssertionError("bytes were taken as an action")


def the_engines_turn_cap_is_an_option(make: Make) -> None:
    """`options={"max_turns": n}` is taken; a number below 1 is refused."""
    with opened(make) as env:
        env.reset(seed=0, options={"max_turns": 1})
        try:
            env.reset(seed=0, options={"max_turns": 0})
        except ValueError:
            return
        raise AssertionError('options={"max_turns": 0} was taken')


def finish_ends_the_episode_once(make: Make) -> None:
    """It returns (float, dict of floats); afterwards a step raises and a second call earns nothing."""
    with opened(make) as env:
        bare: Any = env.unwrapped
        for stop_reason in ("token_budget", StopReason.GENERATION_LENGTH, StopReason.ABORTED):
            env.reset(seed=0)
            env.step("no call and no answer")
            reward, metrics = bare.finish(stop_reason)
            assert type(reward) is float, f"finish gave the reward {reward!r}"
            assert np.isfinite(reward), f"finish gave the reward {reward!r}"
            assert all(type(value) is float for value in metrics.values()), f"metrics {metrics!r}"
            assert_reset_needed(env, "after finish")
            assert bare.finish(stop_reason) == (0.0, {}), "finish earned something twice"
        for _ in episode(env, 0):
            pass
        assert bare.finish("aborted") == (0.0, {}), "an ended episode earned something in finish"


def the_expert_solves_it(make: Make) -> None:
    """Where there is a solver, its episodes succeed with a positive return."""
    with opened(make) as env:
        for seed in range(5):
            _, info = env.reset(seed=seed)
            actions: list[str] = []
            earned, ended = 0.0, False
            while not ended and len(actions) < MAX_TURNS:
                action = solution(env)
                if action is None:
                    break
                actions.append(action)
                _, reward, terminated, truncated, last = env.step(action)
                earned, ended = earned + float(reward), terminated or truncated
            if not actions:
                continue  # this task has no solver
            assert ended, f"the expert of task {info['task_id']} stopped in the middle: {actions[-3:]}"
            assert last["success"], f"the expert failed task {info['task_id']}: {actions[-3:]}"
            assert earned > 0, f"success in task {info['task_id']} earned {earned}"


def it_closes_twice(make: Make) -> None:
    """Fresh, and in the middle of an episode."""
    env = make()
    env.close()
    env.unwrapped.close()
    with opened(make) as env:
        env.reset(seed=0)
        env.close()
        env.unwrapped.close()
        assert_reset_needed(env.unwrapped, "after close")
