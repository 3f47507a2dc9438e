"""The adapter's YAML: hud-vf-gym's keys and ours, checked at load with file and line in each error.

Knows the file's form. Starts nothing and knows no servers. `docs/mcp.md` explains every key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from mm_gym.mcp.mapping import MISSING, Action, ArgumentSpec, Param
from mm_gym.mcp.yaml_lines import ConfigError, Document, as_document, load_yaml

__all__ = ["ConfigError", "MCPConfig", "load_config"]

DEFAULT_WEIGHTS = {"task_completion": 0.8, "tool_execution": 0.1, "format_compliance": 0.1}
SERVERS = ("own", "reuse", "shared")
BUILT_IN = Path(__file__).parent / "data" / "2048.yaml"


@dataclass(frozen=True)
class Job:
    """Names the run in records and trackers."""

    name: str = "HUDGym Run"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dataset_link: str | None = None


@dataclass(frozen=True)
class ParserConfig:
    """How responses are read."""

    use_thinking: bool = True
    xml_weight: float = 0.6
    action_weight: float = 0.4
    format: str = "xml"
    """"xml" (calls in `<tool>` tags) or "hermes" (native JSON calls with the tools' schemas)."""
    max_calls: int = 1
    """Calls of one response that are run; the rest is counted and named to the agent."""


@dataclass(frozen=True)
class Component:
    """A rubric component of the user's own."""

    name: str
    function: str
    """Dotted name, `package.module:function`, of `function(record: RubricRecord) -> float`."""
    weight: float = 0.0


@dataclass(frozen=True)
class RubricConfig:
    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    components: tuple[Component, ...] = ()
    clip: bool = True
    """Clip the task's score to 0..1."""


@dataclass(frozen=True)
class Limits:
    """Time in seconds and sizes for servers."""

    connect: float = 120.0
    call: float = 60.0
    setup: float = 120.0
    evaluate: float = 120.0
    message_bytes: int = 32 << 20
    """Largest message from a server."""
    image_pixels: int = 16 << 20
    """Largest picture, width times height."""
    text_chars: int = 20_000
    """Longest text of one result that the agent sees; the rest is cut and said."""


@dataclass(frozen=True)
class MCPConfig:
    """A checked configuration."""

    source: str = "config"
    job: Job = field(default_factory=Job)
    system_prompt: str = ""
    max_turns: int = 10
    parser: ParserConfig = field(default_factory=ParserConfig)
    actions: Mapping[str, Action] = field(default_factory=dict)
    rubric: RubricConfig = field(default_factory=RubricConfig)
    allowed_tools: tuple[str, ...] | None = None
    """Patterns of server tools that the agent may call by name; None: all where there are no actions,
    none where there are. Never those of setup and evaluation."""
    disallowed_tools: tuple[str, ...] = ()
    show_errors: bool = True
    """The agent reads why a call failed."""
    compat: bool = False
    """hud-vf-gym's exact texts, scores and quirks."""
    servers: str = "own"
    """"own": fresh ones for each episode. "reuse": kept for later episodes, one at a time: setup must reset
    all their state. "shared": one for all episodes at once, so they must keep state by the episode id."""
    limits: Limits = field(default_factory=Limits)
    expert: str | None = None
    """Dotted name of a solver: `function(record: ExpertView) -> str`."""
    replayable: bool = False
    """The same actions give the same observations: a lost episode may be replayed."""
    log_level: str | None = None


def load_config(config: str | Path | Mapping[str, Any] | MCPConfig | None) -> MCPConfig:
    """Read and check a configuration.

    Args:
        config: A YAML file, its content as a mapping, or None for the built-in 2048.

    Raises:
        ConfigError: Something is wrong; the text starts with file and line.
        FileNotFoundError: There is no such file.
    """
    if isinstance(config, MCPConfig):
        return config
    if isinstance(config, Mapping):
        return _Reader(as_document(dict(config))).config()
    path = BUILT_IN if config is None else Path(config)
    if not path.is_file():
        raise FileNotFoundError(f"no MCP configuration at {str(path)!r}: give the path of a YAML file")
    return _Reader(load_yaml(path.read_text(encoding="utf-8"), str(path))).config()


_TOP = (
    "job", "system_prompt", "defaults", "parser", "action_mappings", "rubric", "logging", "allowed_tools",
    "disallowed_tools", "show_errors", "compat", "servers", "limits", "expert", "replayable",
)  # fmt: skip
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


class _Reader:
    """Turns a document into an `MCPConfig`, part by part."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.data if document.data is not None else {}

    def config(self) -> MCPConfig:
        if not isinstance(self.data, dict):
            raise self.document.error((), f"a configuration is a mapping, got {type(self.data).__name__}")
        self.document.check_keys((), self.data, _TOP)
        defaults = self._section("defaults", ("max_turns",))
        compat = self.data.get("compat", False)
        if compat not in (False, "hud-vf-gym"):
            raise self.document.error(("compat",), f'must be "hud-vf-gym" or false, got {compat!r}')
        logs = self._section("logging", ("level", "format"))
        return MCPConfig(
            source=self.document.source,
            job=self._job(),
            system_prompt=self._value(self.data, ("system_prompt",), str, ""),
            max_turns=self._number(defaults, ("defaults", "max_turns"), int, 10, low=1),
            parser=self._parser(),
            actions=self._actions(compat=bool(compat)),
            rubric=self._rubric(),
            allowed_tools=self._names("allowed_tools", None),
            disallowed_tools=self._names("disallowed_tools", ()) or (),
            show_errors=self._value(self.data, ("show_errors",), bool, True),
            compat=bool(compat),
            servers=self._choice(self.data, ("servers",), SERVERS, "own"),
            limits=self._limits(),
            expert=self._value(self.data, ("expert",), str, None),
            replayable=self._value(self.data, ("replayable",), bool, False),
            log_level=self._value(logs, ("logging", "level"), str, None),
        )

    # -- parts ----------------------------------------------------------------------------------------

    def _job(self) -> Job:
        job = self._section("job", ("name", "metadata", "dataset_link"))
        return Job(
            self._value(job, ("job", "name"), str, Job.name),
            self._value(job, ("job", "metadata"), dict, {}),
            self._value(job, ("job", "dataset_link"), str, None),
        )

    def _parser(self) -> ParserConfig:
        keys = ("use_thinking", "xml_weight", "action_weight", "format", "max_calls")
        parser = self._section("parser", keys)
        form = self._choice(parser, ("parser", "format"), ("xml", "hermes"), "xml")
        result = ParserConfig(
            self._value(parser, ("parser", "use_thinking"), bool, True),
            self._number(parser, ("parser", "xml_weight"), float, 0.6, low=0),
            self._number(parser, ("parser", "action_weight"), float, 0.4, low=0),
            form,
            self._number(parser, ("parser", "max_calls"), int, 1, low=1),
        )
        if result.xml_weight + result.action_weight <= 0:
            raise self.document.error(("parser",), "xml_weight and action_weight are both 0")
        return result

    def _rubric(self) -> RubricConfig:
        rubric = self._section("rubric", ("weights", "components", "clip"))
        path = ("rubric", "weights")
        given = self._value(rubric, path, dict, {})
        self.document.check_keys(path, given, DEFAULT_WEIGHTS)
        weights = {
            name: self._number(given, (*path, name), float, default)
            for name, default in DEFAULT_WEIGHTS.items()
        }
        components = self._value(rubric, ("rubric", "components"), dict, {})
        return RubricConfig(
            weights,
            tuple(self._component(name, components) for name in components),
            self._value(rubric, ("rubric", "clip"), bool, True),
        )

    def _component(self, name: str, components: dict[str, Any]) -> Component:
        path = ("rubric", "components", name)
        if name in (*DEFAULT_WEIGHTS, "reward"):
            raise self.document.error(path, f"the name {name!r} is taken; choose another")
        entry = self._value(components, path, dict, {})
        self.document.check_keys(path, entry, ("function", "weight"))
        function = self._value(entry, (*path, "function"), str, "")
        if ":" not in function:
            raise self.document.error((*path, "function"), f'must be "module:function", got {function!r}')
        return Component(name, function, self._number(entry, (*path, "weight"), float, 0.0))

    def _limits(self) -> Limits:
        names = list(Limits.__dataclass_fields__)
        given = self._section("limits", names)
        kinds = {name: type(getattr(Limits, name)) for name in names}
        values: dict[str, Any] = {
            name: self._number(given, ("limits", name), kinds[name], getattr(Limits, name), low=0)
            for name in names
        }
        for name, value in values.items():
            if not value:
                raise self.document.error(("limits", name), "must be above 0")
        return Limits(**values)

    # -- action mappings ------------------------------------------------------------------------------

    def _actions(self, compat: bool) -> dict[str, Action]:
        mappings = self._value(self.data, ("action_mappings",), dict, {})
        return {name: self._action(name, mappings, compat) for name in mappings}

    def _action(self, name: str, mappings: dict[str, Any], compat: bool) -> Action:
        path = ("action_mappings", name)
        entry = self._value(mappings, path, dict, {})
        tool = self._value(entry, (*path, "_tool"), str, "")
        if not tool:
            raise self.document.error(path, "needs _tool, the MCP tool's name")
        parser = self._value(entry, (*path, "_parser"), dict, {})
        self.document.check_keys((*path, "_parser"), parser, ("positional", "arguments"))
        for key in entry:
            if key.startswith("_") and key not in ("_tool", "_parser", "_description"):
                raise self.document.error((*path, key), "known keys with _ are _tool, _parser, _description")
        params = {
            key: self._param(value, (*path, key)) for key, value in entry.items() if not key.startswith("_")
        }
        arguments = self._value(parser, (*path, "_parser", "arguments"), dict, {})
        specs = {key: self._argument(arguments, (*path, "_parser", "arguments", key)) for key in arguments}
        action = Action(
            name,
            tool,
            _with_slots(self._list(parser, (*path, "_parser", "positional")), params.values()),
            specs,
            {key: param for key, param in params.items() if param is not None},
            self._value(entry, (*path, "_description"), str, ""),
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
            names = tuple(self._list(value, (*path, "from_args")))
            defaults = tuple(self._value(value, (*path, "defaults"), list, []))
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
        source = self._value(value, (*path, "transform"), str, None)
        use_context = self._value(value, (*path, "use_context"), bool, False)
        transform = None
        if source is not None:
            from mm_gym.mcp.transforms import Transform, TransformError

            try:
                transform = Transform(source)
            except TransformError as error:
                raise self.document.error((*path, "transform"), str(error)) from error
            if transform.takes_context and not use_context:
                raise self.document.error(path, "the lambda takes ctx: add use_context: true")
        name = self._value(value, (*path, "from_arg"), str, "")
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
        required = self._value(entry, (*path, "required"), bool, default is MISSING)
        return ArgumentSpec(schema, required, default)

    # -- values ---------------------------------------------------------------------------------------

    def _section(self, name: str, keys: Any) -> dict[str, Any]:
        section = self._value(self.data, (name,), dict, {})
        self.document.check_keys((name,), section, keys)
        return section

    def _value(self, mapping: Mapping[str, Any], path: tuple[str, ...], kind: type, default: Any) -> Any:
        value = mapping.get(path[-1])
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.document.error(path, f"must be a {kind.__name__}, got {value!r}")
        return value

    def _choice(
        self, mapping: Mapping[str, Any], path: tuple[str, ...], choices: tuple[str, ...], default: str
    ) -> str:
        value = self._value(mapping, path, str, default)
        if value not in choices:
            raise self.document.error(path, f"must be one of {', '.join(choices)}, got {value!r}")
        return value

    def _number(
        self,
        mapping: Mapping[str, Any],
        path: tuple[str, ...],
        kind: type,
        default: Any,
        low: float | None = None,
    ) -> Any:
        value = mapping.get(path[-1])
        if value is None:
            return default
        good = isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or (low is not None and value < low):
            bound = "" if low is None else f" of at least {low:g}"
            raise self.document.error(path, f"must be a {kind.__name__}{bound}, got {value!r}")
        return kind(value)

    def _list(self, mapping: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
        names = self._value(mapping, path, list, [])
        if not all(isinstance(name, str) and name for name in names):
            raise self.document.error(path, f"must be a list of names, got {names!r}")
        if len(set(names)) != len(names):
            raise self.document.error(path, f"a name stands twice in {names!r}")
        return names

    def _names(self, name: str, default: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if self.data.get(name) is None:
            return default
        return tuple(self._list(self.data, (name,)))
