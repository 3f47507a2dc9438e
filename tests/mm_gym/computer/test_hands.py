"""Each dialect's actions on a real page: clicks at corners, edges and middle, drags, wheel, typing, keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mm_gym.computer import actions as a
from mm_gym.computer.actions import ActionError
from mm_gym.computer.dialects import DIALECTS, View, dialect
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen import Screen
from mm_gym.tool_calls import ToolCall

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_browser")]

LOG = """<style>body{margin:0}</style><body><script>
window.log = [];
for (const type of ["mousedown", "mouseup", "click", "dblclick", "contextmenu", "auxclick"])
  addEventListener(type, e => { log.push([type, e.clientX, e.clientY, e.button, e.detail]);
    if (type === "contextmenu") e.preventDefault(); });
addEventListener("mousemove", e => { window.at = [e.clientX, e.clientY]; });
</script>"""
SIZES = [(96, 96), (160, 210), (640, 480), (1280, 720), (1366, 768)]
POINT_DIALECTS = sorted(set(DIALECTS) - {"browsergym_bid"})


def spots(width: int, height: int) -> list[tuple[int, int]]:
    xs, ys = (0, width // 2, width - 1), (0, height // 2, height - 1)
    return [(x, y) for x in xs for y in ys]


def do(screen: Screen, name: str, action: a.Action, size: tuple[int, int]) -> Any:
    """Write an action in a dialect, read it back, carry it out."""
    made, seen = dialect(name), None
    pointer = screen.look(picture=False).pointer
    for step in made.steps(action, View(*size, pointer)):
        view = View(*size, screen.look(picture=False).pointer)
        for call in made.parse(made.encode(step, view)).calls:
            for decoded in made.decode(call, view):
                seen = screen.act(decoded, 20, picture=False)
    return seen


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_clicks_land_where_every_dialect_says(
    screen: Screen, site: Callable[..., PageSpec], size: tuple[int, int]
) -> None:
    screen.open(site(LOG, size))
    for name in POINT_DIALECTS:
        for x, y in spots(*size):
            screen.evaluate("log.length = 0")
            do(screen, name, a.Click(x, y), size)
            log = screen.evaluate("log")
            assert [e[0] for e in log] == ["mousedown", "mouseup", "click"], (name, x, y)
            grid = (
                max(1, size[0] / 1000) if name in ("qwen3_vl", "ui_tars_v1", "qwen2_5_vl", "ui_tars") else 0
            )
            for _, px, py, button, _ in log:
                assert abs(px - x) <= grid, (name, x, y, px, py)
                assert abs(py - y) <= grid, (name, x, y, px, py)
                assert button == 0


def test_the_closed_end_of_the_thousand_grid_is_the_last_pixel(
    screen: Screen, site: Callable[..., PageSpec]
) -> None:
    screen.open(site(LOG, (640, 480)))
    qwen, view = dialect("qwen3_vl"), View(640, 480)
    call = ToolCall("computer_use", {"action": "left_click", "coordinate": [1000, 1000]})
    (action,) = qwen.decode(call, view)
    screen.act(action, 0)
    assert screen.evaluate("log.at(-1)")[:3] == ["click", 639, 479]


BUTTON = """<body style='margin:0'>
<button style='position:absolute;left:40px;top:30px;width:30px;height:20px'
        onclick='window.hits = (window.hits || 0) + 1'>x</button>"""


@pytest.mark.parametrize("name", POINT_DIALECTS)
def test_a_real_button_is_hit_at_its_edges_and_missed_beside_them(
    screen: Screen, site: Callable[..., PageSpec], name: str
) -> None:
    screen.open(site(BUTTON, (400, 300)))
    for x, y in [(41, 31), (68, 48), (55, 40)]:
        do(screen, name, a.Click(x, y), (400, 300))
    assert screen.evaluate("hits") == 3
    for x, y in [(37, 40), (73, 40), (55, 27), (55, 53)]:
        do(screen, name, a.Click(x, y), (400, 300))
    assert screen.evaluate("hits") == 3


@pytest.mark.parametrize(
    ("action", "events"),
    [
        (a.Click(9, 9, "right"), [("mousedown", 2), ("mouseup", 2), ("contextmenu", 2), ("auxclick", 2)]),
        (a.Click(9, 9, "middle"), [("mousedown", 1), ("mouseup", 1), ("auxclick", 1)]),
        (a.Click(9, 9, count=2), [("mousedown", 0), ("mouseup", 0), ("click", 0)] * 2 + [("dblclick", 0)]),
        (a.Click(9, 9, "back"), [("mousedown", 3), ("mouseup", 3), ("auxclick", 3)]),
    ],
)
def test_buttons_and_counts(
    screen: Screen, site: Callable[..., PageSpec], action: a.Action, events: list[tuple[str, int]]
) -> None:
    screen.open(site(LOG))
    screen.act(action, 0)
    assert sorted((e[0], e[3]) for e in screen.evaluate("log")) == sorted(events)


DRAG = """<body style='margin:0'><script>
window.path = [];
addEventListener("mousemove", e => { if (e.buttons === 1) path.push([e.clientX, e.clientY]); });
addEventListener("mousedown", e => { window.start = [e.clientX, e.clientY]; });
addEventListener("mouseup", e => { window.end = [e.clientX, e.clientY]; });
</script>"""


@pytest.mark.parametrize("name", POINT_DIALECTS)
def test_drags_start_move_and_end_where_every_dialect_says(
    screen: Screen, site: Callable[..., PageSpec], name: str
) -> None:
    screen.open(site(DRAG, (640, 480)))
    do(screen, name, a.Drag(((20, 30), (600, 450))), (640, 480))
    start, end, path = screen.evaluate("[start, end, path]")
    assert abs(start[0] - 20) <= 1
    assert abs(start[1] - 30) <= 1
    assert abs(end[0] - 600) <= 1
    assert abs(end[1] - 450) <= 1
    assert name == "miniwob" or len(path) >= 2  # pages tell a drag by the moves between


def test_a_drag_visits_each_point_of_its_path(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(site(DRAG))
    points = ((10, 10), (100, 20), (50, 200), (300, 250))
    screen.act(a.Drag(points), 0)
    assert screen.evaluate("path") == [list(p) for p in points[1:]]


def test_html_drag_and_drop(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(
        site(
            "<body style='margin:0'><div draggable=true style='width:50px;height:50px;background:red' "
            'ondragstart=\'event.dataTransfer.setData("text/plain", "card")\'></div>'
            "<div style='width:50px;height:50px;background:blue' ondragover='event.preventDefault()' "
            "ondrop='window.got = event.dataTransfer.getData(\"text/plain\")'></div>"
        )
    )
    screen.act(a.Drag(((20, 20), (25, 75))), 0)
    assert screen.evaluate("window.got") == "card"


LONG = """<body style='margin:0;width:3000px'>
<div id=box style='position:absolute;left:50px;top:50px;width:100px;height:100px;overflow:auto'>
  <div style='height:2000px;width:2000px'></div>
