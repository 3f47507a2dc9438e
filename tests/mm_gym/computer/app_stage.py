"""A page per app on which tests play many instances: actions on the real page, without pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mm_gym.computer.actions import Action, Answer, Terminate, check_on_screen
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen import Screen
from mm_gym.computer.screen_env import Query
from mm_gym.computer.tasks import BUILTIN, Instance, TaskSpec, Verdict, builtin_apps

SPECS = {spec.full_name: spec for app in builtin_apps() for spec in app.tasks}
SETTLE_MS = 50
STATE = "window.app.getState()"
SHOWN = f"(() => {{ const e = window.mistakes.splice(0); return {{ state: {STATE}, mistakes: e }}; }})()"
WATCH = "window.mistakes = []; addEventListener('error', e => window.mistakes.push(e.message));"


def instance_of(name: str, seed: int, level: int | None = None) -> Instance:
    """The task's instance for a seed; the levels take turns."""
    spec = SPECS[name]
    return spec.generate(np.random.default_rng(seed), level or spec.levels[seed % len(spec.levels)])


@dataclass
class Outcome:
    """How an episode ended."""

    verdict: Verdict
    turns: int
    data: Any
    actions: list[Action] = field(default_factory=list)


@dataclass
class Stage:
    """One browser page at a time; the app's page is loaded once and shows one instance after the other."""

    size: tuple[int, int]
    screen: Screen = field(default_factory=Screen)
    app: str = ""

    def show(self, spec: TaskSpec, instance: Instance) -> Any:
        """Load an instance; its state as the page gives it."""
        state = json.dumps(dict(instance.state), allow_nan=False)
        if self.app == spec.app:
            self.screen.evaluate(f"app.load({state})")
        else:
            root, path = BUILTIN, f"{spec.app}/{instance.page}"
            page = PageSpec(root, path, self.size, script=f"{WATCH} window.APP_STATE = {state};")
            self.screen.open(page)
            self.app = spec.app
        return self.state()

    def state(self) -> Any:
        """The app's state; no script of the page may have failed since the last look."""
        shown = self.screen.evaluate(SHOWN)
        assert shown["mistakes"] == [], shown["mistakes"]
        return shown["state"]

    def solve(self, name: str, seed: int, level: int | None = None) -> Outcome:
        """The task's own solver."""
        spec, instance = SPECS[name], instance_of(name, seed, level)
        self.show(spec, instance)
        return self.play(instance, instance.solve(Query(self.screen, self.size, STATE)))

    def play(self, instance: Instance, actions: Iterable[Action]) -> Outcome:
        """Carry out actions until the check says that it is over."""
        answer, taken, state = None, [], self.state()
        verdict = instance.check(state, None)
        for action in actions:
            check_on_screen(action, *self.size)
            taken.append(action)
            if isinstance(action, Answer):
                answer = action.text
            elif not isinstance(action, Terminate):
                self.screen.act(action, SETTLE_MS, picture=False)
            state = self.state()
            verdict = instance.check(state, answer)
            if verdict.over or verdict.success or answer is not None or isinstance(action, Terminate):
                break
        return Outcome(verdict, len(taken), state["data"], taken)

    def close(self) -> None:
        self.screen.close()


def stages(size: tuple[int, int]) -> Iterator[Stage]:
    """For a fixture: a stage that is closed at the end."""
    stage = Stage(size)
    try:
        yield stage
    finally:
        stage.close()
