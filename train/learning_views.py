"""Environments with pictures taken away: what does a policy still do when it can't see?

`train.learning_views:Unseen-v0` makes another environment and blanks its pictures, all of them or those that
arrive after the first turn. Knows Gymnasium and observations; neither tokens nor training.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np

import mm_gym  # noqa: F401  (registers the ids)

Hidden = Literal["all", "later"]
UNSEEN = f"{__name__}:Unseen-v0"
GREY = 128


class BlankPictures(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pictures become grey ones of the same size; text, rewards and everything else stay.

    >>> env = BlankPictures(gymnasium.make("mm_gym/Pointing-v0", tasks=("color",)), hidden="all")
    >>> observation, _ = env.reset(seed=0)
    >>> observation["images"][0].shape, int(observation["images"][0].min()), int(observation["images"][0].max())
    ((96, 96, 3), 128, 128)

    Args:
        env: Its observations have `images`.
        hidden: "all" pictures, or the "later" ones: those that arrive after the first turn.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], hidden: Hidden) -> None:
        super().__init__(env)
        if hidden not in ("all", "later"):
            raise ValueError(f'hidden must be "all" or "later", got {hidden!r}')
        self.hidden = hidden

    def reset(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        return (_blank(observation) if self.hidden == "all" else observation), info

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return _blank(observation), float(reward), terminated, truncated, info


def _blank(observation: dict[str, Any]) -> dict[str, Any]:
    return {**observation, "images": tuple(np.full_like(image, GREY) for image in observation["images"])}


def make_unseen(of: str, hidden: Hidden, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """The environment `of`, made with `kwargs`, behind `BlankPictures`."""
    return BlankPictures(gymnasium.make(of, **kwargs), hidden)


gymnasium.register(
    "Unseen-v0", entry_point=f"{__name__}:make_unseen", disable_env_checker=True, order_enforce=False
)
