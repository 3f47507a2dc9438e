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
        for _ in range(level + 1):
            _, reward, terminated, _, info = env.step(env.unwrapped.expert_action())
        assert (reward, terminated, info["success"]) == (1.0, True, True)
    env.reset(seed=0, options={"level": 3})
    env.step(env.unwrapped.expert_action())
    _, reward, terminated, _, info = env.step("0,0")
    assert (reward, terminated, info["success"]) == (0.25, True, False)
    env.close()
