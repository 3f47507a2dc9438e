"""An environment of text that pays in every turn; `steps_env:test/Steps-v0`."""

from __future__ import annotations

import zlib
from typing import Any

import gymnasium

import mm_gym
from mm_gym import ChatEnv, Opening, Reply, user


class StepsEnv(ChatEnv):
    """A fixed number of turns, each of which pays 0, 0.5 or 1 by what was said.

    Args:
        turns: How many.
    """

    def __init__(self, turns: int = 3, render_mode: str | None = None) -> None:
        super().__init__(max_turns=turns, render_mode=render_mode)
        self.length = turns

    def begin(self, options: dict[str, Any]) -> Opening:
        return Opening([user("Look at this.")], task_id=f"steps-{self.np_random_seed}")

    def respond(self, action: str) -> Reply:
        over = self.turn >= self.length
        return Reply([] if over else [user("And this?")], zlib.crc32(action.encode()) % 3 / 2, over)


if "test/Steps-v0" not in gymnasium.registry:
    mm_gym.register_all()
    gymnasium.register("test/Steps-v0", entry_point="steps_env:StepsEnv")
