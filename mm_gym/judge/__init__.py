"""LLM-as-judge environments: a rubric in YAML, any OpenAI-compatible endpoint, and no change to the loop.

Importing this package registers `mm_gym/Judged-v0`, so a config can name it as
`mm_gym.judge:mm_gym/Judged-v0`.

>>> from mm_gym.judge import Judge, JudgedEnv, Rubric
"""

from __future__ import annotations

import gymnasium

from mm_gym.judge.endpoint import ChatEndpoint
from mm_gym.judge.env import JudgedEnv
from mm_gym.judge.judge import Judge, JudgeUsage, Verdict
from mm_gym.judge.rubric import Criterion, Rubric

__all__ = ["ChatEndpoint", "Criterion", "Judge", "JudgeUsage", "JudgedEnv", "Rubric", "Verdict"]

if "mm_gym/Judged-v0" not in gymnasium.registry:
    gymnasium.register("mm_gym/Judged-v0", entry_point="mm_gym.judge.env:JudgedEnv")
