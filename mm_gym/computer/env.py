"""`mm_gym/ComputerUse-v0`: tasks in small real web apps, on pixels, success read from the app's state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mm_gym.computer.actions import Action
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen_env import ScreenEnv, Start, take_options
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, Verdict, builtin_apps, load_app
from mm_gym.errors import EnvironmentFailure


@dataclass(frozen=True)
class ComputerTask:
    """Which task an episode has; it does not hold the answer."""

    name: str
    """`<app>/<task>`."""
    level: int
    tags: tuple[str, ...]
    goal: str


class ComputerUseEnv(ScreenEnv):
    """Computer use in small web apps: mail, calendar, shop, spreadsheet and more.

    >>> import gymnasium, mm_gym
    >>> env = gymnasium.make("mm_gym/ComputerUse-v0", screen_size=(640, 480))  # doctest: +SKIP
    >>> observation, info = env.reset(seed=0)  # doctest: +SKIP

    Args:
        task: One task by its full name, `<app>/<task>`.
        tasks: Several, to draw from by seed; default all that fit `tags`, `level` and the screen.
        tags: Only tasks with at least one of these (see `mm_gym.computer.tasks.TAGS`).
        level: Difficulty, 1 the easiest; default drawn from the task's levels.
        apps: Folders of further apps; see docs/apps.md. An `app.py` in them is trusted and runs.
        screen_size: (width, height) in pixels.
        max_turns: The environment's own cap.
        **screen: The rest, see `ScreenEnv`.

    Reset options: `task` and `level` as above.
    """

    def __init__(
        self,
        *,
        task: str | None = None,
        tasks: Sequence[str] | None = None,
        tags: Sequence[str] = (),
        level: int | None = None,
        apps: Sequence[str | Path] = (),
        screen_size: tuple[int, int] = (640, 480),
        max_turns: int = 30,
        **screen: Any,
    ) -> None:
        super().__init__(screen_size=screen_size, max_turns=max_turns, **screen)
        self.level = level
        self._apps = {app.name: app for app in [*builtin_apps(), *(load_app(folder) for folder in apps)]}
        self._all = {spec.full_name: spec for app in self._apps.values() for spec in app.tasks}
        self._chosen = self._choose(task, tasks, tags)
        self._instance: Instance | None = None

    def _choose(self, task: str | None, tasks: Sequence[str] | None, tags: Sequence[str]) -> list[TaskSpec]:
        """The tasks to draw from, in order of name."""
        if task is not None and tasks is not None:
            raise ValueError("give task or tasks, not both")
        names = [task] if task is not None else sorted(tasks) if tasks is not None else None
        if names is not None:
            return [self._spec(name) for name in names]
        fitting = [
            spec
            for _, spec in sorted(self._all.items())
            if (not tags or set(tags) & set(spec.tags))
            and (self.level is None or self.level in spec.levels)
            and all(have >= need for have, need in zip(self.screen_size, spec.min_size, strict=True))
        ]
        if not fitting:
            raise ValueError(
                f"no task fits tags={list(tags)}, level={self.level}, screen_size={self.screen_size}; "
                f"there are {len(self._all)} tasks, the smallest screens need "
                f"{min((s.min_size for s in self._all.values()), default=None)}"
            )
        return fitting

    def _spec(self, name: str) -> TaskSpec:
        if name not in self._all:
            raise ValueError(f"unknown task {name!r}; known are {', '.join(sorted(self._all))}")
        spec = self._all[name]
        if any(have < need for have, need in zip(self.screen_size, spec.min_size, strict=True)):
            raise ValueError(f"{name} needs a screen of at least {spec.min_size}, got {self.screen_size}")
        return spec

    def start(self, options: dict[str, Any]) -> Start:
        options = take_options(options, ("task", "level"))
        if "task" in options:
            spec = self._spec(options["task"])
        else:
            spec = self._chosen[int(self.np_random.integers(len(self._chosen)))]
        level = options.get("level", self.level)
        if level is None:
            level = spec.levels[int(self.np_random.integers(len(spec.levels)))]
        if level not in spec.levels:
            raise ValueError(f"{spec.full_name} has the levels {spec.levels}, got {level}")
        seed = int(self.np_random.integers(2**32))
        instance = self._instance = spec.generate(self.np_random, level)
        state = json.dumps(dict(instance.state), ensure_ascii=True, sort_keys=True, allow_nan=False)
        page = PageSpec(
            root=self._apps[spec.app].folder.parent,  # apps may share files beside them
            path=f"{spec.app}/{instance.page}",
            size=self.screen_size,
            now=datetime.fromisoformat(instance.now).timestamp(),
            seed=seed,
            script=f"window.APP_STATE = {state};",
            deadline=self.deadline,
        )
        return Start(
            page,
            goal=instance.goal,
            task_id=f"{spec.full_name}@{level}",
            task=ComputerTask(spec.full_name, level, spec.tags, instance.goal),
            settle_ms=spec.settle_ms,
            likely=(page.blank,),  # the state goes in before the page loads: no two episodes share a page
        )

    @property
    def probe(self) -> str:
        return "window.app.getState()"

    def judge(self, value: Any, answer: str | None, ended: bool) -> tuple[Verdict, bool]:
        assert self._instance is not None
        try:
            verdict = self._instance.check(value, answer)
        except Exception as error:
            name = self._start.task_id if self._start else ""
            raise EnvironmentFailure(f"the checker of {name} failed: {error!r}", kind="task") from error
        if verdict.success and not (ended or self._instance.ends_on_success):
            return Verdict(False, reason="right so far, but not confirmed by the agent"), False
        return verdict, ended or verdict.success or verdict.over

    def solver(self, page: PageQuery) -> Iterator[Action] | None:
        assert self._instance is not None
        return self._instance.solve(page) if self._instance.solve else None
