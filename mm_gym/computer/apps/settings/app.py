"""Tasks of the settings: the right switch on the right page, lists, sliders and several things at once."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from mm_gym.computer.actions import Keys
from mm_gym.computer.apps.content import (
    FIRST_NAMES,
    PROJECTS,
    Rng,
    between,
    phrase,
    pick,
    shuffled,
    some,
    words,
)
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, click, drag, reveal

Item = dict[str, Any]


def _toggle(item_id: str, label: str, note: str = "") -> Item:
    return {"id": item_id, "label": label, "note": note, "kind": "toggle"}


def _select(item_id: str, label: str, *options: str) -> Item:
    return {"id": item_id, "label": label, "kind": "select", "options": list(options)}


def _radio(item_id: str, label: str, *options: str) -> Item:
    return {"id": item_id, "label": label, "kind": "radio", "options": list(options)}


def _slider(item_id: str, label: str, low: int, high: int, step: int, unit: str = "") -> Item:
    return {
        "id": item_id,
        "label": label,
        "kind": "slider",
        "min": low,
        "max": high,
        "step": step,
        "unit": unit,
    }


def _text(item_id: str, label: str) -> Item:
    return {"id": item_id, "label": label, "kind": "text"}


APPS = ("Mail", "Calendar", "Chat", "Photos", "Maps", "Music", "News", "Notes", "Weather", "Wallet")
LANGUAGES = words(
    "Deutsch English Español Français Italiano Magyar Nederlands Norsk Polski Português Suomi Svenska Türkçe"
)
PAGES: dict[str, tuple[str, str, dict[str, list[Item]]]] = {
    "display": (
        "Display",
        "screen",
        {
            "Screen": [
                _slider("brightness", "Brightness", 0, 100, 10, "%"),
                _slider("scale", "Text size", 80, 200, 20, "%"),
                _toggle("night", "Night light", "Warmer colours in the evening"),
            ],
            "Appearance": [
                _radio("look", "Theme", "Light", "Dark", "Automatic"),
                _toggle("motion", "Reduce motion"),
                _toggle("contrast", "High contrast", "Stronger edges and text"),
            ],
        },
    ),
    "sound": (
        "Sound",
        "sound",
        {
            "Output": [
                _slider("volume", "Volume", 0, 100, 10, "%"),
                _select("speaker", "Speaker", "Built-in", "Headphones", "Monitor", "Living room"),
            ],
            "Input": [
                _slider("gain", "Microphone level", 0, 100, 20, "%"),
                _toggle("noise", "Noise reduction"),
            ],
            "Effects": [_toggle("startup", "Start-up sound"), _toggle("keys", "Keyboard clicks")],
        },
    ),
    "network": (
        "Network",
        "wifi",
        {
            "Wi-Fi": [
                _toggle("wifi", "Wi-Fi"),
                _text("host", "Device name"),
                _toggle("hotspot", "Share as hotspot"),
            ],
            "Mobile": [
                _toggle("roaming", "Data roaming"),
                _select("mode", "Preferred network", "3G", "4G", "5G"),
            ],
        },
    ),
    "privacy": (
        "Privacy",
        "shield",
        {
            "Access": [
                _toggle("location", "Location", "Apps may ask where you are"),
                _toggle("camera", "Camera"),
                _toggle("microphone", "Microphone"),
            ],
            "Data": [
                _select("history", "Keep history", "1 week", "1 month", "6 months", "1 year", "Forever"),
                _toggle("reports", "Send crash reports"),
                _toggle("ads", "Personal advertising"),
            ],
        },
    ),
    "language": (
        "Language",
        "globe",
        {
            "Region": [
                _select("language", "Language", *LANGUAGES),
                _radio("clock", "Clock", "24 hours", "12 hours"),
                _radio("week", "Week starts on", "Monday", "Saturday", "Sunday"),
            ],
            "Typing": [_toggle("spelling", "Check spelling"), _toggle("suggest", "Suggest words")],
        },
    ),
    "account": (
        "Account",
        "user",
        {
            "Profile": [
                _text("nickname", "Nickname"),
                _select("visible", "Profile visible to", "Everyone", "Contacts", "Nobody"),
            ],
            "Security": [
                _toggle("twofactor", "Two-step sign-in"),
                _select("lock", "Lock after", "1 minute", "5 minutes", "15 minutes", "Never"),
            ],
        },
    ),
    "alerts": (
        "Notifications",
        "bell",
        {
            "General": [_toggle("quiet", "Do not disturb"), _toggle("badges", "Show badges")],
            "Apps": [_toggle(f"alert-{a.lower()}", a, "Banners and sounds") for a in APPS],
        },
    ),
}
"""Every page: its name, its icon, and its groups of settings."""


def _settings(rng: Rng, level: int) -> Draft:
    """At level 1 four pages, above that all; values are drawn."""
    pages: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    for page_id in some(rng, list(PAGES), 4 if level == 1 else len(PAGES)):
        name, symbol, groups = PAGES[page_id]
        shown: list[dict[str, Any]] = [
            {"name": g, "items": copy.deepcopy(shuffled(rng, items))} for g, items in groups.items()
        ]
        pages.append({"id": page_id, "name": name, "icon": symbol, "groups": shown})
        for group in shown:
            for item in group["items"]:
                values[item["id"]] = _value(rng, item)
    options = {"brand": pick(rng, ("Settings", "Preferences", "Control panel")), "pages": pages}
    return Draft(rng, {"values": values}, options)


def _value(rng: Rng, item: Item) -> Any:
    if item["kind"] == "toggle":
        return bool(rng.random() < 0.5)
    if item["kind"] == "slider":
        return between(rng, 0, (item["max"] - item["min"]) // item["step"]) * item["step"] + item["min"]
    if item["kind"] == "text":
        return f"{pick(rng, FIRST_NAMES).lower()}-{between(rng, 1, 99)}"
    return pick(rng, item["options"])


def _items(draft: Draft, *kinds: str) -> list[tuple[str, Item]]:
    """(page id, item) of every setting of these kinds."""
    return [
        (page["id"], item)
        for page in draft.options["pages"]
        for group in page["groups"]
        for item in group["items"]
        if item["kind"] in kinds
    ]


def _page_name(page_id: str) -> str:
    return PAGES[page_id][0]


def _other_value(rng: Rng, item: Item, now: Any) -> Any:
    if item["kind"] == "toggle":
        return not now
    while (value := _value(rng, item)) == now:
        pass
    return value


def _said(page_id: str, item: Item, value: Any) -> str:
    where = f"{item['label']} ({_page_name(page_id)})"
    if item["kind"] == "toggle":
        return f"turn {where} {'on' if value else 'off'}"
    return f"set {where} to {value}{item.get('unit', '')}"


def _change(rng: Rng, level: int, kinds: tuple[str, ...], count: int) -> Instance:
    """`count` settings of these kinds, on any pages."""
    draft = _settings(rng, level)
    chosen = some(rng, _items(draft, *kinds), count)
    steps = []
    for page_id, item in chosen:
        value = _other_value(rng, item, draft.data["values"][item["id"]])
        draft.after["values"][item["id"]] = value
        steps.append((page_id, item["id"], item["kind"], value))
    what = ", ".join(_said(p, i, draft.after["values"][i["id"]]) for p, i in chosen)
    goal = phrase(rng, ("In the settings, {what}.", "Please {what}.", "Change this: {what}."), what=what)
    return draft.make(goal, partial(_solve_change, steps=tuple(steps)))


def _solve_change(page: PageQuery, steps: tuple[tuple[str, str, str, Any], ...]) -> Moves:
    for page_id, item, kind, value in steps:
        if page.state()["ui"]["page"] != page_id:
            yield from press(page, f"page:{page_id}", within="pages")
        yield from _SET[kind](page, item, value)


def _set_toggle(page: PageQuery, item: str, value: Any) -> Moves:
    yield from press(page, item, within="settings")


def _set_select(page: PageQuery, item: str, value: Any) -> Moves:
    yield from choose(page, item, value, within="settings")


def _set_radio(page: PageQuery, item: str, value: Any) -> Moves:
    yield from press(page, f"{item}:{value}", within="settings")


def _set_text(page: PageQuery, item: str, value: Any) -> Moves:
    yield from write(page, item, value, within="settings")


def _set_slider(page: PageQuery, item: str, value: Any) -> Moves:
    """Drag the thumb; arrow keys put right what is left."""
    yield from reveal(page, at(item), within=at("settings"))
    spec = next(i for g in PAGES.values() for items in g[2].values() for i in items if i["id"] == item)
    share = (value - spec["min"]) / (spec["max"] - spec["min"])
    track = page.find(at(item))
    thumb = page.find(f"{at(item)} .thumb")
    if thumb.center[0] // 8 == track.at(share, 0.5)[0] // 8:
        yield click(thumb)
    else:
        yield drag(thumb.center, track.at(share, 0.5))
    left = (value - page.state()["data"]["values"][item]) // spec["step"]
    if left:
        yield Keys(("ArrowRight" if left > 0 else "ArrowLeft",), count=abs(left))


_SET = {
    "toggle": _set_toggle,
    "select": _set_select,
    "radio": _set_radio,
    "text": _set_text,
    "slider": _set_slider,
}


def toggle(rng: Rng, level: int) -> Instance:
    return _change(rng, level, ("toggle",), 1 if level < 3 else 2)


def option(rng: Rng, level: int) -> Instance:
    return _change(rng, level, ("select", "radio"), 1 if level < 3 else 2)


def slider(rng: Rng, level: int) -> Instance:
    return _change(rng, max(2, level), ("slider",), 1 if level < 3 else 2)


def several(rng: Rng, level: int) -> Instance:
    return _change(rng, level, ("toggle", "select", "radio", "slider", "text"), level + 1)


def text(rng: Rng, level: int) -> Instance:
    draft = _settings(rng, 3)
    page_id, item = pick(rng, _items(draft, "text"))
    value = f"{pick(rng, PROJECTS)}-{between(rng, 100, 999)}"
    draft.after["values"][item["id"]] = value
    goal = phrase(
        rng,
        ("Change {x} to {v}.", "Set {x} to {v} in the settings.", "{x} should read {v}."),
        x=f"{item['label']} ({_page_name(page_id)})",
        v=value,
    )
    return draft.make(goal, partial(_solve_change, steps=((page_id, item["id"], "text", value),)))


def apps(rng: Rng, level: int) -> Instance:
    """Notifications app by app: a list that scrolls."""
    draft = _settings(rng, 3)
    chosen = some(rng, [i for p, i in _items(draft, "toggle") if i["id"].startswith("alert-")], level)
    value = bool(rng.random() < 0.5)
    for item in chosen:
        for data in (draft.data, draft.after):
            data["values"][item["id"]] = not value
        draft.after["values"][item["id"]] = value
    goal = phrase(
        rng,
        ("Turn {v} the notifications of {x}.", "Notifications of {x} should be {v}."),
        v="on" if value else "off",
        x=" and ".join(i["label"] for i in chosen),
    )
    return draft.make(
        goal, partial(_solve_change, steps=tuple(("alerts", i["id"], "toggle", value) for i in chosen))
    )


_task = partial(TaskSpec, app="settings", min_size=(640, 480))

TASKS = [
    _task("toggle", generate=toggle, tags=("grounding", "navigation")),
    _task("option", generate=option, tags=("navigation", "scrolling")),
    _task("slider", generate=slider, tags=("drag", "navigation")),
    _task("text", generate=text, tags=("typing", "navigation")),
    _task("apps", generate=apps, tags=("scrolling", "navigation")),
    _task("several", generate=several, tags=("forms", "navigation", "scrolling")),
]
