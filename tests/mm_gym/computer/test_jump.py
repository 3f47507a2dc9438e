"""The jumping button of the learning recipe, in a real browser."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

APP = Path(__file__).resolve().parents[3] / "configs/learning/jump"


def jumping(**kwargs: object) -> gymnasium.Env:
    name = "train.learning_clicks:mm_gym/ComputerUse-v0"
    return gymnasium.make(
        name, task="jump/follow", apps=[APP], screen_size=(96, 96), dialect="clicks", **kwargs
    )


def test_the_jumping_button_is_pressed_by_its_solver_and_a_miss_ends_the_episode():
    env = jumping()
    for level in (1, 2, 3):
        env.reset(seed=level, options={"level": level})
        rewards = []
        for _ in range(level + 1):
            _, reward, terminated, _, info = env.step(env.unwrapped.expert_action())
            rewards.append(reward)
        assert (sum(rewards), terminated, info["success"]) == (1.0, True, True)
        assert rewards == pytest.approx([1 / (level + 1)] * (level + 1))  # each press is paid when it is made
    env.reset(seed=0, options={"level": 3})
    _, earned, *_ = env.step(env.unwrapped.expert_action())
    _, reward, terminated, _, info = env.step("0,0")
    assert (earned, reward, terminated, info["success"]) == (0.25, 0.0, True, False)
    env.close()


def test_an_episode_that_is_cut_earns_nothing_twice():
    env = jumping(level=3)
    env.reset(seed=0)
    _, earned, *_ = env.step(env.unwrapped.expert_action())
    assert (earned, env.unwrapped.finish("token_budget")) == (0.25, (0.0, {"success": 0.0}))
    env.close()
