"""What a judge is asked: criteria with weights, read from YAML. Knows no endpoint and no environment.

```yaml
instructions: You grade how a student solved a geometry problem.
images: true                    # show the judge the pictures
criteria:
  - name: correct               # scored 0 to `scale`
    description: The final answer follows from the figure.
    weight: 3
  - name: concise
    description: No step is repeated.
scale: 10
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class Criterion:
    """One thing to score."""

    name: str
    description: str
    weight: float = 1.0


@dataclass(frozen=True)
class Rubric:
    """What a judge is asked."""

    instructions: str
    criteria: tuple[Criterion, ...]
    scale: float = 10.0
    """The best score of a criterion; the worst is 0."""
    images: bool = False
    """Show the judge the episode's pictures."""

    @classmethod
    def load(cls, path: str | Path) -> Rubric:
        """Read a rubric from a YAML file.

        Raises:
            ValueError: A key is missing, unknown or of the wrong type; names the file and the key.
        """
        path = Path(path)
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(f"{path}: not valid YAML: {error}") from error
        return cls.parse(data, where=str(path))

    @classmethod
    def parse(cls, data: Any, *, where: str = "rubric") -> Rubric:
        """A rubric from parsed YAML; see `load`."""
        allowed = {"instructions", "criteria", "scale", "images"}
        _check_keys(data, allowed, {"instructions", "criteria"}, where)
        if not isinstance(data["criteria"], list) or not data["criteria"]:
            raise ValueError(f"{where}: criteria must be a list with at least one entry")
        criteria = tuple(_criterion(c, f"{where}: criteria[{i}]") for i, c in enumerate(data["criteria"]))
        names = [c.name for c in criteria]
        if len(set(names)) < len(names):
            raise ValueError(f"{where}: two criteria share a name: {names}")
        scale = float(data.get("scale", 10.0))
        if not scale > 0:
            raise ValueError(f"{where}: scale must be above 0, got {scale}")
        return cls(str(data["instructions"]), criteria, scale, bool(data.get("images", False)))

    def total(self, scores: Mapping[str, float]) -> float:
        """The weighted mean of the criteria's scores, from 0 to 1."""
        weight = sum(c.weight for c in self.criteria)
        return sum(c.weight * scores[c.name] for c in self.criteria) / (weight * self.scale)


def _criterion(data: Any, where: str) -> Criterion:
    _check_keys(data, {"name", "description", "weight"}, {"name", "description"}, where)
    weight = float(data.get("weight", 1.0))
    if not weight > 0:
        raise ValueError(f"{where}: weight must be above 0, got {weight}")
    return Criterion(str(data["name"]), str(data["description"]), weight)


def _check_keys(data: Any, allowed: set[str], required: set[str], where: str) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected a mapping with {sorted(required)}, got {type(data).__name__}")
    missing, unknown = required - set(data), set(data) - allowed
    if missing or unknown:
        raise ValueError(
            f"{where}: missing keys {sorted(missing)}, unknown keys {sorted(unknown)}; "
            f"allowed are {sorted(allowed)}"
        )
