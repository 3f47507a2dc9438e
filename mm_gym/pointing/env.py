"""`mm_gym/Pointing-v0`: name, click or read what a small picture shows, some of it only after a zoom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.messages import user
from mm_gym.pointing.puzzles import (
    COLORS,
    FAMILIES,
    LEVELS,
    SHAPES,
    Puzzle,
    draw_board,
    draw_cell,
    make_puzzle,
    parse_point,
)
from mm_gym.stop import StopReason
from mm_gym.tool_calls import parse_tool_calls, without_thinking
from mm_gym.tools import Tool, run_tools

AnswerFormat = Literal["boxed", "plain"]

_SYSTEM = (
    "The picture is a board of 3 x 3 cells, numbered 1 to 9 row by row from the top left. Answer with one "
    "cell number, one word or one number, or to a click with its place x,y on a grid from 0 to 1000 "
    "(0,0 is the top left corner). The tool zoom shows one cell enlarged, also what lies under a grey card."
)
_FORM = {"boxed": r"Write the answer as \boxed{...}.", "plain": "Write the answer alone."}
_BOX = re.compile(r"\\boxed\s*\{([^{}]*)\}")


class PointingEnv(ChatEnv):
    """Small visual tasks on a board of 3 x 3 cells.

    The families: `cell` (which cell holds the shape asked for), `click` (point at it), `color`, `shape`
    (name it), `read` (read a number), `zoom` (what lies under a grey card: only the picture that a call of
    the tool `zoom` brings in a later turn shows it).

    An episode ends with the first answer: reward 1.0 when it is right, else 0.0.

    >>> import gymnasium, mm_gym
    >>> env = gymnasium.make("mm_gym/Pointing-v0", tasks=("zoom",))
    >>> observation, info = env.reset(seed=0)
    >>> observation["images"][0].shape
    (96, 96, 3)

    Args:
        tasks: The families to draw from; None for all (`mm_gym.pointing.FAMILIES`).
        level: 1 (one black shape, or the cell to zoom on is named), 2 (three coloured things, or the cell
            is marked in the picture) or 3 (six things, two-digit numbers).
        image_size: Side of every picture in pixels, from 32 to 2048.
        answer_format: "boxed" takes the answer from the last `\\boxed{}` of a response; "plain" takes the
            whole response, stripped, in lower case and without a final full stop.
        list_tools: Whether `info["tools"]` lists the tool. A tiny model's prompt stays short without; calls
            work all the same.
        system_prompt: None for the default, which explains board and format; "" for none.
        format_reward: Earned once, at the end, by a wrong answer that at least has the form asked for (a
            cell number, a colour, a point on the grid, ...). Default 0.
        max_turns: Turn cap; the turn that reaches it without an answer is `truncated`.
        render_mode: None or "rgb_array".
    """

    def __init__(
        self,
        *,
        tasks: Sequence[str] | None = None,
        level: int = 1,
        image_size: int = 96,
        answer_format: AnswerFormat = "boxed",
        list_tools: bool = True,
        system_prompt: str | None = None,
        format_reward: float = 0.0,
        max_turns: int = 3,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, render_mode=render_mode)
        self.tasks = FAMILIES if tasks is None else tuple(tasks)
        unknown = [task for task in self.tasks if task not in FAMILIES]
        if isinstance(tasks, str) or unknown or not self.tasks:
            raise ValueError(f"tasks must be some of {FAMILIES}, got {tasks!r}")
        if level not in LEVELS:
            raise ValueError(f"level must be one of {LEVELS}, got {level!r}")
        if not 32 <= image_size <= 2048:
            raise ValueError(f"image_size must be from 32 to 2048 pixels, got {image_size}")
        if answer_format not in _FORM:
            raise ValueError(f'answer_format must be "boxed" or "plain", got {answer_format!r}')
        self.level = level
        self.image_size = int(image_size)
        self.answer_format = answer_format
        self.list_tools = bool(list_tools)
        self.format_reward = float(format_reward)
        self.system_prompt = f"{_SYSTEM} {_FORM[answer_format]}" if system_prompt is None else system_prompt
        self._zoom = Tool(
            "zoom",
            "Show one cell enlarged.",
            {
                "type": "object",
                "properties": {"cell": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["cell"],
            },
            self._look,
        )
        self._puzzle: Puzzle | None = None
        self._seen: set[int] = set()

    def begin(self, options: dict[str, Any]) -> Opening:
        """Options: `task`, the name of a family or a task id of an earlier reset ("zoom-1-123")."""
        self._puzzle = self._pick(options)
        self._seen = set()
        return Opening(
            messages=[user(draw_board(self._puzzle, self.image_size), self._puzzle.question)],
            task_id=self._puzzle.id,
            task=self._puzzle,
            system_prompt=self.system_prompt,
            tools=[self._zoom.schema] if self.list_tools else [],
        )

    def _pick(self, options: dict[str, Any]) -> Puzzle:
        task = options.pop("task", None)
        if options:
            raise ValueError(f"unknown options {sorted(options)}; Pointing takes `task` and `max_turns`")
        family, seed = self.np_random.choice(self.tasks), int(self.np_random.integers(2**31))
        if task is None:
            return make_puzzle(str(family), self.level, seed)
        name, *rest = str(task).split("-")
        if not rest:
            return make_puzzle(name, self.level, seed)
        if len(rest) != 2 or not all(part.isdecimal() for part in rest):
            raise ValueError(f'options["task"] must be a family or "<family>-<level>-<seed>", got {task!r}')
        return make_puzzle(name, int(rest[0]), int(rest[1]))

    def _look(self, cell: int) -> Any:
        assert self._puzzle is not None
        self._seen.add(int(cell))
        return draw_cell(self._puzzle, int(cell), self.image_size)

    def respond(self, action: str) -> Reply:
        assert self._puzzle is not None
        parse = parse_tool_calls(action)
        if parse.calls:
            run = run_tools(parse.calls[:9], [self._zoom])
            return Reply(
                run.messages, tool_calls=run.records, metrics={"tool_calls": float(len(run.records))}
            )
        if parse.error:
            return Reply([user(parse.error)], error=("tool_call", parse.error))
        answer = self.read_answer(action)
        if answer is None:
            text = rf"No answer found. {_FORM[self.answer_format]}"
            return Reply([user(text)], error=("no_answer", text))
        success = self._puzzle.accepts(answer)
        formed = well_formed(self._puzzle, answer)
        reward = 1.0 if success else self.format_reward * formed
        return Reply(
            reward=reward,
            terminated=True,
            success=success,
            metrics={"well_formed": float(formed)},
            stop_reason=StopReason.ENV_DONE,
        )

    def read_answer(self, action: str) -> str | None:
        """The answer that a response gives, or None."""
        text = without_thinking(action)
        if self.answer_format == "boxed":
            boxes = _BOX.findall(text)
            if not boxes:
                return None
            text = boxes[-1]
        return text.strip().removesuffix(".").lower() or None

    def expert_action(self) -> str | None:
        """Zoom on the cell where the answer is covered, then answer."""
        if self._puzzle is None:
            return None
        if self._puzzle.covered and self._puzzle.cell not in self._seen:
            return (
                f'<tool_call>\n{{"name": "zoom", "arguments": {{"cell": {self._puzzle.cell}}}}}\n</tool_call>'
            )
        answer = self._puzzle.answer
        return rf"\boxed{{{answer}}}" if self.answer_format == "boxed" else answer


def well_formed(puzzle: Puzzle, answer: str) -> bool:
    """Whether an answer, right or wrong, is of the kind that the puzzle's family asks for."""
    if puzzle.family == "click":
        return parse_point(answer) is not None
    if puzzle.family == "cell":
        return answer in tuple("123456789")
    if puzzle.family == "read":
        return answer.isascii() and answer.isdigit()
    return answer in (SHAPES if puzzle.family == "shape" else COLORS)
