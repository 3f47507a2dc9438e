"""`mm_gym/MCP-v0`: the tasks of any HUD taskset, on any MCP server, as an environment.

An episode: servers start (or come from the pool), setup runs, the agent's calls are mapped and made, the
evaluation grades, the rubric weighs. Knows all parts of this package; the SDK is imported by the first reset.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled

from mm_gym import messages
from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.mcp.calls import DONE, CallReader, Resolved, Response
from mm_gym.mcp.config import SERVERS, MCPConfig, ParserConfig, load_config
from mm_gym.mcp.dotted import load_function
from mm_gym.mcp.episode_servers import EpisodeServers
from mm_gym.mcp.results import ToolResult
from mm_gym.mcp.rubric import CallRecord, Rubric, RubricRecord, TurnRecord
from mm_gym.mcp.tasksets import MCPTask, Taskset, load_taskset
from mm_gym.mcp.wording import Parts, Wording, merged
from mm_gym.mcp.xml_calls import Forms
from mm_gym.stop import StopReason

logger = logging.getLogger("mm_gym.mcp")

BUILT_IN_TASKS = "mm_gym.mcp.servers.tasks_2048:tasks"


@dataclass(frozen=True)
class ExpertView:
    """What a solver sees, and how it writes calls in the configuration's form."""

    task: MCPTask
    structured: Mapping[str, Any]
    """Structured content of the last result (setup's at first)."""
    text: str
    """Its text."""
    turn: int
    actions: tuple[str, ...]
    """Names that may be called."""
    reader: CallReader

    def call(self, name: str, *args: Any, **kwargs: Any) -> str:
        """A response that makes this call."""
        return self.reader.write(name, args, kwargs)


