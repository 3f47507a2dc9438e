"""BrowserGym's actions as text, by coordinates (`mouse_click(10, 20)`) or element ids (`click('12')`).

The ids are those of the observation's accessibility tree. Actions of several tabs have no place here: an
episode has one page.
"""

from __future__ import annotations

import re
from typing import Any

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, ActionError
from mm_gym.computer.dialects.base import Dialect, View, button, modifiers, number, pixels, repeated, whole
from mm_gym.computer.dialects.calls import read_calls, write_call
from mm_gym.computer.keyboard import resolve_key, split_chord
from mm_gym.tool_calls import ToolCall, ToolParse
from mm_gym.tools import Tool

_COMMON: dict[str, tuple[str, ...]] = {
    "noop": ("wait_ms",),
    "send_msg_to_user": ("text",),
    "report_infeasible": ("reason",),
    "scroll": ("delta_x", "delta_y"),
}
_COORD = _COMMON | {
    "mouse_click": ("x", "y", "button"),
    "mouse_dblclick": ("x", "y", "button"),
    "mouse_move": ("x", "y"),
    "mouse_down": ("x", "y", "button"),
    "mouse_up": ("x", "y", "button"),
    "mouse_drag_and_drop": ("from_x", "from_y", "to_x", "to_y"),
    "scroll_at": ("x", "y", "dx", "dy"),
    "keyboard_press": ("key",),
    "keyboard_down": ("key",),
    "keyboard_up": ("key",),
    "keyboard_type": ("text",),
    "keyboard_insert_text": ("text",),
}
_BID = _COMMON | {
    "click": ("bid", "button", "modifiers"),
    "dblclick": ("bid", "button", "modifiers"),
    "hover": ("bid",),
    "fill": ("bid", "value"),
    "press": ("bid", "key_comb"),
    "focus": ("bid",),
    "clear": ("bid",),
    "select_option": ("bid", "options"),
    "drag_and_drop": ("from_bid", "to_bid"),
}
_BLOCK = re.compile(r"```(?:\w*\n)?(.*?)```", re.DOTALL)


class BrowserGymCoord(Dialect):
    """By coordinates, in pixels."""

    name = "browsergym_coord"
    parameters = _COORD
    examples = (
        "mouse_click(x, y, button='left'), mouse_dblclick(x, y), mouse_move(x, y), mouse_down(x, y), "
        "mouse_up(x, y), mouse_drag_and_drop(from_x, from_y, to_x, to_y), scroll_at(x, y, dx, dy), "
        "keyboard_press('Control+a'), keyboard_down(key), keyboard_up(key), keyboard_type(text), "
        "keyboard_insert_text(text)"
    )

    def tools(self, view: View) -> list[Tool]:
        return []

    def system_prompt(self, view: View) -> str:
        return (
            "You are a web agent. Answer each observation with exactly one action, a function call, and "
            f"nothing else. The screen has {view.width}x{view.height} pixels. The actions are: "
            f"{self.examples}, scroll(delta_x, delta_y), noop(wait_ms=1000), send_msg_to_user(text) to "
            "give the answer and end, report_infeasible(reason)."
        )

    def parse(self, text: str) -> ToolParse:
        block = _BLOCK.search(text)
        calls, problem = read_calls(block[1] if block else text, self.parameters)
        error = f"{problem}. Answer with one function call and nothing else." if problem else None
        return ToolParse(tuple(calls), error)

    def decode(self, call: ToolCall, view: View) -> list[Action]:
        name, given, grid = call.name, call.arguments, pixels(view)

        def at(x: str = "x", y: str = "y") -> a.Point:
            return grid.pixel(given.get(x), given.get(y))

        if name in ("mouse_click", "mouse_dblclick"):
            return [a.Click(*at(), button(given.get("button")), 1 + (name == "mouse_dblclick"))]
        if name == "mouse_move":
            return [a.Move(*at())]
        if name in ("mouse_down", "mouse_up"):
            kind = a.Press if name == "mouse_down" else a.Release
            return [kind(*at(), button(given.get("button")))]
        if name == "mouse_drag_and_drop":
            return [a.Drag((at("from_x", "from_y"), at("to_x", "to_y")))]
        if name == "scroll_at":
            return [a.Scroll(whole(given.get("dx"), "dx"), whole(given.get("dy"), "dy"), *at())]
        if name == "keyboard_press":
            return [a.Keys(split_chord(_text(given, "key")))]
        if name in ("keyboard_down", "keyboard_up"):
            key = resolve_key(_text(given, "key"))
            return [a.KeyDown(key) if name == "keyboard_down" else a.KeyUp(key)]
        if name in ("keyboard_type", "keyboard_insert_text"):
            return [a.Type(_text(given, "text"))]
        return self._common(name, given, view)

    def _common(self, name: str, given: dict[str, Any], view: View) -> list[Action]:
        if name == "scroll":
            dx, dy = (whole(given.get(k), k) for k in ("delta_x", "delta_y"))
            return [a.Scroll(dx, dy, *view.here)]
        if name == "noop":
            return [a.Wait(number(given.get("wait_ms", 1000), "wait_ms") / 1000)]
        if name == "send_msg_to_user":
            return [a.Answer(_text(given, "text"))]
        if name == "report_infeasible":
            return [a.Terminate("failure")]
        raise ActionError(f"there is no action {name!r}; the actions are {', '.join(self.parameters)}")

    def steps(self, action: Action, view: View) -> list[Action]:
        return repeated(action)

    def encode(self, action: Action, view: View) -> str:
        match action:
            case a.Click(x, y, which, 1 | 2, ()):
                return write_call(
                    "mouse_click" if action.count == 1 else "mouse_dblclick", x, y, button=which
                )
            case a.Move(x, y):
                return write_call("mouse_move", x, y)
            case a.Press(x, y, which) | a.Release(x, y, which):
                px, py = view.here if x is None or y is None else (x, y)
                name = "mouse_down" if isinstance(action, a.Press) else "mouse_up"
                return write_call(name, px, py, button=which)
            case a.Drag(path, "left", ()):
                return write_call("mouse_drag_and_drop", *path[0], *path[-1])
            case a.Scroll(dx, dy, x, y):
                px, py = view.here if x is None or y is None else (x, y)
                return write_call("scroll_at", px, py, dx, dy)
            case a.Keys(keys, 1):
                return write_call("keyboard_press", "+".join(keys))
            case a.KeyDown(key) | a.KeyUp(key):
                return write_call("keyboard_down" if isinstance(action, a.KeyDown) else "keyboard_up", key)
            case a.Type(text):
                return write_call("keyboard_type", text)
        return self._encode_common(action)

    def _encode_common(self, action: Action) -> str:
        match action:
            case a.Wait(seconds):
                return write_call("noop", round(seconds * 1000))
            case a.Screenshot():
                return write_call("noop", 0)
            case a.Answer(text):
                return write_call("send_msg_to_user", text)
            case a.Terminate("failure"):
                return write_call("report_infeasible", "it cannot be done")
            case a.Terminate(_):
                return write_call("send_msg_to_user", "done")
        raise self.no_equivalent(action)


