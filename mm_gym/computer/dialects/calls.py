"""Function calls written as text, `click(x=3, text='a')`, as some dialects write actions.

Read with Python's own parser, arguments literal only: nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from mm_gym.tool_calls import ToolCall

MAX_LENGTH = 20_000


def read_calls(text: str, parameters: dict[str, tuple[str, ...]]) -> tuple[list[ToolCall], str | None]:
    """The calls in text that holds nothing else.

    Args:
        text: One call or several, on lines of their own.
        parameters: By function: its parameters' names in order.

    Returns:
        The calls before the first mistake, and what the mistake was, or None.
    """
    if len(text) > MAX_LENGTH:
        return [], f"the action is too long ({len(text)} characters, at most {MAX_LENGTH})"
    try:
        tree = ast.parse(_escaped(text.strip()))
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return [], f"not a function call: {getattr(error, 'msg', error)}"
    calls: list[ToolCall] = []
    for statement in tree.body:
        call, problem = _read(statement, parameters)
        if call is None:
            return calls, problem
        calls.append(call)
    return calls, None if calls else "no function call was found"


def _escaped(text: str) -> str:
    """Real newlines inside quotes become `\\n`, so that one call stays one statement."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", lambda m: m[0].replace("\n", "\\n"), text)


def _read(statement: ast.stmt, parameters: dict[str, tuple[str, ...]]) -> tuple[ToolCall | None, str]:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None, "only function calls are allowed, such as " + next(iter(parameters)) + "(...)"
    name = call.func.id
    if name not in parameters:
        return None, f"there is no action {name!r}; the actions are {', '.join(parameters)}"
    names = parameters[name]
    if len(call.args) > len(names):
        return None, f"{name} takes at most {len(names)} arguments ({', '.join(names)}), got {len(call.args)}"
    arguments: dict[str, Any] = {}
    for key, value in [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]:
        if key not in names or key in arguments:
            return None, f"{name} got an unknown or repeated argument {key!r}; it takes {', '.join(names)}"
        try:
            arguments[key] = ast.literal_eval(value)
        except (ValueError, TypeError, MemoryError, RecursionError):
            return None, f"the argument {key!r} of {name} must be a plain value"
    return ToolCall(name, arguments), ""


def write_call(name: str, *args: Any, **kwargs: Any) -> str:
    """A call as text.

    >>> write_call("click", 3, button="left")
    "click(3, button='left')"
    """
    return f"{name}({', '.join([*map(repr, args), *(f'{k}={v!r}' for k, v in kwargs.items())])})"
