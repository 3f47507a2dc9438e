"""Episodes as one self-contained HTML page: no script, no network, everything escaped.

Knows `Episode` records only.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mm_gym.episode import Episode

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; color: #222 }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 2.2rem 0 .4rem }
.message { border-left: 4px solid #ccc; margin: .5rem 0; padding: .3rem .8rem }
.assistant { border-color: #2a7; background: #f1faf5 } .tool { border-color: #c80 } .system { color: #777 }
.role { font-size: .75rem; color: #777; text-transform: uppercase; letter-spacing: .05em }
pre { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere; font: inherit }
img { max-width: 100%; border: 1px solid #ddd; margin: .2rem 0; image-rendering: pixelated; min-width: 96px }
.good { color: #176a3a } .bad { color: #a33 }
"""


def write_page(episodes: Sequence[Episode], path: str | Path, *, title: str = "Rollouts") -> Path:
    """Write the episodes to an HTML file and return its path.

    Args:
        episodes: Shown in this order.
        path: Folders are made when missing.
        title: Heading.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "\n".join(_episode(number, episode) for number, episode in enumerate(episodes, 1))
    heading = html.escape(title)
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{heading}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{heading}</h1>\n{body}\n</body></html>\n",
        encoding="utf-8",
    )
    return path


def _episode(number: int, episode: Episode) -> str:
    verdict = '<span class="good">solved</span>' if episode.success else '<span class="bad">not solved</span>'
    heading = f"{number}. {html.escape(episode.env_id)} · {html.escape(episode.task_id)}"
    figures = f"{verdict} · return {episode.episode_return:g} · {html.escape(episode.stop_reason)}"
    turn = 0
    parts = [f"<section><h2>{heading}</h2><p>{figures}</p>"]
    for message in episode.messages:
        note = ""
        if message["role"] == "assistant":
            note = f" · turn {turn + 1} · reward {episode.rewards[turn]:g}"
            turn += 1
        parts.append(_message(message, episode.images, note))
    return "\n".join([*parts, "</section>"])


def _message(message: dict[str, Any], images: Sequence[np.ndarray], note: str) -> str:
    role = html.escape(message["role"])
    name = html.escape(f" {message['name']}") if message.get("name") else ""
    content = "".join(
        f"<pre>{html.escape(block['text'])}</pre>"
        if block["type"] == "text"
        else f'<div><img alt="picture" src="{_data_url(images[block["index"]])}"></div>'
        for block in message["content"]
    )
    return f'<div class="message {role}"><div class="role">{role}{name}{note}</div>{content}</div>'


def _data_url(image: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
