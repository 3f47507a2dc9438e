"""What computer-use environments share: a screen, a dialect, turns, observations; tasks are for subclasses.

Knows how a response becomes actions and what is shown after them. Must not know any task, nor tokens.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mm_gym import messages
from mm_gym.computer import observe
from mm_gym.computer.actions import (
    Action,
    ActionError,
    Answer,
    Point,
    Screenshot,
    Terminate,
    Zoom,
    check_on_screen,
    points,
)
from mm_gym.computer.dialects import View
from mm_gym.computer.dialects import dialect as make_dialect
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen import Screen, Seen
from mm_gym.computer.tasks import PageQuery, Rect, Verdict
from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.errors import EnvironmentFailure
from mm_gym.messages import Message
from mm_gym.stop import StopReason
from mm_gym.tool_calls import ToolCall

MAX_CALLS = 10
"""Calls of one response that are carried out."""


@dataclass(frozen=True)
class Start:
    """What a subclass gives for a new episode."""

    page: PageSpec
    goal: str
    task_id: str
    task: Any
    prepare: str = ""
    """JavaScript expression to evaluate once the page is loaded; `prepared` gets its value."""
    settle_ms: int = 100
    """Virtual time that passes before each picture."""
    likely: tuple[PageSpec, ...] = ()
    """What the next episode's page may be, one of these: prepared in the background."""


@dataclass
class _Turn:
    """What one response did so far."""

    messages: list[Message] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    dialogs: list[str] = field(default_factory=list)
    carried_out: int = 0
    looked: bool = False
    """Whether the last action came with the look that ends the turn."""
    zoom: Zoom | None = None


