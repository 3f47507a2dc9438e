"""Qwen-VL's `computer_use` tool: a 0 to 1000 grid for Qwen3-VL, pixels of the resized picture for Qwen2.5-VL.

Source of the conventions: Qwen's public computer-use examples, and QwenLM/Qwen3-VL#1560. The pointer is where
the last action left it: drags start there and the wheel turns there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import (
    Grid,
    ToolDialect,
    View,
    modifiers,
    need,
    number,
    pair,
    repeated,
    resized,
    thousand,
    whole,
)
from mm_gym.computer.keyboard import resolve_key

_CLICKS = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}
_CLICK_NAMES = {which: name for name, which in _CLICKS.items()}
_ACTIONS = (
    *_CLICKS,
    "mouse_move",
    "left_click_drag",
    "key",
    "type",
    "scroll",
    "hscroll",
    "wait",
    "answer",
    "terminate",
)


class Qwen3VL(ToolDialect):
    """Positions from 0 to 1000 on both axes, 1000 the last pixel."""

    name = "qwen3_vl"
    tool_name = "computer_use"

    def grid(self, view: View) -> Grid:
        return thousand(view)

    def system_prompt(self, view: View) -> str:
        return (
            "You operate a computer through its screen, mouse and keyboard. Look at the screenshot, then "
            "call computer_use once per turn to carry out the user's task. Call it with terminate when "
            "the task is done or cannot be done, or with answer when the task asks a question."
        )

    def description(self, view: View) -> str:
        grid = self.grid(view)
        last = (grid.columns, grid.rows) if grid.closed else (grid.columns - 1, grid.rows - 1)
        return (
            "Use the mouse and keyboard of a computer and see its screen after each action. Coordinates "
            f"are [x, y] with x from 0 (left) to {last[0]} (right) and y from 0 (top) to {last[1]} "
            "(bottom). Click in the middle of things."
        )

    def parameters(self, view: View) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": list(_ACTIONS),
                    "description": "left_click, right_click, middle_click, double_click, triple_click, "
                    "mouse_move: at `coordinate`, while `keys` are held. left_click_drag: from the "
                    "pointer to `coordinate`. key: press `keys` together. type: type `text`. scroll: turn "
                    "the wheel by `pixels` at the pointer, positive is up. hscroll: the same sideways, "
                    "positive is right. wait: for `time` seconds. answer: give `text` as the answer. "
                    "terminate: end with `status`.",
                },
                "coordinate": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
                "keys": {"type": "array", "items": {"type": "string"}},
                "text": {"type": "string"},
                "pixels": {"type": "number"},
                "time": {"type": "number"},
                "status": {"type": "string", "enum": ["success", "failure"]},
            },
            "required": ["action"],
        }

    def actions(self, arguments: Mapping[str, Any], view: View) -> list[Action]:
        action = arguments["action"]
        if action in _CLICKS:
            button, count = _CLICKS[action]
            x, y = self._point(arguments, action, view) if "coordinate" in arguments else view.here
            held = modifiers(arguments.get("keys"))
            return [a.Click(x, y, button, count, held)]  # type: ignore[arg-type]  # the table's are buttons
        if action == "mouse_move":
            return [a.Move(*self._point(arguments, action, view))]
        if action == "left_click_drag":
            return [a.Drag((view.here, self._point(arguments, action, view)))]
        if action == "key":
            keys = need(arguments, "keys", action)
            return [a.Keys(tuple(resolve_key(k) for k in keys))]
        if action == "type":
            return [a.Type(need(arguments, "text", action))]
        if action == "scroll":
            return [a.Scroll(0, -whole(need(arguments, "pixels", action), "pixels"), *view.here)]
        if action == "hscroll":
            return [a.Scroll(whole(need(arguments, "pixels", action), "pixels"), 0, *view.here)]
        if action == "wait":
            return [a.Wait(number(arguments.get("time", 1.0), "time"))]
        if action == "answer":
            return [a.Answer(need(arguments, "text", action))]
        if action == "terminate":
            return [a.Terminate(need(arguments, "status", action))]
        raise ActionError(f"unknown action {action!r}; known are {', '.join(_ACTIONS)}")

    def _point(self, arguments: Mapping[str, Any], action: str, view: View) -> a.Point:
        return self.grid(view).pixel(*pair(need(arguments, "coordinate", action), "coordinate"))

    def steps(self, action: Action, view: View) -> list[Action]:
        """Drags and the wheel start at the pointer, so it is moved there first."""
        start = None
        if isinstance(action, a.Drag):
            start = action.path[0]
        elif isinstance(action, a.Scroll) and action.x is not None and action.y is not None:
            start = (action.x, action.y)
        if start is None or self._near(start, view.here, view):
            return repeated(action)
        return [a.Move(*start), action]

    def arguments(self, action: Action, view: View) -> dict[str, Any]:
        def at(point: a.Point) -> list[int]:
            return list(self.grid(view).position(point))

        match action:
            case a.Click(x, y, button, count, held) if (button, count) in _CLICK_NAMES:
                keys = {"keys": [_key_name(k) for k in held]} if held else {}
                return {"action": _CLICK_NAMES[(button, count)], "coordinate": at((x, y)), **keys}
            case a.Move(x, y):
                return {"action": "mouse_move", "coordinate": at((x, y))}
            case a.Drag(path, "left", ()) if self._near(path[0], view.here, view):
                return {"action": "left_click_drag", "coordinate": at(path[-1])}
            case a.Type(text):
                return {"action": "type", "text": text}
            case a.Keys(keys, 1):
                return {"action": "key", "keys": [_key_name(k) for k in keys]}
            case a.Scroll(0, dy, x, y) if x is None or y is None or self._near((x, y), view.here, view):
                return {"action": "scroll", "pixels": -dy}
            case a.Scroll(dx, 0, x, y) if x is None or y is None or self._near((x, y), view.here, view):
                return {"action": "hscroll", "pixels": dx}
            case a.Wait(seconds):
                return {"action": "wait", "time": seconds}
            case a.Answer(text):
                return {"action": "answer", "text": text}
            case a.Terminate(status):
                return {"action": "terminate", "status": status}
        raise self.no_equivalent(action)

    def _near(self, point: a.Point, other: a.Point, view: View) -> bool:
        """Whether two pixels share a position of the grid, or are neighbours on a screen finer than it."""
        return (
            self.grid(view).position(point) == self.grid(view).position(other)
            or max(abs(point[0] - other[0]), abs(point[1] - other[1])) <= max(view.width, view.height) / 1000
        )


class Qwen25VL(Qwen3VL):
    """Pixels of the picture after Qwen2.5-VL's resize (sides are multiples of 28)."""

    name = "qwen2_5_vl"
    factor = 28
    min_pixels = 56 * 56
    max_pixels = 14 * 14 * 4 * 16384

    def grid(self, view: View) -> Grid:
        return resized(view, self.factor, self.min_pixels, self.max_pixels)


def _key_name(key: str) -> str:
    """As Qwen's examples write keys: lower case, "ctrl", "enter", "pagedown"."""
    short = {"Control": "ctrl", " ": "space", "ArrowUp": "up", "ArrowDown": "down", "ArrowLeft": "left"}
    return short.get(key) or ("right" if key == "ArrowRight" else key if len(key) == 1 else key.lower())
