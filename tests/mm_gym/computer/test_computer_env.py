"""ComputerUse-v0: choosing tasks, observations, errors to the agent, a user's own app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import mm_gym
from mm_gym.computer import actions as a
from mm_gym.computer import observe
from mm_gym.computer.dialects import View, dialect
from mm_gym.computer.env import ComputerUseEnv
from mm_gym.episode import expert, play

pytestmark = pytest.mark.browser

HTML = """<!doctype html><meta charset=utf-8><style>body{margin:0;font:14px sans-serif}
button{position:absolute;width:80px;height:30px}</style>
<button id=good style="left:20px;top:20px">Good</button>
<button id=bad style="left:120px;top:20px">Bad</button>
<input id=note style="position:absolute;left:20px;top:80px">
<p style="position:absolute;top:120px;left:20px"></p>
<script>
const state = {...window.APP_STATE, good: 0, bad: 0};
document.querySelector("p").textContent = "The word is " + state.word;
good.onclick = () => state.good++;
bad.onclick = () => state.bad++;
window.app = {getState: () => ({...state, note: note.value, now: Date.now(), random: Math.random()})};
</script>"""
APP = """
from mm_gym.computer.actions import Answer
from mm_gym.computer.tasks import Instance, TaskSpec, Verdict, click

def press(rng, level):
    def check(state, answer):
        return Verdict(state["good"] == level, over=state["bad"] > 0)
    def solve(page):
        for _ in range(level):
            yield click(page.find("#good"))
    return Instance(f"Press Good {level} times.", {"word": str(rng.integers(100))}, check, solve)

def say(rng, level):
    word = ["tree", "house"][rng.integers(2)]
    def check(state, answer):
        return Verdict(answer == word)
    def solve(page):
        yield Answer(page.state()["word"])
    return Instance("What is the word?", {"word": word}, check, solve, ends_on_success=False)

def broken(rng, level):
    def check(state, answer):
        return Verdict(state["nothing"] == 1)
    return Instance("Never mind.", {"word": ""}, check, lambda page: iter(()))

TASKS = [
    TaskSpec("press", "demo", press, tags=("grounding",), min_size=(300, 200)),
    TaskSpec("say", "demo", say, levels=(1,), tags=("reading",), min_size=(300, 200)),
    TaskSpec("broken", "demo", broken, levels=(1,), min_size=(300, 200)),
]
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's app."""
    folder = tmp_path_factory.mktemp("apps") / "demo"
    folder.mkdir()
    (folder / "index.html").write_text(HTML)
    (folder / "app.py").write_text(APP)
    return folder


@pytest.fixture
def env(shared_browser: None, demo: Path) -> Iterator[ComputerUseEnv]:
    made = ComputerUseEnv(apps=[demo], task="demo/press", level=2, screen_size=(400, 300), dialect="hud")
    yield made
    made.close()


def hud(action: a.Action) -> str:
    return dialect("hud").encode(action, View(400, 300))


GOOD, BAD = hud(a.Click(50, 30)), hud(a.Click(150, 30))


def test_success_ends_the_episode_with_reward_one(env: ComputerUseEnv) -> None:
    observation, info = env.reset(seed=0)
    assert observation["text"] == "Press Good 2 times."
    assert observation["images"][0].shape == (300, 400, 3)
    assert info["task_id"] == "demo/press@2"
    assert info["task"].tags == ("grounding",)
    _, reward, terminated, _, step = env.step(GOOD)
    assert (reward, terminated, step["tool_calls"][0]["status"]) == (0.0, False, "ok")
    observation, reward, terminated, _, step = env.step(GOOD)
    assert (reward, terminated, step["success"], step["stop_reason"]) == (1.0, True, True, "env_done")
    assert len(observation["images"]) == 1
    assert step["messages"][0]["role"] == "tool"


def test_a_wrong_side_effect_fails_the_task(env: ComputerUseEnv) -> None:
    env.reset(seed=0)
    env.step(GOOD)
    _, reward, terminated, _, info = env.step(BAD)
    assert (reward, terminated, info["success"]) == (0.0, True, False)


