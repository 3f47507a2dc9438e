"""Dialects without a browser: every form is read, nothing is clamped, writing and reading agree."""

from __future__ import annotations

import contextlib
import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mm_gym.computer import actions as a
from mm_gym.computer.actions import ActionError, check_on_screen
from mm_gym.computer.dialects import DIALECTS, View, dialect
from mm_gym.computer.dialects.base import smart_resize
from mm_gym.computer.keyboard import resolve_key, split_chord

VIEW = View(640, 480, pointer=(10, 20), element=lambda id_: (50, 60), element_at=lambda point: "7")


def tool(name: str, **arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def read(name: str, text: str, view: View = VIEW) -> list[a.Action]:
    made = dialect(name)
    parsed = made.parse(text)
    assert parsed.error is None, parsed.error
    return [action for call in parsed.calls for action in made.decode(call, view)]


QWEN = [
    ({"action": "left_click", "coordinate": [0, 0]}, a.Click(0, 0)),
    ({"action": "left_click", "coordinate": [1000, 1000]}, a.Click(639, 479)),
    ({"action": "right_click", "coordinate": [500, 500]}, a.Click(320, 240, "right")),
    ({"action": "middle_click", "coordinate": [500, 500]}, a.Click(320, 240, "middle")),
    ({"action": "double_click", "coordinate": [500, 500]}, a.Click(320, 240, count=2)),
    ({"action": "triple_click", "coordinate": [500, 500]}, a.Click(320, 240, count=3)),
    (
        {"action": "left_click", "coordinate": [500, 500], "keys": ["ctrl"]},
        a.Click(320, 240, modifiers=("Control",)),
    ),
    ({"action": "mouse_move", "coordinate": [999, 1]}, a.Move(639, 0)),
    ({"action": "left_click_drag", "coordinate": [500, 500]}, a.Drag(((10, 20), (320, 240)))),
    ({"action": "type", "text": "é\n"}, a.Type("é\n")),
    ({"action": "key", "keys": ["ctrl", "shift", "T"]}, a.Keys(("Control", "Shift", "T"))),
    ({"action": "scroll", "pixels": 100}, a.Scroll(0, -100, 10, 20)),
    ({"action": "scroll", "pixels": -50}, a.Scroll(0, 50, 10, 20)),
    ({"action": "hscroll", "pixels": 30}, a.Scroll(30, 0, 10, 20)),
    ({"action": "wait", "time": 2.5}, a.Wait(2.5)),
    ({"action": "answer", "text": "42"}, a.Answer("42")),
    ({"action": "terminate", "status": "failure"}, a.Terminate("failure")),
]


@pytest.mark.parametrize(("arguments", "action"), QWEN)
def test_qwen3_vl_reads(arguments: dict, action: a.Action) -> None:
    assert read("qwen3_vl", tool("computer_use", **arguments)) == [action]


def test_qwen2_5_vl_reads_pixels_of_the_resized_picture() -> None:
    # 640x480 becomes 644x476: the nearest multiples of 28
    assert smart_resize(640, 480, 28, 56 * 56, 28 * 28 * 16384) == (644, 476)
    assert read("qwen2_5_vl", tool("computer_use", action="left_click", coordinate=[643, 475])) == [
        a.Click(639, 479)
    ]
    with pytest.raises(ActionError, match="x goes from 0 to 643"):
        read("qwen2_5_vl", tool("computer_use", action="left_click", coordinate=[644, 0]))


ANTHROPIC = [
    ({"action": "left_click", "coordinate": [639, 479]}, [a.Click(639, 479)]),
    (
        {"action": "left_click", "coordinate": [5, 6], "text": "ctrl+shift"},
        [a.Click(5, 6, modifiers=("Control", "Shift"))],
    ),
    ({"action": "triple_click", "coordinate": [5, 6]}, [a.Click(5, 6, count=3)]),
    (
        {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]},
        [a.Drag(((1, 2), (3, 4)))],
    ),
    ({"action": "left_mouse_down"}, [a.Press()]),
    ({"action": "left_mouse_up"}, [a.Release()]),
    ({"action": "key", "text": "ctrl+Page_Down", "repeat": 3}, [a.Keys(("Control", "PageDown"), 3)]),
    (
        {"action": "hold_key", "text": "shift", "duration": 2},
        [a.KeyDown("Shift"), a.Wait(2), a.KeyUp("Shift")],
    ),
    (
        {"action": "scroll", "coordinate": [5, 6], "scroll_direction": "down", "scroll_amount": 3},
        [a.Scroll(0, 300, 5, 6)],
    ),
    (
        {"action": "scroll", "coordinate": [5, 6], "scroll_direction": "left", "scroll_amount": 1},
        [a.Scroll(-100, 0, 5, 6)],
    ),
    ({"action": "wait", "duration": 1}, [a.Wait(1)]),
    ({"action": "screenshot"}, [a.Screenshot()]),
    ({"action": "zoom", "region": [0, 0, 10, 20]}, [a.Zoom((0, 0, 10, 20))]),
]


