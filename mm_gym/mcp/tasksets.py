"""HUD tasksets: rows in all their spellings, as tasks that an environment can run.

Knows HUD v4 rows and where they come from (hub, parquet, JSON, JSONL, lists). Secrets in `mcp_config` are
resolved here and kept apart from the task, which is what records hold. Starts nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled

from mm_gym.mcp.dotted import load_function
from mm_gym.mcp.server_spec import ServerSpec, server_specs


@dataclass(frozen=True)
class MCPCall:
    """One call of a tool by the environment: setup or evaluation."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentConfig:
    """What a row says about the agent."""

    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    response_tool: str | None = None
    """The tool that gets the agent's final answer, a response without a call."""
    system_prompt: str | None = None
    append_setup_output: bool = True
    initial_screenshot: bool = False


@dataclass(frozen=True)
class MCPTask:
    """One task of a taskset. Holds the answer, where the row's metadata has one; no resolved secret."""

    task_id: str
    prompt: str
    mcp_config: Mapping[str, Any]
    """As written: `${VAR}` stands unresolved."""
    setup: tuple[MCPCall, ...] = ()
    evaluate: tuple[MCPCall, ...] = ()
    solution: tuple[MCPCall, ...] = ()
    """Calls that solve the task, where the row has them (`integration_test_tool`, `validation`)."""
    system_prompt: str | None = None
    agent: AgentConfig = field(default_factory=AgentConfig)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> str:
        return str(self.metadata.get("answer", ""))


class Taskset(Sequence[MCPTask]):
    """Tasks, and the servers of each with secrets resolved."""

    def __init__(
        self, tasks: Sequence[MCPTask], servers: Sequence[tuple[ServerSpec, ...]], secrets: Iterable[str]
    ) -> None:
        self.tasks = tuple(tasks)
        self._servers = tuple(servers)
        self.secrets = tuple(sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True))
        """Resolved values of `${VAR}`, to be kept out of records."""

    def servers(self, index: int) -> tuple[ServerSpec, ...]:
        """The servers of task `index`. Holds secrets: never log or store it."""
        return self._servers[index]

    def find(self, key: int | str) -> int:
        """Index of a task by number or id.

        Raises:
            ValueError: There is no such task.
        """
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(self.tasks):
            return key
        for index, task in enumerate(self.tasks):
            if task.task_id == key:
                return index
        raise ValueError(
            f"no task {key!r}: give a number from 0 to {len(self.tasks) - 1} or an id such as "
            f"{self.tasks[0].task_id!r}"
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: Any) -> Any:
        return self.tasks[index]

    def __repr__(self) -> str:
        return f"Taskset({len(self.tasks)} tasks)"


def load_taskset(
    taskset: str | Path | Sequence[Mapping[str, Any]],
    *,
    split: str = "train",
    num_tasks: int | None = None,
    mcp_config: Mapping[str, Any] | None = None,
) -> Taskset:
    """Read a taskset.

    Args:
        taskset: A hub name (`owner/name`), a .parquet, .json or .jsonl file, a folder of such files named
            by split, `module:function` (called with the split, gives rows), or the rows themselves.
        split: The hub's split, a folder's file, or a key of a JSON object of lists.
        num_tasks: The first so many.
        mcp_config: Servers for every task, in place of the rows' own.

    Raises:
        ValueError: A row is wrong, or `num_tasks` exceeds what there is; the text names the row.
        FileNotFoundError: There is no such file.
        DependencyNotInstalled: A hub name needs the package `datasets`.
    """
    rows = _rows(taskset, split)
    if num_tasks is not None:
        if not 1 <= num_tasks <= len(rows):
            raise ValueError(
                f"num_tasks must be from 1 to the {len(rows)} tasks of {_name(taskset)}, got {num_tasks}"
            )
        rows = rows[:num_tasks]
    if not rows:
        raise ValueError(f"{_name(taskset)} holds no tasks")
    tasks: list[MCPTask] = []
    servers: list[tuple[ServerSpec, ...]] = []
    secrets: set[str] = set()
    for index, row in enumerate(rows):
        try:
            task = read_row(row, index, mcp_config)
            resolved = _resolve(task.mcp_config, os.environ, secrets)
            servers.append(server_specs(resolved))
        except ValueError as error:
            raise ValueError(f"{_name(taskset)}, row {index}: {error}") from error
        tasks.append(task)
    _check_ids(tasks, _name(taskset))
    return Taskset(tasks, servers, secrets)


