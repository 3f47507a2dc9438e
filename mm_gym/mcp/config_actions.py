"""The part `action_mappings` of a configuration: from YAML to `Action`s, each key checked.

Knows hud-vf-gym's keys for mappings and ours for arguments; nothing of the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import jsonschema

from mm_gym.mcp.config_values import Values
from mm_gym.mcp.mapping import MISSING, Action, ArgumentSpec, Param

_TYPES = {
    "int": "integer", "float": "number", "str": "string",
    "bool": "boolean", "list": "array", "dict": "object",
}  # fmt: skip
_ARGUMENT_KEYS = {
    "type": "type", "enum": "enum", "min": "minimum", "max": "maximum", "minimum": "minimum",
    "maximum": "maximum", "min_length": "minLength", "max_length": "maxLength", "items": "items",
    "description": "description",
}  # fmt: skip


def _with_slots(positional: list[str], params: Iterable[Param | None]) -> tuple[str, ...]:
    """Names of the positional arguments; one without a name is read as `arg{slot}`, as in hud-vf-gym."""
    read = {name for param in params if param for name in (param.from_arg, *param.from_args)}
    slots = [int(name[3:]) for name in read if name and re.fullmatch(r"arg[0-9]{1,2}", name)]
    return (*positional, *(f"arg{slot}" for slot in range(len(positional), max(slots, default=-1) + 1)))


class ActionReader(Values):
    """Reads `action_mappings`."""

    def actions(self, compat: bool) -> dict[str, Action]:
        """Every action by its name.

        Args:
            compat: Don't ask that each argument that is read can be given.
        """
        mappings = self.value(self.data, ("action_mappings",), dict, {})
        return {name: self._action(name, mappings, compat) for name in mappings}

    def _action(self, name: str, mappings: dict[str, Any], compat: bool) -> Action:
        path = ("action_mappings", name)
        entry = self.value(mappings, path, dict, {})
        tool = self.value(entry, (*path, "_tool"), str, "")
        if not tool:
            raise self.document.error(path, "needs _tool, the MCP tool's name")
        parser = self.value(entry, (*path, "_parser"), dict, {})
        self.document.check_keys((*path, "_parser"), parser, ("positional", "arguments"))
        for key in entry:
            if key.startswith("_") and key not in ("_tool", "_parser", "_description"):
                raise self.document.error((*path, key), "known keys with _ are _tool, _parser, _description")
        params = {
            key: self._param(value, (*path, key)) for key, value in entry.items() if not key.startswith("_")
        }
        arguments = self.value(parser, (*path, "_parser", "arguments"), dict, {})
        specs = {key: self._argument(arguments, (*path, "_parser", "arguments", key)) for key in arguments}
        action = Action(
            name,
            tool,
            _with_slots(self.name_list(parser, (*path, "_parser", "positional")), params.values()),
            specs,
            {key: param for key, param in params.items() if param is not None},
            self.value(entry, (*path, "_description"), str, ""),
        )
        if not compat:
            self._check_sources(action, path)
        return action

    def _check_sources(self, action: Action, path: tuple[str, ...]) -> None:
        """Every argument that a parameter reads must be one that the agent can give."""
        for key, param in action.params.items():
            for source in (*param.from_args, *([param.from_arg] if param.from_arg else [])):
                if source not in action.argument_names:
                    known = ", ".join(action.argument_names) or "none"
                    raise self.document.error(
                        (*path, key), f"reads argument {source!r}, but _parser has {known}: add it there"
                    )

    def _param(self, value: Any, path: tuple[str, ...]) -> Param | None:
        if not isinstance(value, dict):
            return Param(static=value)
        if "static" in value:
            return Param(static=value["static"])
        if "from_arg" in value:
            return self._from_arg(value, path)
        if "from_args" in value:
            self.document.check_keys(path, value, ("from_args", "defaults"))
            names = tuple(self.name_list(value, (*path, "from_args")))
            defaults = tuple(self.value(value, (*path, "defaults"), list, []))
            if not names:
                raise self.document.error(path, "from_args needs at least one argument name")
            return Param(from_args=names, defaults=defaults)
        raise self.document.error(
            path,
            f"a mapping here needs static, from_arg or from_args, got {sorted(value)}; "
            "for an object as it stands write {static: {...}}",
        )

    def _from_arg(self, value: dict[str, Any], path: tuple[str, ...]) -> Param:
        self.document.check_keys(path, value, ("from_arg", "default", "transform", "use_context"))
        source = self.value(value, (*path, "transform"), str, None)
        use_context = self.value(value, (*path, "use_context"), bool, False)
        transform = None
        if source is not None:
            from mm_gym.mcp.transforms import Transform, TransformError

            try:
                transform = Transform(source)
            except TransformError as error:
                raise self.document.error((*path, "transform"), str(error)) from error
            if transform.takes_context and not use_context:
                raise self.document.error(path, "the lambda takes ctx: add use_context: true")
        name = self.value(value, (*path, "from_arg"), str, "")
        takes = bool(transform and transform.takes_context)
        return Param(from_arg=name, default=value.get("default"), transform=transform, use_context=takes)

    def _argument(self, arguments: dict[str, Any], path: tuple[str, ...]) -> ArgumentSpec:
        entry = arguments[path[-1]]
        if isinstance(entry, str):
            entry = {"type": entry}
        if not isinstance(entry, dict):
            raise self.document.error(path, "describe an argument by its type, or by a mapping")
        self.document.check_keys(path, entry, (*_ARGUMENT_KEYS, "default", "required"))
        schema = {_ARGUMENT_KEYS[key]: entry[key] for key in entry if key in _ARGUMENT_KEYS}
        if isinstance(schema.get("type"), str):
            schema["type"] = _TYPES.get(schema["type"], schema["type"])
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise self.document.error(path, f"not a valid description: {error.message}") from error
        default = entry.get("default", MISSING)
        required = self.value(entry, (*path, "required"), bool, default is MISSING)
        return ArgumentSpec(schema, required, default)