@pytest.mark.parametrize(("arguments", "actions"), ANTHROPIC)
def test_anthropic_reads(arguments: dict, actions: list[a.Action]) -> None:
    assert read("anthropic", tool("computer", **arguments)) == actions


OPENAI = [
    ({"action": {"type": "click", "x": 1, "y": 2, "button": "wheel"}}, [a.Click(1, 2, "middle")]),
    (
        {"action": {"type": "click", "x": 1, "y": 2, "keys": ["CTRL"]}},
        [a.Click(1, 2, modifiers=("Control",))],
    ),
    ({"action": {"type": "double_click", "x": 1, "y": 2}}, [a.Click(1, 2, count=2)]),
    ({"action": {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}}, [a.Drag(((1, 2), (3, 4)))]),
    ({"action": {"type": "keypress", "keys": ["CTRL", "A"]}}, [a.Keys(("Control", "A"))]),
    ({"action": {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 80}}, [a.Scroll(0, 80, 1, 2)]),
    ({"action": {"type": "wait", "ms": 1500}}, [a.Wait(1.5)]),
    (
        {"actions": [{"type": "move", "x": 1, "y": 2}, {"type": "type", "text": "a"}]},
        [a.Move(1, 2), a.Type("a")],
    ),
]


@pytest.mark.parametrize(("arguments", "actions"), OPENAI)
def test_openai_reads(arguments: dict, actions: list[a.Action]) -> None:
    assert read("openai", tool("computer", **arguments)) == actions


HUD = [
    (
        {"action": "click", "x": 1, "y": 2, "button": "right", "hold_keys": ["shift"]},
        [a.Click(1, 2, "right", 1, ("Shift",))],
    ),
    ({"action": "click", "x": 1, "y": 2, "pattern": [100]}, [a.Click(1, 2, count=2)]),
    ({"action": "move", "offset_x": 5, "offset_y": -5}, [a.Move(15, 15)]),
    ({"action": "drag", "path": [[1, 2], [3, 4], [5, 6]]}, [a.Drag(((1, 2), (3, 4), (5, 6)))]),
    ({"action": "mouse_down", "x": 1, "y": 2}, [a.Press(1, 2)]),
    ({"action": "mouse_up"}, [a.Release()]),
    ({"action": "type", "text": "a", "enter_after": True}, [a.Type("a"), a.Keys(("Enter",))]),
    ({"action": "press", "keys": ["ctrl", "c"]}, [a.Keys(("Control", "c"))]),
    ({"action": "keydown", "keys": ["shift"]}, [a.KeyDown("Shift")]),
    ({"action": "scroll", "x": 1, "y": 2, "scroll_y": -40}, [a.Scroll(0, -40, 1, 2)]),
    ({"action": "wait", "time": 250}, [a.Wait(0.25)]),
    ({"action": "response", "text": "done"}, [a.Answer("done")]),
]


@pytest.mark.parametrize(("arguments", "actions"), HUD)
def test_hud_reads(arguments: dict, actions: list[a.Action]) -> None:
    assert read("hud", tool("computer", **arguments)) == actions


UI_TARS = [
    ("click(point='<point>500 500</point>')", a.Click(320, 240)),
    ("click(start_box='(500,500)')", a.Click(320, 240)),
    ("click(start_box='<|box_start|>(1000,1000)<|box_end|>')", a.Click(639, 479)),
    ("left_double(point='<point>0 0</point>')", a.Click(0, 0, count=2)),
    ("right_single(point='<point>0 0</point>')", a.Click(0, 0, "right")),
    (
        "drag(start_point='<point>0 0</point>', end_point='<point>500 500</point>')",
        a.Drag(((0, 0), (320, 240))),
    ),
    ("hotkey(key='ctrl shift t')", a.Keys(("Control", "Shift", "t"))),
    ("type(content='it\\'s\\n')", a.Type("it's\n")),
    ("scroll(point='<point>500 500</point>', direction='up')", a.Scroll(0, -300, 320, 240)),
    ("wait()", a.Wait(5.0)),
    ("finished(content='7')", a.Answer("7")),
]


@pytest.mark.parametrize(("call", "action"), UI_TARS)
def test_ui_tars_reads(call: str, action: a.Action) -> None:
    assert read("ui_tars_v1", f"Thought: I see. Action: no, wait.\nAction: {call}") == [action]


