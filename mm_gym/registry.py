"""The environment ids of this package. Entry points are strings: nothing is imported before `make`."""

from __future__ import annotations

import gymnasium

IDS: dict[str, str] = {
    "mm_gym/Geo3k-v0": "mm_gym.geo3k.env:Geo3kEnv",
    "mm_gym/Pointing-v0": "mm_gym.pointing.env:PointingEnv",
    "mm_gym/ComputerUse-v0": "mm_gym.computer.env:ComputerUseEnv",
    "mm_gym/MiniWoB-v0": "mm_gym.computer.miniwob:MiniWoBEnv",
    "mm_gym/MCP-v0": "mm_gym.mcp.env:MCPEnv",
}


def register_all() -> None:
    """Register every id with Gymnasium; a second call changes nothing."""
    for env_id, entry_point in IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=entry_point)
