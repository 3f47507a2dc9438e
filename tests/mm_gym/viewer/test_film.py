"""Films of real episodes: frames in order, clicks where they were, files that open."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import mm_gym
from mm_gym.cli import build
from mm_gym.episode import Episode, expert, play
from mm_gym.viewer.film import film_frames, write_film


@pytest.fixture(scope="module")
def episode() -> Episode:
    env = gymnasium.make("mm_gym/Pointing-v0", tasks=("zoom",))
    return play(env, expert(env), seed=1)


def test_a_film_has_a_frame_a_turn_and_one_of_the_end(episode):
    frames = film_frames(episode, (240, 320))
    assert [f.shape for f in frames] == [(240, 320, 3)] * 3
    assert not np.array_equal(frames[0], frames[1])  # the zoomed picture


def test_clicks_are_drawn_on_the_picture_that_was_clicked():
    picture = np.full((200, 200, 3), 255, np.uint8)
    ask = [{"role": "user", "content": [{"type": "image", "index": 0}]}]
    click = {"name": "click", "points": [[150, 50]]}
    made = Episode(
        observations=[ask, []],
        images=[picture],
        actions=["click"],
        rewards=[1.0],
        infos=[{"tool_calls": [click]}],
    )
    red = (film_frames(made, (480, 480))[0] == (220, 30, 30)).all(axis=2)
    y, x = np.argwhere(red).mean(axis=0)
    scale = (480 - int(480 * 0.22) - 8) / 200
    left, top = (480 - 200 * scale) / 2, 4
    assert (x, y) == pytest.approx((left + 150 * scale, top + 50 * scale), abs=4)
    assert not (film_frames(made)[1] == (220, 30, 30)).all(axis=2).any()


def test_gif_and_strip_open(episode, tmp_path):
    gif = Image.open(write_film(episode, tmp_path / "a" / "film.gif", size=(120, 120)))
    assert (gif.n_frames, gif.size, gif.info["duration"]) == (3, (120, 120), 1600)
    strip = Image.open(write_film(episode, tmp_path / "film.png", size=(120, 120)))
    assert strip.size == (360, 120)
    with pytest.raises(ValueError, match=r"\.png or \.gif"):
        write_film(episode, tmp_path / "film.mp4")


def test_the_command_draws_a_stored_episode(tmp_path, episode):
    store = pytest.importorskip("agents.store")
    from agents.types import Trajectory

    other = mm_gym.Episode(env_id="x", task_id="first", success=False)
    with store.TrajectoryStore(tmp_path / "run" / "rollouts") as written:
        written.append([Trajectory(episode=other), Trajectory(episode=episode, reward=1.0)])
    arguments = ["film", str(tmp_path / "run"), "-o", str(tmp_path / "f.gif"), "--size", "96"]
    result = CliRunner().invoke(build(), [*arguments, "--episode", "1"])
    assert result.exit_code == 0, result.output
    assert Image.open(tmp_path / "f.gif").n_frames == 3
    missing = CliRunner().invoke(build(), [*arguments, "--episode", "7"])
    assert missing.exit_code == 2
    assert "episodes 0 to 1" in missing.output
