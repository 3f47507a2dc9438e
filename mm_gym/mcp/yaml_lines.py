"""YAML that remembers its lines, so that an error in a configuration names the place.

Reads plain data only (no tags that make objects), refuses duplicate keys, and limits size and aliases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
"""Nodes after aliases are followed: a few lines of nested aliases can stand for billions."""

_PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

Path = tuple[str | int, ...]


class ConfigError(ValueError):
    """A configuration is wrong; the text starts with file and line."""


@dataclass
class Document:
    """Plain data and the line of each part."""

    source: str
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)

    def error(self, path: Path, message: str) -> ConfigError:
        """An error that names the part: `file:line: a.b: message`."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        where = f"{self.source}:{self.lines[known]}" if known in self.lines else self.source
        name = ".".join(str(part) for part in path)
        return ConfigError(f"{where}: {name + ': ' if name else ''}{message}")

    def check_keys(self, path: Path, mapping: dict[str, Any], allowed: Iterable[str]) -> None:
        """Refuse unknown keys, with the nearest known one.

        Raises:
            ConfigError: A key is unknown.
        """
        known = sorted(allowed)
        for key in mapping:
            if key not in known:
                close = get_close_matches(str(key), known, 1)
                hint = f"; did you mean {close[0]!r}?" if close else f"; known keys are {', '.join(known)}"
                raise self.error((*path, key), f"unknown key {key!r}{hint}")


def load_yaml(text: str, source: str) -> Document:
    """Parse YAML text.

    Args:
        text: The document.
        source: Its file name, for errors.

    Raises:
        ConfigError: It is not valid YAML, too large, or holds a key twice.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{source}: a configuration has at most {MAX_BYTES} characters, got {len(text)}")
    document = Document(source)
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        document.data = _Builder(document, loader).build(node, ()) if node is not None else {}
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{where}: not valid YAML: {problem}") from error
    finally:
        loader.dispose()
    return document


def as_document(data: dict[str, Any], source: str = "config") -> Document:
    """Data that never was text, with no lines to name."""
    return Document(source, data)


class _Builder:
    def __init__(self, document: Document, loader: yaml.SafeLoader) -> None:
        self.document = document
        self.loader = loader
        self.nodes = 0

    def build(self, node: yaml.Node, path: Path) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES or len(path) > 50:
            raise self.document.error(path, f"more than {MAX_NODES} values, or nested more than 50 deep")
        self.document.lines[path] = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_TAGS:
            raise self.document.error(path, f"the tag {node.tag!r} is not allowed; write plain YAML")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        value = self.loader.construct_object(node)
        return value if value is None or isinstance(value, (str, bool, int, float)) else str(node.value)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged = {**self._merged(value_node, path), **merged}
                continue
            key = self._key(key_node, path)
            twice = key in own
            own[key] = self.build(value_node, (*path, key))
            self.document.lines[(*path, key)] = key_node.start_mark.line + 1
            if twice:
                raise self.document.error((*path, key), f"key {key!r} stands twice")
        return {**merged, **own}

    def _key(self, node: yaml.Node, path: Path) -> str:
        key = self.loader.construct_object(node)
        if isinstance(key, bool):  # YAML 1.1 reads the key `on` as true
            return str(node.value)
        if not isinstance(key, (str, int)):
            raise self.document.error(path, f"keys must be plain text, got {key!r}")
        return str(key)

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        value = self.build(node, path)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise self.document.error(path, "<< takes a mapping or a list of mappings")
        return {key: item for part in reversed(parts) for key, item in part.items()}
