"""Action dialects: how a model writes actions, and the tool schema and system prompt that go with it.

Chosen by name, see `DIALECTS`; add one with `DIALECTS["mine"] = MyDialect`. Each turns a response into calls
(`parse`), a call into canonical actions in pixels (`decode`), and a canonical action into a response
(`encode`, for solvers). A position beyond the screen is an error to the agent, never clamped; the closed end
of a range (1000 of 0 to 1000) is the last pixel.
"""

from __future__ import annotations

from mm_gym.computer.dialects.anthropic import Anthropic
from mm_gym.computer.dialects.base import Dialect, View
from mm_gym.computer.dialects.browsergym import BrowserGymBid, BrowserGymCoord
from mm_gym.computer.dialects.hud import Hud
from mm_gym.computer.dialects.miniwob import MiniWoB
from mm_gym.computer.dialects.openai import OpenAI
from mm_gym.computer.dialects.qwen import Qwen3VL, Qwen25VL
from mm_gym.computer.dialects.ui_tars import UITars, UITarsV1

DIALECTS: dict[str, type[Dialect]] = {
    "qwen3_vl": Qwen3VL,
    "qwen2_5_vl": Qwen25VL,
    "anthropic": Anthropic,
    "openai": OpenAI,
    "hud": Hud,
    "ui_tars": UITars,
    "ui_tars_v1": UITarsV1,
    "browsergym_coord": BrowserGymCoord,
    "browsergym_bid": BrowserGymBid,
    "miniwob": MiniWoB,
}

__all__ = ["DIALECTS", "Dialect", "View", "dialect"]


def dialect(name: str) -> Dialect:
    """A dialect by name.

    Raises:
        ValueError: There is none of that name.
    """
    if name not in DIALECTS:
        raise ValueError(f"unknown dialect {name!r}; known are {', '.join(sorted(DIALECTS))}")
    return DIALECTS[name]()
