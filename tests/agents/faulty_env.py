"""An environment that breaks on demand, importable in a child process as `faulty_env:test/Faulty-v0`."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import mm_gym
from mm_gym import ChatEnv, EnvironmentFailure, Opening, Reply, StopReason, user

ENV_ID = "faulty_env:test/Faulty-v0"


class FaultyEnv(ChatEnv):
    """Shows a picture each turn and ends after `length` turns with reward 1.0.

    Args:
        length: Turns of an episode.
        latency: Seconds of each step, or (median, sigma) of a log-normal seeded by `options["timing"]`.
        text: Filler in each observation.
        replayable: Whether it says `deterministic`.
        drifts: Whether a second reset in the same process shows something else.
    """

    def __init__(
        self,
        length: int = 3,
        latency: float | tuple[float, float] = 0.0,
        text: str = "",
        replayable: bool = True,
        drifts: bool = False,
        picture: bool = True,
        max_turns: int = 64,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, render_mode=render_mode)
        self.length = length
        self.latency = latency
        self.filler = text
        self.deterministic = replayable  # type: ignore[misc]
        self.drifts = drifts
        self.picture = picture
        self.step_id = ""
        self.finished: list[str] = []
        self._plan: dict[str, Any] = {}
        self._timing = random.Random(0)

    def begin(self, options: dict[str, Any]) -> Opening:
        """`options["fault"]`: kind, turn (0 is reset), times (over all restarts) and a ledger folder."""
        self._plan = dict(options.get("fault", {}))
        self._timing = random.Random(options.get("timing", 0))
        self._fault(0)
        return Opening(
            [user(f"Go. {self.filler}", *self._picture(0))], task_id=f"faulty-{self.np_random_seed}"
        )

    def respond(self, action: str) -> Reply:
        self._wait()
        self._fault(self.turn)
        over = self.turn >= self.length
        message = user(f"Turn {self.turn}. {self.filler}", *self._picture(self.turn))
        return Reply([] if over else [message], reward=float(over), terminated=over, success=over)

    def settle(self, stop_reason: StopReason) -> tuple[float, dict[str, float]]:
        self.finished.append(str(stop_reason))
        return 0.25, {"finish_calls": float(len(self.finished))}

    def _picture(self, turn: int) -> list[np.ndarray]:
        if not self.picture:
            return []
        shade = (turn * 40) % 256
        if self.drifts:
            shade = time.monotonic_ns() % 251
        return [np.full((32, 32, 3), shade, dtype=np.uint8)]

    def _wait(self) -> None:
        if isinstance(self.latency, tuple):
            median, sigma = self.latency
            time.sleep(median * float(np.exp(self._timing.gauss(0.0, sigma))))
        elif self.latency:
            time.sleep(self.latency)

    def _fault(self, turn: int) -> None:
        plan = self._plan
        if not plan or plan["turn"] != turn or not self._is_due(plan):
            return
        kind = plan["kind"]
        if kind == "failure":
            raise EnvironmentFailure("the server is away", kind="server")
        if kind == "exception":
            raise RuntimeError("a bug in the environment")
        if kind == "hang":
            time.sleep(plan.get("seconds", 3600.0))
        elif kind == "death":
            os._exit(9)
        elif kind == "garbage":
            self._broken_answer = True

    def _is_due(self, plan: dict[str, Any]) -> bool:
        ledger = Path(plan["ledger"])
        ledger.mkdir(parents=True, exist_ok=True)
        if len(list(ledger.iterdir())) >= plan.get("times", 1):
            return False
        (ledger / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        return True

    def step(self, action: str) -> Any:
        self._broken_answer = False
        answer = super().step(action)
        return None if self._broken_answer else answer


mm_gym.register_all()
if "test/Faulty-v0" not in gymnasium.registry:
    gymnasium.register("test/Faulty-v0", entry_point="faulty_env:FaultyEnv", order_enforce=False)