class MCPEnv(ChatEnv):
    """Tasks on MCP servers.

    >>> import gymnasium, mm_gym
    >>> env = gymnasium.make("mm_gym/MCP-v0")  # the built-in 2048, in this process
    >>> observation, info = env.reset(seed=0)
    >>> info["task"].prompt
    'Reach the tile 16.'

    Args:
        config: The adapter's YAML file, or its content as a mapping. None: the built-in 2048 where `taskset`
            is None too, else native tool calls with the servers' own schemas.
        taskset: A hub name, a .parquet, .json or .jsonl file, a folder, `module:function`, or rows.
        split: Of the taskset.
        num_tasks: The first so many tasks.
        max_turns: In place of the configuration's `defaults.max_turns`.
        system_prompt: In place of the rows' and the configuration's.
        mcp_config: Servers for all tasks, in place of the rows' own.
        servers: "own", "reuse" or "shared", in place of the configuration's `servers`.
        render_mode: None or "rgb_array".

    Raises:
        ConfigError: The configuration is wrong; the text starts with file and line.
        ValueError: The taskset is wrong; the text names the row.
        DependencyNotInstalled: The extra `mcp` is missing.
    """

    def __init__(
        self,
        config: str | Path | Mapping[str, Any] | MCPConfig | None = None,
        taskset: str | Path | Sequence[Mapping[str, Any]] | None = None,
        *,
        split: str = "train",
        num_tasks: int | None = None,
        max_turns: int | None = None,
        system_prompt: str | None = None,
        mcp_config: Mapping[str, Any] | None = None,
        servers: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise DependencyNotInstalled('mm_gym/MCP-v0 needs the mcp SDK: pip install "mm-gym[mcp]"')
        if config is not None and taskset is None:
            raise ValueError("a configuration alone has no tasks: pass taskset= too")
        if config is None and taskset is not None:
            checked = MCPConfig(parser=ParserConfig(format="hermes", use_thinking=False))
        else:
            checked = load_config(config)
        if servers is not None:
            if servers not in SERVERS:
                raise ValueError(f"servers must be one of {', '.join(SERVERS)}, got {servers!r}")
            checked = replace(checked, servers=servers)
        super().__init__(max_turns=max_turns or checked.max_turns, render_mode=render_mode)
        self.config = checked
        self.tasks: Taskset = load_taskset(
            taskset if taskset is not None else BUILT_IN_TASKS,
            split=split,
            num_tasks=num_tasks,
            mcp_config=mcp_config,
        )
        self.deterministic = checked.replayable  # type: ignore[misc]  # of this instance: its file says so
        self._system_prompt = system_prompt
        self._reader = CallReader(checked)
        self._rubric = Rubric(checked.rubric, self._reader.format_score, checked.compat)
        self._expert = load_function(checked.expert) if checked.expert else None
        if checked.log_level:
            logger.setLevel(checked.log_level.upper())
        self._servers = EpisodeServers(checked, self.tasks)
        self._wording = Wording(checked, native=self._reader.native)
        self._record: RubricRecord | None = None
        self._last = ToolResult()
        self._made: dict[tuple[str, int], ToolResult] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without a running episode: a copy opens servers of its own at reset."""
        return {**self.__dict__, "_running": False}

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Every task's id, in the taskset's order: what `options["task"]` takes."""
        return tuple(task.task_id for task in self.tasks)

    def run_record(self) -> dict[str, Any]:
        """What names this run in records and trackers: the configuration's `job`."""
        job = self.config.job
        record = {"job_name": job.name, "job_metadata": dict(job.metadata), "config": self.config.source}
        return {**record, "dataset_link": job.dataset_link} if job.dataset_link else record

    # -- the episode ----------------------------------------------------------------------------------

    def begin(self, options: dict[str, Any]) -> Opening:
        unknown = sorted(set(options) - {"task"})
        if unknown:
            raise ValueError(f"unknown options {unknown}; MCP-v0 knows task (a number or an id)")
        self._servers.release()
        if "task" in options:
            index = self.tasks.find(options["task"])
        else:
            index = int(self.np_random.integers(len(self.tasks)))
        task: MCPTask = self.tasks[index]
        self._record = RubricRecord(task)
        self._made = {}
        try:
            self._reader.offer(task, self._servers.open(index))
            shown, self._last = self._servers.setup(task)
        except BaseException:
            self._servers.release(broken=True)
            raise
        return Opening(
            [messages.user(*merged([task.prompt, *shown], "\n\n"))],
            task_id=task.task_id,
            task=task,
            system_prompt=self._prompt_for(task),
            tools=self._reader.schemas(),
        )

    def _prompt_for(self, task: MCPTask) -> str:
        candidates = (self._system_prompt, task.system_prompt, task.agent.system_prompt)
        return next((prompt for prompt in candidates if prompt is not None), self.config.system_prompt)

    def respond(self, action: str) -> Reply:
        record = self._record
        assert record is not None
        response = self._reader.read(action)
        answers, calls, ended = self._answer(action, response)
        turn = TurnRecord(action, tuple(calls), response.form)
        record.add(turn)
        final = ended is not None or self.turn >= self.max_turns
        try:
            reward, metrics, success = self._grade(record) if final else (0.0, self._metrics(record), False)
        except BaseException:
            record.undo()  # the turn is not complete; it may be tried again
            raise
        self._made = {}
        return Reply(
            messages=answers,
            reward=reward,
            terminated=ended is not None,
            success=success,
            metrics={**metrics, **self._turn_metrics(turn, response)},
            tool_calls=[{"name": c.name, "arguments": c.arguments, "status": c.status} for c in calls],
            error=_error_of(response, calls),
            stop_reason=ended,
        )

    def settle(self, stop_reason: StopReason) -> tuple[float, dict[str, float]]:
        assert self._record is not None
        reward, metrics, _ = self._grade(self._record)
        return reward, metrics

    def expert_action(self) -> str | None:
        """The configured solver's next response, or the next call of the row's own solution."""
        record = self._record
        if record is None:
            return None
        view = ExpertView(
            task=record.task,
            structured=self._last.structured,
            text=self._last.text,
            turn=len(record.turns),
            actions=tuple(self._reader.names()),
            reader=self._reader,
        )
        if self._expert is not None:
            return str(self._expert(view))
        solution = record.task.solution
        if not solution:
            return None
        if view.turn >= len(solution):
            return view.call(DONE)
        return view.call(solution[view.turn].name, **solution[view.turn].arguments)

    def close(self) -> None:
        super().close()
        self._servers.release()

    # -- answering ------------------------------------------------------------------------------------

    def _answer(
        self, action: str, response: Response
    ) -> tuple[list[messages.Message], list[CallRecord], StopReason | None]:
        if not response.calls:
            return self._no_call(action)
        records: list[CallRecord] = []
        sections: list[tuple[str, Parts]] = []
        ended: StopReason | None = None
        for index, call in enumerate(response.calls):
            parts, record, ended = self._run(action, index, call)
            records.append(record)
            sections.append((call.name, parts))
            if ended is not None:
                break
        if response.ignored and ended is None:
            sections[-1][1].append(self._wording.ignored())
        return self._wording.as_messages(sections), records, ended

    def _no_call(self, action: str) -> tuple[list[messages.Message], list[CallRecord], StopReason | None]:
        task = self._record.task  # type: ignore[union-attr]
        if task.agent.response_tool is not None:
            self._make(action, 0, task.agent.response_tool, {"response": action})
            return [], [], StopReason.ENV_DONE
        if self._reader.native:
            return [], [], StopReason.NO_TOOL_CALL
        return [messages.user(self._wording.missing_call(self._reader.names()))], [], None

    def _run(self, action: str, index: int, call: Resolved) -> tuple[Parts, CallRecord, StopReason | None]:
        """One call: what the agent sees, its record, and why the episode ends, if it does."""
        arguments = call.arguments
        if call.status == "done":
            return [self._wording.done], CallRecord(DONE, {}, "done"), StopReason.ENV_DONE
        if call.status == "malformed":
            text = self._wording.mistake("Invalid Tool Call Format", call.error)
            return [text], CallRecord("", {}, "malformed", call.error), None
        if call.status != "ok":
            text = self._wording.mistake("Invalid Tool Call", call.error)
            return [text], CallRecord(call.name, arguments, call.status, call.error), None
        result = self._make(action, index, call.tool, call.params)
        if result.is_error:
            why = result.text or f"{call.name} failed"
            text = self._wording.mistake("Invalid Tool Call", why)
            return [text], CallRecord(call.name, arguments, "failed", why), None
        self._last = result
        ended = StopReason.ENV_DONE if result.done and not self.config.compat else None
        return self._wording.result(result), CallRecord(call.name, arguments, "ok"), ended

    def _make(self, action: str, index: int, tool: str, params: Mapping[str, Any]) -> ToolResult:
        """Call a tool; a call that this turn has already made is not made again when the turn is retried."""
        key = (action, index)
        if key not in self._made:
            self._made[key] = self._servers.call(tool, params, self.config.limits.call)
        return self._made[key]

    # -- grading --------------------------------------------------------------------------------------

    def _grade(self, record: RubricRecord) -> tuple[float, dict[str, float], bool]:
        """Evaluate, score and let go of the servers: reward, metrics, success."""
        score = None
        for call in record.task.evaluate:  # the last one's grade counts, as in hud-vf-gym
            score = self._servers.evaluate(call)
        graded = replace(record, task_score=score)
        metrics = self._metrics(graded)
        reward = self._rubric.reward(metrics)
        metrics = {**metrics, "reward": reward}
        if score is not None:
            metrics["task_score"] = score
        self._servers.release()
        return reward, metrics, score is not None and score >= 1.0

    def _metrics(self, record: RubricRecord) -> dict[str, float]:
        return self._rubric.scores(record)

    def _turn_metrics(self, turn: TurnRecord, response: Response) -> dict[str, float]:
        calls, forms = turn.calls, Forms()
        forms.add(turn.form)
        return {
            "turn_format_compliance": self._reader.format_score(forms),
            "turn_attempts": float(sum(call.attempt for call in calls)),
            "turn_tool_errors": float(sum(call.status in ("failed", "unknown") for call in calls)),
            "turn_malformed": float(sum(call.status == "malformed" for call in calls)),
            "turn_ignored_calls": float(response.ignored),
        }


def _error_of(response: Response, calls: Sequence[CallRecord]) -> tuple[str, str] | None:
    """The agent's first mistake in a turn."""
    if not response.calls:
        return ("missing_call", "the response makes no tool call")
    for record in calls:
        if record.error:
            return (f"{record.status}_call", record.error)
    return None
