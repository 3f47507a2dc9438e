"""Keys: their DOM names, the names that dialects use for them, and the events that press them.

A US layout. `resolve_key` takes any dialect's name ("ctrl", "Return", "ArrowLeft", "KP_Enter", "cmd") and
gives the DOM's (`KeyboardEvent.key`); `key_event` gives the protocol's parameters for one.
"""

from __future__ import annotations

from typing import Any

from mm_gym.computer.actions import ActionError

MODIFIER_BITS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

# key -> (code, Windows virtual key code)
_NAMED: dict[str, tuple[str, int]] = {
    **{key: (key, code) for key, code in {
        "Backspace": 8, "Tab": 9, "Enter": 13, "Pause": 19, "CapsLock": 20, "Escape": 27, "PageUp": 33,
        "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40, "PrintScreen": 44, "Insert": 45, "Delete": 46, "ContextMenu": 93, "NumLock": 144,
        "ScrollLock": 145,
    }.items()},
    **{k: (f"{k}Left", code) for k, code in {"Shift": 16, "Control": 17, "Alt": 18, "Meta": 91}.items()},
    **{f"F{n}": (f"F{n}", 111 + n) for n in range(1, 25)},
    " ": ("Space", 32),
}  # fmt: skip
_PUNCTUATION = {
    ";:": ("Semicolon", 186), "=+": ("Equal", 187), ",<": ("Comma", 188), "-_": ("Minus", 189),
    ".>": ("Period", 190), "/?": ("Slash", 191), "`~": ("Backquote", 192), "[{": ("BracketLeft", 219),
    "\\|": ("Backslash", 220), "]}": ("BracketRight", 221), "'\"": ("Quote", 222),
}  # fmt: skip
_SHIFTED_DIGITS = ")!@#$%^&*("

_OTHER_NAMES = {
    "Control": (
        "ctrl control control_l control_r ctrl_l ctrl_r ctrlleft ctrlright controlleft controlright "
        "controlormeta"
    ),
    "Shift": "shift shift_l shift_r shiftleft shiftright",
    "Alt": "alt alt_l alt_r altleft altright option optionleft optionright altgr iso_level3_shift",
    "Meta": (
        "meta meta_l meta_r metaleft metaright cmd command super super_l super_r win winleft "
        "winright windows os"
    ),
    "Enter": "enter return kp_enter linefeed numpadenter",
    "Tab": "tab iso_left_tab",
    "Backspace": "backspace back",
    "Delete": "delete del kp_delete",
    "Insert": "insert ins",
    "Escape": "escape esc",
    " ": "space spacebar kp_space",
    "ArrowLeft": "left arrowleft arrow_left kp_left",
    "ArrowRight": "right arrowright arrow_right kp_right",
    "ArrowUp": "up arrowup arrow_up kp_up",
    "ArrowDown": "down arrowdown arrow_down kp_down",
    "PageUp": "pageup page_up pgup prior kp_prior",
    "PageDown": "pagedown page_down pgdn pgdown next kp_next",
    "Home": "home kp_home",
    "End": "end kp_end",
    "CapsLock": "capslock caps_lock caps",
    "NumLock": "numlock num_lock",
    "ScrollLock": "scrolllock scroll_lock",
    "Pause": "pause break",
    "PrintScreen": "print printscreen prtsc prtscr prntscrn prtscn",
    "ContextMenu": "menu apps contextmenu",
    "-": "minus hyphen subtract kp_subtract",
    "+": "plus add kp_add",
    "=": "equal equals",
    ",": "comma",
    ".": "period dot decimal kp_decimal",
    "/": "slash divide kp_divide",
    "\\": "backslash",
    ";": "semicolon",
    ":": "colon",
    "'": "apostrophe quote",
    '"': "quotedbl doublequote",
    "`": "grave quoteleft backquote backtick",
    "~": "asciitilde tilde",
    "!": "exclam",
    "@": "at",
    "#": "numbersign",
    "$": "dollar",
    "%": "percent",
    "^": "asciicircum caret",
    "&": "ampersand",
    "*": "asterisk multiply kp_multiply",
    "(": "parenleft",
    ")": "parenright",
    "[": "bracketleft",
    "]": "bracketright",
    "{": "braceleft",
    "}": "braceright",
    "|": "bar pipe",
    "_": "underscore",
    "<": "less",
    ">": "greater",
    "?": "question",
}
_ALIASES = {
    **{alias: key for key, aliases in _OTHER_NAMES.items() for alias in aliases.split()},
    **{f"{prefix}{n}": str(n) for prefix in ("kp_", "num", "numpad", "digit") for n in range(10)},
    **{f"key{c}": c for c in "abcdefghijklmnopqrstuvwxyz"},
    **{f"f{n}": f"F{n}" for n in range(1, 25)},
    "\n": "Enter",
    "\r": "Enter",
    "\t": "Tab",
    "\b": "Backspace",
}


