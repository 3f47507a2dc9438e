"""Tool results: what the agent sees of them, and the grade that an evaluation gives.

Knows MCP's content blocks (as attributes, without importing the SDK) and HUD's ways of writing a grade. What
a server sends is data: text is cleaned and cut, pictures are decoded within limits, a grade is a finite
number or there is none.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from mm_gym.errors import EnvironmentFailure
from mm_gym.mcp.config import Limits
from mm_gym.messages import rgb
from mm_gym.text import scalar_text

# C0 and C1 controls but tab and line breaks, and what turns the writing direction round
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

MAX_BLOCKS = 1_000
"""Most parts of one result."""


@dataclass(frozen=True)
class ToolResult:
    """One result, safe to hand on."""

    content: tuple[str | np.ndarray, ...] = ()
    """Texts and pictures (uint8 of shape (H, W, 3)) in the server's order."""
    is_error: bool = False
    structured: Mapping[str, Any] = field(default_factory=dict)
    """`structuredContent`, {} where there is none."""
    mime_types: tuple[str, ...] = ()
    """Of the pictures, as their bytes say."""
    structured_text: str = ""
    """`structured` as JSON, where there is no other content: cleaned and cut as any text."""

    @property
    def text(self) -> str:
        """All texts, joined by line breaks."""
        return "\n".join(block for block in self.content if isinstance(block, str))

    @property
    def texts(self) -> list[str]:
        return [block for block in self.content if isinstance(block, str)]

    @property
    def images(self) -> list[np.ndarray]:
        return [block for block in self.content if not isinstance(block, str)]

    @property
    def done(self) -> bool:
        """The server says that the task has reached its end (`"done": true`)."""
        return self.structured.get("done") is True


def clean(text: str) -> str:
    r"""Text from a server without control characters and lone surrogates (they become U+FFFD).

    >>> clean("a\x1b[31mb\r\n")
    'a�[31mb\n'
    """
    return _CONTROLS.sub("\ufffd", scalar_text(text).replace("\r\n", "\n"))


def read_result(raw: Any, limits: Limits, secrets: tuple[str, ...] = ()) -> ToolResult:
    """A `CallToolResult` as plain data.

    Args:
        raw: The SDK's result.
        limits: Sizes of text and pictures.
        secrets: Resolved values that must not reach a record; each becomes `***`.

    Raises:
        EnvironmentFailure: A picture is broken, or the result has too many pixels or parts.
    """
    if len(raw.content) > MAX_BLOCKS:
        raise EnvironmentFailure(
            f"the server sent a result of {len(raw.content)} parts, above {MAX_BLOCKS}", kind="server"
        )
    reader = _BlockReader(limits, secrets)
    content = tuple(reader.read(block) for block in raw.content)
    structured = raw.structured_content if isinstance(raw.structured_content, dict) else {}
    as_text = ""
    if structured and not content:
        as_text = reader.text(json.dumps(structured, ensure_ascii=False))
    return ToolResult(content, bool(raw.is_error), structured, tuple(reader.mime_types), as_text)


