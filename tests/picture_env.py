"""An environment that answers every response with a new picture: what a back end must carry."""

from __future__ import annotations

from typing import Any

import mm_gym


class PictureEnv(mm_gym.ChatEnv):
    """Any response gets a random picture of 64 x 96 pixels and a long text; `turns` of them."""

    def __init__(self, turns: int = 3, words: int = 10, render_mode: str | None = None) -> None:
        super().__init__(max_turns=turns, render_mode=render_mode)
        self.words = words

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        return mm_gym.Opening(messages=[self._look("Begin.")], task_id="pictures")

    def respond(self, action: str) -> mm_gym.Reply:
        return mm_gym.Reply(messages=[self._look("And this?")], reward=float(len(action) % 2))

    def _look(self, text: str) -> mm_gym.messages.Message:
        picture = self.np_random.integers(0, 256, (64, 96, 3), dtype="uint8")
        return mm_gym.user(picture, text + " what do you see" * self.words)