def test_several_calls_in_one_response_are_carried_out_in_order(env: ComputerUseEnv) -> None:
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step(GOOD + GOOD)
    assert (reward, terminated) == (1.0, True)
    assert [c["status"] for c in info["tool_calls"]] == ["ok", "ok"]
    assert [m["call"] for m in info["messages"]] == [0, 1]
    assert len(observation["images"]) == 1


def test_after_a_mistake_the_rest_of_a_response_is_not_carried_out(env: ComputerUseEnv) -> None:
    env.reset(seed=0)
    off = hud(a.Click(50, 30)).replace('"x": 50', '"x": 400')
    observation, _, terminated, _, info = env.step(GOOD + off + GOOD)
    assert not terminated
    assert [c["status"] for c in info["tool_calls"]] == ["ok", "failed", "failed"]
    assert "x goes from 0 to 399" in observation["text"]
    assert "Not carried out" in observation["text"]
    assert info["error"]["kind"] == "invalid_action"
    assert env._screen.evaluate("app.getState().good") == 1


def test_a_dialog_amid_a_response_is_told(env: ComputerUseEnv) -> None:
    env.reset(seed=0)
    env._screen.evaluate("good.addEventListener('click', () => alert('first')), 0")
    observation = env.step(GOOD + hud(a.Move(200, 200)))[0]
    assert "'first'" in observation["text"]


@pytest.mark.parametrize("text", ["", "click the good button", "<tool_call>{", GOOD.replace("click", "fly")])
def test_a_malformed_response_gets_a_text_and_no_picture(env: ComputerUseEnv, text: str) -> None:
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step(text)
    assert observation["text"].startswith("Error")
    assert observation["images"] == ()
    assert (reward, terminated, info["metrics"]["invalid_actions"]) == (0.0, False, 1.0)


def test_an_answer_is_judged(shared_browser: None, demo: Path) -> None:
    env = ComputerUseEnv(apps=[demo], task="demo/say", screen_size=(400, 300), dialect="anthropic")
    try:
        assert play(env, expert(env), seed=1).success
        env.reset(seed=1)
        _, reward, terminated, _, info = env.step("castle")  # plain text is the answer in this dialect
        assert (reward, terminated, info["success"]) == (0.0, True, False)
    finally:
        env.close()


def test_the_engine_may_cut_an_episode_and_the_state_counts(env: ComputerUseEnv) -> None:
    env.reset(seed=0)
    env.step(GOOD)
    env._screen.evaluate("good.click()")
    assert env.finish("token_budget") == (1.0, {"success": 1.0})
    assert env.finish("token_budget") == (0.0, {})


def test_the_turn_limit_truncates(shared_browser: None, demo: Path) -> None:
    env = ComputerUseEnv(
        apps=[demo], task="demo/press", level=3, screen_size=(400, 300), dialect="hud", max_turns=2
    )
    try:
        env.reset(seed=0)
        env.step(GOOD)
        _, reward, terminated, truncated, info = env.step(GOOD)
        assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)
    finally:
        env.close()


def test_a_broken_checker_is_our_failure(env: ComputerUseEnv) -> None:
    env.reset(seed=0, options={"task": "demo/broken", "level": 1})
    with pytest.raises(mm_gym.EnvironmentFailure, match="checker of demo/broken") as failure:
        env.step(GOOD)
    assert failure.value.kind == "task"


def test_state_clock_and_chance_are_the_seeds(env: ComputerUseEnv) -> None:
    states = []
    for seed in (0, 0, 1):
        env.reset(seed=seed)
        states.append(env._screen.evaluate("app.getState()"))
    assert states[0] == states[1]
    assert states[0]["word"] != states[2]["word"] or states[0]["random"] != states[2]["random"]


def test_elements_marks_pointer_and_zoom(shared_browser: None, demo: Path) -> None:
    plain, rich = (
        ComputerUseEnv(
            apps=[demo], task="demo/press", level=2, screen_size=(400, 300), dialect="anthropic", **more
        )
        for more in ({}, {"a11y": True, "som": True, "cursor": True})
    )
    try:
        bare = plain.reset(seed=0)[0]
        shown = rich.reset(seed=0)[0]
        assert "button" not in bare["text"]
        assert '] button "Good" (20,20 80x30)' in shown["text"]
        assert "] textbox" in shown["text"]
        assert not np.array_equal(bare["images"][0], shown["images"][0])
        view = View(400, 300)
        move = dialect("anthropic").encode(a.Move(300, 200), view)
        before, after = (env.step(move)[0]["images"][0] for env in (plain, rich))
        assert (before[200:215, 300:308] == 255).all()
        assert (after[200:215, 300:308] < 128).any()  # the arrow's outline
        zoom = dialect("anthropic").encode(a.Zoom((20, 20, 99, 49)), view)
        zoomed = plain.step(zoom)[0]["images"][0]
        assert zoomed.shape == (300, 400, 3)
        assert (zoomed[150:] == 0).all()  # 80x30 fills the width; below it is black
        assert (zoomed[:150, 350:] > 0).any()
    finally:
        plain.close()
        rich.close()


