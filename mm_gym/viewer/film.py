"""An episode as a film: what the agent saw and what it answered, turn by turn, as GIF or PNG strip.

Knows `Episode` records and pictures; nothing of models.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from mm_gym.episode import Episode
from mm_gym.frame import frame
from mm_gym.messages import Message

_SECONDS = 1.6  # a GIF shows each turn for so long
_COLUMNS = 4  # of a strip
_RED = (220, 30, 30)


def film_frames(episode: Episode, size: tuple[int, int] = (480, 480)) -> list[np.ndarray]:
    """One frame a turn and one of the end: the newest picture, with the places clicked, over the words.

    Args:
        episode: With its pictures.
        size: (height, width) of each frame, in pixels.

    Returns:
        uint8 arrays of shape (height, width, 3).
    """
    frames = []
    picture: np.ndarray | None = None
    for turn, observation in enumerate(episode.observations):
        shown = [block["index"] for m in observation for block in m["content"] if block["type"] == "image"]
        if shown:
            picture = episode.images[shown[-1]]
        if turn < len(episode.actions):
            text = f"{_asked(observation)}\n> {' '.join(episode.actions[turn].split())}".lstrip()
            frames.append(frame(_marked(picture, episode, turn), text, size))
    frames.append(frame(picture, _ending(episode), size))
    return frames


def write_film(episode: Episode, path: str | Path, *, size: tuple[int, int] = (480, 480)) -> Path:
    """Write an episode as a film strip (.png) or an animation (.gif) and return its path.

    Raises:
        ValueError: The path ends in neither.
    """
    path = Path(path)
    if path.suffix not in (".png", ".gif"):
        raise ValueError(f"a film is written as .png or .gif, got {str(path)!r}")
    frames = [Image.fromarray(f) for f in film_frames(episode, size)]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        _sheet(frames, _COLUMNS).save(path)
    else:
        milliseconds = int(1000 * _SECONDS)
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
    return path


def film_strip(
    episode: Episode, *, size: tuple[int, int] = (320, 320), columns: int = _COLUMNS
) -> Image.Image:
    """An episode's frames side by side, as one picture; a notebook shows it.

    Args:
        episode: With its pictures.
        size: (height, width) of each frame, in pixels.
        columns: Frames in a row.
    """
    return _sheet([Image.fromarray(f) for f in film_frames(episode, size)], columns)


def contact_sheet(
    pictures: Sequence[np.ndarray],
    captions: Sequence[str] = (),
    *,
    size: tuple[int, int] = (240, 240),
    columns: int = _COLUMNS,
) -> Image.Image:
    """Pictures side by side with a caption under each, as one picture.

    Args:
        pictures: uint8 arrays of shape (H, W, 3), of any sizes; at least one.
        captions: One a picture, or none at all.
        size: (height, width) that each gets, caption included, in pixels.
        columns: Pictures in a row.
    """
    texts = captions or [""] * len(pictures)
    framed = [frame(picture, text, size) for picture, text in zip(pictures, texts, strict=True)]
    return _sheet([Image.fromarray(f) for f in framed], columns)


def _asked(observation: list[Message]) -> str:
    """The observation's text, on a line and shortened, so that the response below stays in sight."""
    texts = [block["text"] for m in observation for block in m["content"] if block["type"] == "text"]
    return textwrap.shorten(" ".join(texts), 150, placeholder=" ...")


def _marked(picture: np.ndarray | None, episode: Episode, turn: int) -> np.ndarray | None:
    """The picture with the points of the turn's calls, which the environment gave in its pixels."""
    calls = episode.infos[turn].get("tool_calls", []) if turn < len(episode.infos) else []
    points = [point for call in calls for point in call.get("points", [])]
    if picture is None or not points:
        return picture
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    radius, width = max(5, max(image.size) // 40), max(3, max(image.size) // 130)
    path = [(float(x), float(y)) for x, y in points]
    for color, thick in (("white", width + 2), (_RED, width)):  # white around red: seen on any ground
        if len(path) > 1:
            draw.line(path, fill=color, width=thick)
        for x, y in path:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=color, width=thick)
    return np.asarray(image)


def _ending(episode: Episode) -> str:
    verdict = "solved" if episode.success else "not solved"
    return f"{verdict}, return {episode.episode_return:g} ({episode.stop_reason})\n{episode.task_id}"


def _sheet(frames: Sequence[Image.Image], columns: int) -> Image.Image:
    """The frames side by side, in rows."""
    columns = min(columns, len(frames))
    width, height = frames[0].size
    sheet = Image.new("RGB", (columns * width, math.ceil(len(frames) / columns) * height), "white")
    for number, one in enumerate(frames):
        sheet.paste(one, (number % columns * width, number // columns * height))
    return sheet