def read_row(row: Mapping[str, Any], index: int, mcp_config: Mapping[str, Any] | None = None) -> MCPTask:
    """One row as a task.

    Raises:
        ValueError: A field is missing or malformed, or the row is of a format that can't run here.
    """
    config = mcp_config if mcp_config is not None else _parsed(row, "mcp_config", dict)
    prompt = row.get("prompt")
    if not isinstance(prompt, str) or not config:
        raise ValueError(_why_not(row, prompt, config))
    metadata = _parsed(row, "metadata", dict) or {}
    agent = _agent(_parsed(row, "agent_config", dict) or {})
    identity = row.get("id")
    system_prompt = row.get("system_prompt") or None
    if system_prompt is not None and not isinstance(system_prompt, str):
        raise ValueError(f"system_prompt must be text, got {system_prompt!r}")
    return MCPTask(
        task_id=str(identity) if identity not in (None, "") else f"task_{index}",
        prompt=prompt,
        mcp_config=config,
        setup=_calls(row, "setup_tool"),
        evaluate=_calls(row, "evaluate_tool"),
        solution=_calls(row, "integration_test_tool") or _calls(row, "validation"),
        system_prompt=system_prompt,
        agent=agent,
        metadata=metadata,
    )


def _why_not(row: Mapping[str, Any], prompt: Any, config: Any) -> str:
    """What a row lacks; for HUD's later formats, what they need that is not here."""
    if "scenario" in row:
        return (
            f"this is a HUD v5 task (scenario {row['scenario']!r} of an Environment): a scenario is a "
            "generator inside HUD's runtime, which MCP tools can't drive. Give it prompt, mcp_config, "
            "setup_tool and evaluate_tool (v4), naming the tools of a server that serves the environment"
        )
    if "env" in row or "slug" in row:
        return (
            "this is a HUD v6 task: it starts and grades over HUD's own control channel (tasks.start, "
            "tasks.grade), not over MCP. Give it prompt, mcp_config, setup_tool and evaluate_tool (v4)"
        )
    if not isinstance(prompt, str):
        return f"prompt must be text, got {prompt!r}"
    return "mcp_config is missing: name the servers there, or pass mcp_config= for all tasks"


def _agent(data: Mapping[str, Any]) -> AgentConfig:
    def names(key: str) -> tuple[str, ...] | None:
        value = data.get(key)
        if value is None:
            return None
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"agent_config.{key} must be a list of tool names, got {value!r}")
        return tuple(value)

    append = data.get("append_setup_output")
    return AgentConfig(
        allowed_tools=names("allowed_tools"),
        disallowed_tools=names("disallowed_tools") or (),
        response_tool=data.get("response_tool_name") or None,
        system_prompt=data.get("system_prompt") or None,
        append_setup_output=True if append is None else bool(append),
        initial_screenshot=bool(data.get("initial_screenshot", False)),
    )


# -- calls --------------------------------------------------------------------------------------------


def _calls(row: Mapping[str, Any], key: str) -> tuple[MCPCall, ...]:
    """A call or a list of calls, as data or JSON text, in any of HUD's spellings."""
    value = _parsed(row, key, (dict, list))
    if not value:
        return ()
    entries = value if isinstance(value, list) else [value]
    return tuple(_call(entry, key) for entry in entries)


def _call(entry: Any, key: str) -> MCPCall:
    if isinstance(entry, str):
        entry = _json(entry, key)
    if not isinstance(entry, dict) or not entry:
        raise ValueError(f"{key} must be a tool call such as {{name, arguments}}, got {entry!r}")
    if "name" not in entry:
        return _shorthand(entry, key)
    name = entry["name"]
    arguments = entry.get("arguments")
    if isinstance(arguments, str):
        arguments = _json(arguments, key) if arguments.strip() else {}
    if not isinstance(name, str) or not isinstance(arguments if arguments is not None else {}, dict):
        raise ValueError(f"{key} must be a tool call such as {{name, arguments}}, got {entry!r}")
    return MCPCall(name, _dispatch(arguments or {}, key))


