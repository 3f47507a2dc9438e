"""Episodes and token streams as still HTML, for notebooks: `Episode` shows itself with it.

No script and no network; all text of episodes is escaped. Roles and sampled tokens are bold as well as
coloured, because some readers of notebooks drop colours. Knows `Episode` records and pictures; no tokenizer.
"""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from PIL import Image

from mm_gym.episode import Episode
from mm_gym.messages import Message

_COLORS = {"system": "#9aa2ad", "user": "#2563eb", "assistant": "#15803d", "tool": "#d97706"}
_PRE = "margin:.2em 0;white-space:pre-wrap;overflow-wrap:anywhere;background:none;font-size:90%"
_SMALL = 160  # a picture narrower than this is shown enlarged, pixel by pixel


def episode_html(episode: Episode) -> str:
    """An episode as a conversation with its pictures, calls and rewards."""
    verdict = "solved" if episode.success else "not solved" if episode.stop_reason else "not ended"
    facts = [episode.env_id, episode.task_id, verdict, f"return {episode.episode_return:g}"]
    facts += [episode.stop_reason] if episode.stop_reason else []
    head = " · ".join(html.escape(fact) for fact in facts if fact)
    turns = iter(range(len(episode.actions)))
    shown = [
        _message(message, episode, next(turns) if message["role"] == "assistant" else None)
        for message in episode.messages
    ]
    return f'<div style="max-width:46em"><p><b>{head}</b></p>{"".join(shown)}</div>'


@dataclass(frozen=True)
class TokenView:
    """A token stream, coloured by its loss mask; the last expression of a notebook's cell shows it.

    Given tokens (mask 0) are grey before the first response and blue after it; sampled ones (mask 1) are
    bold, on green where they were likely and on red where they were not.

    >>> TokenView(["Hi", "!", "!"], [0, 1, 1], [0.0, -0.1, -2.0])._repr_html_().count("<b")
    2
    """

    texts: Sequence[str]
    """One text a token, from `mm_gym.viewer.records.token_decoder`, say."""
    mask: Sequence[int]
    """1 exactly on sampled tokens."""
    logprobs: Sequence[float]
    """Of sampled tokens; not looked at elsewhere."""

    def _repr_html_(self) -> str:
        parts: list[str] = []
        sampled_before = False
        tokens = zip(self.texts, self.mask, self.logprobs, strict=True)
        for (text, mask, logprob), group in groupby(tokens, key=_alike):
            count = sum(1 for _ in group)
            sampled_before |= bool(mask)
            parts.append(_token(text, bool(mask), logprob, count, sampled_before))
        return f'<pre style="{_PRE};line-height:1.8">{"".join(parts)}</pre>'


def png_url(image: np.ndarray) -> str:
    """A uint8 picture (H, W, 3) as a data URL."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _message(message: Message, episode: Episode, turn: int | None) -> str:
    role = message["role"]
    title = [message.get("name", "")]
    notes = ""
    if turn is not None:
        title += [f"turn {turn + 1}", f"reward {episode.rewards[turn]:g}"]
        notes = _notes(episode.infos[turn])
    label = " · ".join([f"<b>{role}</b>", *(html.escape(part) for part in title if part)])
    blocks = [
        f'<pre style="{_PRE}">{html.escape(block["text"])}</pre>'
        if block["type"] == "text"
        else _picture(episode.images[block["index"]])
        for block in message["content"]
    ]
    style = f"border-left:3px solid {_COLORS[role]};padding-left:.8em;margin:.8em 0"
    return f'<div style="{style}"><div>{label}</div>{"".join(blocks)}{notes}</div>'


def _notes(info: dict[str, Any]) -> str:
    """What became of a turn's calls, and the mistake, if any."""
    calls = [f"{call['name']}: {call['status']}" for call in info.get("tool_calls", [])]
    error = [f"{info['error']['kind']}: {info['error']['text']}"] if info.get("error") else []
    return "".join(f"<div><i>{html.escape(note)}</i></div>" for note in [*calls, *error])


def _picture(image: np.ndarray) -> str:
    width = image.shape[1] if image.shape[1] >= _SMALL else 2 * image.shape[1]
    style = "image-rendering:pixelated;" if width != image.shape[1] else ""
    return f'<img src="{png_url(image)}" width="{width}" style="{style}border:1px solid #ccc">'


def _alike(token: tuple[str, int, float]) -> tuple[str, int, float]:
    """Neighbours with one key are shown once, with their number: an image's pads, above all."""
    text, mask, logprob = token
    return text, mask, logprob if mask else 0.0


def _token(text: str, sampled: bool, logprob: float, count: int, answered: bool) -> str:
    shown = html.escape(text) + (f"×{count} " if count > 2 else html.escape(text) * (count - 1))
    if not sampled:
        return f'<span style="color:{"#2563eb" if answered else "#8b939e"}">{shown}</span>'
    share = max(0.0, min(1.0, 1 + logprob / 7))  # log-prob 0 is green, -7 is red, as on the viewer's page
    color = f"background:hsl({round(130 * share)},75%,80%);color:#111"
    return f'<b style="{color}" title="probability {math.exp(logprob):.3f}">{shown}</b>'