BROWSERGYM = [
    ("browsergym_coord", "mouse_click(5, 6, button='right')", [a.Click(5, 6, "right")]),
    ("browsergym_coord", "```python\nmouse_dblclick(5, 6)\n```", [a.Click(5, 6, count=2)]),
    ("browsergym_coord", "mouse_drag_and_drop(1, 2, 3, 4)", [a.Drag(((1, 2), (3, 4)))]),
    ("browsergym_coord", "keyboard_press('Control+a')", [a.Keys(("Control", "a"))]),
    ("browsergym_coord", "keyboard_type('a\nb')", [a.Type("a\nb")]),
    ("browsergym_coord", "scroll(0, 200)", [a.Scroll(0, 200, 10, 20)]),
    ("browsergym_coord", "send_msg_to_user('42')", [a.Answer("42")]),
    ("browsergym_coord", "report_infeasible('no')", [a.Terminate("failure")]),
    ("browsergym_bid", "click('7', modifiers=['Shift'])", [a.Click(50, 60, modifiers=("Shift",))]),
    ("browsergym_bid", "press('7', 'Enter')", [a.Click(50, 60), a.Keys(("Enter",))]),
    ("browsergym_bid", "select_option('7', 'two')", [a.Select("7", ("two",))]),
    ("browsergym_bid", "noop(500)", [a.Wait(0.5)]),
]


@pytest.mark.parametrize(("name", "text", "actions"), BROWSERGYM)
def test_browsergym_reads(name: str, text: str, actions: list[a.Action]) -> None:
    assert read(name, text) == actions


def test_fill_by_id_replaces_what_was_there() -> None:
    done = read("browsergym_bid", "fill('7', 'new')")
    assert done == [a.Click(50, 60), a.Keys(("Control", "a")), a.Keys(("Delete",)), a.Type("new")]


MINIWOB = [
    ({"action_type": "CLICK_COORDS", "coords": [5, 6]}, [a.Click(5, 6)]),
    ({"action_type": "CLICK_ELEMENT", "ref": 3}, [a.Click(50, 60)]),
    ({"action_type": "FOCUS_ELEMENT_AND_TYPE_TEXT", "ref": 3, "text": "a"}, [a.Click(50, 60), a.Type("a")]),
    ({"action_type": "PRESS_KEY", "key": "C-<Enter>"}, [a.Keys(("Control", "Enter"))]),
    ({"action_type": "SCROLL_DOWN_COORDS", "coords": [5, 6]}, [a.Scroll(0, 50, 5, 6)]),
    ({"action_type": "NONE"}, [a.Screenshot()]),
]


@pytest.mark.parametrize(("arguments", "actions"), MINIWOB)
def test_miniwob_reads(arguments: dict, actions: list[a.Action]) -> None:
    assert read("miniwob", tool("miniwob", **arguments)) == actions


BEYOND = [
    ("qwen3_vl", tool("computer_use", action="left_click", coordinate=[1001, 0])),
    ("qwen3_vl", tool("computer_use", action="left_click", coordinate=[-1, 0])),
    ("qwen2_5_vl", tool("computer_use", action="left_click", coordinate=[0, 476])),
    ("anthropic", tool("computer", action="left_click", coordinate=[640, 0])),
    ("openai", tool("computer", action={"type": "click", "x": 0, "y": 480})),
    ("hud", tool("computer", action="click", x=640, y=0)),
    ("ui_tars", "Action: click(point='<point>644 0</point>')"),
    ("ui_tars_v1", "Action: click(point='<point>1001 0</point>')"),
    ("browsergym_coord", "mouse_click(640, 0)"),
    ("miniwob", tool("miniwob", action_type="CLICK_COORDS", coords=[0, 480])),
]


@pytest.mark.parametrize(("name", "text"), BEYOND)
def test_a_position_beyond_the_screen_is_an_error_that_says_the_range(name: str, text: str) -> None:
    with pytest.raises(ActionError, match=r"outside the screen: [xy] goes from 0 to"):
        read(name, text)


WRONG = [
    ("qwen3_vl", tool("computer_use", action="fly")),
    ("qwen3_vl", tool("computer_use", action="left_click_drag")),
    ("qwen3_vl", tool("computer_use", action="left_click", coordinate="500,500")),
    ("qwen3_vl", tool("computer_use", action="key", keys=["hyperdrive"])),
    ("qwen3_vl", tool("browser", action="left_click")),
    (
        "qwen3_vl",
        '<tool_call>{"name": "computer_use", "arguments": {"action": "wait", "time": NaN}}</tool_call>',
    ),
    ("anthropic", tool("computer", action="scroll", coordinate=[1, 2])),
    ("hud", tool("computer", action="click", x=1)),
    ("ui_tars", "Action: click(point='here')"),
    ("ui_tars", "Action: click(point=open('/etc/passwd').read())"),
    ("ui_tars", "click the button"),
    ("browsergym_coord", "__import__('os').system('true')"),
    ("browsergym_coord", "mouse_click(1, 2, 3, 4, 5)"),
    ("browsergym_coord", "mouse_click(x=1)"),
    ("browsergym_coord", "import os"),
]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_a_malformed_action_is_an_error_to_the_agent(name: str, text: str) -> None:
    made = dialect(name)
    parsed = made.parse(text)
    if parsed.error is None:
        (call,) = parsed.calls
        with pytest.raises(ActionError):
            made.decode(call, VIEW)


