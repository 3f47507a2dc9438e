"""The apps in a real browser: solvers succeed, idle and random policies don't, side effects fail the task."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import mm_gym
from mm_gym.computer.actions import Click, Terminate, Type
from mm_gym.computer.apps.mail.app import _solve_file
from mm_gym.computer.screen_env import Query

sys.path.insert(0, str(Path(__file__).parent))
from app_stage import SPECS, Stage, instance_of, stages
from random_actions import random_action

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]

NAMES = sorted(SPECS)
TINY = [name for name in NAMES if SPECS[name].min_size == (96, 96)]
SIZES = ((640, 480), (800, 600), (1024, 768), (1280, 720))


@pytest.fixture(scope="module")
def stage(browser):
    yield from stages((640, 480))


@pytest.fixture(scope="module")
def tiny_stage(browser):
    yield from stages((96, 96))


def check_solver(stage: Stage, name: str, seeds: range) -> None:
    for seed in seeds:
        outcome = stage.solve(name, seed)
        assert outcome.verdict.success, f"{name} seed {seed}: {outcome.verdict.reason}"
        assert 1 <= outcome.turns <= 25, f"{name} seed {seed}: {outcome.turns} turns"


@pytest.mark.parametrize("name", NAMES)
def test_the_solver_succeeds_by_mouse_and_keyboard(stage, name):
    check_solver(stage, name, range(10))


@pytest.mark.parametrize("name", TINY)
def test_tiny_tasks_are_solved_on_96_by_96_pixels(tiny_stage, name):
    check_solver(tiny_stage, name, range(100, 106))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(3000)
def test_the_solver_succeeds_on_200_seeds(stage, name):
    check_solver(stage, name, range(1000, 1200))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.timeout(3000)
def test_the_solver_succeeds_on_every_screen_size(size):
    for stage in stages(size):
        for name in NAMES:
            check_solver(stage, name, range(2000, 2004))


@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_fails_and_the_page_leaves_its_data_as_given(stage, name):
    instance = instance_of(name, 7)
    shown = stage.show(SPECS[name], instance)
    assert shown["data"] == json.loads(json.dumps(instance.state["data"]))
    outcome = stage.play(instance, [Terminate("success")])
    assert not outcome.verdict.success


def random_episode(stage: Stage, name: str, seed: int, level: int) -> bool:
    """Whether 12 random actions succeed."""
    rng = np.random.default_rng(seed)
    instance = instance_of(name, seed, level)
    stage.show(SPECS[name], instance)
    actions = [random_action(rng, *stage.size) for _ in range(12)]
    return stage.play(instance, actions).verdict.success


def test_a_random_policy_fails(stage):
    lucky = [name for name in NAMES if name not in TINY and random_episode(stage, name, 12, 2)]
    assert lucky == []


def test_a_random_policy_seldom_succeeds_on_the_tiny_screens(tiny_stage):
    lucky = [random_episode(tiny_stage, name, seed, 3) for name in TINY for seed in range(4)]
    assert sum(lucky) <= len(lucky) * 0.25


APPS = sorted({name.split("/")[0] for name in NAMES})


@pytest.mark.parametrize("app", APPS)
def test_the_environment_plays_the_app_with_its_expert(browser, app):
    name = next(n for n in NAMES if n.startswith(app + "/"))
    env = gymnasium.make("mm_gym/ComputerUse-v0", task=name)
    try:
        episode = mm_gym.play(env, mm_gym.expert(env), seed=5)
    finally:
        env.close()
    assert episode.success
    assert episode.episode_return == 1.0
    assert all(image.shape == (480, 640, 3) for image in episode.images)


DIFFING = """(() => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const parent = document.createElement("div"), wrong = [];
  let kept = new Map();
  for (let round = 0; round < 300; round++) {
    const keys = [...Array(8).keys()].filter(() => random(3)).sort(() => random(3) - 1);
    const keyed = (k) => h("p", { key: "k" + k }, "t" + k + round);
    const node = (k) => (k < 5 ? keyed(k) : k < 7 ? h("b", null, "u" + k) : "x");
    sync(parent, keys.map(node));
    const texts = [...parent.childNodes].map((n) => n.textContent).join("|");
    const expected = keys.map((k) => (k < 5 ? "t" + k + round : k < 7 ? "u" + k : "x")).join("|");
    if (texts !== expected) wrong.push([round, texts, expected]);
    const now = new Map([...parent.children].filter((n) => n._props.key).map((n) => [n._props.key, n]));
    for (const [key, it] of now) if ((kept.get(key) ?? it) !== it) wrong.push([round, "renewed", key]);
    kept = now;
  }
  return wrong;
})()"""


def test_drawing_again_gives_the_described_children_and_keeps_nodes_with_keys(stage):
    stage.show(SPECS["mail/star"], instance_of("mail/star", 0))
    assert Query(stage.screen, stage.size, "0").evaluate(DIFFING) == []


# -- side effects ----------------------------------------------------------------------------------------


def test_deleting_another_mail_too_fails(stage):
    instance = instance_of("mail/delete", 4, 1)
    stage.show(SPECS["mail/delete"], instance)
    before = {m["id"]: m["folder"] for m in instance.state["data"]["mails"]}
    right = next(m["id"] for m in instance.check.expect.expected["mails"] if m["folder"] == "trash")
    other = next(k for k in before if k != right)
    query = Query(stage.screen, stage.size, "window.app.getState()")
    outcome = stage.play(instance, _solve_file(query, (other,), "trash"))
    assert not outcome.verdict.success
    outcome = stage.play(instance, _solve_file(query, (right,), "trash"))
    assert not outcome.verdict.success


def test_a_wrong_press_on_a_tiny_screen_ends_the_episode(tiny_stage):
    instance = instance_of("target/color", 5, 3)
    tiny_stage.show(SPECS["target/color"], instance)
    right = instance.check.expected["done"][0]
    query = Query(tiny_stage.screen, tiny_stage.size, "window.app.getState()")
    ids = [item["id"] for item in instance.state["options"]["screens"][0]["items"]]
    wrong = query.find(f'[data-k="{next(i for i in ids if i != right)}"]')
    outcome = tiny_stage.play(instance, [Click(*wrong.center)])
    assert outcome.verdict.over
    assert not outcome.verdict.success


def test_text_that_looks_like_markup_stays_text(stage):
    instance = instance_of("chat/send", 0, 1)
    stage.show(SPECS["chat/send"], instance)
    query = Query(stage.screen, stage.size, "window.app.getState()")
    hostile = "<img src=x onerror=alert(1)><b>&amp;"
    field = query.find('[data-k="text"]')
    outcome = stage.play(instance, [Click(*field.center), Type(hostile + "\n")])
    texts = [m["text"] for c in outcome.data["channels"].values() for m in c["messages"]]
    assert hostile in texts
    assert query.evaluate("document.querySelectorAll('img').length") == 0
    assert hostile in query.evaluate("document.querySelector('.messages').textContent")


def test_a_picture_is_the_same_for_the_same_seed_on_a_fresh_page():
    pictures = []
    for _ in range(2):
        for stage in stages((640, 480)):
            stage.show(SPECS["shop/add"], instance_of("shop/add", 2))
            pictures.append(stage.screen.look(100).png)
    assert pictures[0] == pictures[1]