def _printable() -> dict[str, tuple[str, int]]:
    table = {c: (f"Key{c.upper()}", ord(c.upper())) for c in "abcdefghijklmnopqrstuvwxyz"}
    table |= {c.upper(): place for c, place in table.items()}
    table |= {str(n): (f"Digit{n}", 48 + n) for n in range(10)}
    table |= {c: (f"Digit{n}", 48 + n) for n, c in enumerate(_SHIFTED_DIGITS)}
    table |= {c: place for pair, place in _PUNCTUATION.items() for c in pair}
    return table


_PRINTABLE = _printable()


def resolve_key(name: str) -> str:
    """The DOM's name of a key that any dialect may have named.

    >>> resolve_key("ctrl"), resolve_key("Page_Down"), resolve_key("A"), resolve_key("é")
    ('Control', 'PageDown', 'A', 'é')

    Raises:
        ActionError: No dialect knows such a key.
    """
    if len(name) == 1 and name.isprintable():
        return name
    if name in _NAMED:
        return name
    found = _ALIASES.get(name.strip().lower() or name)
    if found is None:
        raise ActionError(
            f'there is no key named {name!r}: use one character, or a name such as "Enter", "Tab", "Escape", '
            '"Backspace", "ArrowLeft", "PageDown", "F5", "ctrl", "shift", "alt"'
        )
    return found


def split_chord(text: str, separators: str = "+") -> tuple[str, ...]:
    """The DOM names of keys pressed together, from text such as "ctrl+shift+t" or "ctrl c".

    >>> split_chord("ctrl++"), split_chord("ctrl a", " +")
    (('Control', '+'), ('Control', 'a'))

    Raises:
        ActionError: A name is unknown, or there is none.
    """
    for separator in separators[1:]:
        if len(text) > 1:
            text = text.replace(separator, separators[0])
    plus = separators[0]
    if text == plus:
        return (resolve_key(plus),)
    last = (plus,) if text.endswith(plus * 2) else ()
    names = [n for n in (text[:-2] if last else text).split(plus) if n]
    if not names and not last:
        raise ActionError(f"no key in {text!r}")
    return tuple(resolve_key(n) for n in (*names, *last))


def key_event(key: str, down: bool, modifiers: int) -> dict[str, Any]:
    """Parameters of `Input.dispatchKeyEvent` for a DOM key, with the modifier bits held."""
    code, key_code = _NAMED.get(key) or _PRINTABLE.get(key) or ("", 0)
    event: dict[str, Any] = {
        "key": key,
        "code": code,
        "windowsVirtualKeyCode": key_code,
        "modifiers": modifiers,
    }
    text = "\r" if key == "Enter" else key if len(key) == 1 else ""
    shortcut = modifiers & ~MODIFIER_BITS["Shift"]
    if down and text and not shortcut:
        return {**event, "type": "keyDown", "text": text, "unmodifiedText": text}
    return {**event, "type": "rawKeyDown" if down else "keyUp"}
