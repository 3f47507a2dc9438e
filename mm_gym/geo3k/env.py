r"""`mm_gym/Geo3k-v0`: geometry problems with a diagram, tools, and an answer in `\boxed{}`.

Knows turns, tools and rewards. Where problems come from is `sources`, what is right is `grading`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.geo3k.calculator import calculator
from mm_gym.geo3k.grading import grade_answer, last_boxed
from mm_gym.geo3k.sources import SPLITS, GeneratorSource, OnBadRow, Problem, Source, open_source
from mm_gym.geo3k.zoom import zoom_tool
from mm_gym.messages import Message, user
from mm_gym.stop import StopReason
from mm_gym.tool_calls import ToolParse, parse_tool_calls, without_thinking
from mm_gym.tools import Tool, ToolError, run_tools

TOOLS = ("calculator", "zoom", "check_answer")
"""All tools; `check_answer` is an oracle and offered only when asked for."""
REMINDER = r"This is your last turn: give the final answer in \boxed{} now."
"""The default reminder before the last turn."""
NO_ANSWER = r"No answer found. Write the final answer in \boxed{}"

_SYSTEM = (
    r"Solve the geometry problem. Think step by step, then write the final answer, a number or an exact "
    r"expression without unit, in \boxed{}."
)
_TOOLS_SYSTEM = " You may call tools first; their results come in the next turn."
_CALL = re.compile(r"<tool_call>.*?(?:</tool_call>|$)", re.DOTALL)


class Geo3kEnv(ChatEnv):
    r"""Geometry problems with a diagram.

    The answer is the last `\boxed{}` of the model's own final response: outside of `<think>` and of tool
    calls, braces nested as LaTeX nests them. Boxes in text that the environment wrote never count. A
    response with tool calls is answered by their results, whether or not it holds a box; in the last turn,
    and when the engine cuts the episode (`finish`), the box of the last response counts all the same. So
    does, in a last turn without a box, the answer given to `check_answer`.

    Reward: 1.0 for a right answer, 0.0 for a wrong or missing one, less `format_penalty` for each malformed
    response.

    >>> import gymnasium, mm_gym
    >>> env = gymnasium.make("mm_gym/Geo3k-v0", families=("triangle_angle_sum",))
    >>> observation, info = env.reset(seed=0)
    >>> len(observation["images"])
    1

    Args:
        data: None for the embedded generator; a parquet file or folder with the columns images, problem,
            answer; a folder in Geometry3K's original layout (`<split>/<id>/data.json`); or a hub name such
            as "hiyouga/geometry3k".
        split: "train", "validation" or "test".
        families: Of the generator: some of `mm_gym.geo3k.generator.FAMILIES`; None for all.
        level: Of the generator: 1, 2 or 3; None for all.
        tools: Some of `TOOLS`; () for none.
        max_turns: The turn cap. The turn that reaches it without an answer is `truncated`.
        end_on: "answer": a response with neither a call nor a box is told so, and the episode goes on.
            "no_tool_call": any response without a tool call ends it, with the stop reason no_tool_call where
            it holds no box.
        format_penalty: Taken off the reward of a response that is malformed: a broken tool call, or neither
            a call nor a box.
        max_parse_failures: So many malformed responses in a row end the episode (parse_failures); None
            for no such limit.
        reminder: Added to the observation before the last turn, by this environment's cap or by the
            engine's; "" for none.
        system_prompt: None for the default; "" for none.
        zoom_size: Longer side, in pixels, of what `zoom` shows.
        expert_zoom: Share of the episodes in which `expert_action` zooms before it answers, by the seed.
        on_bad_row: "raise" an `EnvironmentFailure` that names a bad row, or "skip" it with a warning.
        render_mode: None or "rgb_array".

    Raises:
        ValueError: An argument is out of range, or the data or split does not exist.
    """

    def __init__(
        self,
        *,
        data: str | Path | None = None,
        split: str = "train",
        families: Sequence[str] | None = None,
        level: int | None = None,
        tools: Sequence[str] = ("calculator", "zoom"),
        max_turns: int = 3,
        end_on: Literal["answer", "no_tool_call"] = "answer",
        format_penalty: float = 0.0,
        max_parse_failures: int | None = None,
        reminder: str = REMINDER,
        system_prompt: str | None = None,
        zoom_size: int = 448,
        expert_zoom: float = 0.5,
        on_bad_row: OnBadRow = "raise",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, render_mode=render_mode)
        unknown = [name for name in tools if name not in TOOLS]
        _require(not unknown and not isinstance(tools, str), "tools", f"some of {TOOLS}", tools)
        _require(split in SPLITS, "split", f"one of {tuple(SPLITS)}", split)
        _require(end_on in ("answer", "no_tool_call"), "end_on", '"answer" or "no_tool_call"', end_on)
        _require(on_bad_row in ("raise", "skip"), "on_bad_row", '"raise" or "skip"', on_bad_row)
        _require(format_penalty >= 0, "format_penalty", "at least 0", format_penalty)
        _require(0 <= expert_zoom <= 1, "expert_zoom", "from 0 to 1", expert_zoom)
        _require(32 <= zoom_size <= 4096, "zoom_size", "from 32 to 4096 pixels", zoom_size)
        limit = max_parse_failures
        _require(limit is None or limit >= 1, "max_parse_failures", "None or at least 1", limit)
        _require(
            data is None or (families is None and level is None), "data", "None with families or level", data
        )
        self.data, self.split, self.on_bad_row = data, split, on_bad_row
        self.families, self.level = families, level
        self.tools = tuple(tools)
        self.end_on, self.format_penalty, self.reminder = end_on, float(format_penalty), reminder
        self.max_parse_failures = limit
        self.zoom_size, self.expert_zoom = int(zoom_size), float(expert_zoom)
        default = _SYSTEM + (_TOOLS_SYSTEM if tools else "")
        self.system_prompt = default if system_prompt is None else system_prompt
        self.source  # noqa: B018  (open the data now: a wrong path is the caller's mistake)
        self._problem: Problem | None = None
        self._tools: list[Tool] = []
        self._answer: str | None = None
        self._checked: list[str] = []
        self._failures_in_row = 0
        self._expert_box: list[int] | None = None

    @property
    def source(self) -> Source:
        """The data; opened sources are shared within the process."""
        if self.data is None:
            return GeneratorSource(self.split, self.families, self.level)
        return open_source(self.data, self.split, self.on_bad_row)

    @property
    def task_ids(self) -> tuple[str, ...] | None:
        """The ids of all problems, for `options["task"]`; None for the generator."""
        return self.source.ids

    def begin(self, options: dict[str, Any]) -> Opening:
        """Options: `task`, a task id (`info["task_id"]` of an earlier reset), or a row's number."""
        task = options.pop("task", None)
        if options:
            raise ValueError(f"unknown options {sorted(options)}; Geo3k takes `task` and `max_turns`")
        zooms = bool(self.np_random.random() < self.expert_zoom)
        corner = [int(c) for c in self.np_random.integers(0, 500, 2)]
        self._problem = self.source.draw(self.np_random) if task is None else self.source.get(task)
        pictures = self._problem.pictures
        self._expert_box = [*corner, corner[0] + 500, corner[1] + 500] if zooms and pictures else None
        makers: dict[str, Callable[[], Tool]] = {
            "calculator": lambda: calculator,
            "zoom": lambda: zoom_tool(pictures, self.zoom_size),
            "check_answer": self._check_tool,
        }
        self._tools = [makers[name]() for name in self.tools if name != "zoom" or pictures]
        self._answer = None
        self._failures_in_row = 0
        return Opening(
            messages=[user(list(self._problem.content))],
            task_id=self._problem.task.id,
            task=self._problem.task,
            system_prompt=self.system_prompt,
            tools=[tool.schema for tool in self._tools],
        )

    def respond(self, action: str) -> Reply:
        parse = parse_tool_calls(action)
        self._answer = last_boxed(_CALL.sub(" ", without_thinking(action)))
        self._checked = []
        run = run_tools(parse.calls, self._tools)
        last = self.turns_left == 0
        if last and self._answer is None and self._checked:
            self._answer = self._checked[-1]
        malformed = bool(parse.error) or not (parse.calls or self._answer is not None)
        self._failures_in_row = self._failures_in_row + 1 if malformed else 0
        success = self._right() and (last or not parse.calls)
        ended, stop_reason = self._end(parse, last)
        messages: list[Message] = [*run.messages]
        error = self._mistake(parse) if malformed else None
        if error is not None:
            messages.append(user(error[1]))
        if not ended and self.turns_left == 1 and self.reminder:
            messages[-1]["content"].extend(user(self.reminder)["content"])
        return Reply(
            messages=() if ended else messages,
            reward=float(success) - self.format_penalty * malformed,
            terminated=ended,
            success=success,
            metrics={
                "tool_calls": float(len(run.records)),
                "failed_tool_calls": float(len(run.records) - run.count("ok")),
                "zooms": float(sum(r["name"] == "zoom" and r["status"] == "ok" for r in run.records)),
                "malformed": float(malformed),
                "answered": float(self._answer is not None and (last or not parse.calls)),
            },
            tool_calls=run.records,
            error=error,
            stop_reason=stop_reason,
        )

    def _end(self, parse: ToolParse, last: bool) -> tuple[bool, StopReason | None]:
        """Whether this response ends the episode, and why."""
        if self._answer is not None and (last or not parse.calls):
            return True, StopReason.ENV_DONE
        if self.end_on == "no_tool_call" and not parse.calls and not parse.error:
            return True, StopReason.NO_TOOL_CALL
        if self.max_parse_failures is not None and self._failures_in_row >= self.max_parse_failures:
            return True, StopReason.PARSE_FAILURES
        return False, None

    def _mistake(self, parse: ToolParse) -> tuple[str, str]:
        if parse.error:
            return "tool_call", parse.error
        return "no_answer", f"{NO_ANSWER}{', or call a tool' if self._tools else ''}."

    def _right(self) -> bool:
        assert self._problem is not None
        return self._answer is not None and grade_answer(self._answer, self._problem.task.answer)

    def settle(self, stop_reason: StopReason) -> tuple[float, dict[str, float]]:
        """The box of the last response counts, also beside a tool call whose result was never seen."""
        success = self._right()
        return float(success), {"success": float(success), "answered": float(self._answer is not None)}

    def _check_tool(self) -> Tool:
        def check(answer: str) -> str:
            assert self._problem is not None
            if self._checked:
                raise ToolError("check_answer: one check a turn")
            self._checked.append(answer)
            right = grade_answer(answer, self._problem.task.answer)
            return "The answer is correct." if right else "The answer is not correct."

        return Tool(
            "check_answer",
            "Say whether an answer is correct. At most once a turn.",
            {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
            check,
        )

    def expert_action(self) -> str | None:
        r"""Zoom first, in a share of the episodes, then answer in `\boxed{}`."""
        if self._problem is None:
            return None
        if self._expert_box is not None and self.turn == 0 and self.turns_left > 1 and "zoom" in self.tools:
            bbox = self._expert_box
            return f'<tool_call>\n{{"name": "zoom", "arguments": {{"bbox": {bbox}}}}}\n</tool_call>'
        return rf"\boxed{{{self._problem.task.answer}}}"


def _require(holds: bool, name: str, allowed: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
