"""`mm_gym/Geo3k-v0`: geometry problems with diagrams, embedded or from Geometry3K, and their grader."""

from __future__ import annotations

from mm_gym.geo3k.grading import grade_answer

__all__ = ["grade_answer"]
