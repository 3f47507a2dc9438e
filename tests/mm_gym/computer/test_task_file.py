"""Task files: the documented example as a user's folder, what a file may say, and what it can't do."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mm_gym.computer import actions as a
from mm_gym.computer.dialects import View, dialect
from mm_gym.computer.env import ComputerUseEnv
from mm_gym.computer.task_values import compare, fill, lookup
from mm_gym.computer.tasks import Instance, load_app
from mm_gym.episode import expert, play

DOCS = Path(__file__).resolve().parents[3] / "docs" / "apps.md"
SIZE = (480, 360)


def documented(kind: str, index: int = 0) -> str:
    """A code block of docs/apps.md."""
    return re.findall(rf"```{kind}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)[index]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app of the documentation, outside of the package."""
    folder = tmp_path_factory.mktemp("users") / "demo"
    folder.mkdir()
    (folder / "index.html").write_text(documented("html"), encoding="utf-8")
    (folder / "tasks.yaml").write_text(documented("yaml"), encoding="utf-8")
    (folder / "app.py").write_text(documented("python", 1), encoding="utf-8")
    return folder


@pytest.mark.browser
@pytest.mark.parametrize(("task", "levels"), [("collect", (1, 2, 3)), ("count", (1,)), ("fill", (1, 3))])
def test_the_documented_app_is_solved(
    shared_browser: None, demo: Path, task: str, levels: tuple[int, ...]
) -> None:
    env = ComputerUseEnv(apps=[demo], task=f"demo/{task}", screen_size=SIZE)
    try:
        for level in levels:
            env.level = level
            episode = play(env, expert(env), seed=level)
            assert episode.success, episode.messages
            assert len(episode.actions) == level
    finally:
        env.close()


@pytest.mark.browser
def test_a_wrong_side_effect_ends_the_episode_and_a_partial_result_does_not(
    shared_browser: None, demo: Path
) -> None:
    env = ComputerUseEnv(apps=[demo], task="demo/collect", level=2, screen_size=SIZE, dialect="hud")
    try:
        env.reset(seed=0)
        _, reward, terminated, _, _ = env.step(env.expert_action() or "")
        assert (reward, terminated) == (0.0, False)
        box = env._screen.evaluate("(b => [b.x + 5, b.y + 5])(empty.getBoundingClientRect())")
        click = dialect("hud").encode(a.Click(int(box[0]), int(box[1])), View(*SIZE))
        _, reward, terminated, _, info = env.step(click)
        assert (reward, terminated, info["success"]) == (0.0, True, False)
    finally:
        env.close()


def make(folder: Path, text: str) -> Callable[..., Instance]:
    """The first task of a file, as a function of seed and level."""
    app = folder / "mine"
    app.mkdir(exist_ok=True)
    (app / "index.html").write_text("")
    (app / "tasks.yaml").write_text(text, encoding="utf-8")
    (spec, *_) = load_app(app).tasks
    return lambda seed=0, level=1: spec.generate(np.random.default_rng(seed), level)


CHANGE = """
tasks:
  - id: mark
    parameters:
      item: {one_of: [{id: a}, {id: b}]}
    state: {data: {items: [{id: a, done: false}, {id: b, done: false}], log: []}}
    goal: "Mark {item.id}"
    change:
      - {set: "items.{item.id}.done", to: true}
      - {append: log, value: "{item.id}"}
    irreversible: [log]
"""


def test_a_change_must_be_the_only_one(tmp_path: Path) -> None:
    instance = pickle.loads(pickle.dumps(make(tmp_path, CHANGE)(seed=1)))
    chosen = instance.goal.split()[1]
    other = "b" if chosen == "a" else "a"

    def state(done: set[str], log: list[str]) -> dict[str, Any]:
        return {"data": {"items": [{"id": k, "done": k in done} for k in "ab"], "log": log}}

    assert instance.check(state({chosen}, [chosen]), None).success
    for wrong in (state(set(), []), state({"a", "b"}, [chosen]), state({other}, [])):
        verdict = instance.check(wrong, None)
        assert (verdict.success, verdict.over) == (False, False)
    assert instance.check(state(set(), [other]), None).over
    assert instance.solve is None


def test_equal_seeds_give_equal_instances(tmp_path: Path) -> None:
    generate = make(tmp_path, documented("yaml"))
    for seed in range(5):
        one, two = generate(seed, 2), generate(seed, 2)
        assert (one.goal, one.state, one.check) == (two.goal, two.state, two.check)
    assert len({generate(seed).goal for seed in range(20)}) > 5


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        (3, True), (3.0, True), (True, False), ({"is": 3}, True), ({"is_not": 3}, False), ({"above": 3}, False),
        ({"at_least": 3, "at_most": 3}, True), ({"below": "x"}, False), ({"one_of": [1, 3]}, True),
        ({"has": 3}, False),
    ],
)  # fmt: skip
def test_conditions_compare_a_value(condition: Any, fits: bool) -> None:
    assert (compare({"n": [{"id": "x", "v": 3}]}, "n.x.v", condition) is None) == fits


def test_what_is_not_there_fits_nothing() -> None:
    assert "there is no 'b' in 'a'" in str(compare({"a": {}}, "a.b", {"is_not": 1}))
    assert compare({"a": "text"}, "a.size", 4) is None


@pytest.mark.parametrize(
    "hostile",
    [
        "{x.__class__}", "{x.__init__.__globals__}", "{__import__('os')}", "{x!r}", "{x:>999999999}", "{x[0]}",
        "{0}", "{x.append}", "{}",
    ],
)  # fmt: skip
def test_placeholders_reach_data_and_nothing_else(hostile: str) -> None:
    with pytest.raises(LookupError, match="there is no"):
        fill(f"a {hostile}", {"x": [1]})
    with pytest.raises(LookupError):
        lookup({"x": "text"}, hostile.strip("{}") or " ")


def test_a_file_cannot_make_python_objects(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not YAML"):
        make(tmp_path, "tasks: !!python/object/apply:os.system ['touch hacked']")
    assert not list(tmp_path.rglob("hacked"))


def test_a_template_that_would_explode_is_refused(tmp_path: Path) -> None:
    rules = "\n".join(f'      a{i + 1}: "{{a{i}}}{{a{i}}}{{a{i}}}{{a{i}}}"' for i in range(12))
    text = "tasks:\n  - id: big\n    state: {}\n    goal: g\n    answer: x\n    parameters:\n      a0: abcd\n"
    with pytest.raises(ValueError, match="more than 100000 characters"):
        make(tmp_path, text + rules)()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("goal:", "gaol:", r"task 'mark': unknown keys \['gaol'\]"),
        ("one_of", "pick", r"parameter has one of one_of, .* got"),
        ("to: true", "too: true", r"change set: unknown keys \['too'\]"),
        ("append: log", "append: nothing", r"task 'mark', level 1: there is no 'nothing'"),
        ("{item.id}.done", "{thing}.done", "there is no 'thing'"),
        ("state:", "scene: inbox #", r"no scene 'inbox'; it has \[\]"),
        ("tasks:", "task:", "must hold one list"),
        ("- id: mark", "- name: mark", "with an `id`"),
        ("{set: \"items.{item.id}.done\", to: true}", "{set: log, to: []}", None),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, says: str | None) -> None:
    assert old in CHANGE
    text = CHANGE.replace(old, new)
    if says is None:
        text = text.replace('      - {append: log, value: "{item.id}"}\n', "")
        says = "done before it starts"
    with pytest.raises(ValueError, match=says):
        make(tmp_path, text)()
