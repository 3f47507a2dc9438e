"""What every dialect offers, the grids that positions are written on, and checks that they share.

Knows canonical actions and call syntax; must not know browsers or tasks.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mm_gym.computer.actions import BUTTONS, MODIFIERS, Action, ActionError, Button, Keys, Point, describe
from mm_gym.computer.keyboard import resolve_key
from mm_gym.tool_calls import ToolCall, ToolParse, parse_tool_calls
from mm_gym.tools import Tool, ToolError

NOTCH = 100
"""Pixels of one notch of the wheel, where a dialect counts notches."""


@dataclass(frozen=True)
class View:
    """What a dialect may know of the screen when it reads or writes an action."""

    width: int
    height: int
    pointer: Point | None = None
    """Where the pointer is; None before it first moved (actions at the pointer then use the middle)."""
    element: Callable[[str], Point] | None = None
    """The middle of an element by its id; raises ActionError for an unknown one. None without ids."""
    element_at: Callable[[Point], str | None] | None = None
    """The id of the element at a pixel, for solvers that write actions with ids."""

    @property
    def here(self) -> Point:
        return self.pointer or (self.width // 2, self.height // 2)


class Dialect(ABC):
    """One way of writing actions."""

    name: ClassVar[str]
    uses_elements: ClassVar[bool] = False
    """Whether actions name elements by id: the observation must then list them."""
    is_tool: ClassVar[bool] = False
    """Whether actions are calls of a tool (results are then tool messages), not plain text."""
    text_ends: ClassVar[bool] = False
    """Whether a response without any call is the final answer (else it is a mistake)."""

    @abstractmethod
    def tools(self, view: View) -> list[Tool]:
        """The tools to offer to the model; empty for dialects written as plain text."""

    @abstractmethod
    def system_prompt(self, view: View) -> str:
        """Instructions that go with the tools."""

    @abstractmethod
    def parse(self, text: str) -> ToolParse:
        """The calls of a response. Never raises for what the text says."""

    @abstractmethod
    def decode(self, call: ToolCall, view: View) -> list[Action]:
        """A call as canonical actions.

        Raises:
            ActionError: The call is not well formed, or names a position beyond the screen.
        """

    def steps(self, action: Action, view: View) -> list[Action]:
        """`action` as a sequence of actions that this dialect can express, for solvers."""
        return [action]

    @abstractmethod
    def encode(self, action: Action, view: View) -> str:
        """A response that makes `action`, as near as the dialect's grid allows.

        Raises:
            ValueError: The dialect has no such action.
        """

    def no_equivalent(self, action: Action) -> ValueError:
        return ValueError(f"dialect {self.name} cannot express: {describe(action)}")


class ToolDialect(Dialect):
    """A dialect written as calls of one JSON tool; `call_format` is the syntax of calls in the response."""

    is_tool = True
    tool_name: ClassVar[str]
    call_format: ClassVar[str] = "hermes"

    def __init__(self) -> None:
        self._tool: tuple[View, Tool] | None = None

    def parse(self, text: str) -> ToolParse:
        return parse_tool_calls(text, self.call_format)

    def decode(self, call: ToolCall, view: View) -> list[Action]:
        (tool,) = self.tools(view)
        if call.name != tool.name:
            raise ActionError(f"there is no tool {call.name!r}; the tool is {tool.name!r}")
        try:
            arguments = tool(call.arguments)
        except ToolError as error:
            raise ActionError(str(error)) from error
        return self.actions(arguments, view)

    def tools(self, view: View) -> list[Tool]:
        size = View(view.width, view.height)
        if self._tool is None or self._tool[0] != size:  # its schema check is worth keeping
            tool = Tool(self.tool_name, self.description(size), self.parameters(size), dict)
            self._tool = (size, tool)
        return [self._tool[1]]

    @abstractmethod
    def description(self, view: View) -> str:
        """Of the tool, for the model."""

    @abstractmethod
    def parameters(self, view: View) -> dict[str, Any]:
        """JSON schema of the tool's arguments."""

    @abstractmethod
    def actions(self, arguments: Mapping[str, Any], view: View) -> list[Action]:
        """Arguments that fit the schema, as canonical actions."""

    def encode(self, action: Action, view: View) -> str:
        call = {"name": self.tool_name, "arguments": self.arguments(action, view)}
        return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"

    @abstractmethod
    def arguments(self, action: Action, view: View) -> dict[str, Any]:
        """The arguments that make `action`."""


def repeated(action: Action) -> list[Action]:
    """A repeated key press as single ones; other actions as they are."""
    if isinstance(action, Keys) and action.count > 1:
        return [Keys(action.keys)] * action.count
    return [action]


