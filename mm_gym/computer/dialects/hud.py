"""HUD's `computer` tool: absolute pixels, click patterns, drag paths, times in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import (
    Grid,
    ToolDialect,
    View,
    button,
    modifiers,
    need,
    number,
    pair,
    pixels,
    repeated,
    whole,
)
from mm_gym.computer.keyboard import resolve_key

_ACTIONS = (
    "click", "press", "keydown", "keyup", "type", "scroll", "move", "wait", "drag", "response", "screenshot",
    "position", "hold_key", "mouse_down", "mouse_up",
)  # fmt: skip


class Hud(ToolDialect):
    """`response` with the final text ends the episode."""

    name = "hud"
    tool_name = "computer"

    def system_prompt(self, view: View) -> str:
        return (
            "You control a computer with the computer tool. After each action you get a screenshot. When "
            "the task "
            'is done call it with action "response" and your answer in text (it may be empty).'
        )

    def description(self, view: View) -> str:
        return (
            f"Control a computer with a {view.width}x{view.height} screen. x and y are pixels from the top "
            "left corner; scroll_y > 0 scrolls down; time is in milliseconds; pattern [100] makes a "
            "double click."
        )

    def parameters(self, view: View) -> dict[str, Any]:
        num = {"type": "number"}
        keys = {"type": "array", "items": {"type": "string"}}
        return {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(_ACTIONS)},
                **dict.fromkeys(
                    ("x", "y", "scroll_x", "scroll_y", "offset_x", "offset_y", "time", "duration"), num
                ),
                "button": {"type": "string", "enum": list(a.BUTTONS)},
                "pattern": {"type": "array", "items": num, "maxItems": 2},
                "text": {"type": "string"},
                "enter_after": {"type": "boolean"},
                "keys": keys,
                "hold_keys": keys,
                "path": {
                    "type": "array",
                    "items": {"type": "array", "items": num, "minItems": 2, "maxItems": 2},
                },
            },
            "required": ["action"],
        }

    def actions(self, arguments: Mapping[str, Any], view: View) -> list[Action]:
        action, grid = arguments["action"], pixels(view)
        point = self._point(arguments, grid)
        held = modifiers(arguments.get("hold_keys"))
        if action == "click":
            count = 1 + len(arguments.get("pattern", []))
            return [a.Click(*(point or view.here), button(arguments.get("button")), count, held)]
        if action in ("mouse_down", "mouse_up"):
            kind = a.Press if action == "mouse_down" else a.Release
            x, y = point or (None, None)
            return [kind(x, y, button(arguments.get("button")))]
        if action == "move":
            return [a.Move(*self._moved(arguments, point, grid, view))]
        if action == "drag":
            path = [grid.pixel(*pair(p, "a point of the path")) for p in need(arguments, "path", action)]
            return [a.Drag(tuple(path), button(arguments.get("button")), held)]
        if action == "scroll":
            dx, dy = (whole(arguments.get(name, 0), name) for name in ("scroll_x", "scroll_y"))
            turn = a.Scroll(dx, dy, *(point or (None, None)))
            return [*(a.KeyDown(k) for k in held), turn, *(a.KeyUp(k) for k in reversed(held))]
        if action == "type":
            enter = [a.Keys(("Enter",))] if arguments.get("enter_after") else []
            return [a.Type(need(arguments, "text", action)), *enter]
        if action in ("press", "keydown", "keyup", "hold_key"):
            return self._keys(action, arguments)
        if action == "wait":
            return [a.Wait(number(arguments.get("time", 1000), "time") / 1000)]
        if action == "response":
            return [a.Answer(arguments.get("text", ""))]
        return [a.Screenshot()]

    @staticmethod
    def _point(arguments: Mapping[str, Any], grid: Grid) -> a.Point | None:
        x, y = arguments.get("x"), arguments.get("y")
        if x is None and y is None:
            return None
        if x is None or y is None:
            raise ActionError(f"give both x and y, got x = {x} and y = {y}")
        return grid.pixel(x, y)

    @staticmethod
    def _moved(arguments: Mapping[str, Any], point: a.Point | None, grid: Grid, view: View) -> a.Point:
        if point is not None:
            return point
        if "offset_x" not in arguments and "offset_y" not in arguments:
            raise ActionError("the action 'move' needs x and y, or offset_x and offset_y")
        x, y = view.here
        dx, dy = (number(arguments.get(name, 0), name) for name in ("offset_x", "offset_y"))
        return grid.pixel(x + dx, y + dy)

    @staticmethod
    def _keys(action: str, arguments: Mapping[str, Any]) -> list[Action]:
        names = need(arguments, "keys", action) if "keys" in arguments else [need(arguments, "text", action)]
        keys = tuple(resolve_key(k) for k in names)
        if action == "press":
            return [a.Keys(keys)]
        if action == "keydown":
            return [a.KeyDown(k) for k in keys]
        if action == "keyup":
            return [a.KeyUp(k) for k in keys]
        held = number(need(arguments, "duration", action), "duration")
        return [*(a.KeyDown(k) for k in keys), a.Wait(held), *(a.KeyUp(k) for k in reversed(keys))]

    def steps(self, action: Action, view: View) -> list[Action]:
        return repeated(action)

    def arguments(self, action: Action, view: View) -> dict[str, Any]:
        match action:
            case a.Click(x, y, which, count, held):
                more: dict[str, Any] = {"pattern": [100] * (count - 1)} if count > 1 else {}
                more |= {"hold_keys": [k.lower() for k in held]} if held else {}
                return {"action": "click", "x": x, "y": y, "button": which, **more}
            case a.Press(x, y, which) | a.Release(x, y, which):
                name = "mouse_down" if isinstance(action, a.Press) else "mouse_up"
                place = {} if x is None else {"x": x, "y": y}
                return {"action": name, "button": which, **place}
            case a.Move(x, y):
                return {"action": "move", "x": x, "y": y}
            case a.Drag(path, which, ()):
                return {"action": "drag", "path": [list(p) for p in path], "button": which}
            case a.Type(text):
                return {"action": "type", "text": text}
            case a.Keys(keys, 1):
                return {"action": "press", "keys": [k.lower() if len(k) > 1 else k for k in keys]}
            case a.KeyDown(key) | a.KeyUp(key):
                return {"action": "keydown" if isinstance(action, a.KeyDown) else "keyup", "keys": [key]}
            case a.Scroll(dx, dy, x, y):
                place = {} if x is None else {"x": x, "y": y}
                return {"action": "scroll", **place, "scroll_x": dx, "scroll_y": dy}
            case a.Wait(seconds):
                return {"action": "wait", "time": round(seconds * 1000)}
            case a.Answer(text):
                return {"action": "response", "text": text}
            case a.Terminate(_):
                return {"action": "response", "text": ""}
            case a.Screenshot():
                return {"action": "screenshot"}
        raise self.no_equivalent(action)
