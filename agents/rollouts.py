"""Rollout functions beside the engine's own: examples of what a user may write.

A rollout function gets an `EpisodeContext` (environment, stream, limits, retries, random streams) and
returns the trajectory. Pass it, or its dotted path: `rollout="agents.rollouts:stop_when_stuck"`. Failures
that it does not catch mask the trajectory, as in the engine's own loop.
"""

from __future__ import annotations

from agents.engine import EpisodeContext, run_turn
from agents.types import Trajectory
from mm_gym.stop import StopReason

STUCK = 3
"""As many equal responses in a row end an episode."""


async def stop_when_stuck(context: EpisodeContext) -> Trajectory:
    """The engine's loop, but an episode that repeats itself ends before it has burnt its turn budget."""
    context.stream.begin(await context.reset())
    while True:
        reason = await run_turn(context)
        if reason is None and _is_stuck(context.trajectory):
            reason = StopReason.ABORTED
            context.trajectory.metrics["stuck"] = 1.0
        if reason is None:
            continue
        if context.trajectory.stop_reason is None:
            context.stream.settle(reason, *await context.finish(reason))
        return context.trajectory


def _is_stuck(trajectory: Trajectory) -> bool:
    last = trajectory.episode.actions[-STUCK:]
    return len(last) == STUCK and len(set(last)) == 1
