"""The adapter's YAML: hud-vf-gym's keys and ours, checked at load with file and line in each error.

Knows the file's form. Starts nothing and knows no servers. `docs/mcp.md` explains every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mm_gym.mcp.config_actions import ActionReader
from mm_gym.mcp.mapping import Action
from mm_gym.mcp.yaml_lines import ConfigError, as_document, load_yaml

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
    list_tools: bool = True
    """Offer the tools with their schemas ("hermes"). False where the system prompt says enough of them."""


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
    """Most pixels of one result's pictures together."""
    text_chars: int = 20_000
    """Longest text of one result, all its texts together, that the agent sees; the rest is cut and said."""


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


class _Reader(ActionReader):
    """Turns a document into an `MCPConfig`, part by part."""

    def config(self) -> MCPConfig:
        if not isinstance(self.data, dict):
            raise self.document.error((), f"a configuration is a mapping, got {type(self.data).__name__}")
        self.document.check_keys((), self.data, _TOP)
        defaults = self.section("defaults", ("max_turns",))
        compat = self.data.get("compat", False)
        if compat not in (False, "hud-vf-gym"):
            raise self.document.error(("compat",), f'must be "hud-vf-gym" or false, got {compat!r}')
        logs = self.section("logging", ("level", "format"))
        return MCPConfig(
            source=self.document.source,
            job=self._job(),
            system_prompt=self.value(self.data, ("system_prompt",), str, ""),
            max_turns=self.number(defaults, ("defaults", "max_turns"), int, 10, low=1),
            parser=self._parser(),
            actions=self.actions(compat=bool(compat)),
            rubric=self._rubric(),
            allowed_tools=self.top_names("allowed_tools", None),
            disallowed_tools=self.top_names("disallowed_tools", ()) or (),
            show_errors=self.value(self.data, ("show_errors",), bool, True),
            compat=bool(compat),
            servers=self.choice(self.data, ("servers",), SERVERS, "own"),
            limits=self._limits(),
            expert=self.value(self.data, ("expert",), str, None),
            replayable=self.value(self.data, ("replayable",), bool, False),
            log_level=self.value(logs, ("logging", "level"), str, None),
        )

    # -- parts ----------------------------------------------------------------------------------------

    def _job(self) -> Job:
        job = self.section("job", ("name", "metadata", "dataset_link"))
        return Job(
            self.value(job, ("job", "name"), str, Job.name),
            self.value(job, ("job", "metadata"), dict, {}),
            self.value(job, ("job", "dataset_link"), str, None),
        )

    def _parser(self) -> ParserConfig:
        keys = ("use_thinking", "xml_weight", "action_weight", "format", "max_calls", "list_tools")
        parser = self.section("parser", keys)
        form = self.choice(parser, ("parser", "format"), ("xml", "hermes"), "xml")
        result = ParserConfig(
            self.value(parser, ("parser", "use_thinking"), bool, True),
            self.number(parser, ("parser", "xml_weight"), float, 0.6, low=0),
            self.number(parser, ("parser", "action_weight"), float, 0.4, low=0),
            form,
            self.number(parser, ("parser", "max_calls"), int, 1, low=1),
            self.value(parser, ("parser", "list_tools"), bool, True),
        )
        if result.xml_weight + result.action_weight <= 0:
            raise self.document.error(("parser",), "xml_weight and action_weight are both 0")
        return result

    def _rubric(self) -> RubricConfig:
        rubric = self.section("rubric", ("weights", "components", "clip"))
        path = ("rubric", "weights")
        given = self.value(rubric, path, dict, {})
        self.document.check_keys(path, given, DEFAULT_WEIGHTS)
        weights = {
            name: self.number(given, (*path, name), float, default)
            for name, default in DEFAULT_WEIGHTS.items()
        }
        components = self.value(rubric, ("rubric", "components"), dict, {})
        return RubricConfig(
            weights,
            tuple(self._component(name, components) for name in components),
            self.value(rubric, ("rubric", "clip"), bool, True),
        )

    def _component(self, name: str, components: dict[str, Any]) -> Component:
        path = ("rubric", "components", name)
        if name in (*DEFAULT_WEIGHTS, "reward"):
            raise self.document.error(path, f"the name {name!r} is taken; choose another")
        entry = self.value(components, path, dict, {})
        self.document.check_keys(path, entry, ("function", "weight"))
        function = self.value(entry, (*path, "function"), str, "")
        if ":" not in function:
            raise self.document.error((*path, "function"), f'must be "module:function", got {function!r}')
        return Component(name, function, self.number(entry, (*path, "weight"), float, 0.0))

    def _limits(self) -> Limits:
        names = list(Limits.__dataclass_fields__)
        given = self.section("limits", names)
        kinds = {name: type(getattr(Limits, name)) for name in names}
        values: dict[str, Any] = {
            name: self.number(given, ("limits", name), kinds[name], getattr(Limits, name), low=0)
            for name in names
        }
        for name, value in values.items():
            if not value:
                raise self.document.error(("limits", name), "must be above 0")
        return Limits(**values)
