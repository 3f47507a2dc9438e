"""MiniWoB++ as an environment: every task loads, goals and rewards are the pages' own, time is virtual."""

from __future__ import annotations

import time
from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest

from mm_gym.computer import actions as a
from mm_gym.computer.dialects import View, dialect
from mm_gym.computer.miniwob import MiniWoBEnv, miniwob_tasks
from mm_gym.computer.miniwob_solvers import SOLVERS
from mm_gym.episode import expert, play

pytest.importorskip("miniwob")
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_browser")]


@pytest.fixture(scope="module")
def env(shared_browser: None) -> Iterator[MiniWoBEnv]:
    made = MiniWoBEnv(dialect="hud")
    yield made
    made.close()


def hud(action: a.Action) -> str:
    return dialect("hud").encode(action, View(160, 210))


def test_there_are_130_tasks() -> None:
    assert len(miniwob_tasks()) == 130


def test_every_task_starts_with_a_goal_and_a_picture(env: MiniWoBEnv) -> None:
    for name in miniwob_tasks():
        observation, info = env.reset(seed=1, options={"task": name})
        (image,) = observation["images"]
        assert image.shape == (210, 160, 3), name
        assert image.std() > 0, name
        assert observation["text"].strip(), name
        assert info["task_id"] == f"{name}@train"
        assert env._screen.evaluate("document.getElementById('sync-task-cover').style.display") == "none", (
            name
        )


def test_seeds_choose_the_content(env: MiniWoBEnv) -> None:
    goals = {env.reset(seed=seed, options={"task": "click-link"})[0]["text"] for seed in range(6)}
    assert len(goals) > 2
    first, again = (env.reset(seed=3, options={"task": "click-link"})[0] for _ in range(2))
    assert first["text"] == again["text"]
    assert np.array_equal(first["images"][0], again["images"][0])


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solvers_get_the_full_reward(env: MiniWoBEnv, name: str) -> None:
    for seed in range(2):
        episode = play(env, expert(env), seed=seed, options={"task": name})
        assert episode.success, (name, seed)
        assert episode.episode_return == 1.0


def test_a_wrong_click_ends_with_the_pages_own_reward(env: MiniWoBEnv) -> None:
    env.reset(seed=0, options={"task": "click-test-2"})
    page = env._screen.evaluate(
        "(() => {const b = document.querySelector('#subbtn2').getBoundingClientRect(); return [b.x + 5, "
        "b.y + 5]})()"
    )
    _, reward, terminated, _, info = env.step(hud(a.Click(int(page[0]), int(page[1]))))
    assert (reward, terminated, info["success"]) == (-1.0, True, False)


def test_partial_reward_is_no_success(env: MiniWoBEnv) -> None:
    env.reset(seed=0, options={"task": "click-test"})
    env._screen.evaluate("core.endEpisode(0.3, true)")
    _, reward, terminated, _, info = env.step(hud(a.Move(1, 1)))
    assert (reward, terminated, info["success"]) == (0.3, True, False)


def test_a_slow_model_earns_the_same(env: MiniWoBEnv) -> None:
    rewards = []
    for pause in (0.0, 0.6):
        env.reset(seed=0, options={"task": "enter-text"})
        total = 0.0
        for _ in range(3):
            time.sleep(pause)
            _, reward, *_ = env.step(env.expert_action())
            total += reward
        rewards.append((total, env._screen.evaluate("Date.now()")))
    assert rewards[0] == rewards[1]
    assert rewards[0][0] == 1.0


def test_the_page_never_times_out_by_itself(env: MiniWoBEnv) -> None:
    env.reset(seed=0, options={"task": "click-test"})
    *_, terminated, _, _ = env.step(hud(a.Wait(60)))
    assert not terminated


def test_ending_without_solving_earns_nothing(env: MiniWoBEnv) -> None:
    env.reset(seed=0, options={"task": "click-test"})
    _, reward, terminated, _, info = env.step(hud(a.Answer("done")))
    assert (reward, terminated, info["success"]) == (0.0, True, False)


def test_the_engine_may_cut_an_episode(env: MiniWoBEnv) -> None:
    env.reset(seed=0, options={"task": "click-test"})
    assert env.finish("token_budget") == (0.0, {"success": 0.0})


def test_data_modes(shared_browser: None) -> None:
    env = MiniWoBEnv(task="click-test-transfer", mode="test")
    try:
        _, info = env.reset(seed=0)
        assert info["task"].mode == "test"
    finally:
        env.close()


@pytest.mark.parametrize(
    ("size", "picture"), [((96, 96), (96, 96, 3)), ((160, 210), (210, 160, 3)), ((500, 320), (320, 500, 3))]
)
def test_screen_sizes(shared_browser: None, size: tuple[int, int], picture: tuple[int, ...]) -> None:
    env = MiniWoBEnv(task="click-color", screen_size=size)
    try:
        assert env.reset(seed=0)[0]["images"][0].shape == picture
    finally:
        env.close()


def test_wrong_arguments_say_what_is_known() -> None:
    with pytest.raises(ValueError, match="click-test-2"):
        gymnasium.make("mm_gym/MiniWoB-v0", task="nope")
    with pytest.raises(ValueError, match="train"):
        gymnasium.make("mm_gym/MiniWoB-v0", mode="dev")
    with pytest.raises(ValueError, match="qwen3_vl"):
        gymnasium.make("mm_gym/MiniWoB-v0", dialect="nope")
