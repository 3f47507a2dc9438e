"""Evaluation: which tasks, who answers, episodes that survive a kill, and figures with intervals.

Knows the engine and the trajectory store; not TRL or `train`. The command line is in `agents.cli`.
"""

from agents.evaluation.comparison import Comparison, compare
from agents.evaluation.figures import Figures, Outcome, figures, outcome_of
from agents.evaluation.run import EvalRun, EvalSettings
from agents.evaluation.tasks import eval_tasks

__all__ = [
    "Comparison",
    "EvalRun",
    "EvalSettings",
    "Figures",
    "Outcome",
    "compare",
    "eval_tasks",
    "figures",
    "outcome_of",
]
