"""Task files: an app's tasks as data, in `tasks.yaml` beside its pages; documented in docs/apps.md.

Knows rules that draw parameters, templates, changes and conditions on the app's state, and a solver's moves.
Nothing in a file is ever run as code: a placeholder is looked up, a condition is one comparison. What can't be
said in this way is written in `app.py` (see `mm_gym.computer.tasks`).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mm_gym.computer.actions import Action, Answer, Keys, Terminate, Type, Wait
from mm_gym.computer.apps import content, moves
from mm_gym.computer.apps.expect import Draft, Expect, plain
from mm_gym.computer.task_values import Names, compare, fill, lookup, set_at
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, Verdict, click, drag, reveal

FILE = "tasks.yaml"
Scene = Callable[[np.random.Generator, int], Draft]
"""Of `SCENES` in an app.py: makes what the page starts with where rules and templates do not suffice."""

_TASK = frozenset(
    content.words(
        "id tags levels min_size settle_ms page now scene state parameters goal "
        "change ignore irreversible keeps success fails unchanged answer solve"
    )
)
_RULES: dict[str, frozenset[str]] = {
    "one_of": frozenset(("where",)),
    "some_of": frozenset(("where", "count")),
    "integer": frozenset(),
    "by_level": frozenset(),
    "at": frozenset(),
    "text": frozenset(),
}
_CHANGES: dict[str, frozenset[str]] = {
    "set": frozenset(("to",)),
    "append": frozenset(("value",)),
    "remove": frozenset(),
}
_MOVES: dict[str, frozenset[str]] = {
    "click": frozenset(("text", "within", "times", "button", "count")),
    "press": frozenset(("within", "times")),
    "write": frozenset(("into", "within", "end")),
    "choose": frozenset(("from", "within")),
    "drag": frozenset(("onto",)),
    "type": frozenset(),
    "keys": frozenset(),
    "wait": frozenset(),
    "answer": frozenset(),
    "terminate": frozenset(),
}


def read_tasks(path: Path, scenes: Mapping[str, Scene]) -> list[TaskSpec]:
    """The tasks of a file.

    Args:
        path: Of the file; its folder is the app's.
        scenes: Of the folder's app.py, if it has one.

    Raises:
        ValueError: Something is not well formed; the text names the file, the task and what to mend.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(data, dict) or set(data) != {"tasks"} or not isinstance(data["tasks"], list):
        raise ValueError(f"{path} must hold one list, `tasks:`")
    return [_spec(path, entry, scenes) for entry in data["tasks"]]


def _spec(path: Path, entry: Any, scenes: Mapping[str, Scene]) -> TaskSpec:
    name = entry.get("id") if isinstance(entry, dict) else None
    where = f"{path}, task {name!r}"
    if not isinstance(name, str):
        raise ValueError(f"{path}: each task is a mapping with an `id` in text, got {str(entry)[:80]!r}")
    _check_keys(where, entry, _TASK)
    if "goal" not in entry or not ({"success", "change", "answer"} & set(entry)):
        raise ValueError(f"{where}: it needs a `goal`, and `success`, `change` or `answer`")
    if ("scene" in entry) == ("state" in entry):
        raise ValueError(f"{where}: give `state`, or the name of a `scene` of app.py")
    if "scene" in entry and entry["scene"] not in scenes:
        raise ValueError(f"{where}: app.py has no scene {entry['scene']!r}; it has {sorted(scenes)}")
    for rule in entry.get("parameters", {}).values():
        if isinstance(rule, dict):
            _kind(where, "parameter", rule, _RULES)
    for change in entry.get("change", ()):
        _kind(where, "change", change, _CHANGES)
    for move in entry.get("solve", ()):
        _kind(where, "move", move, _MOVES)
    return TaskSpec(
        name,
        path.parent.name,
        FileTask(where, json.dumps(entry), scenes.get(entry.get("scene", ""))),
        levels=tuple(entry.get("levels", (1, 2, 3))),
        tags=tuple(entry.get("tags", ())),
        min_size=tuple(entry.get("min_size", (480, 360))),
        settle_ms=entry.get("settle_ms", 100),
    )


