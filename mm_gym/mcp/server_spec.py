"""What `mcp_config` says about servers: stdio commands, HTTP addresses, in-process factories.

Knows the shape `{name: {command, args, env} | {url, headers} | {python}}`. Starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["stdio", "http", "python"]


@dataclass(frozen=True)
class ServerSpec:
    """One server, with secrets resolved: never log or store it. Its repr shows name and kind only."""

    name: str
    kind: Kind
    command: str = field(default="", repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = field(default=None, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    factory: str = ""
    """`module:function` that makes an in-process server."""
    kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """Equal for servers that may stand for each other. Holds secrets."""
        return json.dumps(
            [self.kind, self.command, self.args, dict(self.env), self.cwd, self.url, dict(self.headers),
             self.factory, dict(self.kwargs)],
            sort_keys=True,
        )  # fmt: skip


_KEYS: dict[Kind, tuple[str, ...]] = {
    "stdio": ("command", "args", "env", "cwd"),
    "http": ("url", "headers"),
    "python": ("python", "kwargs"),
}
_IGNORED = ("type", "transport", "description", "disabled", "timeout", "name")


def server_specs(mcp_config: Mapping[str, Any]) -> tuple[ServerSpec, ...]:
    """The servers of an `mcp_config` (also inside `mcpServers`).

    Raises:
        ValueError: A server is malformed or of a transport that is not supported; secrets are not shown.
    """
    inner = mcp_config.get("mcpServers")
    servers = inner if isinstance(inner, Mapping) else mcp_config
    specs = tuple(_spec(name, entry) for name, entry in servers.items())
    if not specs:
        raise ValueError("mcp_config names no server")
    return specs


def _spec(name: str, entry: Any) -> ServerSpec:
    if not isinstance(entry, Mapping):
        raise ValueError(f"mcp_config.{name} must be a mapping with command, url or python")
    kinds: list[Kind] = [kind for kind, keys in _KEYS.items() if keys[0] in entry]
    if len(kinds) != 1:
        raise ValueError(f"mcp_config.{name} needs one of command, url or python, has {sorted(entry)}")
    kind = kinds[0]
    declared = str(entry.get("transport") or entry.get("type") or kind)
    if declared == "sse":
        raise ValueError(f"mcp_config.{name}: the sse transport is not supported; use streamable HTTP")
    unknown = sorted(set(entry) - set(_KEYS[kind]) - set(_IGNORED))
    if unknown:
        raise ValueError(f"mcp_config.{name}: unknown keys {unknown}; known are {list(_KEYS[kind])}")
    if kind == "stdio":
        return ServerSpec(
            name, kind, command=_text(name, entry, "command"), args=_texts(name, entry, "args"),
            env=_table(name, entry, "env"), cwd=_text(name, entry, "cwd") or None,
        )  # fmt: skip
    if kind == "http":
        return ServerSpec(name, kind, url=_url(name, entry), headers=_table(name, entry, "headers"))
    factory = _text(name, entry, "python")
    if factory.count(":") != 1:
        raise ValueError(f"mcp_config.{name}.python must be module:function, got {factory!r}")
    kwargs = entry.get("kwargs") or {}
    if not isinstance(kwargs, Mapping):
        raise ValueError(f"mcp_config.{name}.kwargs must be a mapping")
    return ServerSpec(name, kind, factory=factory, kwargs=dict(kwargs))


def _url(name: str, entry: Mapping[str, Any]) -> str:
    url = _text(name, entry, "url")
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"mcp_config.{name}.url must start with http:// or https://")
    return url


def _text(name: str, entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"mcp_config.{name}.{key} must be text")
    return value


def _texts(name: str, entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = entry.get(key) or []
    if not isinstance(values, (list, tuple)):
        raise ValueError(f"mcp_config.{name}.{key} must be a list")
    return tuple(str(value) for value in values)


def _table(name: str, entry: Mapping[str, Any], key: str) -> dict[str, str]:
    values = entry.get(key) or {}
    if not isinstance(values, Mapping):
        raise ValueError(f"mcp_config.{name}.{key} must be a mapping")
    return {str(name): str(value) for name, value in values.items()}
