"""Draws the pictures of README and docs from the code they show: `python docs/pictures.py [NAME ...]`."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the checkout: `agents` and `train`

import mm_gym
from mm_gym.computer.install import find_browser
from mm_gym.judge import Judge, JudgedEnv, Rubric
from mm_gym.viewer.display import TokenView
from mm_gym.viewer.film import film_strip
from mm_gym.viewer.page import write_page

FOLDER = Path(__file__).with_name("images")
RUBRIC = Path(__file__).resolve().parents[1] / "configs/judges/geometry.yaml"
SOLVED_SEED = 8
COLORS = 128
THUMBNAIL = (150, 110)


def solved(env_id: str, seed: int, **kwargs: Any) -> mm_gym.Episode:
    """An episode of the environment's own solver."""
    env = gymnasium.make(env_id, **kwargs)
    try:
        return mm_gym.play(env, mm_gym.expert(env), seed=seed)
    finally:
        env.close()


def geo3k() -> mm_gym.Episode:
    """With a zoom."""
    return solved(
        "mm_gym/Geo3k-v0", SOLVED_SEED, families=["inscribed_angle"], expert_zoom=1.0, zoom_size=300
    )


def pointing() -> mm_gym.Episode:
    """With what lies under a card."""
    return solved("mm_gym/Pointing-v0", 0, tasks=["zoom"], level=2, image_size=192)


def computer_use() -> mm_gym.Episode:
    """With typing."""
    return solved("mm_gym/ComputerUse-v0", 0, task="mail/reply", level=1)


def miniwob() -> mm_gym.Episode:
    """With a click that has to follow another."""
    return solved("mm_gym/MiniWoB-v0", 1, task="click-button-sequence")


def mcp() -> mm_gym.Episode:
    """2048, until 16."""
    return solved("mm_gym/MCP-v0", 0)


def judged() -> mm_gym.Episode:
    """With a sentence after the first turn; the verdict comes from a function in place of a server."""

    def endpoint(messages: list[dict[str, Any]]) -> str:
        code = messages[0]["content"].split("BEGIN ")[1].split(" ")[0]
        scores = '{"supported": 8, "answered": 10, "looked": 4}'
        return f'{{"code": "{code}", "scores": {scores}, "feedback": "Look at the figure first."}}'

    inner = gymnasium.make("mm_gym/Geo3k-v0", families=["inscribed_angle"])
    env = JudgedEnv(inner, judge=Judge(endpoint, Rubric.load(RUBRIC)), weight=0.5, feedback="turn")
    said = iter(["Half of something, I think.", r"An inscribed angle is half its arc: \boxed{51}"])
    return mm_gym.play(env, lambda _: next(said), seed=SOLVED_SEED)


def tokens() -> Image.Image:
    """The stream of a solved Pointing episode, as the renderer of a tiny Qwen3-VL makes it."""
    from transformers import AutoProcessor

    from agents import ChatRenderer, Task
    from mm_gym.viewer.records import token_decoder
    from train.tiny import build_tiny_vlm, episode_texts
    from train.warmup import expert_trajectory

    env = gymnasium.make("mm_gym/Pointing-v0", tasks=["zoom"], system_prompt="Answer in one word.")
    with tempfile.TemporaryDirectory() as folder:
        build_tiny_vlm(folder, texts=episode_texts("mm_gym/Pointing-v0"), layers=1)
        renderer = ChatRenderer(AutoProcessor.from_pretrained(folder))
        stream = expert_trajectory(env, renderer, Task("mm_gym/Pointing-v0", seed=0))
        view = TokenView(token_decoder(folder)(stream.token_ids), stream.loss_mask, stream.logprobs)
    html = f'<body><div id="view" style="padding:8px;font-size:15px">{view._repr_html_()}</div></body>'
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        return shot(page, "#view")


def viewed(episode: mm_gym.Episode) -> Image.Image:
    """The viewer's card of an episode."""
    with tempfile.TemporaryDirectory() as folder:
        return shot(write_page([episode], Path(folder) / "page.html"), ".episode")


def shot(page_file: Path, selector: str) -> Image.Image:
    """A part of a page, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser().location, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 760, "height": 900})
        page.goto(page_file.as_uri())
        page.add_style_tag(content="header { display: none }")
        page.evaluate("Promise.all([...document.images].map(image => image.decode()))")
        png = page.locator(selector).screenshot()
        browser.close()
        return Image.open(io.BytesIO(png)).convert("RGB")


def thumbnail(episode: mm_gym.Episode) -> Image.Image:
    """What the episode begins with, small."""
    image = Image.fromarray(episode.images[0])
    image.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
    return image


PICTURES: dict[str, Callable[[], Image.Image]] = {
    "rollout": lambda: viewed(geo3k()),
    "tokens": tokens,
    "environments/geo3k": lambda: viewed(geo3k()),
    "environments/pointing": lambda: viewed(pointing()),
    "environments/computer_use": lambda: film_strip(computer_use(), size=(400, 400), columns=3),
    "environments/miniwob": lambda: film_strip(miniwob(), size=(320, 240), columns=4),
    "environments/mcp": lambda: film_strip(mcp(), size=(300, 230), columns=5),
    "environments/judged": lambda: viewed(judged()),
    "environments/geo3k_small": lambda: thumbnail(geo3k()),
    "environments/pointing_small": lambda: thumbnail(pointing()),
    "environments/computer_use_small": lambda: thumbnail(computer_use()),
    "environments/miniwob_small": lambda: thumbnail(miniwob()),
    "environments/mcp_small": lambda: thumbnail(mcp()),
    "environments/judged_small": lambda: thumbnail(judged()),
}


def main() -> None:
    for name in sys.argv[1:] or PICTURES:
        path = FOLDER / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        PICTURES[name]().quantize(COLORS).save(path, optimize=True)
        print(path)


if __name__ == "__main__":
    main()
