"""Messages to tokens, trajectories, policies and the rollout engine.

Knows `mm_gym` and transformers' tokenizers; must not know TRL or `train`. Names load on first use, so
that `import agents` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "ChatRenderer": "agents.chat",
    "OpenAIPolicy": "agents.policies.openai",
    "Response": "agents.types",
    "RolloutEngine": "agents.engine",
    "SamplingParams": "agents.types",
    "Segment": "agents.types",
    "Task": "agents.types",
    "TokenEnv": "agents.token_env",
    "Trajectory": "agents.types",
    "TransformersPolicy": "agents.policies.transformers",
    "VLLMPolicy": "agents.policies.vllm",
}

__all__ = [
    "ChatRenderer",
    "OpenAIPolicy",
    "Response",
    "RolloutEngine",
    "SamplingParams",
    "Segment",
    "Task",
    "TokenEnv",
    "Trajectory",
    "TransformersPolicy",
    "VLLMPolicy",
]

if TYPE_CHECKING:
    from agents.chat import ChatRenderer
    from agents.engine import RolloutEngine
    from agents.policies.openai import OpenAIPolicy
    from agents.policies.transformers import TransformersPolicy
    from agents.policies.vllm import VLLMPolicy
    from agents.token_env import TokenEnv
    from agents.types import Response, SamplingParams, Segment, Task, Trajectory


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agents' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
