"""Environments to evaluate on, importable in any process as `eval_env:test/Slow-v0` and so on."""

from __future__ import annotations

import time
from pathlib import Path

import gymnasium
import numpy as np

from mm_gym import ChatEnv, EnvironmentFailure, Opening, Reply, user


class SlowEnv(ChatEnv):
    """Name the shade of a picture in one turn. Notes every answered step in a ledger.

    Args:
        ledger: Folder that gets a file for each step; "" for none.
        seconds: Of a step.
        broken: File whose presence makes every second task fail on our side.
    """

    def __init__(self, ledger: str = "", seconds: float = 0.0, broken: str = "") -> None:
        super().__init__(max_turns=2)
        self.ledger, self.seconds, self.broken = ledger, seconds, broken

    def begin(self, options: dict) -> Opening:
        self.shade = int(self.np_random.integers(200))
        picture = np.full((32, 32, 3), self.shade, np.uint8)
        return Opening([user(picture, "How bright?")], task_id=f"shade-{self.np_random_seed}")

    def respond(self, action: str) -> Reply:
        if self.broken and Path(self.broken).exists() and self.shade % 2:
            raise EnvironmentFailure("the server is away")
        time.sleep(self.seconds)
        if self.ledger:
            Path(self.ledger, f"{self.np_random_seed}-{time.monotonic_ns()}").touch()
        right = action == str(self.shade)
        return Reply(reward=float(right), terminated=True, success=right)

    def expert_action(self) -> str:
        return str(self.shade)


class FixedEnv(ChatEnv):
    """Five tasks, text only: say the task's own name."""

    task_ids = ("a", "b", "c", "d", "e")

    def begin(self, options: dict) -> Opening:
        self.name = options.get("task", "a")
        return Opening([user(f"Say {self.name}.")], task_id=self.name)

    def respond(self, action: str) -> Reply:
        return Reply(reward=1.0, terminated=True, success=action == self.name)

    def expert_action(self) -> str:
        return self.name


class PlanEnv(ChatEnv):
    """Three steps, numbered from one that the seed draws; the solver has them as a plan that it works off."""

    def begin(self, options: dict) -> Opening:
        first = int(self.np_random.integers(100))
        self.wanted = [str(first + i) for i in range(3)]
        self.plan = list(self.wanted)
        return Opening([user("Count.")], task_id=f"from-{first}")

    def respond(self, action: str) -> Reply:
        right = action == self.wanted[self.turn - 1]
        return Reply([user("Go on.")], float(right), terminated=not right or self.turn == 3, success=right)

    def expert_action(self) -> str:
        return self.plan.pop(0)


ENVIRONMENTS = {"test/Slow-v0": SlowEnv, "test/Fixed-v0": FixedEnv, "test/Plan-v0": PlanEnv}
for env_id, entry in ENVIRONMENTS.items():
    if env_id not in gymnasium.registry:
        gymnasium.register(env_id, entry_point=f"eval_env:{entry.__name__}", order_enforce=False)
