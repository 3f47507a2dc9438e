"""A dialect of clicks alone, "x,y" in pixels: what a tiny model has to write is then where, and little else.

Importing this registers it, so that an environment can be named with it:
`train.learning_clicks:mm_gym/ComputerUse-v0`, `dialect: clicks`.
"""

from __future__ import annotations

import re

from mm_gym.computer.actions import Action, Click
from mm_gym.computer.dialects import DIALECTS, Dialect, View
from mm_gym.computer.dialects.base import pixels
from mm_gym.tool_calls import ToolCall, ToolParse
from mm_gym.tools import Tool

_POINT = re.compile(r"\s*([0-9]{1,4}),([0-9]{1,4})\s*")


class Clicks(Dialect):
    """A response is the pixel to click.

    >>> clicks, view = Clicks(), View(96, 96)
    >>> clicks.encode(Click(17, 80), view)
    '17,80'
    >>> clicks.decode(clicks.parse("17,80").calls[0], view)
    [Click(x=17, y=80, button='left', count=1, modifiers=())]
    """

    name = "clicks"

    def tools(self, view: View) -> list[Tool]:
        return []

    def system_prompt(self, view: View) -> str:
        return ""

    def parse(self, text: str) -> ToolParse:
        found = _POINT.fullmatch(text)
        if found is None:
            return ToolParse(error="write x,y")
        return ToolParse((ToolCall("click", {"x": int(found[1]), "y": int(found[2])}),))

    def decode(self, call: ToolCall, view: View) -> list[Action]:
        return [Click(*pixels(view).pixel(call.arguments["x"], call.arguments["y"]))]

    def encode(self, action: Action, view: View) -> str:
        match action:
            case Click(x, y, "left", 1, ()):
                return f"{x},{y}"
        raise self.no_equivalent(action)


DIALECTS[Clicks.name] = Clicks
