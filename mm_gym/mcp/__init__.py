"""Any MCP server and any HUD taskset as an environment, by one YAML file.

Importing this needs no extra; using it needs `pip install "mm-gym[mcp]"`. Inside this package `import mcp`
is the official SDK.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConfigError",
    "MCPConfig",
    "MCPEnv",
    "MCPTask",
    "Taskset",
    "ToolXMLParser",
    "load_config",
    "load_environment",
    "load_taskset",
]

_HOMES = {
    "ConfigError": "config",
    "MCPConfig": "config",
    "load_config": "config",
    "MCPEnv": "env",
    "MCPTask": "tasksets",
    "Taskset": "tasksets",
    "load_taskset": "tasksets",
    "ToolXMLParser": "xml_calls",
    "load_environment": "load",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
