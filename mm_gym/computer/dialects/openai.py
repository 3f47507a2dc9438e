"""OpenAI's computer actions (`computer_call`): absolute pixels, an action object or a list of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import ToolDialect, View, button, modifiers, need, number, pixels, whole
from mm_gym.computer.keyboard import resolve_key

_TYPES = ("click", "double_click", "move", "drag", "type", "keypress", "scroll", "wait", "screenshot")


class OpenAI(ToolDialect):
    """The final answer is plain text without a call."""

    name = "openai"
    tool_name = "computer"
    text_ends = True

    def system_prompt(self, view: View) -> str:
        return (
            "You use a computer with the computer tool, which carries out actions and returns a "
            "screenshot. When "
            "the task is done, reply without a call; if it asks a question, that reply is the answer alone."
        )

    def description(self, view: View) -> str:
        return (
            f"A computer with a screen of {view.width}x{view.height} pixels. Positions are pixels from the "
            "top left corner; scroll_x and scroll_y are pixels, positive is right and down; wait takes "
            "`ms`."
        )

    def parameters(self, view: View) -> dict[str, Any]:
        point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
        action = {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": list(_TYPES)},
                "x": {"type": "number"},
                "y": {"type": "number"},
                "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
                "path": {"type": "array", "items": point},
                "text": {"type": "string"},
                "keys": {"type": ["array", "null"], "items": {"type": "string"}},
                "scroll_x": {"type": "number"},
                "scroll_y": {"type": "number"},
                "ms": {"type": "number"},
            },
            "required": ["type"],
        }
        return {
            "type": "object",
            "properties": {"action": action, "actions": {"type": "array", "items": action, "maxItems": 20}},
        }

    def actions(self, arguments: Mapping[str, Any], view: View) -> list[Action]:
        listed = list(arguments.get("actions", []))
        if "action" in arguments:
            listed.insert(0, arguments["action"])
        if not listed:
            raise ActionError("give an `action`, or a list of `actions`")
        return [self._one(item, view) for item in listed]

    def _one(self, item: Mapping[str, Any], view: View) -> Action:
        kind, grid = item["type"], pixels(view)

        def at() -> a.Point:
            return grid.pixel(need(item, "x", kind), need(item, "y", kind))

        if kind == "click":
            return a.Click(*at(), button(item.get("button")), 1, modifiers(item.get("keys")))
        if kind == "double_click":
            return a.Click(*at(), "left", 2, modifiers(item.get("keys")))
        if kind == "move":
            return a.Move(*at())
        if kind == "drag":
            path = [grid.pixel(need(p, "x", kind), need(p, "y", kind)) for p in need(item, "path", kind)]
            return a.Drag(tuple(path), "left", modifiers(item.get("keys")))
        if kind == "type":
            return a.Type(need(item, "text", kind))
        if kind == "keypress":
            return a.Keys(tuple(resolve_key(k) for k in need(item, "keys", kind)))
        if kind == "scroll":
            dx, dy = (whole(item.get(name, 0), name) for name in ("scroll_x", "scroll_y"))
            return a.Scroll(dx, dy, *at())
        if kind == "wait":
            return a.Wait(number(item.get("ms", 1000), "ms") / 1000)
        return a.Screenshot()

    def arguments(self, action: Action, view: View) -> dict[str, Any]:
        match action:
            case a.Click(x, y, which, 1, held):
                keys = {"keys": [_key_name(k) for k in held]} if held else {}
                name = "wheel" if which == "middle" else which
                return {"action": {"type": "click", "x": x, "y": y, "button": name, **keys}}
            case a.Click(x, y, "left", 2, ()):
                return {"action": {"type": "double_click", "x": x, "y": y}}
            case a.Move(x, y):
                return {"action": {"type": "move", "x": x, "y": y}}
            case a.Drag(path, "left", ()):
                return {"action": {"type": "drag", "path": [{"x": x, "y": y} for x, y in path]}}
            case a.Type(text):
                return {"action": {"type": "type", "text": text}}
            case a.Keys(keys, count):
                press = {"type": "keypress", "keys": [_key_name(k) for k in keys]}
                return {"action": press} if count == 1 else {"actions": [press] * count}
            case a.Scroll(dx, dy, x, y):
                px, py = view.here if x is None or y is None else (x, y)
                return {"action": {"type": "scroll", "x": px, "y": py, "scroll_x": dx, "scroll_y": dy}}
            case a.Wait(seconds):
                return {"action": {"type": "wait", "ms": round(seconds * 1000)}}
            case a.Screenshot():
                return {"action": {"type": "screenshot"}}
        raise self.no_equivalent(action)

    def encode(self, action: Action, view: View) -> str:
        if isinstance(action, a.Answer):
            return action.text
        if isinstance(action, a.Terminate):
            return "Done." if action.status == "success" else "This cannot be done."
        return super().encode(action, view)


def _key_name(key: str) -> str:
    return {"Control": "CTRL", " ": "SPACE"}.get(key) or (key if len(key) == 1 else key.upper())