class ScreenEnv(ChatEnv):
    """Base class of environments with a browser's screen.

    Args:
        screen_size: (width, height) in pixels: the page's viewport and the observation's size.
        dialect: How the model writes actions; see `mm_gym.computer.dialects.DIALECTS`.
        a11y: List the visible elements as text as well.
        som: Draw numbered marks on interactive elements (set-of-marks).
        cursor: Draw the pointer.
        browser: "auto", "fast" (headless shell with begin frames) or "full" (any Chromium, slower).
        deadline: Seconds that any one call to the browser may take before it is killed and replaced.
        max_turns: The environment's own cap.
        render_mode: None or "rgb_array": the screen with the last action drawn on it.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012  (as in Gymnasium)

    def __init__(
        self,
        *,
        screen_size: tuple[int, int],
        dialect: str = "qwen3_vl",
        a11y: bool = False,
        som: bool = False,
        cursor: bool = False,
        browser: str = "auto",
        deadline: float = 20.0,
        max_turns: int = 30,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, render_mode=render_mode)
        width, height = screen_size
        if not (16 <= width <= 4096 and 16 <= height <= 4096):
            raise ValueError(f"screen_size must be (width, height) from 16 to 4096 pixels, got {screen_size}")
        if deadline <= 0:
            raise ValueError(f"deadline must be positive seconds, got {deadline}")
        self.screen_size = (int(width), int(height))
        self.dialect = make_dialect(dialect)
        self.a11y, self.som, self.cursor = a11y, som, cursor
        self.deadline = float(deadline)
        self._screen = Screen(browser)
        self._start: Start | None = None
        self._seen: Seen | None = None
        self._action: Action | None = None
        self._answer: str | None = None
        self._ended = False
        self._earned = 0.0
        self._solver: Iterator[Action] | None = None
        self._planned: deque[Action] = deque()

    # -- hooks for subclasses ------------------------------------------------------------------------

    def start(self, options: dict[str, Any]) -> Start:
        """Choose and make a task, drawing from `self.np_random` only."""
        raise NotImplementedError

    def prepared(self, start: Start, value: Any) -> Start:
        """The start again, with the value of its `prepare`: where the page itself says the goal."""
        return start

    @property
    def probe(self) -> str:
        """JavaScript expression whose value `judge` gets, read after each turn."""
        raise NotImplementedError

    def judge(self, value: Any, answer: str | None, ended: bool) -> tuple[Verdict, bool]:
        """The verdict on the probe's value, and whether the episode is over.

        Args:
            value: Of the probe.
            answer: What the agent answered, or None.
            ended: Whether the agent ended the episode (answered or terminated).
        """
        raise NotImplementedError

    def solver(self, page: PageQuery) -> Iterator[Action] | None:
        """Actions that solve the present task, or None."""
        return None

    # -- the contract ----------------------------------------------------------------------------------

    def begin(self, options: dict[str, Any]) -> Opening:
        self._action, self._answer, self._ended = None, None, False
        self._earned = 0.0
        self._solver = None
        self._planned.clear()
        start = self._start = self.start(options)
        self._screen.open(start.page, start.likely)
        if start.prepare:
            start = self._start = self.prepared(start, self._screen.evaluate(start.prepare))
        self._seen = self._screen.look(start.settle_ms, self.probe)
        view = self.view()
        return Opening(
            [messages.user(start.goal, *self._shown())],
            task_id=start.task_id,
            task=start.task,
            system_prompt=self.dialect.system_prompt(view),
            tools=[tool.schema for tool in self.dialect.tools(view)],
        )

    def respond(self, action: str) -> Reply:
        if self._planned:
            self._planned.popleft()
        parsed = self.dialect.parse(action)
        if not parsed.calls and parsed.error is None and self.dialect.text_ends:
            self._answer, self._ended = action.strip(), True
            return self._reply(_Turn())
        turn = _Turn()
        if not parsed.calls:
            turn.error = parsed.error or "no action was found in the response; act by calling the tool"
            turn.messages.append(messages.user(f"Error: {turn.error}"))
            return self._reply(turn)
        calls = parsed.calls[:MAX_CALLS]
        for index, call in enumerate(calls):
            self._carry_out(call, index, turn, last=index == len(calls) - 1)
        if parsed.error and turn.error is None:
            turn.error = parsed.error
            turn.messages.append(messages.user(f"Error: {parsed.error}"))
        return self._reply(turn)

    def settle(self, stop_reason: StopReason) -> tuple[float, dict[str, float]]:
        """What the page's state earns when the engine cuts the episode."""
        self._look(picture=False)
        verdict, _ = self._verdict()
        return self._earn(verdict), {"success": float(verdict.success)}

    def expert_action(self) -> str | None:
        """The solver's next response; it supposes that it was followed since the reset."""
        if not self._running:
            return None
        if not self._planned:
            if self._solver is None:
                self._solver = self.solver(Query(self._screen, self.screen_size, self.probe))
            if self._solver is None:
                return None
            self._planned.extend(self.dialect.steps(self._next(), self.view()))
            self._check_plan()
        return self.dialect.encode(self._planned[0], self.view())

    def draw(self) -> np.ndarray:
        width, height = self.screen_size
        if self._seen is None or not self._seen.png:
            return np.full((height, width, 3), 255, np.uint8)
        image = observe.draw_pointer(self._picture(), self._seen.pointer)
        return observe.draw_action(image, self._action)

    def close(self) -> None:
        super().close()
        self._screen.close()

    # -- carrying out ----------------------------------------------------------------------------------

    def _carry_out(self, call: ToolCall, index: int, turn: _Turn, *, last: bool) -> None:
        """One call: its actions, its record and its message."""
        record: dict[str, Any] = {"name": call.name, "arguments": call.arguments, "status": "ok"}
        text = ""
        if turn.error is not None or self._ended:
            record["status"] = "failed"
            text = "Not carried out: an earlier action " + (
                "ended the episode." if self._ended else "failed."
            )
        else:
            try:
                actions = list(self.dialect.decode(call, self.view()))
                for n, action in enumerate(actions, 1):
                    record.setdefault("points", []).extend(list(point) for point in points(action))
                    self._perform(action, turn, last=last and n == len(actions))
            except ActionError as error:
                record["status"], turn.error = "failed", str(error)
                text = f"Error: {error}"
        turn.records.append(record)
        if self.dialect.is_tool:
            turn.messages.append(messages.tool(call.name, index, *([text] if text else [])))
        elif text:
            turn.messages.append(messages.user(text))

    def _perform(self, action: Action, turn: _Turn, *, last: bool) -> None:
        if isinstance(action, (Answer, Terminate)):
            self._answer = action.text if isinstance(action, Answer) else self._answer
            self._ended = True
        elif isinstance(action, Zoom):
            turn.zoom = action
        elif not isinstance(action, Screenshot):
            assert self._start is not None
            if last:  # in one call with the look that ends the turn
                self._seen = self._screen.act(action, self._start.settle_ms, self.probe)
                turn.looked = True
            else:
                self._seen = self._screen.act(action, 0, picture=False)
                turn.dialogs += self._seen.dialogs
        self._action = action
        turn.carried_out += 1

    def _reply(self, turn: _Turn) -> Reply:
        """Look at the page, judge it, and put what is new into the turn's last message."""
        if not turn.looked:
            self._look(picture=True, settle=turn.carried_out > 0)
        last = self.turn >= self.max_turns
        verdict, over = self._verdict()
        shown: list[Any] = [*turn.dialogs, *(self._seen.dialogs if self._seen else ())]
        if turn.carried_out or self._ended:
            shown += self._zoomed(turn) if turn.zoom else self._shown()
        if shown and turn.messages:
            turn.messages[-1]["content"].extend(messages.blocks(shown))
        elif shown:
            turn.messages.append(messages.user(*shown))
        return Reply(
            turn.messages,
            reward=self._earn(verdict),
            terminated=over,
            success=verdict.success and (over or last),
            metrics={"actions": float(turn.carried_out), "invalid_actions": float(turn.error is not None)},
            tool_calls=turn.records,
            error=("invalid_action", turn.error) if turn.error else None,
        )

    def _earn(self, verdict: Verdict) -> float:
        """The turn's reward: what the verdict's score has gained or lost, so that all add up to the last one."""
        before, self._earned = self._earned, verdict.score
        return verdict.score - before

    def _verdict(self) -> tuple[Verdict, bool]:
        assert self._seen is not None
        return self.judge(self._seen.value, self._answer, self._ended)

    # -- looking ---------------------------------------------------------------------------------------

    def _look(self, *, picture: bool, settle: bool = True) -> None:
        assert self._start is not None
        self._seen = self._screen.look(self._start.settle_ms if settle else 0, self.probe, picture=picture)

    def _shown(self) -> list[Any]:
        """The picture of the screen, and the elements as text where they are asked for."""
        assert self._seen is not None
        image = self._picture()
        lines: list[str] = []
        if self.a11y or self.som or self.dialect.uses_elements:
            elements = self._screen.evaluate(observe.ELEMENTS)
            if self.som:
                image = observe.draw_marks(image, elements)
            if self.a11y or self.dialect.uses_elements:
                lines.append(observe.tree_text(elements))
        if self.cursor:
            image = observe.draw_pointer(image, self._seen.pointer)
        return [image, *lines]

    def _picture(self) -> np.ndarray:
        assert self._seen is not None
        width, height = self.screen_size
        return observe.picture(self._seen.png)[:height, :width]

    def _zoomed(self, turn: _Turn) -> list[Any]:
        assert turn.zoom is not None
        assert self._seen is not None
        try:
            return [observe.zoomed(self._picture(), turn.zoom.region)]
        except ActionError as error:
            turn.error = str(error)
            return [f"Error: {error}"]

    def view(self) -> View:
        """What dialects may know of the screen now."""
        pointer = self._seen.pointer if self._seen else None
        return View(*self.screen_size, pointer, self._element, self._element_at)

    def _element(self, id_: str) -> Point:
        """The middle of an element by id, scrolled into view."""
        found = self._screen.evaluate(
            '(id => {const e = document.querySelector(`[data-mm-gym-id="${CSS.escape(id)}"]`);'
            "if (!e) return null; e.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: "
            "'instant'});"
            f"const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, "
            f"b.height];}})({json.dumps(id_)})"
        )
        if found is None:
            raise ActionError(f"there is no element {id_!r}: use an id from the latest list of elements")
        return Rect(*found).center

    def _element_at(self, point: Point) -> str | None:
        self._screen.evaluate(observe.ELEMENTS)  # gives ids to what has none yet
        return self._screen.evaluate(
            f"document.elementFromPoint({point[0]}, {point[1]})?.closest('[data-mm-gym-id]')?.dataset.mmGymId"
        )

    def _check_plan(self) -> None:
        """A solver acts on the screen like everybody; one that misses it is our fault."""
        try:
            for action in self._planned:
                check_on_screen(action, *self.screen_size)
        except ActionError as error:
            task = self._start.task_id if self._start else ""
            raise EnvironmentFailure(
                f"the solver of {task} left the screen: {error}", kind="solver"
            ) from error

    def _next(self) -> Action:
        assert self._solver is not None
        try:
            return next(self._solver)
        except StopIteration:
            return Terminate("success")
        except LookupError as error:
            task = self._start.task_id if self._start else ""
            raise EnvironmentFailure(f"the solver of {task} lost its way: {error}", kind="solver") from error


@dataclass
class Query:
    """The live view of a page that solvers get; see `tasks.PageQuery`."""

    screen: Screen
    size: tuple[int, int]
    probe: str

    def find(self, selector: str, text: str | None = None, index: int = 0) -> Rect:
        found = self.find_all(selector, text)
        if not -len(found) <= index < len(found):
            raise LookupError(
                f"{selector!r} (text={text!r}) has {len(found)} visible matches, wanted {index}"
            )
        return found[index]

    def find_all(self, selector: str, text: str | None = None) -> list[Rect]:
        boxes = self.evaluate(f"({observe.FIND})({json.dumps(selector)}, {json.dumps(text)})")
        return [Rect(*box) for box in boxes]

    def state(self) -> Any:
        return self.evaluate(self.probe)

    def evaluate(self, expression: str) -> Any:
        return self.screen.evaluate(expression)


def take_options(options: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """The options an environment knows.

    Raises:
        ValueError: Another one was given.
    """
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"unknown options {unknown}; known are {sorted(known)}")
    return dict(options)
