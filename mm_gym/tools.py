"""Tools that an environment offers: their schema, the check of a call's arguments, and running them.

A tool's function gets validated keyword arguments and returns content (text, pictures, or a list of
them). What the agent did wrong is a `ToolError`; its text goes to the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jsonschema

from mm_gym import messages
from mm_gym.messages import Message
from mm_gym.tool_calls import ToolCall


class ToolError(Exception):
    """A mistake of the agent in a tool call: the text says what was wrong and how it should look."""


@dataclass(frozen=True)
class Tool:
    """One function tool.

    Args:
        name: What the model calls.
        description: What it does, for the model.
        parameters: JSON schema of an object; unknown keys are refused.
        function: Called with the arguments as keywords; returns text, a picture, or a list of them.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]

    @property
    def schema(self) -> dict[str, Any]:
        """The form that chat templates take."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }

    @cached_property
    def _validator(self) -> Any:
        schema = {"additionalProperties": False, **self.parameters}
        return jsonschema.Draft202012Validator(schema)

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Check the arguments and run the function.

        Raises:
            ToolError: The arguments do not fit the schema, or the function says so.
        """
        error = jsonschema.exceptions.best_match(self._validator.iter_errors(dict(arguments)))
        if error is not None:
            where = "".join(f"[{p!r}]" for p in error.absolute_path)
            raise ToolError(f"{self.name}: wrong arguments{where}: {_short(error.message)}. {self.usage}")
        return self.function(**arguments)

    @property
    def usage(self) -> str:
        """A line that shows the call's form."""
        properties = self.parameters.get("properties", {})
        shown = ", ".join(
            f'"{name}": <{spec.get("type", "value")}>'
            for name, spec in properties.items()
            if name in self.parameters.get("required", properties)
        )
        return f'Expected {{"name": "{self.name}", "arguments": {{{shown}}}}}'


@dataclass
class ToolRun:
    """What running a turn's calls gave."""

    messages: list[Message] = field(default_factory=list)
    """One tool message a call that was run, in order."""
    records: list[dict[str, Any]] = field(default_factory=list)
    """For `Reply.tool_calls`: `name`, `arguments`, `status` ("ok", "failed" or "unknown")."""

    def count(self, status: str) -> int:
        return sum(record["status"] == status for record in self.records)


MAX_CALLS = 16
"""Calls of one response that are run by default."""


def run_tools(calls: Sequence[ToolCall], tools: Sequence[Tool], limit: int = MAX_CALLS) -> ToolRun:
    """Run the calls of one response, in order; each gets a tool message with its result or error.

    Args:
        calls: What the response asks for.
        tools: What may be called.
        limit: Calls beyond it are not run; the first of them gets a message that says so.
    """
    by_name = {tool.name: tool for tool in tools}
    run = ToolRun()
    for index, call in enumerate(calls):
        if index < limit:
            status, content = _run_one(call, by_name)
        else:
            status = "failed"
            content = (
                f"Error: only the first {limit} calls of a response are run, not these {len(calls) - limit}."
            )
        if index <= limit:
            run.messages.append(messages.tool(_short(call.name, 80), index, content))
        run.records.append({"name": call.name, "arguments": call.arguments, "status": status})
    return run


def _run_one(call: ToolCall, tools: Mapping[str, Tool]) -> tuple[str, Any]:
    if call.name not in tools:
        known = ", ".join(sorted(tools)) or "none"
        return "unknown", f"Error: there is no tool {_short(call.name, 80)!r}. The tools are: {known}."
    try:
        return "ok", tools[call.name](call.arguments)
    except ToolError as error:
        return "failed", f"Error: {error}"


def _short(text: str, most: int = 300) -> str:
    """The text with its middle left out when it is long: the agent's own words may be of any length."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"