@pytest.mark.parametrize("name", sorted(DIALECTS))
@given(text=st.text(max_size=60))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_no_text_makes_a_dialect_raise_anything_but_an_action_error(name: str, text: str) -> None:
    made = dialect(name)
    for wrapped in (text, f"Action: {text}", f"<tool_call>{text}</tool_call>", f"mouse_click({text})"):
        for call in made.parse(wrapped).calls:
            with contextlib.suppress(ActionError):
                made.decode(call, VIEW)


sizes = st.tuples(st.integers(64, 1000), st.integers(64, 1000))
PIXEL_DIALECTS = ["anthropic", "openai", "hud", "browsergym_coord", "miniwob", "qwen3_vl", "ui_tars_v1"]


@pytest.mark.parametrize("name", PIXEL_DIALECTS)
@given(size=sizes, data=st.data())
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_written_click_is_read_as_the_same_pixel(
    name: str, size: tuple[int, int], data: st.DataObject
) -> None:
    width, height = size
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    view = View(width, height)
    assert read(name, dialect(name).encode(a.Click(x, y), view), view) == [a.Click(x, y)]


@pytest.mark.parametrize("name", sorted(set(DIALECTS) - {"browsergym_bid"}))
@given(size=st.tuples(st.integers(1000, 3840), st.integers(700, 2160)), data=st.data())
@settings(derandomize=True, max_examples=60, deadline=None)
def test_on_large_screens_a_written_click_is_off_by_what_the_grid_allows(
    name: str, size: tuple[int, int], data: st.DataObject
) -> None:
    width, height = size
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    view = View(width, height)
    (click,) = read(name, dialect(name).encode(a.Click(x, y), view), view)
    check_on_screen(click, width, height)
    assert abs(click.x - x) <= max(1, width / 2000 + 1)
    assert abs(click.y - y) <= max(1, height / 2000 + 1)


SHARED_ACTIONS = [
    a.Type("Ünï\ncode 'x' \"y\""),
    a.Keys(("Control", "a")),
    a.Keys(("PageDown",)),
    a.Click(30, 40),
]


@pytest.mark.parametrize("name", sorted(set(DIALECTS) - {"browsergym_bid"}))
@pytest.mark.parametrize("action", SHARED_ACTIONS, ids=lambda action: type(action).__name__)
def test_what_a_dialect_writes_it_reads(name: str, action: a.Action) -> None:
    assert read(name, dialect(name).encode(action, VIEW)) == [action]


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_schema_and_system_prompt_come_along(name: str) -> None:
    made = dialect(name)
    assert made.system_prompt(VIEW)
    assert bool(made.tools(VIEW)) == made.is_tool
    for offered in made.tools(VIEW):
        jsonschema.Draft202012Validator.check_schema(offered.parameters)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("ctrl", "Control"), ("Control_L", "Control"), ("CMD", "Meta"), ("super", "Meta"), ("win", "Meta"),
        ("option", "Alt"), ("Return", "Enter"), ("KP_Enter", "Enter"), ("esc", "Escape"), ("del", "Delete"),
        ("BackSpace", "Backspace"), ("Page_Down", "PageDown"), ("pgup", "PageUp"), ("Prior", "PageUp"),
        ("ArrowLeft", "ArrowLeft"), ("Left", "ArrowLeft"), ("space", " "), ("F5", "F5"), ("f12", "F12"),
        ("KeyA", "a"), ("Digit1", "1"), ("KP_7", "7"), ("minus", "-"), ("plus", "+"), ("é", "é"), ("A", "A"),
    ],
)  # fmt: skip
def test_key_names_of_all_dialects(name: str, key: str) -> None:
    assert resolve_key(name) == key


def test_chords() -> None:
    assert split_chord("ctrl+shift+Tab") == ("Control", "Shift", "Tab")
    assert split_chord("ctrl++") == ("Control", "+")
    assert split_chord("alt F4", " +") == ("Alt", "F4")
    with pytest.raises(ActionError, match="no key named 'nope'"):
        split_chord("ctrl+nope")


def test_an_unknown_dialect_names_the_known() -> None:
    with pytest.raises(ValueError, match="qwen3_vl"):
        dialect("klingon")