# -- positions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """A coordinate system laid over the screen: 0 to `columns` and 0 to `rows`.

    Args:
        columns, rows: Its extent over the whole screen.
        closed: Whether the end itself is a position: then it is the last pixel (1000 of 0 to 1000).
    """

    width: int
    height: int
    columns: int
    rows: int
    closed: bool

    def pixel(self, x: Any, y: Any) -> Point:
        """The pixel at a position.

        Raises:
            ActionError: It is not a pair of numbers, or beyond the grid.
        """
        return (
            self._scale(x, "x", self.columns, self.width),
            self._scale(y, "y", self.rows, self.height),
        )

    def position(self, point: Point) -> Point:
        """The grid position nearest to a pixel's middle; `pixel` undoes it where the grid is fine enough."""
        x, y = point
        return self._nearest(x, self.columns, self.width), self._nearest(y, self.rows, self.height)

    def _scale(self, value: Any, axis: str, extent: int, pixels: int) -> int:
        value = number(value, axis)
        if self.closed and value == extent:
            return pixels - 1
        if not 0 <= value < extent:
            last = extent if self.closed else extent - 1
            raise ActionError(f"{axis} = {value:g} is outside the screen: {axis} goes from 0 to {last}")
        if not self.closed:  # positions are pixels of another size: the middle of one is meant
            return (2 * math.floor(value) + 1) * pixels // (2 * extent)
        return math.floor(value * pixels / extent)

    def _nearest(self, pixel: int, extent: int, pixels: int) -> int:
        if not self.closed:
            return (2 * pixel + 1) * extent // (2 * pixels)
        # ceil((pixel + 1/2) * extent / pixels - 1/2) in integers: halves go down, so `_scale` undoes it
        return -((pixels - (2 * pixel + 1) * extent) // (2 * pixels))


def pixels(view: View) -> Grid:
    """The screen's own pixels."""
    return Grid(view.width, view.height, view.width, view.height, closed=False)


def thousand(view: View) -> Grid:
    """0 to 1000 on both axes, whatever the screen's size."""
    return Grid(view.width, view.height, 1000, 1000, closed=True)


def resized(view: View, factor: int, min_pixels: int, max_pixels: int) -> Grid:
    """Pixels of the picture after the processor's resize: sides are multiples of `factor`."""
    width, height = smart_resize(view.width, view.height, factor, min_pixels, max_pixels)
    return Grid(view.width, view.height, width, height, closed=False)


def smart_resize(width: int, height: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size that Qwen's image processors resize to: steps of `factor`, within the limits on pixels."""
    w, h = (max(factor, round(side / factor) * factor) for side in (width, height))
    if w * h > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        w, h = (max(factor, math.floor(side / shrink / factor) * factor) for side in (width, height))
    elif w * h < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        w, h = (math.ceil(side * grow / factor) * factor for side in (width, height))
    return w, h


# -- checks ------------------------------------------------------------------------------------------


def number(value: Any, what: str) -> float:
    """A finite number, or an ActionError that says what was there instead."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ActionError(f"{what} must be a number, got {value!r}")
    return value


def whole(value: Any, what: str) -> int:
    """A number rounded to an integer of sensible size."""
    if abs(number(value, what)) > 1e9:
        raise ActionError(f"{what} is out of range: {value!r}")
    return round(value)


def need(arguments: Mapping[str, Any], name: str, action: str) -> Any:
    """An argument that the action can't do without."""
    value = arguments.get(name)
    if value is None:
        raise ActionError(f"the action {action!r} needs the argument {name!r}")
    return value


def pair(value: Any, what: str) -> tuple[Any, Any]:
    """Two items."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise ActionError(f"{what} must be [x, y], got {value!r}")
    return value[0], value[1]


def button(value: Any) -> Button:
    """A mouse button by any of its names."""
    name = {"wheel": "middle", "": "left", None: "left"}.get(value, value)
    if name not in BUTTONS:
        raise ActionError(f"there is no mouse button {value!r}: use one of {', '.join(BUTTONS)}")
    return name


def modifiers(names: Any) -> tuple[str, ...]:
    """Modifier keys from a list of names, or from text such as "ctrl+shift"."""
    if not names:
        return ()
    listed = names.replace("+", " ").split() if isinstance(names, str) else names
    keys = tuple(resolve_key(str(n)) for n in listed)
    for key in keys:
        if key not in MODIFIERS:
            raise ActionError(
                f"only ctrl, shift, alt and meta can be held during a mouse action, not {key!r}"
            )
    return keys
