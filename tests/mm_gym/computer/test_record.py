"""A person's episode, recorded through the real page in a browser, is stored as training would see it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from mm_gym.computer import actions as a
from mm_gym.computer.actions import ActionError
from mm_gym.computer.page import PageSpec
from mm_gym.computer.record import Recorder, load_episode, read_action, save_episode, serve
from mm_gym.computer.screen import Screen

pytest.importorskip("miniwob")
pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_browser")]


PLACE = "(() => {const b = ID.getBoundingClientRect(); return [b.x + 9, b.y + 9]})()"


@pytest.fixture
def recorder(shared_browser: None) -> Iterator[Recorder]:
    env = gymnasium.make("mm_gym/MiniWoB-v0", task="enter-text")
    yield Recorder(env, seed=0)
    env.close()


@pytest.fixture
def address(recorder: Recorder) -> Iterator[str]:
    server, url = serve(recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield url
    server.shutdown()
    server.server_close()


def test_a_person_solves_a_task_in_the_recording_page(
    recorder: Recorder, address: str, screen: Screen, tmp_path: Path
) -> None:
    spec = PageSpec(None, address, (700, 400), allowed_hosts=frozenset({"127.0.0.1"}))
    screen.open(spec)
    screen.look(500)
    assert recorder.goal in screen.evaluate("document.body.innerText")
    x, y = screen.evaluate("(() => {const b = screen_.getBoundingClientRect(); return [b.x + 1, b.y + 1]})()")
    env = recorder.screen
    field = env._screen.evaluate(PLACE.replace("ID", "tt"))
    screen.act(a.Click(int(x + field[0]), int(y + field[1])), 500)
    word = recorder.goal.split('"')[1]
    screen.act(a.Type(word), 1500)  # sent after a pause, as one action
    button = env._screen.evaluate(PLACE.replace("ID", "subbtn"))
    screen.act(a.Click(int(x + button[0]), int(y + button[1])), 500)
    assert recorder.ended
    assert recorder.episode.success
    assert len(recorder.episode.actions) == 3
    assert json.dumps({"action": "type", "text": word}) in recorder.episode.actions[1]
    assert "solved" in screen.evaluate("document.getElementById('state').textContent")

    back = load_episode(save_episode(recorder.episode, tmp_path))
    assert back.actions == recorder.episode.actions
    assert back.observations == recorder.episode.observations
    assert back.rewards == [0.0, 0.0, 1.0]
    assert back.env_kwargs == {"task": "enter-text"}
    assert all(np.array_equal(x, y) for x, y in zip(back.images, recorder.episode.images, strict=True))


def test_only_who_has_the_address_can_act(recorder: Recorder, address: str) -> None:
    other = address.rsplit("/", 1)[0] + "/guess/act"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(urllib.request.Request(other, data=b"{}"))
    assert recorder.episode.actions == []


def test_what_cannot_be_done_is_told_and_not_recorded(recorder: Recorder, address: str) -> None:
    message = json.dumps({"kind": "click", "x": 500, "y": 5}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/act", data=message)) as answer:
        assert "outside the screen" in json.loads(answer.read())["error"]
    assert recorder.episode.actions == []
    for wrong in ({"kind": "fly"}, {"kind": "click"}, {}, {"kind": "keys", "keys": ["nope"]}):
        with pytest.raises(ActionError):
            read_action(wrong)


def test_a_scroll_elsewhere_is_recorded_as_move_and_scroll(recorder: Recorder) -> None:
    recorder.act(a.Scroll(0, 50, 80, 150))
    assert ["mouse_move" in recorder.episode.actions[0], "scroll" in recorder.episode.actions[1]] == [
        True,
        True,
    ]


def test_a_folder_without_an_episode_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"episode\.json is missing"):
        load_episode(tmp_path)
