"""The contract's checks (`mm_gym.testing`) on every registered environment, and on a user's own."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

import mm_gym
from mm_gym.registry import IDS
from mm_gym.testing import CHECKS, check_environment, contract, gymnasium_checks, many_resets_do_not_grow

BROWSER = {"mm_gym/ComputerUse-v0", "mm_gym/MiniWoB-v0"}


def marked(env_id: str) -> Any:
    return pytest.param(env_id, marks=[pytest.mark.browser] if env_id in BROWSER else [])


def factory(env_id: str) -> functools.partial[Any]:
    """The id's factory, in the form that also works in spawned workers; skips where an extra is missing."""
    make = functools.partial(gymnasium.make, f"mm_gym:{env_id}")
    try:
        make().close()
    except DependencyNotInstalled as missing:
        pytest.skip(str(missing))
    return make


@pytest.mark.parametrize("env_id", [marked(env_id) for env_id in IDS])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_registered_environment(env_id: str, check: Any) -> None:
    check(factory(env_id))


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [marked(env_id) for env_id in IDS])
def test_a_thousand_resets_do_not_grow(env_id: str) -> None:
    many_resets_do_not_grow(factory(env_id), resets=1000)


class Echo(mm_gym.ChatEnv):
    """A user's own environment: repeat the word."""

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        self.word = ("tree", "house")[self.np_random.integers(2)]
        return mm_gym.Opening([mm_gym.user(f"Say {self.word}.")], task_id=self.word)

    def respond(self, action: str) -> mm_gym.Reply:
        if not action.strip() or len(action) > 100:
            return mm_gym.Reply([mm_gym.user("Say one word.")], error=("empty", "no word"))
        right = action == self.word
        if not right:
            return mm_gym.Reply([mm_gym.user(f"That was not {self.word}.")])
        return mm_gym.Reply(reward=1.0, terminated=True, success=True)

    def expert_action(self) -> str:
        return self.word


def test_a_users_own_environment_in_one_call() -> None:
    check_environment(Echo, vector=False, resets=20)


class NeverEnds(Echo):
    def step(self, action: str) -> Any:
        observation, reward, _, _, info = super().step(action)
        self._running = True
        return observation, reward, False, False, info


class ShowsImageMark(Echo):
    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        super().begin(options)
        return mm_gym.Opening([mm_gym.user("<image>Say it.")], task_id=self.word)


class NoneInInfo(Echo):
    def step(self, action: str) -> Any:
        *rest, info = super().step(action)
        return *rest, {**info, "error": None}


class RaisesOnMalformed(Echo):
    def respond(self, action: str) -> mm_gym.Reply:
        if "tool_call" in action:
            raise KeyError("name")
        return super().respond(action)


class RewardsAnything(Echo):
    def respond(self, action: str) -> mm_gym.Reply:
        return mm_gym.Reply(reward=1.0, terminated=True, success=True)


class StartsThread(Echo):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._stop = threading.Event()
        threading.Thread(target=self._stop.wait, daemon=True).start()

    def close(self) -> None:
        super().close()
        self._stop.set()


class EarnsTwice(Echo):
    def finish(self, stop_reason: Any) -> Any:
        return 1.0, {}


class CannotSolveItself(Echo):
    def expert_action(self) -> str:
        return "stone"


class Unseeded(Echo):
    count = 0

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        Unseeded.count += 1
        self.word = str(Unseeded.count)
        return mm_gym.Opening([mm_gym.user(f"Say {self.word}.")], task_id="count")


class KeepsFiles(Echo):
    files: ClassVar[list[Any]] = []

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        self.files.append(open(__file__))  # noqa: SIM115  (the leak is the point)
        return super().begin(options)


class GrowingFrame(Echo):
    def draw(self) -> np.ndarray:
        return np.zeros((10 + self.turn, 10, 3), np.uint8)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (NeverEnds, contract.malformed_actions_reach_an_end),
        (ShowsImageMark, contract.spaces_contain_what_is_returned),
        (NoneInInfo, contract.infos_keep_the_contract),
        (RaisesOnMalformed, contract.malformed_actions_never_raise),
        (RewardsAnything, contract.malformed_actions_never_raise),
        (StartsThread, gymnasium_checks.the_constructor_starts_nothing),
        (StartsThread, gymnasium_checks.a_fresh_environment_pickles),
        (EarnsTwice, contract.finish_ends_the_episode_once),
        (CannotSolveItself, contract.the_expert_solves_it),
        (Unseeded, contract.same_seed_gives_the_same_episode),
        (KeepsFiles, many_resets_do_not_grow),
        (GrowingFrame, gymnasium_checks.rendering_has_one_size),
    ],
)
def test_the_checks_find_a_broken_environment(broken: type[Echo], check: Any) -> None:
    with pytest.raises((AssertionError, KeyError, TypeError)):
        check(broken)
    while KeepsFiles.files:
        KeepsFiles.files.pop().close()


def test_geo3k_keeps_the_contract_on_the_real_set(shared_data: Path) -> None:
    data = str(shared_data / "geo3k")
    tools = ("calculator", "zoom", "check_answer")
    check_environment(
        functools.partial(gymnasium.make, "mm_gym:mm_gym/Geo3k-v0", data=data, split="test", tools=tools)
    )