</div>
<div style='height:4000px'></div>"""


@pytest.mark.parametrize("name", POINT_DIALECTS)
def test_the_wheel_turns_where_every_dialect_says(
    screen: Screen, site: Callable[..., PageSpec], name: str
) -> None:
    screen.open(site(LONG, (400, 300)))
    step = {"ui_tars": 300, "ui_tars_v1": 300}.get(name, 100)
    do(screen, name, a.Scroll(0, step, 300, 250), (400, 300))
    assert screen.evaluate("[scrollY, box.scrollTop]") == [step, 0]
    do(screen, name, a.Scroll(0, -step, 300, 250), (400, 300))
    do(screen, name, a.Scroll(0, step, 100, 100), (400, 300))
    assert screen.evaluate("[scrollY, box.scrollTop]") == [0, step]


def test_the_wheel_turns_sideways(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(site(LONG, (400, 300)))
    screen.act(a.Scroll(120, 0, 300, 250), 20)
    assert screen.evaluate("[scrollX, scrollY]") == [120, 0]


FIELD = "<input id=i autofocus style='width:300px'><textarea id=t></textarea>"
TEXTS = ["plain", "ÄÖü ß éè", "日本語 한국어", "emoji 😀👍🏽", "עברית", "a'\"\\<b>&amp;", "½ → ∠", "x\u0301"]


@pytest.mark.parametrize("text", TEXTS)
def test_any_unicode_is_typed(screen: Screen, site: Callable[..., PageSpec], text: str) -> None:
    screen.open(site(FIELD))
    screen.evaluate("i.focus()")
    screen.act(a.Type(text), 0)
    assert screen.evaluate("i.value") == text


@pytest.mark.parametrize("name", POINT_DIALECTS)
def test_typing_through_every_dialect(screen: Screen, site: Callable[..., PageSpec], name: str) -> None:
    screen.open(site(FIELD))
    screen.evaluate("t.focus()")
    do(screen, name, a.Type("two\nlines 'ü'"), (400, 300))
    assert screen.evaluate("t.value") == "two\nlines 'ü'"


def test_typing_makes_key_events_and_enter_submits(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(
        site("<form onsubmit='window.sent = i.value; event.preventDefault()'><input id=i autofocus></form>")
    )
    screen.evaluate(
        "i.focus(); window.keys = []; addEventListener('keydown', e => keys.push(e.key + e.code))"
    )
    screen.act(a.Type("aB1\n"), 0)
    assert screen.evaluate("[sent, keys]") == ["aB1", ["aKeyA", "BKeyB", "1Digit1", "EnterEnter"]]


def test_keys_select_copy_and_paste_within_the_episode(screen: Screen, site: Callable[..., PageSpec]) -> None:
    other = Screen()
    try:
        for each, text in ((screen, "mine"), (other, "theirs")):
            each.open(site(FIELD))
            each.evaluate("i.focus()")
            each.act(a.Type(text), 0)
            each.act(a.Keys(("Control", "a")), 0)
            each.act(a.Keys(("Control", "c")), 0)
        for each, text in ((screen, "mine"), (other, "theirs")):  # one browser, two clipboards
            each.evaluate("t.focus()")
            each.act(a.Keys(("Control", "v")), 0)
            assert each.evaluate("t.value") == text
    finally:
        other.close()


def test_held_keys_last_until_released(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(
        site(
            "<script>window.shift=[];addEventListener('click', e => shift.push(e.shiftKey, "
            "e.ctrlKey))</script>"
        )
    )
    screen.act(a.KeyDown("Shift"), 0)
    screen.act(a.Click(5, 5), 0)
    screen.act(a.KeyUp("Shift"), 0)
    screen.act(a.Click(6, 6, modifiers=("Control",)), 0)
    screen.act(a.Click(7, 7), 0)
    assert screen.evaluate("shift") == [True, False, False, True, False, False]


def test_a_drop_down_list_is_drawn_in_the_page_and_can_be_clicked(
    screen: Screen, site: Callable[..., PageSpec]
) -> None:
    screen.open(
        site("<select id=s onchange='window.chosen = s.value'><option>one<option>two<option>three</select>")
    )
    before = screen.look(0).png
    seen = screen.act(a.Click(20, 18), 50)
    assert seen.png != before
    x, y, w, h = screen.evaluate(
        "(() => {const b = s.options[1].getBoundingClientRect(); return [b.x,b.y,b.width,b.height]})()"
    )
    screen.act(a.Click(int(x + w / 2), int(y + h / 2)), 50)
    assert screen.evaluate("window.chosen") == "two"


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (a.Click(400, 0), "outside the screen"),
        (a.Click(0, 0, count=4), "count of 1, 2 or 3"),
        (a.Drag(((1, 1), (1, 300))), "outside the screen"),
        (a.Type("x" * 20_000), "at most 10000"),
        (a.Wait(1e9), "0 to 60 seconds"),
        (a.Keys(("nope",)), "no key named"),
        (a.Keys(("a",), 1000), "1 to 100 times"),
        (a.Select("99", ("x",)), "not a list"),
    ],
)
def test_what_cannot_be_done_is_told_to_the_agent(
    screen: Screen, site: Callable[..., PageSpec], action: a.Action, text: str
) -> None:
    screen.open(site(LOG))
    with pytest.raises(ActionError, match=text):
        screen.act(action, 0)
    assert screen.evaluate("log") == []


def test_waiting_moves_the_pages_clock_and_nothing_else_does(
    screen: Screen, site: Callable[..., PageSpec]
) -> None:
    screen.open(site("<script>window.ticks=0;setInterval(() => ticks++, 100)</script>"))
    before = screen.evaluate("[Date.now(), ticks]")
    import time

    time.sleep(0.3)  # a slow model
    assert screen.evaluate("[Date.now(), ticks]") == before
    screen.act(a.Wait(2.0), 0)
    after = screen.evaluate("[Date.now(), ticks]")
    assert after == [before[0] + 2000, before[1] + 20]
