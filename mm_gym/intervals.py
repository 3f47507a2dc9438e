"""The interval of a success rate, one for every layer that prints one."""

from __future__ import annotations

import math


def wilson_interval(successes: float, total: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a share, 95% by default; (0.0, 1.0) without any observation.

    It always holds the share itself, also at 0 and 1, where rounding would put it just outside.

    >>> tuple(round(x, 3) for x in wilson_interval(8, 10))
    (0.49, 0.943)
    """
    if total == 0:
        return 0.0, 1.0
    share = successes / total
    centre = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, min(share, (centre - spread) / scale)), min(1.0, max(share, (centre + spread) / scale))