def test_actions_by_element_id(shared_browser: None, demo: Path) -> None:
    env = ComputerUseEnv(
        apps=[demo], task="demo/press", level=2, screen_size=(400, 300), dialect="browsergym_bid"
    )
    try:
        text = env.reset(seed=0)[0]["text"]
        bid = text.split('] button "Good"')[0].rsplit("[", 1)[1]
        field = text.split("] textbox")[0].rsplit("[", 1)[1]
        env.step(f"fill('{field}', 'old')")
        env.step(f"fill('{field}', 'new')")
        assert env._screen.evaluate("note.value") == "new"
        assert "no element '999'" in env.step("click('999')")[0]["text"]
        env.step(f"click('{bid}')")
        assert env.step(f"click('{bid}')")[1] == 1.0
        assert play(env, expert(env), seed=3).success
    finally:
        env.close()


def test_render_shows_the_last_action_at_constant_size(shared_browser: None, demo: Path) -> None:
    env = gymnasium.make(
        "mm_gym/ComputerUse-v0", apps=[str(demo)], task="demo/press", level=3, screen_size=(400, 300),
        dialect="hud", render_mode="rgb_array",
    )  # fmt: skip
    try:
        env.reset(seed=0)
        before = env.render()
        env.step(GOOD)
        after = env.render()
        assert before.shape == after.shape == (300, 400, 3)
        red = (after[..., 0] > 200) & (after[..., 1] < 60)
        ys, xs = np.nonzero(red)
        assert abs(xs.mean() - 50) < 3
        assert abs(ys.mean() - 30) < 3
    finally:
        env.close()


def test_choosing_tasks(demo: Path) -> None:
    def names(**kwargs: object) -> set[str]:
        return {spec.full_name for spec in ComputerUseEnv(apps=[demo], **kwargs)._chosen}

    assert names(tasks=["demo/say", "demo/press"]) == {"demo/say", "demo/press"}
    assert "demo/say" in names(tags=["reading"])
    assert "demo/press" not in names(tags=["reading"])
    assert len(names()) > 60
    for wrong in ({"task": "demo/nope"}, {"tags": ["nope"]}, {"task": "demo/say", "screen_size": (100, 100)}):
        with pytest.raises(ValueError, match=r"demo|fits|screen"):
            ComputerUseEnv(apps=[demo], **wrong)
    with pytest.raises(ValueError, match="not an app"):
        ComputerUseEnv(apps=[demo.parent])


@pytest.mark.parametrize(
    "name",
    [
        "qwen3_vl",
        "qwen2_5_vl",
        "hud",
        "anthropic",
        "openai",
        "ui_tars",
        "browsergym_coord",
        "miniwob",
        "browsergym_bid",
    ],
)
def test_solvers_succeed_in_every_dialect(shared_browser: None, demo: Path, name: str) -> None:
    env = ComputerUseEnv(apps=[demo], task="demo/press", screen_size=(400, 300), dialect=name)
    try:
        assert play(env, expert(env), seed=0).success
    finally:
        env.close()


def test_element_lists_read_as_text() -> None:
    elements = [
        {"id": "1", "role": "form", "name": "", "depth": 0, "x": 0, "y": 0, "width": 9, "height": 9},
        {"id": "2", "role": "textbox", "name": "Name", "value": "Ada", "depth": 1,
         "x": 1.4, "y": 2, "width": 3, "height": 4, "focused": True},
    ]  # fmt: skip
    assert (
        observe.tree_text(elements)
        == '[1] form (0,0 9x9)\n  [2] textbox "Name" (1,2 3x4) value="Ada" focused'
    )
