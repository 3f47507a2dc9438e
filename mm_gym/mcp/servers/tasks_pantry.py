"""Tasks for the pantry server as HUD v4 rows, and its solver as an agent. Does not need the SDK."""

from __future__ import annotations

from random import Random
from typing import Any

SERVER = "mm_gym.mcp.servers.pantry"

THINGS = {
    "train": (
        "apples", "apricots", "bags", "bananas", "baskets", "beans", "biscuits", "blankets", "bottles",
        "bowls", "boxes", "brushes", "buckets", "buns", "cakes", "candles", "carrots", "chairs", "cherries",
        "coins", "cups", "dates", "eggs", "figs", "flowers", "glasses", "grapes", "hats", "kettles", "keys",
        "kiwis", "lamps", "leeks", "lemons", "letters", "limes", "loaves", "mangoes", "maps", "melons",
        "mugs", "nails", "nuts", "olives", "pans", "pencils", "pies", "pillows", "pots", "ribbons", "rolls",
        "ropes", "shells", "sponges", "stamps", "stones", "strings", "towels", "trays", "turnips",
    ),
    "test": (
        "almonds", "beets", "cookies", "corks", "crackers", "forks", "jars", "knives", "mushrooms", "napkins",
        "onions", "oranges", "peaches", "pears", "peppers", "plates", "plums", "potatoes", "spoons", "tomatoes",
    ),
}  # fmt: skip
"""Held-out tasks ask for things that no training task knows."""


def tasks(split: str = "train", count: int = 256, transport: str = "python") -> list[dict[str, Any]]:
    """HUD v4 rows: how many of a thing are there?

    Args:
        split: "train" or "test": things of their own.
        count: How many.
        transport: "python" for a server in this process, "stdio" for a process of its own.
    """
    servers = {
        "python": {"python": f"{SERVER}:make_server"},
        "stdio": {"command": "python", "args": ["-m", SERVER]},
    }
    rows = []
    for number in range(count):
        rng = Random(f"{split}-{number}")
        things = {thing: rng.randint(2, 99) for thing in rng.sample(THINGS[split], 3)}
        asked = rng.choice(list(things))
        setup = {"name": "pantry", "arguments": {"things": things, "asked": asked}}
        rows.append(
            {
                "id": f"pantry-{split}-{number}",
                "prompt": f"How many {asked} are there?",
                "mcp_config": {"local": servers[transport]},
                "setup_tool": {"name": "setup", "arguments": setup},
                "evaluate_tool": {"name": "evaluate", "arguments": {"name": "count"}},
            }
        )
    return rows


def expert(view: Any) -> str:
    """The solver as the agent: looks up what is asked, then says what it saw."""
    if "count" in view.structured:
        return str(view.call("answer", number=view.structured["count"]))
    return str(view.call("look_up", thing=view.task.prompt.split()[2]))
