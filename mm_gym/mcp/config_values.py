"""Reading typed values out of a YAML document, with file and line in each error. Knows no key of ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mm_gym.mcp.yaml_lines import Document


class Values:
    """The values of a document, checked as they are read.

    Args:
        document: Its content, and where each part of it stands.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.data if document.data is not None else {}

    def section(self, name: str, keys: Any) -> dict[str, Any]:
        """A mapping at the top of the file with no other keys than these; {} where it is not given."""
        section = self.value(self.data, (name,), dict, {})
        self.document.check_keys((name,), section, keys)
        return section

    def value(self, mapping: Mapping[str, Any], path: tuple[str, ...], kind: type, default: Any) -> Any:
        """The value at the end of `path` in `mapping`, of this type; the default where it is not given."""
        value = mapping.get(path[-1])
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.document.error(path, f"must be a {kind.__name__}, got {value!r}")
        return value

    def choice(
        self, mapping: Mapping[str, Any], path: tuple[str, ...], choices: tuple[str, ...], default: str
    ) -> str:
        """One of `choices`."""
        value = self.value(mapping, path, str, default)
        if value not in choices:
            raise self.document.error(path, f"must be one of {', '.join(choices)}, got {value!r}")
        return value

    def number(
        self,
        mapping: Mapping[str, Any],
        path: tuple[str, ...],
        kind: type,
        default: Any,
        low: float | None = None,
    ) -> Any:
        """A finite int, or float where `kind` is float, of at least `low`."""
        value = mapping.get(path[-1])
        if value is None:
            return default
        good = isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or (low is not None and value < low):
            bound = "" if low is None else f" of at least {low:g}"
            raise self.document.error(path, f"must be a {kind.__name__}{bound}, got {value!r}")
        return kind(value)

    def name_list(self, mapping: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
        """Different names that are not empty; [] where there are none."""
        names = self.value(mapping, path, list, [])
        if not all(isinstance(name, str) and name for name in names):
            raise self.document.error(path, f"must be a list of names, got {names!r}")
        if len(set(names)) != len(names):
            raise self.document.error(path, f"a name stands twice in {names!r}")
        return names

    def top_names(self, name: str, default: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """A list of names at the top of the file."""
        if self.data.get(name) is None:
            return default
        return tuple(self.name_list(self.data, (name,)))
