"""`mm_gym/MiniWoB-v0`: the 130 tasks of MiniWoB++, their pages read from the installed package `miniwob`.

The reward is the page's raw one, never scaled by time: the episode's clock is virtual and its time limit is
lifted (turns are the limit). Success means the full reward; partial reward is kept apart.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mm_gym.computer.actions import Action
from mm_gym.computer.miniwob_solvers import SOLVERS
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen_env import ScreenEnv, Start, take_options
from mm_gym.computer.tasks import PageQuery, Verdict

_WINDOW = (500, 320)
"""What the pages are laid out for; the task's area is the 160x210 pixels at its top left."""
_HIDDEN = """
document.addEventListener("DOMContentLoaded", () => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("#reward-display{display:none!important}#click-canvas{visibility:hidden!important}");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
});
"""
_START = """(seed, mode) => {
  Math.seedrandom(String(seed));
  core.setDataMode && core.setDataMode(mode);
  core.EPISODE_MAX_TIME = 1e9;
  core.startEpisodeReal();
  const said = core.getUtterance();
  return typeof said === "string" ? said : said.utterance;
}"""
_STATE = """({
  done: WOB_DONE_GLOBAL, reward: WOB_RAW_REWARD_GLOBAL, reason: String(WOB_REWARD_REASON || "")
})"""


@dataclass(frozen=True)
class MiniWoBTask:
    """Which task an episode has; it does not hold the answer."""

    name: str
    mode: str
    goal: str


@cache
def miniwob_root() -> Path:
    """The folder with MiniWoB++'s pages, in the installed package.

    Raises:
        gymnasium.error.DependencyNotInstalled: The package is missing.
    """
    found = importlib.util.find_spec("miniwob")
    root = (
        Path(found.submodule_search_locations[0]) / "html"
        if found and found.submodule_search_locations
        else None
    )
    if root is None or not (root / "miniwob").is_dir():
        from gymnasium.error import DependencyNotInstalled

        raise DependencyNotInstalled(
            "MiniWoB++'s pages come with the package `miniwob`: pip install 'mm-gym[browser]'"
        )
    return root


@cache
def miniwob_tasks() -> tuple[str, ...]:
    """The names of all tasks, sorted."""
    return tuple(sorted(path.stem for path in (miniwob_root() / "miniwob").glob("*.html")))


class MiniWoBEnv(ScreenEnv):
    """MiniWoB++ on pixels.

    >>> import gymnasium, mm_gym
    >>> env = gymnasium.make("mm_gym/MiniWoB-v0", task="click-test-2")  # doctest: +SKIP

    Args:
        task: One task by name.
        tasks: Several, to draw from by seed; default all.
        mode: "train" or "test": which data the pages draw from.
        screen_size: (width, height); the tasks' area is 160x210.
        max_turns: The environment's own cap.
        **screen: The rest, see `ScreenEnv`.

    Reset options: `task` as above.
    """

    def __init__(
        self,
        *,
        task: str | None = None,
        tasks: Sequence[str] | None = None,
        mode: str = "train",
        screen_size: tuple[int, int] = (160, 210),
        max_turns: int = 15,
        **screen: Any,
    ) -> None:
        super().__init__(screen_size=screen_size, max_turns=max_turns, **screen)
        if mode not in ("train", "test"):
            raise ValueError(f'mode must be "train" or "test", got {mode!r}')
        if task is not None and tasks is not None:
            raise ValueError("give task or tasks, not both")
        self.mode = mode
        known = miniwob_tasks()
        names = [task] if task is not None else sorted(tasks) if tasks is not None else known
        self._chosen = [self._known(name) for name in names]
        self._likely = tuple(self._page(name) for name in self._chosen)
        self._name = ""

    @staticmethod
    def _known(name: str) -> str:
        if name not in miniwob_tasks():
            raise ValueError(f"unknown task {name!r}; known are {', '.join(miniwob_tasks())}")
        return name

    def start(self, options: dict[str, Any]) -> Start:
        options = take_options(options, ("task",))
        if "task" in options:
            name = self._known(options["task"])
        else:
            name = self._chosen[int(self.np_random.integers(len(self._chosen)))]
        seed = int(self.np_random.integers(2**31))
        self._name = name
        return Start(
            self._page(name),
            goal="",
            task_id=f"{name}@{self.mode}",
            task=None,
            prepare=f"({_START})({seed}, {json.dumps(self.mode)})",
            likely=self._likely,
        )

    def _page(self, name: str) -> PageSpec:
        return PageSpec(
            root=miniwob_root(),
            path=f"miniwob/{name}.html",
            size=self.screen_size,
            viewport=(max(_WINDOW[0], self.screen_size[0]), max(_WINDOW[1], self.screen_size[1])),
            script=_HIDDEN,
            deadline=self.deadline,
        )

    def prepared(self, start: Start, value: Any) -> Start:
        goal = str(value)
        return replace(start, goal=goal, task=MiniWoBTask(self._name, self.mode, goal))

    @property
    def probe(self) -> str:
        return _STATE

    def judge(self, value: Any, answer: str | None, ended: bool) -> tuple[Verdict, bool]:
        done, reward = bool(value["done"]), float(value["reward"])
        verdict = Verdict(done and reward >= 1.0, reward if done else 0.0, value["reason"])
        return verdict, done or ended

    def solver(self, page: PageQuery) -> Iterator[Action] | None:
        solve = SOLVERS.get(self._name)
        return solve(page, self._start.goal) if solve and self._start else None
