"""Draws the pictures of README and docs from the code they show: `python docs/pictures.py [NAME ...]`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gymnasium
from PIL import Image

import mm_gym
from mm_gym.computer.install import find_browser
from mm_gym.viewer.page import write_page

FOLDER = Path(__file__).with_name("images")
SOLVED_SEED = 8


def rollout() -> Image.Image:
    """A solved Geo3k episode with a zoom, as the viewer shows it."""
    env = gymnasium.make("mm_gym/Geo3k-v0", families=["inscribed_angle"], expert_zoom=1.0, zoom_size=300)
    return viewed(mm_gym.play(env, mm_gym.expert(env), seed=SOLVED_SEED))


def viewed(episode: mm_gym.Episode) -> Image.Image:
    """The viewer's card of an episode."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = write_page([episode], Path(folder) / "page.html")
        browser = playwright.chromium.launch(
            executable_path=find_browser().location, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 760, "height": 900})
        page.goto(page_file.as_uri())
        page.add_style_tag(content="header { display: none }")
        page.wait_for_function("[...document.images].every(i => i.complete && i.naturalWidth)")
        shot = Path(folder) / "shot.png"
        page.locator(".episode").screenshot(path=shot)
        browser.close()
        return Image.open(shot).convert("RGB").copy()


PICTURES: dict[str, Callable[[], Image.Image]] = {"rollout": rollout}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]().quantize(64).save(FOLDER / f"{name}.png", optimize=True)
        print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
