"""The host of one environment: step ids, checks of what comes back, digests."""

from __future__ import annotations

import numpy as np
import pytest
from faulty_env import ENV_ID, FaultyEnv

from agents.env_host import EnvHost, EnvRecipe, observation_digest
from mm_gym import EnvironmentFailure


@pytest.fixture
def host() -> EnvHost:
    made = EnvHost(EnvRecipe(ENV_ID, {"length": 5}))
    made.reset(0, {})
    return made


def test_a_repeated_step_id_returns_the_recorded_answer_and_steps_once(host):
    first = host.step("a", "episode/0")
    assert host.step("a", "episode/0") is first
    assert host.env.unwrapped.turn == 1
    assert host.env.unwrapped.step_id == "episode/0"
    assert host.step("b", "episode/1") is not first
    assert host.env.unwrapped.turn == 2


def test_a_reset_forgets_the_recorded_answer(host):
    host.step("a", "episode/0")
    host.reset(0, {})
    host.step("a", "episode/0")
    assert host.env.unwrapped.turn == 1


OBSERVATION = {"text": "t", "images": ()}
INFO = {"messages": []}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (OBSERVATION, 0.0, False, False),
        ({"text": "t"}, 0.0, False, False, INFO),
        (OBSERVATION, float("nan"), False, False, INFO),
        (OBSERVATION, "much", False, False, INFO),
        (OBSERVATION, 0.0, False, False, {}),
        (
            OBSERVATION,
            0.0,
            False,
            False,
            {"messages": [{"role": "user", "content": [{"type": "image", "index": 0}]}]},
        ),
    ],
)
def test_garbage_is_a_failure_that_says_what_was_expected(host, monkeypatch, answer):
    monkeypatch.setattr(FaultyEnv, "step", lambda self, action: answer)
    with pytest.raises(EnvironmentFailure, match="must return") as caught:
        host.step("a", "episode/0")
    assert caught.value.kind == "garbage"


def test_digests_tell_pictures_texts_and_shapes_apart():
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    image = np.zeros((4, 6, 3), dtype=np.uint8)
    other = image.copy()
    other[0, 0, 0] = 1
    digests = [
        observation_digest(messages, [image]),
        observation_digest(messages, [other]),
        observation_digest(messages, [image.reshape(6, 4, 3)]),
        observation_digest(messages, []),
        observation_digest([], [image]),
    ]
    assert len(set(digests)) == 5
    assert observation_digest(messages, [image.copy()]) == digests[0]


def test_recipes_with_equal_arguments_share_environments():
    assert EnvRecipe("a", {"x": 1, "y": 2}).key == EnvRecipe("a", {"y": 2, "x": 1}).key
    assert EnvRecipe("a", {"x": 1}).key != EnvRecipe("a", {"x": 2}).key
