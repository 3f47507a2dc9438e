"""The pool of environments under cancellation: whatever is interrupted, nothing stays open or uncounted."""

from __future__ import annotations

import random
import time

from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import RolloutEngine
from agents.env_host import EnvHost, EnvRecipe
from agents.types import Task


class SlowHost(EnvHost):
    """Takes its time to be made and to be closed."""

    open = 0
    rng = random.Random(0)

    def __init__(self, recipe: EnvRecipe) -> None:
        time.sleep(self.rng.random() * 0.02)
        super().__init__(recipe)
        SlowHost.open += 1

    def close(self) -> None:
        time.sleep(0.01)
        super().close()
        SlowHost.open -= 1


def test_a_collection_cancelled_at_any_moment_leaves_nothing_open():
    """Once, a second cancellation cut the closing of an environment that was just being made."""
    rng = random.Random(1)
    policy = ScriptedPolicy()
    with RolloutEngine(policy, CharRenderer(), workers=SlowHost) as engine:
        for _ in range(40):
            future = engine.submit(
                [Task(ENV_ID, {"length": 1000, "latency": 0.01}, group=n) for n in range(3)]
            )
            time.sleep(rng.random() * 0.05)
            future.cancel()
            engine.close_environments()
            assert engine.open_environments == SlowHost.open == 0
            assert not policy.running
        assert engine.collect([Task(ENV_ID)])[0].reward == 1.0
