"""An environment whose episodes differ in everything a batch must cope with; `mixed_env:test/Mixed-v0`."""

from __future__ import annotations

import os
import zlib
from typing import Any

import gymnasium
import numpy as np

import mm_gym
from mm_gym import ChatEnv, Opening, Reply, user


class MixedEnv(ChatEnv):
    """Zero to two pictures of various sizes in a turn, one to three turns, reward by what was said.

    Args:
        pictures: Most pictures in a turn; 0 makes a task of text alone.
        text_rank: The process of this rank shows no pictures (a batch that differs between ranks).
    """

    def __init__(
        self, pictures: int = 2, text_rank: int | None = None, render_mode: str | None = None
    ) -> None:
        super().__init__(max_turns=3, render_mode=render_mode)
        self.pictures = 0 if os.environ.get("RANK") == str(text_rank) else pictures
        self._length = 1

    def begin(self, options: dict[str, Any]) -> Opening:
        self._length = int(self.np_random.integers(1, 4))
        return Opening([self._look("Look at this.")], task_id=f"mixed-{self.np_random_seed}")

    def respond(self, action: str) -> Reply:
        over = self.turn >= self._length
        reward = zlib.crc32(action.encode()) % 3 / 2 if over else 0.0
        return Reply([] if over else [self._look("And this?")], reward, over, success=over and reward == 1.0)

    def expert_action(self) -> str | None:
        return "a word or two"

    def _look(self, text: str) -> Any:
        count = int(self.np_random.integers(0, self.pictures + 1))
        sizes = [(32 * int(h), 32 * int(w), 3) for h, w in self.np_random.integers(1, 4, (count, 2))]
        shown = [self.np_random.integers(0, 256, size, dtype=np.uint8) for size in sizes]
        return user(*shown, text + " again" * int(self.np_random.integers(0, 4)))


if "test/Mixed-v0" not in gymnasium.registry:
    mm_gym.register_all()
    gymnasium.register("test/Mixed-v0", entry_point="mixed_env:MixedEnv")
