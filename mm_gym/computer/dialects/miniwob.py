"""MiniWoB++'s own action types as a JSON tool: by coordinates, by element reference, or by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import ToolDialect, View, need, pair, pixels, repeated
from mm_gym.computer.keyboard import split_chord

_SCROLL = 50
_TYPES = (
    "NONE", "MOVE_COORDS", "CLICK_COORDS", "DBLCLICK_COORDS", "MOUSEDOWN_COORDS", "MOUSEUP_COORDS",
    "SCROLL_UP_COORDS", "SCROLL_DOWN_COORDS", "CLICK_ELEMENT", "PRESS_KEY", "TYPE_TEXT",
    "FOCUS_ELEMENT_AND_TYPE_TEXT",
)  # fmt: skip


class MiniWoB(ToolDialect):
    """The environment decides when the episode ends."""

    name = "miniwob"
    tool_name = "miniwob"
    uses_elements = True

    def system_prompt(self, view: View) -> str:
        return "You act on a small web page with the miniwob tool, one action a turn, until the task is done."

    def description(self, view: View) -> str:
        return (
            f"Act on a page of {view.width}x{view.height} pixels. coords are [x, y] pixels; ref is the "
            "number in brackets before an element; keys are written like C-a for Ctrl+A, or <Enter>."
        )

    def parameters(self, view: View) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "action_type": {"type": "string", "enum": list(_TYPES)},
                "coords": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
                "ref": {"type": "integer"},
                "text": {"type": "string"},
                "key": {"type": "string"},
            },
            "required": ["action_type"],
        }

    def actions(self, arguments: Mapping[str, Any], view: View) -> list[Action]:
        kind = arguments["action_type"]
        if kind.endswith("_COORDS"):
            return [self._at(kind, pixels(view).pixel(*pair(need(arguments, "coords", kind), "coords")))]
        if kind in ("CLICK_ELEMENT", "FOCUS_ELEMENT_AND_TYPE_TEXT"):
            if view.element is None:
                raise ActionError("elements have no references here")
            click = a.Click(*view.element(str(need(arguments, "ref", kind))))
            return [click] if kind == "CLICK_ELEMENT" else [click, a.Type(need(arguments, "text", kind))]
        if kind == "TYPE_TEXT":
            return [a.Type(need(arguments, "text", kind))]
        if kind == "PRESS_KEY":
            return [a.Keys(_keys(need(arguments, "key", kind)))]
        return [a.Screenshot()]

    @staticmethod
    def _at(kind: str, point: a.Point) -> Action:
        match kind.removesuffix("_COORDS"):
            case "MOVE":
                return a.Move(*point)
            case "CLICK":
                return a.Click(*point)
            case "DBLCLICK":
                return a.Click(*point, count=2)
            case "MOUSEDOWN":
                return a.Press(*point)
            case "MOUSEUP":
                return a.Release(*point)
            case "SCROLL_UP":
                return a.Scroll(0, -_SCROLL, *point)
        return a.Scroll(0, _SCROLL, *point)

    def steps(self, action: Action, view: View) -> list[Action]:
        match action:
            case a.Drag(path, "left", ()):
                return [a.Press(*path[0]), *(a.Move(*p) for p in path[1:]), a.Release(*path[-1])]
            case a.Scroll(0, dy, _, _):
                return [action] * max(1, round(abs(dy) / _SCROLL))
        return repeated(action)

    def arguments(self, action: Action, view: View) -> dict[str, Any]:
        match action:
            case a.Click(x, y, "left", 1 | 2, ()):
                name = "CLICK_COORDS" if action.count == 1 else "DBLCLICK_COORDS"
                return {"action_type": name, "coords": [x, y]}
            case a.Move(x, y):
                return {"action_type": "MOVE_COORDS", "coords": [x, y]}
            case a.Press(x, y, "left") | a.Release(x, y, "left"):
                name = "MOUSEDOWN_COORDS" if isinstance(action, a.Press) else "MOUSEUP_COORDS"
                place = view.here if x is None or y is None else (x, y)
                return {"action_type": name, "coords": list(place)}
            case a.Scroll(0, dy, x, y):
                name = "SCROLL_DOWN_COORDS" if dy > 0 else "SCROLL_UP_COORDS"
                place = view.here if x is None or y is None else (x, y)
                return {"action_type": name, "coords": list(place)}
            case a.Type(text):
                return {"action_type": "TYPE_TEXT", "text": text}
            case a.Keys(keys, 1):
                return {"action_type": "PRESS_KEY", "key": _write_keys(keys)}
            case a.Wait(_) | a.Screenshot() | a.Terminate(_):
                return {"action_type": "NONE"}
        raise self.no_equivalent(action)


_PREFIXES = {"C": "Control", "S": "Shift", "A": "Alt", "M": "Meta"}


def _keys(text: str) -> tuple[str, ...]:
    """MiniWoB++'s key names: a character, `<Enter>`, with prefixes `C-`, `S-`, `A-`, `M-`."""
    held = []
    while len(text) > 2 and text[1] == "-" and text[0] in _PREFIXES:
        held.append(_PREFIXES[text[0]])
        text = text[2:]
    if len(text) > 2 and text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
    return (*held, *split_chord(text))


def _write_keys(keys: tuple[str, ...]) -> str:
    prefixes = {key: prefix for prefix, key in _PREFIXES.items()}
    *held, last = keys
    name = last if len(last) == 1 and last != " " else f"<{'Space' if last == ' ' else last}>"
    return "".join(f"{prefixes[k]}-" for k in held) + name
