"""The jumping button of the learning recipe, in a real browser."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

APP = Path(__file__).resolve().parents[3] / "configs/learning/jump"


def test_the_jumping_button_is_pressed_by_its_solver_and_a_miss_ends_the_episode():
    kwargs = {"task": "jump/follow", "apps": [APP], "screen_size": (96, 96)}
    env = gymnasium.make("train.learning_clicks:mm_gym/ComputerUse-v0", dialect="clicks", **kwargs)
    for level in (1, 2, 3):
        env.reset(seed=level, options={"level": level})
        rewards = []
        for _ in range(level + 1):
            _, reward, terminated, _, info = env.step(env.unwrapped.expert_action())
            rewards.append(reward)
        assert rewards == pytest.approx([1 / (level + 1)] * (level + 1))  # each press is paid when it is made
        assert (terminated, info["success"]) == (True, True)
    env.reset(seed=0, options={"level": 3})
    env.step(env.unwrapped.expert_action())
    _, reward, terminated, _, info = env.step("0,0")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    env.close()


def test_an_episode_that_is_cut_earns_nothing_twice():
    kwargs = {"task": "jump/follow", "apps": [APP], "screen_size": (96, 96)}
    env = gymnasium.make("train.learning_clicks:mm_gym/ComputerUse-v0", dialect="clicks", level=3, **kwargs)
    env.reset(seed=0)
    assert env.step(env.unwrapped.expert_action())[1] == 0.25
    assert env.unwrapped.finish("token_budget") == (0.0, {"success": 0.0})
    env.close()
