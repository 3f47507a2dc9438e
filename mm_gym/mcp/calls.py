"""A response's calls, resolved: which tool of which server, with which parameters, or what is wrong.

Joins the text forms (tags, native JSON), the configuration's actions, the servers' own tools and the filters
of configuration and task. Must not talk to servers.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from mm_gym.mcp.call_grammar import TextCall
from mm_gym.mcp.config import MCPConfig
from mm_gym.mcp.mapping import Action
from mm_gym.mcp.results import clean
from mm_gym.mcp.tasksets import MCPTask
from mm_gym.mcp.xml_calls import Form, Forms, ToolXMLParser
from mm_gym.tool_calls import parse_tool_calls
from mm_gym.tools import ToolError

logger = logging.getLogger("mm_gym.mcp")

DONE = "done"
LIFECYCLE = frozenset(("setup", "evaluate"))
"""Tools that grade or prepare: never the agent's to call, whatever a server or taskset calls them besides."""
_GOOD_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


class ListedTool(Protocol):
    """What a server says of a tool."""

    @property
    def name(self) -> str: ...
    @property
    def own_name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Resolved:
    """One call, ready: its tool and parameters, or what is wrong with it."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    tool: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    status: str = "ok"
    """"ok" (to be called), "done", "malformed", "unknown" or "failed"."""
    error: str = ""


@dataclass(frozen=True)
class Response:
    """What a response asks for."""

    calls: tuple[Resolved, ...] = ()
    ignored: int = 0
    """Calls beyond `parser.max_calls`, which are not run."""
    form: Form = Form(0.0)  # noqa: RUF009  (frozen)
    """For the format score."""


class CallReader:
    """Reads responses by a configuration; `offer` tells it what a task's servers have."""

    def __init__(self, config: MCPConfig) -> None:
        self.config = config
        parser = config.parser
        self.xml = ToolXMLParser(
            use_thinking=parser.use_thinking,
            xml_weight=parser.xml_weight,
            action_weight=parser.action_weight,
            hud=config.compat,
            positional={name: action.positional for name, action in config.actions.items()},
        )
        self.native = parser.format == "hermes"
        self.tools: dict[str, ListedTool] = {}
        self.actions: dict[str, Action] = {}

    def offer(self, task: MCPTask, tools: Sequence[ListedTool]) -> None:
        """Take in what the servers of a task have; keeps what the agent may call."""
        lifecycle = LIFECYCLE | {call.name for call in (*task.setup, *task.evaluate)}
        if task.agent.response_tool:
            lifecycle |= {task.agent.response_tool}
        config, agent = self.config, task.agent
        wanted = (
            config.allowed_tools if config.allowed_tools is not None else (() if config.actions else ("*",))
        )
        self.tools = {}
        for tool in tools:
            names = (tool.name, tool.own_name)
            named = set(names) & (set(wanted) | set(agent.allowed_tools or ()))
            hidden = set(names) & LIFECYCLE or (set(names) & lifecycle and not named)
            if hidden or not _matches(names, wanted) or not self._passes(names, task):
                continue
            if not _GOOD_NAME.fullmatch(tool.name):
                logger.warning("a tool is left out for its name: %r", clean(tool.name)[:80])
                continue
            self.tools[tool.name] = tool
        own_names = {tool.own_name: tool.name for tool in tools}
        self.actions = {
            name: action
            for name, action in config.actions.items()
            if self._passes((action.tool, own_names.get(action.tool, action.tool)), task)
        }

    def _passes(self, names: tuple[str, ...], task: MCPTask) -> bool:
        agent = task.agent
        if agent.allowed_tools is not None and not _matches(names, agent.allowed_tools):
            return False
        return not _matches(names, (*agent.disallowed_tools, *self.config.disallowed_tools))

    # -- what the agent is offered --------------------------------------------------------------------

    def names(self) -> list[str]:
        """Every name that the agent may call."""
        done = [] if self.native else [DONE]
        return list(dict.fromkeys((*self.actions, *self.tools, *done)))

    def schemas(self) -> list[dict[str, Any]]:
        """Function tools for chat templates; empty where the system prompt tells them, as in the tag form."""
        if not self.native or not self.config.parser.list_tools:
            return []
        offered = [
            _function(action.name, action.description or f"Calls {action.tool}.", action.schema)
            for action in self.actions.values()
        ]
        for name, tool in self.tools.items():
            if name not in self.actions:
                offered.append(_function(name, clean(tool.description)[:2_000], _plain_schema(tool.schema)))
        return offered

    # -- what the agent says --------------------------------------------------------------------------

    def read(self, text: str) -> Response:
        """The calls of a response; never raises for what it says."""
        limit = 1 if self.config.compat else self.config.parser.max_calls
        if self.native:
            native = parse_tool_calls(text)
            resolved = [self._resolve(call.name, call.arguments) for call in native.calls[:limit]]
            if native.error is not None:
                resolved.append(Resolved("", status="malformed", error=native.error))
            good = None if not resolved else native.error is None
            return Response(tuple(resolved), max(0, len(native.calls) - limit), Form(0.0, good))
        parsed = self.xml.parse(text)
        calls = tuple(self._of_text(call) for call in parsed.calls[:limit])
        return Response(calls, max(0, len(parsed.calls) - limit), self.xml.form(text, parsed))

    def format_score(self, forms: Forms) -> float:
        """The format score of an episode: of tags, or of native calls (well formed ones among all)."""
        if self.native:
            return forms.valid / forms.calls if forms.calls else 0.0
        return self.xml.score(forms)

    def _of_text(self, call: TextCall | str) -> Resolved:
        if isinstance(call, str):
            return Resolved("", status="malformed", error=call)
        if call.name == DONE:
            return Resolved(DONE, status="done")
        return self._resolve(call.name, call.arguments(), call)

    def _resolve(self, name: str, given: dict[str, Any], text: TextCall | None = None) -> Resolved:
        try:
            if name in self.actions:
                return self._mapped(self.actions[name], given, text)
            if name in self.tools:
                tool = self.tools[name]
                arguments = _by_schema(tool, text) if text is not None else given
                return Resolved(name, arguments, name, arguments)
        except ToolError as error:
            return Resolved(name, given, status="failed", error=str(error))
        except ValueError as error:  # a transform
            return Resolved(name, given, status="failed", error=f"{name}: {error}")
        known = ", ".join(self.names()) or "none"
        return Resolved(
            name, given, status="unknown", error=f"there is no tool {name!r}. The tools are: {known}"
        )

    def _mapped(self, action: Action, given: dict[str, Any], text: TextCall | None) -> Resolved:
        compat = self.config.compat
        if text is None:
            arguments = action.bind((), given)
        elif compat:
            arguments = text.arguments(action.positional)
        else:
            arguments = action.bind(text.args, text.kwargs)
        if not compat:
            arguments = action.check(arguments)
        return Resolved(action.name, arguments, action.tool, action.build(arguments, lenient=compat))

    # -- how a call is written ------------------------------------------------------------------------

    def write(self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> str:
        """A response that makes one call, in this configuration's form: for solvers."""
        kwargs = dict(kwargs or {})
        if self.native:
            if name == DONE:
                return "Done."
            named = {**dict(zip(self._positional(name), args, strict=False)), **kwargs}
            body = json.dumps({"name": name, "arguments": named}, ensure_ascii=False)
            return f"<tool_call>\n{body}\n</tool_call>"
        parts = [json.dumps(arg, ensure_ascii=False) for arg in args]
        parts += [f"{key}={json.dumps(arg, ensure_ascii=False)}" for key, arg in kwargs.items()]
        think = "<think>Next.</think>\n" if self.config.parser.use_thinking else ""
        return f"{think}<tool>{name}({', '.join(parts)})</tool>"

    def _positional(self, name: str) -> Iterable[str]:
        if name in self.actions:
            return self.actions[name].positional
        return _properties(self.tools[name].schema) if name in self.tools else ()


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _properties(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _by_schema(tool: ListedTool, call: TextCall) -> dict[str, Any]:
    """Arguments of a tool without a mapping: in the order of its schema's properties."""
    names = _properties(tool.schema)
    if len(call.args) > len(names):
        raise ToolError(f"{tool.name}({', '.join(names)}) got {len(call.args)} arguments in order")
    named = dict(zip(names, call.args, strict=False))
    twice = sorted(set(named) & set(call.kwargs))
    if twice:
        raise ToolError(f"{tool.name} got {twice[0]!r} twice")
    return {**named, **call.kwargs}


def _function(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def _plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A server's schema where it is a plain object schema of sensible size, else one that takes anything."""
    anything = {"type": "object", "properties": {}}
    if not isinstance(schema.get("properties", {}), Mapping):
        return anything
    try:
        text = json.dumps({**schema, "type": "object"})
    except (TypeError, ValueError, RecursionError):
        return anything
    return json.loads(text) if len(text) <= 20_000 else anything