def _shorthand(entry: dict[str, Any], key: str) -> MCPCall:
    """`{"setup": {"board": {"size": 4}}}`: tool, hidden function, its arguments."""
    if len(entry) != 1:
        raise ValueError(f"{key} must name one tool, got {sorted(entry)}")
    ((tool, inner),) = entry.items()
    if not isinstance(inner, dict):
        raise ValueError(f"{key}: {tool!r} takes a mapping, got {inner!r}")
    if len(inner) == 1 and isinstance(next(iter(inner.values())), dict) and "arguments" not in inner:
        ((function, arguments),) = inner.items()
        return MCPCall(tool, {"name": function, "arguments": arguments})
    return MCPCall(tool, _dispatch(inner, key))


def _dispatch(arguments: dict[str, Any], key: str) -> dict[str, Any]:
    """Arguments of a dispatcher as data: its own arguments may be JSON text."""
    inner = arguments.get("arguments")
    if "name" in arguments and isinstance(inner, str) and inner.strip().startswith("{"):
        return {**arguments, "arguments": _json(inner, key)}
    return arguments


def _parsed(row: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """A column as data: stored as data or as JSON text; None where it is empty."""
    value = row.get(key)
    as_text = isinstance(value, (str, bytes))
    if isinstance(value, (str, bytes)):
        value = _json(value, key) if value.strip() else None
    if value is None or value == {} or value == []:
        return None
    if not isinstance(value, kind):
        raise ValueError(f"{key} must be an object or its JSON text, got {value!r}")
    return value if as_text or key == "metadata" else _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    """Parquet fills keys that only other rows have with null; a call or config never means them."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _json(text: str | bytes, key: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{key} is not valid JSON: {error}") from error


# -- secrets ------------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


def _resolve(value: Any, variables: Mapping[str, str], secrets: set[str]) -> Any:
    """`${VAR}` and `${VAR:default}` replaced; anything else with a dollar sign stays.

    Raises:
        ValueError: A variable is unset and has no default.
    """
    if isinstance(value, dict):
        return {key: _resolve(item, variables, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, variables, secrets) for item in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in variables:
            secrets.add(variables[name])
            return variables[name]
        if default is None:
            raise ValueError(
                f"mcp_config needs the environment variable {name}: export it, or write ${{{name}:default}}"
            )
        return default

    return _VARIABLE.sub(replace, value)


# -- sources ------------------------------------------------------------------------------------------


def _rows(taskset: Any, split: str) -> list[Mapping[str, Any]]:
    if isinstance(taskset, str) and re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", taskset):
        return list(load_function(taskset)(split))
    if isinstance(taskset, (str, Path)):
        path = Path(taskset)
        if path.is_dir():
            path = _file_of(path, split)
        if path.is_file():
            return _read_file(path, split)
        if path.suffix in (".json", ".jsonl", ".parquet") or str(taskset).count("/") != 1:
            raise FileNotFoundError(
                f"no taskset at {str(taskset)!r}: give a .parquet, .json or .jsonl file, a folder, "
                "module:function, or a hub name owner/name"
            )
        return _from_hub(str(taskset), split)
    rows = list(taskset)
    if not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("a taskset given as a list must hold mappings, one a task")
    return rows


def _file_of(folder: Path, split: str) -> Path:
    for pattern in (f"{split}.*", f"{split}-*", f"data/{split}.*", f"data/{split}-*"):
        found = [p for p in sorted(folder.glob(pattern)) if p.suffix in (".json", ".jsonl", ".parquet")]
        if found:
            return found[0]
    raise FileNotFoundError(f"no {split}.parquet, {split}.json or {split}.jsonl in {str(folder)!r}")


def _read_file(path: Path, split: str) -> list[Mapping[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path).to_pylist()
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is not valid JSON: {error}") from error
    if isinstance(data, dict):
        data = data.get(split) or data.get("tasks") or [data]
    if not isinstance(data, list):
        raise ValueError(f"{str(path)!r} must hold a list of tasks, got {type(data).__name__}")
    return data


def _from_hub(name: str, split: str) -> list[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError as error:
        raise DependencyNotInstalled(
            f'the hub taskset {name!r} needs datasets: pip install "mm-gym[train]"'
        ) from error
    return [dict(row) for row in datasets.load_dataset(name, split=split)]


def _check_ids(tasks: Sequence[MCPTask], name: str) -> None:
    seen: dict[str, int] = {}
    for index, task in enumerate(tasks):
        if task.task_id in seen:
            raise ValueError(f"{name}: rows {seen[task.task_id]} and {index} share the id {task.task_id!r}")
        seen[task.task_id] = index


def _name(taskset: Any) -> str:
    return str(taskset) if isinstance(taskset, (str, Path)) else "the taskset"
