"""One episode from reset to its stop reason: the loop that an engine runs unless it is given another.

Every way out gives the trajectory exactly one stop reason. Failures that could not be mended leave as
exceptions: the engine masks the trajectory.
"""

from __future__ import annotations

from agents.engine.context import EpisodeContext
from agents.types import Trajectory
from mm_gym.stop import StopReason


async def run_episode(context: EpisodeContext) -> Trajectory:
    """Run one episode.

    Raises:
        EnvironmentFailure: The environment broke more often than the budget allows.
        GenerationFailure: The back end did.
    """
    context.stream.begin(await context.reset())
    while True:
        reason = await run_turn(context)
        if reason is None:
            continue
        if context.trajectory.stop_reason is None:  # our limit, not the environment's end
            reward, metrics = await context.finish(reason)
            context.stream.settle(reason, reward, metrics)
        return context.trajectory


async def run_turn(context: EpisodeContext) -> StopReason | None:
    """One interaction; why the episode is over, or None."""
    room = context.room()
    if isinstance(room, StopReason):
        return room
    action = await context.generate(room)
    if action is None:
        return StopReason.ABORTED
    if context.stream.was_cut and context.budgets.cut_response == "end":
        context.stream.cut()
        context.record_turn()
        return StopReason.GENERATION_LENGTH
    step = await context.step(action)
    reason = context.stream.take(step)
    context.record_turn()
    return reason
