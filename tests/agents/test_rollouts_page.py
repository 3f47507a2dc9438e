"""docs/rollouts.md shows code that is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import agents.engine
import agents.rollouts

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "rollouts.md").read_text()


def test_the_example_is_the_function_in_the_package():
    shown = re.search(r"```python\nasync def stop_when_stuck\(context\):\n(.*?)```", PAGE, flags=re.S)
    assert shown is not None
    source = inspect.getsource(agents.rollouts.stop_when_stuck)
    assert source.split('"""')[2].lstrip("\n") == shown[1]


def test_every_object_that_is_named_exists():
    for name in ("Budgets", "RetryPolicy", "GroupPolicy", "PartialRollouts", "DynamicSampling", "Timeouts"):
        assert f"`{name}" in PAGE
        fields = re.findall(rf"`{name}\(([a-z_, ]+)\)`", PAGE)
        for field in ", ".join(fields).split(", ") if fields else []:
            assert field in inspect.signature(getattr(agents.engine, name)).parameters
    for option in ("workers", "audit_share"):
        assert option in inspect.signature(agents.engine.RolloutEngine).parameters
