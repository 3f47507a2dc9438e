"""Anthropic's computer tool (20250124 and 20251124): pixels, xdotool key names, notches of the wheel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import (
    NOTCH,
    ToolDialect,
    View,
    modifiers,
    need,
    number,
    pair,
    pixels,
    whole,
)
from mm_gym.computer.keyboard import split_chord

_CLICKS = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}
_CLICK_NAMES = {which: name for name, which in _CLICKS.items()}
_ACTIONS = (
    *_CLICKS, "mouse_move", "left_click_drag", "left_mouse_down", "left_mouse_up", "type", "key", "hold_key",
    "scroll", "wait", "screenshot", "cursor_position", "zoom",
)  # fmt: skip
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_XDOTOOL = {
    "Control": "ctrl", "Shift": "shift", "Alt": "alt", "Meta": "super", "Enter": "Return", " ": "space",
    "PageUp": "Page_Up", "PageDown": "Page_Down", "ArrowUp": "Up", "ArrowDown": "Down", "ArrowLeft": "Left",
    "ArrowRight": "Right", "Backspace": "BackSpace", "+": "plus",
}  # fmt: skip


class Anthropic(ToolDialect):
    """The final answer is plain text without a call."""

    name = "anthropic"
    tool_name = "computer"
    text_ends = True

    def system_prompt(self, view: View) -> str:
        return (
            "You use a computer by calling the computer tool: it acts with the mouse and keyboard and "
            "returns a screenshot. When the task is done, reply without a tool call; if the task asks a "
            "question, that reply is the answer and nothing else."
        )

    def description(self, view: View) -> str:
        return (
            f"Mouse, keyboard and screen of a computer. display_width_px={view.width}, "
            f"display_height_px={view.height}; coordinates are pixels [x, y] from the top left corner."
        )

    def parameters(self, view: View) -> dict[str, Any]:
        point = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
        return {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(_ACTIONS)},
                "coordinate": point,
                "start_coordinate": point,
                "text": {
                    "type": "string",
                    "description": "Text to type, a key such as ctrl+s, or keys held during a click or "
                    "scroll.",
                },
                "scroll_direction": {"type": "string", "enum": list(_DIRECTIONS)},
                "scroll_amount": {"type": "integer", "minimum": 0, "description": "Notches of the wheel."},
                "duration": {"type": "number", "description": "Seconds, for wait and hold_key."},
                "repeat": {"type": "integer", "minimum": 1},
                "region": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4},
            },
            "required": ["action"],
        }

    def actions(self, arguments: Mapping[str, Any], view: View) -> list[Action]:
        action = arguments["action"]
        grid = pixels(view)

        def at(name: str = "coordinate") -> a.Point:
            return grid.pixel(*pair(need(arguments, name, action), name))

        if action in _CLICKS:
            button, count = _CLICKS[action]
            point = at() if "coordinate" in arguments else view.here
            return [a.Click(*point, button, count, modifiers(arguments.get("text")))]  # type: ignore[arg-type]
        if action == "mouse_move":
            return [a.Move(*at())]
        if action == "left_click_drag":
            start = at("start_coordinate") if "start_coordinate" in arguments else view.here
            return [a.Drag((start, at()))]
        if action in ("left_mouse_down", "left_mouse_up"):
            return [a.Press() if action == "left_mouse_down" else a.Release()]
        if action == "type":
            return [a.Type(need(arguments, "text", action))]
        if action == "key":
            return [a.Keys(split_chord(need(arguments, "text", action)), arguments.get("repeat", 1))]
        if action == "hold_key":
            keys = split_chord(need(arguments, "text", action))
            held = number(need(arguments, "duration", action), "duration")
            return [*(a.KeyDown(k) for k in keys), a.Wait(held), *(a.KeyUp(k) for k in reversed(keys))]
        if action == "scroll":
            return self._scroll(arguments, at() if "coordinate" in arguments else view.here)
        if action == "wait":
            return [a.Wait(number(need(arguments, "duration", action), "duration"))]
        if action in ("screenshot", "cursor_position"):
            return [a.Screenshot()]
        if action == "zoom":
            left, top, right, bottom = need(arguments, "region", action)
            return [a.Zoom((*grid.pixel(left, top), *grid.pixel(right, bottom)))]
        raise ActionError(f"unknown action {action!r}; known are {', '.join(_ACTIONS)}")

    def _scroll(self, arguments: Mapping[str, Any], point: a.Point) -> list[Action]:
        dx, dy = _DIRECTIONS[need(arguments, "scroll_direction", "scroll")]
        amount = whole(need(arguments, "scroll_amount", "scroll"), "scroll_amount") * NOTCH
        turn = a.Scroll(dx * amount, dy * amount, *point)
        held = modifiers(arguments.get("text"))
        return [*(a.KeyDown(k) for k in held), turn, *(a.KeyUp(k) for k in reversed(held))]

    def arguments(self, action: Action, view: View) -> dict[str, Any]:
        match action:
            case a.Click(x, y, button, count, held) if (button, count) in _CLICK_NAMES:
                keys = {"text": "+".join(_XDOTOOL[k] for k in held)} if held else {}
                return {"action": _CLICK_NAMES[(button, count)], "coordinate": [x, y], **keys}
            case a.Move(x, y):
                return {"action": "mouse_move", "coordinate": [x, y]}
            case a.Drag((start, *_, end), "left", ()):
                return {"action": "left_click_drag", "start_coordinate": list(start), "coordinate": list(end)}
            case a.Press(None, None, "left"):
                return {"action": "left_mouse_down"}
            case a.Release(None, None, "left"):
                return {"action": "left_mouse_up"}
            case a.Type(text):
                return {"action": "type", "text": text}
            case a.Keys(keys, count):
                again = {"repeat": count} if count > 1 else {}
                return {"action": "key", "text": "+".join(_XDOTOOL.get(k, k) for k in keys), **again}
            case a.Scroll(dx, dy, x, y) if (dx == 0) != (dy == 0):
                toward = ("down" if dy > 0 else "up") if dy else ("right" if dx > 0 else "left")
                notches = max(1, round(abs(dx or dy) / NOTCH))
                place = list(view.here if x is None or y is None else (x, y))
                turn = {"scroll_direction": toward, "scroll_amount": notches}
                return {"action": "scroll", "coordinate": place, **turn}
            case a.Wait(seconds):
                return {"action": "wait", "duration": seconds}
            case a.Zoom(region):
                return {"action": "zoom", "region": list(region)}
            case a.Screenshot():
                return {"action": "screenshot"}
        raise self.no_equivalent(action)

    def encode(self, action: Action, view: View) -> str:
        if isinstance(action, a.Answer):
            return action.text
        if isinstance(action, a.Terminate):
            return "Done." if action.status == "success" else "This cannot be done."
        return super().encode(action, view)
