"""The rollout engine: many episodes at once, none waiting for the slowest, none lost without a count."""

from agents.engine.config import Budgets, GroupPolicy, RetryPolicy
from agents.engine.context import EpisodeContext, Rollout
from agents.engine.engine import RolloutEngine
from agents.engine.groups import Collection, DynamicSampling, GroupCollector, OneStepAhead, PartialRollouts
from agents.engine.loop import run_episode, run_turn
from agents.workers import Timeouts

__all__ = [
    "Budgets",
    "Collection",
    "DynamicSampling",
    "EpisodeContext",
    "GroupCollector",
    "GroupPolicy",
    "OneStepAhead",
    "PartialRollouts",
    "RetryPolicy",
    "Rollout",
    "RolloutEngine",
    "Timeouts",
    "run_episode",
    "run_turn",
]
