"""UI-TARS: a thought and one action as text, `Action: click(point='<point>x y</point>')`.

UI-TARS-1.5 writes pixels of the resized picture (sides are multiples of 28), 1.0 a 0 to 1000 grid; older
prompts write `start_box='(x,y)'`, which is read as well. A newline in typed text submits, as in its prompt.
"""

from __future__ import annotations

import re
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import Dialect, Grid, View, repeated, resized, thousand
from mm_gym.computer.dialects.calls import read_calls, write_call
from mm_gym.computer.keyboard import split_chord
from mm_gym.tool_calls import ToolCall, ToolParse
from mm_gym.tools import Tool

_SCROLL = 300  # pixels of one scroll action
_WAIT = 5.0
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "click": ("point", "start_box"),
    "left_double": ("point", "start_box"),
    "right_single": ("point", "start_box"),
    "drag": ("start_point", "end_point", "start_box", "end_box"),
    "hotkey": ("key",),
    "type": ("content",),
    "scroll": ("point", "direction", "start_box"),
    "wait": (),
    "finished": ("content",),
}
_CLICKS = {"click": ("left", 1), "left_double": ("left", 2), "right_single": ("right", 1)}
_CLICK_NAMES = {which: name for name, which in _CLICKS.items()}
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_PAIR = re.compile(r"\s*(-?\d+(?:\.\d+)?)[\s,]+(-?\d+(?:\.\d+)?)\s*")
_WRAPPING = re.compile(r"</?point>|<\|box_(?:start|end)\|>|[()\[\]]")
_FORM = "Thought: ...\nAction: click(point='<point>x y</point>')"


class UITars(Dialect):
    """UI-TARS-1.5."""

    name = "ui_tars"
    factor = 28
    min_pixels = 100 * 28 * 28
    max_pixels = 16384 * 28 * 28

    def grid(self, view: View) -> Grid:
        return resized(view, self.factor, self.min_pixels, self.max_pixels)

    def tools(self, view: View) -> list[Tool]:
        return []

    def system_prompt(self, view: View) -> str:
        return (
            "You are a GUI agent. You are given a task and screenshots. Write a short thought, then the next "
            f"action, in this form:\n{_FORM}\n\nThe actions are:\n"
            "click(point='<point>x y</point>')\nleft_double(point='<point>x y</point>')\n"
            "right_single(point='<point>x y</point>')\n"
            "drag(start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>')\n"
            "hotkey(key='ctrl c')  # lower case, keys separated by spaces, at most 3\n"
            "type(content='text')  # end with \\n to submit; escape quotes and newlines\n"
            "scroll(point='<point>x y</point>', direction='down')  # or up, left, right\n"
            "wait()  # 5 seconds\nfinished(content='the answer, or nothing')"
        )

    def parse(self, text: str) -> ToolParse:
        _, found, action = text.rpartition("Action:")
        if not found:
            return ToolParse((), f"no action was found. Write it in this form:\n{_FORM}")
        calls, problem = read_calls(action.strip().removeprefix("```").removesuffix("```"), _PARAMETERS)
        error = f"{problem}. Write the action in this form:\n{_FORM}" if problem else None
        return ToolParse(tuple(calls), error)

    def decode(self, call: ToolCall, view: View) -> list[Action]:
        name, arguments = call.name, call.arguments

        def at(*keys: str) -> a.Point:
            return self._point(next((arguments[k] for k in keys if k in arguments), None), keys[0], view)

        if name in _CLICKS:
            button, count = _CLICKS[name]
            return [a.Click(*at("point", "start_box"), button, count)]  # type: ignore[arg-type]
        if name == "drag":
            return [a.Drag((at("start_point", "start_box"), at("end_point", "end_box")))]
        if name == "hotkey":
            return [a.Keys(split_chord(self._text(arguments, "key"), " +"))]
        if name == "type":
            return [a.Type(self._text(arguments, "content"))]
        if name == "scroll":
            dx, dy = self._direction(arguments.get("direction"))
            return [a.Scroll(dx * _SCROLL, dy * _SCROLL, *at("point", "start_box"))]
        if name == "wait":
            return [a.Wait(_WAIT)]
        if name == "finished":
            return [a.Answer(str(arguments.get("content", "")))]
        raise ActionError(f"there is no action {name!r}; the actions are {', '.join(_PARAMETERS)}")

    def _point(self, value: Any, what: str, view: View) -> a.Point:
        numbers = _PAIR.fullmatch(_WRAPPING.sub(" ", value)) if isinstance(value, str) else None
        if numbers is None:
            raise ActionError(f"{what} must be '<point>x y</point>', got {value!r}")
        return self.grid(view).pixel(float(numbers[1]), float(numbers[2]))

    @staticmethod
    def _text(arguments: dict[str, Any], name: str) -> str:
        value = arguments.get(name)
        if not isinstance(value, str):
            raise ActionError(f"{name} must be text, got {value!r}")
        return value

    @staticmethod
    def _direction(value: Any) -> tuple[int, int]:
        if value not in _DIRECTIONS:
            raise ActionError(f"direction must be one of {', '.join(_DIRECTIONS)}, got {value!r}")
        return _DIRECTIONS[value]

    def steps(self, action: Action, view: View) -> list[Action]:
        if isinstance(action, a.Scroll) and (action.dx == 0) != (action.dy == 0):
            turns = max(1, round(abs(action.dx or action.dy) / _SCROLL))
            return [action] * turns
        return repeated(action)

    def encode(self, action: Action, view: View) -> str:
        return f"Thought: {_thought(action)}\nAction: {self._call(action, view)}"

    def _call(self, action: Action, view: View) -> str:
        def at(point: a.Point) -> str:
            x, y = self.grid(view).position(point)
            return f"<point>{x} {y}</point>"

        match action:
            case a.Click(x, y, button, count, ()) if (button, count) in _CLICK_NAMES:
                return write_call(_CLICK_NAMES[(button, count)], point=at((x, y)))
            case a.Drag(path, "left", ()):
                return write_call("drag", start_point=at(path[0]), end_point=at(path[-1]))
            case a.Keys(keys, 1):
                return write_call("hotkey", key=" ".join(_key_name(k) for k in keys))
            case a.Type(text):
                return write_call("type", content=text)
            case a.Scroll(dx, dy, x, y) if (dx == 0) != (dy == 0):
                toward = ("down" if dy > 0 else "up") if dy else ("right" if dx > 0 else "left")
                point = view.here if x is None or y is None else (x, y)
                return write_call("scroll", point=at(point), direction=toward)
            case a.Wait(_) | a.Screenshot():
                return write_call("wait")
            case a.Answer(text):
                return write_call("finished", content=text)
            case a.Terminate(_):
                return write_call("finished", content="")
        raise self.no_equivalent(action)


class UITarsV1(UITars):
    """UI-TARS 1.0: positions from 0 to 1000."""

    name = "ui_tars_v1"

    def grid(self, view: View) -> Grid:
        return thousand(view)


def _thought(action: Action) -> str:
    return f"The next step is to {type(action).__name__.lower()}."


def _key_name(key: str) -> str:
    short = {"Control": "ctrl", " ": "space"}
    return short.get(key) or (key.removeprefix("Arrow").lower() if len(key) > 1 else key)
