"""Every family of problems; importing a module registers its builders."""

from mm_gym.geo3k.generator.families import lines as lines
from mm_gym.geo3k.generator.families import triangle_angles as triangle_angles
from mm_gym.geo3k.generator.families.registry import BUILDERS as BUILDERS
