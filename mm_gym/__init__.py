"""Gymnasium environments for vision-language agents: text-and-image observations, text actions.

>>> import gymnasium, mm_gym
>>> env = gymnasium.make("mm_gym/Pointing-v0")
>>> observation, info = env.reset(seed=0)
"""

from __future__ import annotations

from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.episode import Episode, expert, play
from mm_gym.errors import EnvironmentFailure
from mm_gym.messages import tool, user
from mm_gym.registry import register_all
from mm_gym.stop import StopReason
from mm_gym.tool_calls import ToolCall, ToolParse, parse_tool_calls
from mm_gym.tools import Tool, ToolError, run_tools

__version__ = "0.1.0"

__all__ = [
    "ChatEnv",
    "EnvironmentFailure",
    "Episode",
    "Opening",
    "Reply",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolParse",
    "expert",
    "parse_tool_calls",
    "play",
    "run_tools",
    "tool",
    "user",
]

register_all()
