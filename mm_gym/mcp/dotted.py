"""Functions by dotted name, `package.module:function`, as configurations and tasksets name them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def load_function(dotted: str) -> Callable[..., Any]:
    """The function that `package.module:function` names.

    Raises:
        ValueError: It does not exist or can't be called.
    """
    module_name, _, name = dotted.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{dotted!r} does not name a function (module:function): {error}") from error
    if not callable(function):
        raise ValueError(f"{dotted!r} is a {type(function).__name__}, not a function")
    return function
