"""Carrying out canonical actions on a page with real (trusted) mouse and keyboard events.

Knows the pointer, held buttons and keys of one page. Runs on the background loop. What an action can't do is
an `ActionError` for the agent; positions are checked before anything happens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mm_gym.computer.actions import (
    Action,
    ActionError,
    Click,
    Drag,
    KeyDown,
    Keys,
    KeyUp,
    Move,
    Point,
    Press,
    Release,
    Scroll,
    Select,
    Type,
    Wait,
    check_on_screen,
)
from mm_gym.computer.keyboard import MODIFIER_BITS, key_event, resolve_key
from mm_gym.computer.page import Page

MAX_TEXT = 10_000
MAX_WAIT = 60.0
MAX_REPEAT = 100
MAX_PATH = 200
MAX_SCROLL = 100_000

_BUTTON_BITS = {"left": 1, "right": 2, "middle": 4, "back": 8, "forward": 16}
_SHIFTED = dict(zip("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?', strict=True))


@dataclass
class Hands:
    """The mouse and keyboard of one page."""

    page: Page
    pointer: Point | None = None
    """Where the pointer is; None before it first moved."""
    clipboard: str = ""
    _buttons: int = 0
    _held: list[str] = field(default_factory=list)

    @property
    def _modifiers(self) -> int:
        return sum(MODIFIER_BITS[k] for k in set(self._held) if k in MODIFIER_BITS)

    async def perform(self, action: Action) -> None:
        """Carry out one action; actions that only look do nothing here.

        Raises:
            ActionError: The agent asked for what can't be done.
            BrowserLost: The browser is gone.
        """
        check_on_screen(action, *self.page.spec.size)
        match action:
            case Click():
                await self._click(action)
            case Move(x, y):
                await self._move(x, y)
            case Drag():
                await self._drag(action)
            case Press(x, y, button):
                await self._press(*self._where(x, y), button)
            case Release(x, y, button):
                await self._release(*self._where(x, y), button)
            case Type(text):
                await self._type(text)
            case Keys():
                await self._keys(action)
            case KeyDown(key):
                await self._key(resolve_key(key), True)
            case KeyUp(key):
                await self._key(resolve_key(key), False)
            case Scroll():
                await self._scroll(action)
            case Select(element, options):
                await self._select(element, options)
            case Wait(seconds):
                await self._pass(seconds)
            case _:
                pass

    def _where(self, x: int | None, y: int | None) -> Point:
        if x is not None and y is not None:
            return x, y
        width, height = self.page.spec.size
        return self.pointer or (width // 2, height // 2)

    # -- mouse -----------------------------------------------------------------------------------------

    async def _mouse(self, kind: str, x: int, y: int, **more: Any) -> None:
        event = {"type": kind, "x": x, "y": y, "buttons": self._buttons, "modifiers": self._modifiers, **more}
        sent = [self.page.send("Input.dispatchMouseEvent", event)]
        await self.page.until(sent, f"a {kind} event", needs_frame=kind in ("mouseMoved", "mouseWheel"))

    async def _move(self, x: int, y: int) -> None:
        if self.pointer == (x, y):
            return
        if self.page.drag_data is not None:
            await self._drag_event("dragOver", x, y)
        else:
            held = next((name for name, bit in _BUTTON_BITS.items() if self._buttons & bit), "none")
            await self._mouse("mouseMoved", x, y, button=held)
            if self._buttons:
                await self.page.evaluate("0")  # by its answer, news of a drag that this began has come
            if self.page.drag_data is not None:  # the move began an HTML drag
                await self._drag_event("dragEnter", x, y)
                await self._drag_event("dragOver", x, y)
        self.pointer = (x, y)

    async def _press(self, x: int, y: int, button: str, count: int = 1) -> None:
        await self._move(x, y)
        self._buttons |= _BUTTON_BITS[button]
        await self._mouse("mousePressed", x, y, button=button, clickCount=count)

    async def _release(self, x: int, y: int, button: str, count: int = 1) -> None:
        await self._move(x, y)
        self._buttons &= ~_BUTTON_BITS[button]
        if self.page.drag_data is not None:
            await self._drag_event("drop", x, y)
            self.page.drag_data = None
        await self._mouse("mouseReleased", x, y, button=button, clickCount=count)

    async def _drag_event(self, kind: str, x: int, y: int) -> None:
        event = {"type": kind, "x": x, "y": y, "data": self.page.drag_data, "modifiers": self._modifiers}
        await self.page.until([self.page.send("Input.dispatchDragEvent", event)], f"a {kind} event")

    async def _click(self, action: Click) -> None:
        if not 1 <= action.count <= 3:
            raise ActionError(f"a click has a count of 1, 2 or 3, not {action.count}")
        async with _Holding(self, action.modifiers):
            if self.page.drag_data is None and self._buttons == 0:
                await self._quick_click(action)
                return
            for n in range(1, action.count + 1):
                await self._press(action.x, action.y, action.button, n)
                await self._release(action.x, action.y, action.button, n)

    async def _quick_click(self, action: Click) -> None:
        """Move, press and release sent in one go: the press takes the move along, without a frame."""
        x, y, bit = action.x, action.y, _BUTTON_BITS[action.button]
        common = {"x": x, "y": y, "modifiers": self._modifiers}
        events: list[dict[str, Any]] = []
        if self.pointer != (x, y):
            events.append({"type": "mouseMoved", "buttons": 0, **common})
        for n in range(1, action.count + 1):
            one = {"button": action.button, "clickCount": n, **common}
            events.append({"type": "mousePressed", "buttons": bit, **one})
            events.append({"type": "mouseReleased", "buttons": 0, **one})
        self.pointer = (x, y)
        sent = [self.page.send("Input.dispatchMouseEvent", e) for e in events]
        await self.page.until(sent, "a click")

    async def _drag(self, action: Drag) -> None:
        if not 2 <= len(action.path) <= MAX_PATH:
            raise ActionError(f"a drag has a path of 2 to {MAX_PATH} points, got {len(action.path)}")
        async with _Holding(self, action.modifiers):
            (x, y), *rest = action.path
            await self._press(x, y, action.button)
            if len(rest) == 1:  # pages tell a drag from a click by the moves between
                rest = [((x + rest[0][0]) // 2, (y + rest[0][1]) // 2), rest[0]]
            for point in rest:
                await self._move(*point)
            await self._release(*action.path[-1], action.button)

    async def _scroll(self, action: Scroll) -> None:
        if max(abs(action.dx), abs(action.dy)) > MAX_SCROLL:
            raise ActionError(f"a scroll goes at most {MAX_SCROLL} pixels, got ({action.dx}, {action.dy})")
        x, y = self._where(action.x, action.y)
        await self._move(x, y)
        if action.dx or action.dy:
            await self._mouse("mouseWheel", x, y, deltaX=action.dx, deltaY=action.dy)

    # -- keyboard --------------------------------------------------------------------------------------

    async def _type(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise ActionError(f"type takes at most {MAX_TEXT} characters at once, got {len(text)}")
        text = text.replace("\r\n", "\n")
        for start in range(0, len(text), 50):
            sent = []
            for char in text[start : start + 50]:
                key = {"\n": "Enter", "\r": "Enter", "\t": "Tab"}.get(char, char)
                if len(key) == 1 and (ord(key) > 0xFFFF or not key.isprintable()):
                    sent.append(self.page.send("Input.insertText", {"text": key}))
                    continue
                for down in (True, False):
                    sent.append(
                        self.page.send("Input.dispatchKeyEvent", key_event(key, down, self._modifiers))
                    )
            await self.page.until(sent, "typed text")

    async def _keys(self, action: Keys) -> None:
        if not 1 <= action.count <= MAX_REPEAT:
            raise ActionError(f"keys can be repeated 1 to {MAX_REPEAT} times, not {action.count}")
        names = [resolve_key(k) for k in action.keys]
        if not names or len(names) > 6:
            raise ActionError(f"keys takes 1 to 6 keys pressed together, got {len(names)}")
        for _ in range(action.count):
            for name in names:
                await self._key(name, True)
            for name in reversed(names):
                await self._key(name, False)

    async def _key(self, key: str, down: bool) -> None:
        if down and key not in self._held:
            self._held.append(key)
        if not down and key in self._held:
            self._held.remove(key)
        if "Shift" in self._held and len(key) == 1:
            key = _SHIFTED.get(key, key.upper() if len(key.upper()) == 1 else key)
        if down and self._is_shortcut(key, "v"):
            await self._paste()
            return
        sent = self.page.send("Input.dispatchKeyEvent", key_event(key, down, self._modifiers))
        await self.page.until([sent], f"the key {key}")
        if down and (self._is_shortcut(key, "c") or self._is_shortcut(key, "x")):
            copied = await self.page.evaluate("top.__mm_gym_clipboard")
            self.clipboard = copied if isinstance(copied, str) else self.clipboard

    def _is_shortcut(self, key: str, letter: str) -> bool:
        return key.lower() == letter and self._modifiers in (MODIFIER_BITS["Control"], MODIFIER_BITS["Meta"])

    async def _paste(self) -> None:
        """Ctrl+V from the episode's own clipboard (the browser's is shared by all its pages)."""
        event = {
            **key_event("v", True, self._modifiers),
            "windowsVirtualKeyCode": 0,
        }  # a keydown that pastes nothing
        await self.page.until([self.page.send("Input.dispatchKeyEvent", event)], "the key v")
        handled = await self.page.evaluate(f"({_PASTE})({json.dumps(self.clipboard)})")
        if not handled and self.clipboard:
            await self.page.until(
                [self.page.send("Input.insertText", {"text": self.clipboard})], "pasted text"
            )

    # -- the rest --------------------------------------------------------------------------------------

    async def _select(self, element: str, options: Sequence[str]) -> None:
        done = await self.page.evaluate(f"({_SELECT})({json.dumps(element)}, {json.dumps(list(options))})")
        if done is not True:
            raise ActionError(str(done))

    async def _pass(self, seconds: float) -> None:
        if not 0 <= seconds <= MAX_WAIT:
            raise ActionError(f"wait takes 0 to {MAX_WAIT:g} seconds, got {seconds:g}")
        await self.page.advance(round(seconds * 1000))


class _Holding:
    """Holds modifier keys around an action."""

    def __init__(self, hands: Hands, keys: Sequence[str]) -> None:
        self._hands = hands
        self._keys = [resolve_key(k) for k in keys]
        for key in self._keys:
            if key not in MODIFIER_BITS:
                raise ActionError(
                    f"only {', '.join(MODIFIER_BITS)} can be held during a mouse action, not {key!r}"
                )

    async def __aenter__(self) -> None:
        for key in self._keys:
            await self._hands._key(key, True)

    async def __aexit__(self, *_: Any) -> None:
        for key in reversed(self._keys):
            await self._hands._key(key, False)


_PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const target = document.activeElement || document.body;
  const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
  return !target.dispatchEvent(event);
}"""

_SELECT = """(id, wanted) => {
  const select = document.querySelector(`[data-mm-gym-id="${CSS.escape(id)}"]`);
  if (!select || select.tagName !== "SELECT") return `element ${id} is not a list to select from`;
  const options = [...select.options];
  const chosen = wanted.map(w => options.find(o => o.value === w || o.label.trim() === w));
  if (chosen.includes(undefined)) {
    return `element ${id} has no option ${wanted[chosen.indexOf(undefined)]}; it has: ` +
      options.map(o => o.label.trim()).join(", ");
  }
  for (const option of options) option.selected = chosen.includes(option);
  select.dispatchEvent(new Event("input", {bubbles: true}));
  select.dispatchEvent(new Event("change", {bubbles: true}));
  return true;
}"""