def _kind(where: str, what: str, entry: Any, kinds: Mapping[str, frozenset[str]]) -> str:
    """Which of the kinds a mapping is, by the one key that names it; its other keys must belong to it."""
    named = [key for key in entry if key in kinds] if isinstance(entry, dict) else []
    if len(named) != 1:
        raise ValueError(f"{where}: a {what} has one of {', '.join(kinds)}, got {entry!r}")
    _check_keys(f"{where}, {what} {named[0]}", entry, kinds[named[0]] | {named[0]})
    return named[0]


def _check_keys(where: str, entry: Mapping[str, Any], known: frozenset[str]) -> None:
    unknown = sorted(str(key) for key in entry if key not in known)
    if unknown:
        raise ValueError(f"{where}: unknown keys {unknown}; known are {', '.join(sorted(known))}")


# -- an instance from a seed -----------------------------------------------------------------------------


@dataclass(frozen=True)
class FileTask:
    """A task of a file; it is the `generate` of its `TaskSpec`."""

    where: str
    source: str
    """The entry, as JSON."""
    scene: Scene | None

    def __call__(self, rng: np.random.Generator, level: int) -> Instance:
        entry = json.loads(self.source)
        try:
            return self._make(entry, rng, level)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{self.where}, level {level}: {error}") from error

    def _make(self, entry: dict[str, Any], rng: np.random.Generator, level: int) -> Instance:
        draft = self.scene(rng, level) if self.scene else None
        names: Names = {"level": level}
        if draft:
            names |= {"data": draft.data, "options": draft.options}
        for name, rule in entry.get("parameters", {}).items():
            names[name] = _draw(rng, rule, names, level)
        state: dict[str, Any]
        if draft:
            state = {"data": draft.data, "options": draft.options, "theme": draft.look}
        else:
            state = fill(entry["state"], names)
        goals = entry["goal"] if isinstance(entry["goal"], list) else [entry["goal"]]
        more = {"now": entry["now"]} if "now" in entry else {}
        return Instance(
            goal=str(fill(content.pick(rng, goals), names)),
            state=state,
            check=_check(entry, names, state),
            solve=partial(_solve, steps=fill(entry["solve"], names)) if "solve" in entry else None,
            page=str(fill(entry.get("page", "index.html"), names)),
            **more,
        )


def _draw(rng: np.random.Generator, rule: Any, names: Names, level: int) -> Any:
    """The value of a parameter."""
    if not isinstance(rule, dict):
        return fill(rule, names)
    if "integer" in rule:
        low, high = fill(rule["integer"], names)
        return content.between(rng, int(low), int(high))
    if "by_level" in rule:
        values = rule["by_level"]
        return fill(values[min(level, len(values)) - 1], names)
    if "text" in rule:
        return fill(rule["text"], names)
    if "at" in rule:
        return lookup(names, fill(rule["at"], names))
    among = _among(rule, names)
    if "one_of" in rule:
        return content.pick(rng, among)
    count = int(fill(rule.get("count", 1), names))
    if not 0 <= count <= len(among):
        raise ValueError(f"some_of has {len(among)} things to choose from, wanted {count}")
    return content.some(rng, among, count)


def _among(rule: Mapping[str, Any], names: Names) -> list[Any]:
    """What a choice is made from: a list, or a path to one (of a mapping: its values, each with its `id`)."""
    given = rule.get("one_of", rule.get("some_of"))
    found = lookup(names, fill(given, names)) if isinstance(given, str) else fill(given, names)
    if isinstance(found, dict):
        found = [{"id": key, **value} if isinstance(value, dict) else key for key, value in found.items()]
    conditions = fill(rule.get("where", {}), names)
    fitting = [one for one in found if all(compare(one, p, c) is None for p, c in conditions.items())]
    if not fitting:
        raise ValueError(f"nothing of {given!r} fits {conditions}")
    return fitting