class _BlockReader:
    """Reads the parts of one result, which share its limits."""

    def __init__(self, limits: Limits, secrets: tuple[str, ...]) -> None:
        self.mime_types: list[str] = []
        self._limits = limits
        self._secrets = secrets
        self._pixels = 0
        self._characters = limits.text_chars
        """Left for further texts."""

    def read(self, block: Any) -> str | np.ndarray:
        kind = getattr(block, "type", "")
        if kind == "text":
            return self.text(block.text)
        if kind == "image":
            return self._picture(block.data)
        return self._other(kind, block)

    def text(self, text: str) -> str:
        """Cleaned, without secrets, cut where the result's texts together are too long."""
        text = self._redact(clean(text))
        kept, left_out = text[: self._characters], len(text) - self._characters
        self._characters -= len(kept)
        return text if left_out <= 0 else f"{kept}\n[{left_out} more characters left out]".lstrip("\n")

    def _picture(self, data: str | bytes) -> np.ndarray:
        picture, mime_type, self._pixels = decode_image(data, self._limits, self._pixels)
        self.mime_types.append(mime_type)
        return picture

    def _other(self, kind: str, block: Any) -> str | np.ndarray:
        """Resources, links and audio: as a picture or text where they are one, else named."""
        if kind == "resource":
            resource = block.resource
            text = getattr(resource, "text", None)
            if text is not None:
                return self.text(text)
            if str(getattr(resource, "mime_type", "") or "").startswith("image/"):
                return self._picture(resource.blob)
        uri = getattr(block, "uri", "") or getattr(getattr(block, "resource", None), "uri", "")
        return f"[{clean(str(kind))[:40]} {self._redact(clean(str(uri)))[:200]}]".replace(" ]", "]")

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def decode_image(data: str | bytes, limits: Limits, pixels: int = 0) -> tuple[np.ndarray, str, int]:
    """A picture from base64, its real mime type (what the server says may be wrong), and pixels so far.

    Args:
        data: Base64.
        limits: With `image_pixels`.
        pixels: Of the pictures before it in the same result.

    Raises:
        EnvironmentFailure: It is no picture, or more than `limits.image_pixels` with those before it.
    """
    try:
        image = Image.open(io.BytesIO(base64.b64decode(data)), formats=("PNG", "JPEG", "GIF", "WEBP", "BMP"))
        width, height = image.size
        if pixels + width * height > limits.image_pixels:
            before = f" after others of {pixels} pixels" * bool(pixels)
            raise EnvironmentFailure(
                f"the server sent a picture of {width}x{height}{before}, above limits.image_pixels = "
                f"{limits.image_pixels}",
                kind="server",
            )
        mime_type = Image.MIME.get(image.format or "", "image/png")
        return rgb(image), mime_type, pixels + width * height
    except (OSError, ValueError, SyntaxError, binascii.Error, Image.DecompressionBombError) as error:
        raise EnvironmentFailure(
            f"the server sent a picture that does not decode: {error}", kind="server"
        ) from error


# -- grades -------------------------------------------------------------------------------------------


def find_grade(result: ToolResult, hud: bool = False) -> float | None:
    """The grade that an evaluation's result holds, or None.

    Looked up in the structured content, then in JSON text: `grade`, `reward`, `score`, then `subscores` with
    weights. With `hud` as hud-vf-gym does it: `grade` or `reward` of the structured content.
    """
    if hud:
        for key in ("grade", "reward"):
            if key in result.structured:
                return _number(result.structured[key])
        return None
    grade = _grade_in(result.structured)
    if grade is not None:
        return grade
    for text in result.texts:
        grade = _grade_in(_json_object(text))
        if grade is not None:
            return grade
    return None


def _grade_in(data: Mapping[str, Any]) -> float | None:
    for key in ("grade", "reward", "score"):
        if data.get(key) is not None:
            return _number(data[key])
    subscores = data.get("subscores")
    if subscores:
        return _weighted(subscores, data.get("weights"))
    nested = data.get("result")  # how the SDK wraps what a plain function returns
    if isinstance(nested, Mapping):
        return _grade_in(nested)
    return None


def _weighted(subscores: Any, weights: Any) -> float | None:
    """Subscores as `{name: score}` beside `weights`, or as a list of `{name, score or value, weight}`."""
    if isinstance(subscores, Mapping):
        scale = weights if isinstance(weights, Mapping) else {}
        pairs = [
            (_number(score), _number(scale.get(name, 1.0 if not scale else 0.0)))
            for name, score in subscores.items()
        ]
    elif isinstance(subscores, list) and all(isinstance(entry, Mapping) for entry in subscores):
        pairs = [
            (_number(entry.get("score", entry.get("value"))), _number(entry.get("weight", 1.0)))
            for entry in subscores
        ]
    else:
        return None
    total = 0.0
    for score, weight in pairs:
        if score is None or weight is None:
            return None
        total += score * weight
    return _number(total)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 64 else None
        except ValueError:
            return None
    if not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _json_object(text: str) -> Mapping[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
