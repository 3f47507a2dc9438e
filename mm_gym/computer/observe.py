"""What an agent is shown besides the screenshot: the accessibility tree, marks, the pointer, its action.

Knows pictures and element lists; must not know the browser. Drawing is done on copies.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from mm_gym.computer import actions as a
from mm_gym.computer.actions import Action, Point, describe

_JS = Path(__file__).with_name("js")
ELEMENTS = (_JS / "elements.js").read_text()
"""JavaScript expression: the visible elements, in document order."""
FIND = (_JS / "find.js").read_text()
"""JavaScript function `(selector, text) => [[x, y, width, height], ...]`."""

_COLORS = ((220, 30, 60), (20, 110, 220), (10, 140, 60), (180, 90, 0), (130, 40, 180), (0, 130, 140))
_ARROW = ((0, 0), (0, 14), (3, 11), (6, 17), (8, 16), (5, 10), (10, 10))


def picture(png: bytes) -> np.ndarray:
    """A PNG as uint8 of shape (H, W, 3)."""
    quick = _browsers_png(png)
    if quick is not None:
        return quick
    with Image.open(io.BytesIO(png)) as image:
        return np.array(image.convert("RGB"), dtype=np.uint8)


def _browsers_png(png: bytes) -> np.ndarray | None:
    """What `picture` gives, three times as fast, for the plain RGB in which the browser writes screens.

    It stores each row as the difference to the one above; None where that is not so.
    """
    at, data = 33, []
    width, height, *form = struct.unpack(">IIBBBBB", png[16:29])
    if form != [8, 2, 0, 0, 0]:
        return None
    while at + 8 <= len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IDAT":
            data.append(png[at + 8 : at + 8 + length])
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(b"".join(data)), np.uint8).reshape(height, 1 + 3 * width)
    if (rows[:, 0] != 2).any():
        return None
    pixels = np.empty((height, 3 * width), np.uint8)
    above = pixels[0] = rows[0, 1:]
    for differences, row in zip(rows[1:, 1:], pixels[1:], strict=True):
        above = np.add(above, differences, out=row)
    return pixels.reshape(height, width, 3)


def tree_text(elements: Sequence[Mapping[str, Any]]) -> str:
    """The accessibility tree as text, one element a line, indented by depth.

    >>> tree_text([{"id": "3", "role": "button", "name": "Send", "depth": 0, "x": 1, "y": 2, "width": 30,
    ...             "height": 9, "focused": True}])
    '[3] button "Send" (1,2 30x9) focused'
    """
    return "\n".join(_line(e) for e in elements)


def _line(e: Mapping[str, Any]) -> str:
    place = f"({round(e['x'])},{round(e['y'])} {round(e['width'])}x{round(e['height'])})"
    parts = [f"{'  ' * e['depth']}[{e['id']}] {e['role']}", f'"{e["name"]}"' if e.get("name") else "", place]
    if e.get("value"):
        parts.append(f'value="{e["value"]}"')
    parts += [flag for flag in ("focused", "disabled", "checked") if e.get(flag)]
    return " ".join(p for p in parts if p)


def draw_marks(image: np.ndarray, elements: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """The picture with a numbered box around each interactive element (set-of-marks)."""
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=max(9, min(12, image.shape[0] // 30)))
    for e in elements:
        if not e["interactive"]:
            continue
        color = _COLORS[int(e["id"]) % len(_COLORS)]
        left, top = max(e["x"], 0), max(e["y"], 0)
        right = min(e["x"] + e["width"], image.shape[1]) - 1
        bottom = min(e["y"] + e["height"], image.shape[0]) - 1
        if right <= left or bottom <= top:
            continue
        draw.rectangle((left, top, right, bottom), outline=color)
        text = draw.textbbox((left, top), e["id"], font=font)
        width, height = text[2] - text[0] + 3, text[3] - text[1] + 3
        y = top - height if top >= height else top
        draw.rectangle((left, y, left + width, y + height), fill=color)
        draw.text((left + 2, y + 1 - (text[1] - top)), e["id"], fill="white", font=font)
    return np.asarray(canvas).copy()


def draw_pointer(image: np.ndarray, pointer: Point | None) -> np.ndarray:
    """The picture with an arrow whose tip is at the pointer."""
    if pointer is None:
        return image
    canvas = Image.fromarray(image)
    x, y = pointer
    outline = [(x + dx, y + dy) for dx, dy in _ARROW]
    ImageDraw.Draw(canvas).polygon(outline, fill="white", outline="black")
    return np.asarray(canvas).copy()


def draw_action(image: np.ndarray, action: Action | None) -> np.ndarray:
    """The picture with the last action: where it clicked or dragged, or what it was, in a corner."""
    if action is None:
        return image
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    red = (230, 20, 50)
    points = a.points(action)
    radius = max(4, min(image.shape[:2]) // 40)
    if len(points) > 1 and not isinstance(action, a.Zoom):
        draw.line(points, fill=red, width=2)
    for x, y in points[-1:]:
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=red, width=2)
        draw.line((x - 2, y, x + 2, y), fill=red)
        draw.line((x, y - 2, x, y + 2), fill=red)
    font = ImageFont.load_default(size=max(9, min(14, image.shape[0] // 30)))
    text = describe(action)[:80]
    box = draw.textbbox((3, image.shape[0] - 4), text, font=font, anchor="lb")
    draw.rectangle((box[0] - 2, box[1] - 2, box[2] + 2, box[3] + 2), fill=(20, 20, 20))
    draw.text((3, image.shape[0] - 4), text, fill="white", font=font, anchor="lb")
    return np.asarray(canvas).copy()


def zoomed(image: np.ndarray, region: tuple[int, int, int, int]) -> np.ndarray:
    """A region, ends included, enlarged to fit the picture's size; what remains is black."""
    left, top, right, bottom = region
    if right <= left or bottom <= top:
        raise a.ActionError(
            f"a region is left, top, right, bottom with left < right and top < bottom, got {region}"
        )
    part = Image.fromarray(image[top : bottom + 1, left : right + 1])
    scale = min(image.shape[1] / part.width, image.shape[0] / part.height)
    size = max(1, int(part.width * scale)), max(1, int(part.height * scale))
    canvas = Image.new("RGB", (image.shape[1], image.shape[0]))
    canvas.paste(part.resize(size, Image.Resampling.LANCZOS), (0, 0))
    return np.asarray(canvas).copy()
