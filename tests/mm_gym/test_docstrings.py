"""The examples in docstrings run and show what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mm_gym

NEEDS_EXTRA = ("mm_gym.mcp", "mm_gym.computer", "mm_gym.judge")
MODULES = [mm_gym.__name__] + [
    module.name
    for module in pkgutil.walk_packages(mm_gym.__path__, "mm_gym.")
    if not module.name.startswith("mm_gym.mcp.servers") and not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError:
        if name.startswith(NEEDS_EXTRA):
            pytest.skip("needs an extra")
        raise
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    names = ("mm_gym", "mm_gym.spaces", "mm_gym.tool_calls", "mm_gym.geo3k.grading", "mm_gym.geo3k.env")
    for name in names:
        assert any(test.examples for test in finder.find(importlib.import_module(name))), name
