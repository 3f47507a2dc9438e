"""The apps' tasks without a browser: what is generated, how it is judged, and what the pages may hold."""

from __future__ import annotations

import copy
import doctest
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from mm_gym.computer import task_values
from mm_gym.computer.apps import catalogue, content, expect, moves
from mm_gym.computer.tasks import BUILTIN, TAGS, builtin_apps

APPS = {app.name: app for app in builtin_apps()}
SPECS = {spec.full_name: spec for app in APPS.values() for spec in app.tasks}


def make(name: str, seed: int, level: int):
    return SPECS[name].generate(np.random.default_rng(seed), level)


def test_there_are_at_least_12_apps_and_60_tasks_with_three_levels():
    assert len(APPS) >= 12
    assert len(SPECS) >= 60
    assert all(spec.levels == (1, 2, 3) for spec in SPECS.values())


def test_every_tag_of_the_curricula_has_tasks():
    for tag in TAGS:
        assert sum(tag in spec.tags for spec in SPECS.values()) >= 3, tag


@pytest.mark.parametrize("name", sorted(SPECS))
def test_equal_seeds_give_equal_instances_and_others_vary(name):
    spec = SPECS[name]
    goals, looks, states = set(), set(), set()
    for seed in range(12):
        level = spec.levels[seed % 3]
        one, two = make(name, seed, level), make(name, seed, level)
        assert one.goal == two.goal
        assert json.dumps(one.state) == json.dumps(two.state)
        goals.add(one.goal)
        looks.add(json.dumps(one.state["theme"]))
        states.add(json.dumps(one.state))
        assert "{" not in one.goal
        assert one.goal == one.goal.strip()
    assert len(goals) >= 4
    assert len(looks) >= 10
    assert len(states) == 12


@pytest.mark.parametrize("name", sorted(SPECS))
def test_instances_are_picklable_and_not_done_at_the_start(name):
    for seed in range(30):
        instance = make(name, seed, 1 + seed % 3)
        copied = pickle.loads(pickle.dumps(instance))
        start = json.loads(json.dumps(dict(instance.state)))
        assert not copied.check({"data": start["data"], "ui": {}}, None).success
        assert not copied.check({"data": start["data"], "ui": {}}, "perhaps").success


def test_the_expected_state_succeeds_and_any_further_change_fails():
    instance = make("mail/delete", 3, 2)
    expected = copy.deepcopy(dict(instance.check.expect.expected))
    assert instance.check({"data": expected}, None).success
    for mail in expected["mails"]:
        spoiled = copy.deepcopy(expected)
        other = next(m for m in spoiled["mails"] if m["id"] == mail["id"])
        other["folder"] = "spam"
        verdict = instance.check({"data": spoiled}, None)
        assert not verdict.success
        assert "folder" in verdict.reason


def test_opening_a_mail_is_no_side_effect():
    instance = make("mail/delete", 3, 2)
    expected = copy.deepcopy(dict(instance.check.expect.expected))
    for mail in expected["mails"]:
        mail["read"] = not mail["read"]
    assert instance.check({"data": expected}, None).success


def test_a_second_or_a_wrong_order_ends_the_episode():
    instance = make("shop/checkout", 1, 1)
    right = copy.deepcopy(dict(instance.check.expected))
    twice = {**right, "orders": right["orders"] * 2}
    wrong = copy.deepcopy(right)
    wrong["orders"][0]["address"]["city"] = "Elsewhere"
    for data in (twice, wrong):
        verdict = instance.check({"data": data}, None)
        assert verdict.over
        assert not verdict.success


def test_deleting_the_wrong_thing_ends_the_episode_but_a_mendable_change_does_not():
    instance = make("files/delete", 2, 1)
    start = json.loads(json.dumps(instance.state["data"]))
    renamed, lost = copy.deepcopy(start), copy.deepcopy(start)
    wrong = next(k for k in start["nodes"] if k in instance.check.expected["nodes"])
    renamed["nodes"][wrong]["name"] = "other"
    del lost["nodes"][wrong]
    assert not instance.check({"data": renamed}, None).over
    assert instance.check({"data": lost}, None).over


def test_an_answer_is_needed_where_one_is_asked_for_and_compared_without_case():
    instance = make("calendar/when", 0, 1)
    data = copy.deepcopy(dict(instance.check.expected))
    right = instance.check.answer
    assert not instance.check({"data": data}, None).success
    assert not instance.check({"data": data}, right + "1").success
    assert instance.check({"data": data}, f"  {right.upper()} ").success


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": True}, "data.a: expected 1, got True"),
        ({"a": 1, "b": 2}, {"a": 1}, "data.b: missing"),
        ({"a": 1}, {"a": 1, "b": 2}, "data.b: unexpected"),
        ({"a": [1]}, {"a": [1, 2]}, "data.a: expected [1], got [1, 2]"),
        ({"a": {"b": ["x"]}}, {"a": {"b": ["y"]}}, "data.a.b.0: expected 'x', got 'y'"),
    ],
)
def test_a_difference_is_named_by_its_place(expected, actual, said):
    assert expect.difference(expected, actual) == said


def test_the_page_about_the_apps_is_up_to_date():
    docs = Path(__file__).resolve().parents[3] / "docs"
    written = (docs / "apps.md").read_text(encoding="utf-8").partition(catalogue.MARK)[2]
    assert written == catalogue.page(list(APPS.values())), "run python -m mm_gym.computer.apps.catalogue docs"
    assert all((docs / "images" / "apps" / f"{name}.png").is_file() for name in APPS)


def test_documented_examples_run():
    for module in (content, expect, moves, task_values):
        assert doctest.testmod(module).failed == 0


FORBIDDEN = re.compile(
    r"https?://(?!www\.w3\.org/2000/svg)|\bfetch\(|XMLHttpRequest|WebSocket"
    r"|Math\.random|Date\.now|new Date\(\)"
    r"|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    r"|localStorage|@import|url\("
)


def page_files():
    return sorted(p for p in BUILTIN.rglob("*") if p.suffix in (".html", ".css", ".js"))


@pytest.mark.parametrize("path", page_files(), ids=lambda p: str(p.relative_to(BUILTIN)))
def test_pages_hold_no_network_clock_chance_or_markup_from_text(path):
    found = FORBIDDEN.search(path.read_text(encoding="utf-8"))
    assert found is None, found


def test_nothing_moves_by_itself():
    for path in page_files():
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"@keyframes|(?<!-)transition:(?! none)|(?<!-)animation:(?! none)|setInterval", text
        )
