"""From an agent's action to an MCP call: argument checks, defaults, transforms.

Knows actions, their arguments and how a configuration turns them into a tool's parameters. Must not know
servers or text formats.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonschema

from mm_gym.tools import ToolError

if TYPE_CHECKING:
    from mm_gym.mcp.transforms import Transform

logger = logging.getLogger("mm_gym.mcp")

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""No value, where None is one."""


@dataclass(frozen=True)
class ArgumentSpec:
    """What an action's argument must be."""

    schema: dict[str, Any] = field(default_factory=dict)
    """JSON schema."""
    required: bool = False
    default: Any = MISSING


@dataclass(frozen=True)
class Param:
    """Where one parameter of the MCP call comes from: exactly one of the three."""

    static: Any = MISSING
    from_arg: str | None = None
    from_args: tuple[str, ...] = ()
    default: Any = None
    defaults: tuple[Any, ...] = ()
    transform: Transform | None = None
    use_context: bool = False

    def value(self, arguments: Mapping[str, Any], lenient: bool) -> Any:
        """The parameter's value; None where the argument is absent.

        Args:
            arguments: The action's arguments by name.
            lenient: A failing transform passes the untransformed value on, as in hud-vf-gym.

        Raises:
            TransformError: The transform failed.
        """
        if self.static is not MISSING:
            return self.static
        if self.from_args:
            fill = (*self.defaults, *[None] * len(self.from_args))
            return [arguments.get(name, fill[slot]) for slot, name in enumerate(self.from_args)]
        value = arguments.get(self.from_arg or "", self.default)
        if value is None or self.transform is None:
            return value
        try:
            return self.transform(value, arguments if self.use_context else None)
        except ValueError as error:  # TransformError is one
            if not lenient:
                raise
            logger.warning("%s; the value is passed on as it is", error)
            return value


@dataclass(frozen=True)
class Action:
    """One action that the agent can take."""

    name: str
    tool: str
    """Name of the MCP tool."""
    positional: tuple[str, ...] = ()
    arguments: Mapping[str, ArgumentSpec] = field(default_factory=dict)
    params: Mapping[str, Param] = field(default_factory=dict)
    description: str = ""

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """Every argument that the action takes: positional ones first."""
        return tuple(dict.fromkeys((*self.positional, *self.arguments)))

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, as an object."""
        specs = {name: self.arguments.get(name, ArgumentSpec()) for name in self.argument_names}
        return {
            "type": "object",
            "properties": {name: dict(spec.schema) for name, spec in specs.items()},
            "required": [name for name, spec in specs.items() if spec.required],
        }

    @cached_property
    def _validators(self) -> dict[str, Any]:
        return {
            name: jsonschema.Draft202012Validator(spec.schema)
            for name, spec in self.arguments.items()
            if spec.schema
        }

    @property
    def usage(self) -> str:
        """How the call looks, for error texts: `click(x, y)`."""
        optional = {name for name in self.argument_names if not self._spec(name).required}
        shown = [f"{name}?" if name in optional else name for name in self.argument_names]
        return f"{self.name}({', '.join(shown)})"

    def _spec(self, name: str) -> ArgumentSpec:
        return self.arguments.get(name, ArgumentSpec())

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name.

        Raises:
            ToolError: There are too many, an unknown one, or one twice.
        """
        if len(args) > len(self.positional):
            raise ToolError(
                f"{self.usage} takes at most {len(self.positional)} arguments in order, got {len(args)}"
            )
        named = dict(zip(self.positional, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.argument_names:
                raise ToolError(f"{self.usage} has no argument {name!r}")
            if name in named:
                raise ToolError(f"{self.usage} got {name!r} twice")
            named[name] = value
        return named

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with defaults filled in, each as its type wants it.

        Raises:
            ToolError: One is missing, or of the wrong type or range.
        """
        checked = dict(arguments)
        for name, spec in self.arguments.items():
            if name not in checked:
                if spec.required:
                    raise ToolError(f"{self.usage} needs {name}{_expected(spec.schema)}")
                if spec.default is not MISSING:
                    checked[name] = spec.default
                continue
            checked[name] = _coerce(checked[name], spec.schema.get("type"))
            validator = self._validators.get(name)
            error = validator and jsonschema.exceptions.best_match(validator.iter_errors(checked[name]))
            if error:
                raise ToolError(f"{self.usage}: {name} {_short(error.message)}{_expected(spec.schema)}")
        return checked

    def build(self, arguments: Mapping[str, Any], lenient: bool = False) -> dict[str, Any]:
        """The MCP call's parameters; absent arguments are left out (hud-vf-gym, `lenient`, sends null).

        Raises:
            TransformError: A transform failed.
        """
        built = {name: param.value(arguments, lenient) for name, param in self.params.items()}
        if lenient:
            return built
        given = {name for name, param in self.params.items() if param.static is not MISSING}
        return {name: value for name, value in built.items() if value is not None or name in given}


def _coerce(value: Any, kind: Any) -> Any:
    """An unquoted number where text is wanted, a whole float where an integer is."""
    if kind == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f" (one of {', '.join(map(str, schema['enum']))})"
    kind = schema.get("type", "")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return f" ({kind})" if kind else ""
    bounds = f"from {low} to {high}" if None not in (low, high) else f"at least {low}"
    if low is None:
        bounds = f"at most {high}"
    return f" ({kind or 'number'} {bounds})"


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
