"""The messages of one turn: how environments write them, and the flat view that observations carry.

An environment writes a message with its pictures in place (`user("Find x.", picture)`); `flatten`
turns a turn's messages into plain data, where an image block holds an index into `obs["images"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from PIL import Image as PILImage

from mm_gym.text import scalar_text

Block: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]


def user(*content: Any) -> Message:
    """A user message of texts and pictures, in order.

    >>> user("Find x.")
    {'role': 'user', 'content': [{'type': 'text', 'text': 'Find x.'}]}
    """
    return {"role": "user", "content": blocks(content)}


def tool(name: str, call: int, *content: Any) -> Message:
    """The result of the turn's tool call number `call` (from 0) of the tool `name`."""
    return {"role": "tool", "name": name, "call": call, "content": blocks(content)}


def blocks(content: Any) -> list[Block]:
    """Content in any accepted form (text, array, PIL image, block, or a sequence of them) as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, (np.ndarray, PILImage.Image)):
        return [{"type": "image", "image": rgb(content)}]
    if isinstance(content, dict):
        return [content]
    if isinstance(content, Sequence):
        return [block for item in content for block in blocks(item)]
    raise TypeError(
        f"message content must be text, an RGB uint8 array, a PIL image or a list of them, "
        f"got {type(content).__name__}"
    )


def rgb(image: np.ndarray | PILImage.Image) -> np.ndarray:
    """A picture as a fresh uint8 array of shape (H, W, 3); transparency is laid on white."""
    if isinstance(image, PILImage.Image):
        if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            layer = image.convert("RGBA")
            image = PILImage.alpha_composite(PILImage.new("RGBA", layer.size, "white"), layer)
        return np.array(image.convert("RGB"), dtype=np.uint8)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise TypeError(
            f"a picture must be a uint8 array of shape (H, W, 3), got {image.dtype} of shape {image.shape}"
        )
    return np.array(image)


def flatten(messages: Sequence[Message]) -> tuple[list[Message], str, tuple[np.ndarray, ...]]:
    """Plain messages with image indices, and their flat view.

    Returns:
        `(messages, text, images)`: the messages with blocks `{"type": "text", "text": str}` and
        `{"type": "image", "index": int}`; all text, blocks joined by newlines and messages by blank
        lines; the pictures, uint8 (H, W, 3), in order.
    """
    plain: list[Message] = []
    texts: list[str] = []
    images: list[np.ndarray] = []
    for message in messages:
        if message["role"] not in ("user", "tool"):
            raise ValueError(f'an observation\'s message has role "user" or "tool", got {message["role"]!r}')
        content: list[Block] = []
        for block in blocks(message["content"]):
            if block["type"] == "text":
                content.append({"type": "text", "text": scalar_text(block["text"])})
            elif block["type"] == "image":
                content.append({"type": "image", "index": len(images)})
                images.append(rgb(block["image"]))
            else:
                raise ValueError(f'a content block has type "text" or "image", got {block["type"]!r}')
        plain.append({**message, "content": content})
        texts.append("\n".join(b["text"] for b in content if b["type"] == "text"))
    return plain, "\n\n".join(t for t in texts if t), tuple(images)


def with_images(messages: Sequence[Message], images: Sequence[Any]) -> list[Message]:
    """Plain messages with their pictures put back: `{"type": "image", "image": images[index]}`.

    This is the form that transformers' chat templates and `agents.ChatRenderer` take.
    """
    return [
        {
            **message,
            "content": [
                {"type": "image", "image": images[b["index"]]} if b["type"] == "image" else dict(b)
                for b in message["content"]
            ],
        }
        for message in messages
    ]
