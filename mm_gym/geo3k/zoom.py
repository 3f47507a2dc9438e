"""The `zoom` tool: a region of a figure, enlarged.

Coordinates are relative, as Qwen3-VL writes them: 0 to 1000 from the left to the right edge and from the
top to the bottom edge, whatever the picture's size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from mm_gym.tools import Tool, ToolError

MIN_SIDE = 50
"""A narrower region is widened to this, in thousandths of the picture's side."""
GRID = 1000


def zoom_tool(pictures: Sequence[np.ndarray], size: int) -> Tool:
    """The tool on these pictures, uint8 (H, W, 3); the longer side of its results has `size` pixels."""
    properties: dict[str, Any] = {
        "bbox": {
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": GRID},
            "minItems": 4,
            "maxItems": 4,
            "description": "[x1, y1, x2, y2], from 0 to 1000; 0,0 is the top left corner",
        }
    }
    if len(pictures) > 1:
        properties["figure"] = {"type": "integer", "minimum": 1, "maximum": len(pictures)}

    def run(bbox: Sequence[float], figure: int = 1) -> Any:
        return enlarge(pictures[int(figure) - 1], bbox, size)

    return Tool(
        "zoom",
        "Show a region of the figure enlarged.",
        {"type": "object", "properties": properties, "required": ["bbox"]},
        run,
    )


def enlarge(picture: np.ndarray, bbox: Sequence[float], size: int) -> np.ndarray:
    """The region of a picture, its longer side enlarged to `size` pixels (never made smaller).

    Args:
        picture: uint8 of shape (H, W, 3).
        bbox: `x1, y1, x2, y2` from 0 to 1000, relative to the picture.
        size: In pixels.

    Raises:
        ToolError: The box is empty or turned around.
    """
    x1, y1, x2, y2 = bbox
    if not (x1 < x2 and y1 < y2):
        raise ToolError(f"zoom: bbox must have x1 < x2 and y1 < y2, got {list(bbox)}")
    height, width = picture.shape[:2]
    left, right = _pixels(x1, x2, width)
    top, bottom = _pixels(y1, y2, height)
    region = Image.fromarray(picture).crop((left, top, right, bottom))
    scale = max(1.0, size / max(region.size))
    shape = (max(28, round(region.width * scale)), max(28, round(region.height * scale)))
    return np.array(region.resize(shape, Image.Resampling.LANCZOS), dtype=np.uint8)


def _pixels(low: float, high: float, side: int) -> tuple[int, int]:
    """The whole pixels of a span, widened about its middle to `MIN_SIDE` and kept inside."""
    missing = max(0.0, MIN_SIDE - (high - low)) / 2
    low, high = low - missing, high + missing
    shift = max(0.0, -low) - max(0.0, high - GRID)
    first = max(0, math.floor((low + shift) * side / GRID))
    last = min(side, math.ceil((high + shift) * side / GRID))
    return min(first, side - 1), max(last, first + 1)
