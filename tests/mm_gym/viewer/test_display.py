"""Episodes and tokens as a notebook shows them: everything there, nothing of it read as markup."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import mm_gym
from mm_gym.viewer.display import TokenView
from mm_gym.viewer.film import contact_sheet, film_strip


@pytest.fixture(scope="module")
def episode() -> mm_gym.Episode:
    env = gymnasium.make("mm_gym/Pointing-v0", tasks=("zoom",))
    return mm_gym.play(env, mm_gym.expert(env), seed=1)


def test_an_episode_shows_itself_with_pictures_calls_and_rewards(episode):
    shown = episode._repr_html_()
    assert shown.count("data:image/png") == 2
    assert "zoom: ok" in shown
    assert "turn 2 · reward 1" in shown
    assert "solved · return 1 · env_done" in shown


def test_text_of_an_episode_is_escaped():
    hostile = "<script>alert(1)</script>"
    made = mm_gym.Episode(
        task_id=hostile,
        observations=[[mm_gym.user(hostile)], []],
        actions=[hostile],
        rewards=[0.0],
        infos=[{"error": {"kind": "x", "text": hostile}}],
    )
    shown = made._repr_html_()
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") == 4
    assert "<script" not in TokenView([hostile], [1], [-1.0])._repr_html_()


def test_tokens_are_coloured_by_mask_and_pads_are_counted():
    texts = ["Q", "<|image_pad|>", "<|image_pad|>", "<|image_pad|>", "a", "a", "r"]
    shown = TokenView(texts, [0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, -0.01, -6.9, 0])._repr_html_()
    assert "&lt;|image_pad|&gt;×3" in shown
    assert shown.count("<b ") == 2, "sampled tokens of one text but two log-probabilities stand apart"
    assert shown.index("hsl(130") < shown.index("hsl(2,")
    assert shown.index("#8b939e") < shown.index("#2563eb"), "the prompt, then what answered"


def test_a_sheet_holds_pictures_of_any_sizes(episode):
    pictures = [np.zeros((30, 60, 3), np.uint8), np.full((90, 20, 3), 9, np.uint8), episode.images[0]]
    assert contact_sheet(pictures, ["a", "b", "c"], size=(100, 80), columns=2).size == (160, 200)
    assert contact_sheet(pictures[:1], size=(100, 80)).size == (80, 100)
    with pytest.raises(ValueError, match="zip"):
        contact_sheet(pictures, ["a"])
    assert film_strip(episode, size=(100, 80), columns=2).size == (160, 200)