class BrowserGymBid(BrowserGymCoord):
    """By element ids."""

    name = "browsergym_bid"
    parameters = _BID
    uses_elements = True
    examples = (
        "click(bid, button='left', modifiers=[]), dblclick(bid), hover(bid), fill(bid, value), "
        "press(bid, 'Control+a'), focus(bid), clear(bid), select_option(bid, options), "
        "drag_and_drop(from_bid, to_bid), where bid is the number in brackets before an element"
    )

    def decode(self, call: ToolCall, view: View) -> list[Action]:
        name, given = call.name, call.arguments
        if name in _COMMON:
            return self._common(name, given, view)

        def at(which: str = "bid") -> a.Point:
            if view.element is None:
                raise ActionError("elements have no ids here")
            return view.element(str(given.get(which)))

        if name in ("click", "dblclick"):
            held = modifiers(given.get("modifiers"))
            return [a.Click(*at(), button(given.get("button")), 1 + (name == "dblclick"), held)]
        if name == "hover":
            return [a.Move(*at())]
        if name == "focus":
            return [a.Click(*at())]
        if name in ("fill", "clear"):
            text = _text(given, "value") if name == "fill" else ""
            empty: list[Action] = [a.Click(*at()), a.Keys(("Control", "a")), a.Keys(("Delete",))]
            return [*empty, a.Type(text)] if text else empty
        if name == "press":
            return [a.Click(*at()), a.Keys(split_chord(_text(given, "key_comb")))]
        if name == "select_option":
            options = given.get("options")
            chosen = (options,) if isinstance(options, str) else tuple(str(o) for o in options or ())
            return [a.Select(str(given.get("bid")), chosen)]
        if name == "drag_and_drop":
            return [a.Drag((at("from_bid"), at("to_bid")))]
        raise ActionError(f"there is no action {name!r}; the actions are {', '.join(self.parameters)}")

    def encode(self, action: Action, view: View) -> str:
        def bid(point: a.Point) -> str:
            found = view.element_at(point) if view.element_at else None
            if found is None:
                raise self.no_equivalent(action)
            return found

        match action:
            case a.Click(x, y, which, 1 | 2, held):
                more: dict[str, Any] = {"button": which} if which != "left" else {}
                more |= {"modifiers": list(held)} if held else {}
                return write_call("click" if action.count == 1 else "dblclick", bid((x, y)), **more)
            case a.Move(x, y):
                return write_call("hover", bid((x, y)))
            case a.Drag(path, "left", ()):
                return write_call("drag_and_drop", bid(path[0]), bid(path[-1]))
            case a.Scroll(dx, dy, _, _):
                return write_call("scroll", dx, dy)
            case a.Select(element, options):
                return write_call("select_option", element, list(options))
        return self._encode_common(action)


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise ActionError(f"{name} must be text, got {value!r}")
    return value