# -- judging -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileCheck:
    """The verdict on a state: what was asked for, and nothing that must not be."""

    success: Mapping[str, Any]
    """Path to condition; all must hold."""
    fails: Mapping[str, Any]
    """One that holds ends the episode."""
    unchanged: Mapping[str, Any]
    """Path to what it must be as."""
    expect: Expect | None
    answer: str | None

    def __call__(self, state: Any, answer: str | None) -> Verdict:
        for path, condition in self.fails.items():
            if compare(state, path, condition) is None:
                return Verdict(reason=f"{path} is {condition!r}", over=True)
        if self.expect is not None and not (verdict := self.expect(state)).success:
            return verdict
        for path, condition in {**self.success, **self.unchanged}.items():
            if (wrong := compare(state, path, condition)) is not None:
                return Verdict(reason=wrong)
        if self.answer is not None and (answer is None or plain(answer) != plain(self.answer)):
            return Verdict(reason=f"answer: expected {self.answer!r}, got {answer!r}")
        return Verdict(success=True, reason="as asked")


def _check(entry: Mapping[str, Any], names: Names, state: dict[str, Any]) -> FileCheck:
    expect = None
    if "change" in entry:
        if not isinstance(state.get("data"), dict):
            raise ValueError("`change` is for apps whose state has `data`; use `success` for others")
        after = copy.deepcopy(state["data"])
        for change in fill(entry["change"], names):
            _apply(change, after)
        ignored, final, kept = (tuple(entry.get(key, ())) for key in ("ignore", "irreversible", "keeps"))
        expect = Expect(after, state["data"], ignored, final, kept)
        if expect({"data": state["data"]}).success:
            raise ValueError("`change` changes nothing: the task is done before it starts")
    return FileCheck(
        success=fill(entry.get("success", {}), names),
        fails=fill(entry.get("fails", {}), names),
        unchanged={path: {"is": lookup(state, path)} for path in entry.get("unchanged", ())},
        expect=expect,
        answer=str(fill(entry["answer"], names)) if "answer" in entry else None,
    )


def _apply(change: Mapping[str, Any], data: dict[str, Any]) -> None:
    if "set" in change:
        set_at(data, change["set"], lambda _: change["to"])
    elif "append" in change:
        set_at(data, change["append"], lambda now: [*now, change["value"]])
    else:
        set_at(data, change["remove"], None)


# -- solving -------------------------------------------------------------------------------------------


def _solve(page: PageQuery, steps: Sequence[Mapping[str, Any]]) -> Iterator[Action]:
    for step in steps:
        for _ in range(int(step.get("times", 1))):
            yield from _move(page, step)


def _move(page: PageQuery, step: Mapping[str, Any]) -> Iterator[Action]:
    within = step.get("within")
    if "click" in step:
        yield from reveal(page, step["click"], step.get("text"), within=within)
        more = {key: step[key] for key in ("button", "count") if key in step}
        yield click(page.find(step["click"], step.get("text")), **more)
    elif "press" in step:
        yield from moves.press(page, step["press"], within)
    elif "write" in step:
        yield from moves.write(page, step["into"], str(step["write"]), within, step.get("end", ""))
    elif "choose" in step:
        yield from moves.choose(page, step["from"], step["choose"], within)
    elif "drag" in step:
        yield drag(page.find(step["drag"]), page.find(step["onto"]))
    elif "type" in step:
        yield Type(str(step["type"]))
    elif "keys" in step:
        yield Keys(tuple(step["keys"]))
    elif "wait" in step:
        yield Wait(float(step["wait"]))
    elif "answer" in step:
        yield Answer(str(step["answer"]))
    else:
        yield Terminate(step["terminate"])
