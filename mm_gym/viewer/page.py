"""Episodes as one self-contained HTML page: no network, nothing of an episode is ever read as markup.

The page's script is the only one that its content policy lets run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from mm_gym.episode import Episode
from mm_gym.viewer.records import Records

_TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><style>{style}</style></head>
<body><header><h1>{title}</h1>
<input id="filter" type="search" placeholder="filter: words of any column" size="28">
<select id="run"><option value="">any run</option></select>
<select id="success"><option value="">solved or not</option></select>
<select id="stop_reason"><option value="">any stop reason</option></select></header>
<main></main>{data}<script>{script}</script></body></html>
"""


def write_page(episodes: Sequence[Episode] | Records, path: str | Path, *, title: str = "Rollouts") -> Path:
    """Write episodes to one HTML file and return its path.

    Args:
        episodes: Shown in this order; `Records` may also hold a store's trajectories, with their tokens.
        path: Folders are made when missing.
        title: Heading.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    records = episodes if isinstance(episodes, Records) else Records().add_episodes(episodes)
    path.write_text(render_page(title, records), encoding="utf-8")
    return path


def render_page(title: str, records: Records | None) -> str:
    """The page's HTML; without records it asks the server that it came from."""
    script, style = _asset("viewer.js"), _asset("viewer.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    return _TEMPLATE.format(
        policy=policy, title=html.escape(title), style=style, script=script, data=_embedded(records)
    )


def _embedded(records: Records | None) -> str:
    if records is None:
        return ""
    data = {
        "rows": records.rows,
        "details": [detail() for detail in records.details],
        "images": {digest: _data_url(png()) for digest, png in records.images.items()},
    }
    # "</script>" and "<!--" are the two things that JSON text may not hold inside a script element
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>'


def _asset(name: str) -> str:
    return resources.files("mm_gym.viewer").joinpath("assets", name).read_text(encoding="utf-8")


def _data_url(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
