"""Every family of problems; importing a module registers its builders."""

from mm_gym.geo3k.generator.families import areas as areas
from mm_gym.geo3k.generator.families import circle_angles as circle_angles
from mm_gym.geo3k.generator.families import circle_areas as circle_areas
from mm_gym.geo3k.generator.families import circle_lengths as circle_lengths
from mm_gym.geo3k.generator.families import composite as composite
from mm_gym.geo3k.generator.families import lines as lines
from mm_gym.geo3k.generator.families import polygon_areas as polygon_areas
from mm_gym.geo3k.generator.families import polygons as polygons
from mm_gym.geo3k.generator.families import quadrilaterals as quadrilaterals
from mm_gym.geo3k.generator.families import right_triangles as right_triangles
from mm_gym.geo3k.generator.families import similarity as similarity
from mm_gym.geo3k.generator.families import triangle_angles as triangle_angles
from mm_gym.geo3k.generator.families import trigonometry as trigonometry
from mm_gym.geo3k.generator.families.registry import BUILDERS as BUILDERS
