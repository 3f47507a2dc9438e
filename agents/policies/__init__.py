"""Generation back ends: each is a `Policy` (see `agents.types`), or for evaluation an `EpisodePolicy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.policies.openai import OpenAIPolicy
    from agents.policies.transformers import TransformersPolicy

__all__ = ["OpenAIPolicy", "TransformersPolicy"]

_MODULES = {"OpenAIPolicy": "agents.policies.openai", "TransformersPolicy": "agents.policies.transformers"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
