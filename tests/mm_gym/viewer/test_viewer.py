"""The viewer: what it shows, in a real browser, and that nothing of an episode is read as markup."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import mm_gym
from mm_gym.computer.install import find_browser
from mm_gym.viewer.page import render_page, write_page
from mm_gym.viewer.records import Records
from mm_gym.viewer.serve import make_server

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=\'document.title="owned"\'>'

DECODE = "Promise.all([...document.images].map(image => image.decode()))"
"""Waits for every picture and fails at a broken one; the page's own policy forbids Playwright's polling."""


def solved(seed: int, tasks=("zoom",)) -> mm_gym.Episode:
    env = gymnasium.make("mm_gym/Pointing-v0", tasks=tasks)
    return mm_gym.play(env, mm_gym.expert(env), seed=seed)


def failed(seed: int, answer: str = "no idea") -> mm_gym.Episode:
    return mm_gym.play(gymnasium.make("mm_gym/Pointing-v0"), lambda _: answer, seed=seed)


@pytest.fixture(scope="module")
def browser():
    """A page of a real Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    try:
        location = find_browser().location
    except gymnasium.error.DependencyNotInstalled as missing:
        pytest.skip(str(missing))
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=location, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    assert page.problems == []
    page.close()


def test_hostile_text_cannot_leave_the_data_element():
    html = render_page("t", Records().add_episodes([failed(0, HOSTILE)]))
    assert html.count("</script>") == 2  # the data's end and the program's end
    assert HOSTILE not in html
    data = html.split('id="data">')[1].split("</script>")[0]
    assert json.loads(data)["details"][0]["messages"][2]["content"][0]["text"] == HOSTILE


def test_pictures_are_kept_once_by_content():
    episode = solved(0)
    records = Records().add_episodes([episode, episode])
    assert len(records.images) == len({image.tobytes() for image in episode.images})


@pytest.mark.browser
def test_the_table_filters_and_sorts(page, tmp_path: Path):
    path = write_page([solved(1), failed(2), solved(3)], tmp_path / "p.html")
    page.goto(path.as_uri())
    assert page.locator("tbody tr").count() == 3
    assert "3 of 3 episodes · 2 solved (66.7%)" in page.locator("#count").inner_text()
    page.select_option("#success", "no")
    assert page.locator("tbody tr").count() == 1
    page.select_option("#success", "")
    page.fill("#filter", "zoom x1")
    assert page.locator("tbody tr").count() == 2
    page.fill("#filter", "")
    page.click("th:has-text('reward')")
    assert page.locator("tbody tr").first.locator("td.bad").count() >= 1
    page.click("th:has-text('reward')")
    assert page.locator("tbody tr").first.locator("td.bad").count() == 0


@pytest.mark.browser
def test_an_episode_is_a_conversation_with_its_pictures_and_calls(page, tmp_path: Path):
    path = write_page([solved(1), failed(2)], tmp_path / "p.html")
    page.goto(path.as_uri())
    page.click("tbody tr >> nth=0")
    page.wait_for_selector(".message.tool img")
    assert page.locator(".message.assistant").count() == 2
    assert page.locator(".call.ok").inner_text().startswith("zoom(")
    page.evaluate(DECODE)
    page.keyboard.press("j")
    page.wait_for_selector("text=not solved")
    page.keyboard.press("Escape")
    page.wait_for_selector("tbody")


@pytest.mark.browser
def test_model_text_is_never_run(page, tmp_path: Path):
    path = write_page([failed(0, HOSTILE)], tmp_path / "p.html", title="safe")
    page.goto(path.as_uri())
    page.wait_for_selector(".message.assistant")
    page.wait_for_timeout(200)
    assert page.title() == "safe"
    assert HOSTILE in page.locator(".message.assistant pre").first.inner_text()


@pytest.mark.browser
def test_clicks_are_drawn_where_they_were(page, tmp_path: Path):
    episode = failed(0)
    call = {"name": "click", "arguments": {}, "status": "ok", "points": [[24, 72]]}
    episode.infos[0]["tool_calls"] = [call]
    page.goto(write_page([episode], tmp_path / "p.html").as_uri())
    circle = page.locator("figure svg circle").first
    circle.wait_for(state="attached")
    image = page.locator("figure img").first.bounding_box()
    box = circle.bounding_box()
    scale = image["width"] / 98  # 96 pixels and a border
    assert abs(box["x"] + box["width"] / 2 - image["x"] - 24 * scale) < 4
    assert abs(box["y"] + box["height"] / 2 - image["y"] - 72 * scale) < 4


@pytest.mark.browser
def test_tokens_show_what_was_sampled_and_count_a_pictures_pads(page, tmp_path: Path):
    store = pytest.importorskip("agents.store")
    from agents.types import Task, Trajectory

    trajectory = Trajectory(task=Task("mm_gym/Pointing-v0", seed=1), episode=solved(1), reward=1.0)
    trajectory.append([1, 7, 7, 7, 7, 2])
    trajectory.append([3, 3, 3], [-0.1, -0.1, -0.1])
    with store.TrajectoryStore(tmp_path) as written:
        written.append(trajectory)
    records = Records().add_store(tmp_path, decode=lambda ids: [f"<{i}>" for i in ids])
    page.goto(write_page(records, tmp_path / "p.html").as_uri())
    page.click("button:has-text('tokens')")
    assert page.locator(".tokens .given").all_inner_texts() == ["<1>", "<7>×4 ", "<2>"]
    assert page.locator(".tokens .sampled").all_inner_texts() == ["<3>", "<3>", "<3>"]


@pytest.mark.browser
def test_two_runs_stand_side_by_side_on_the_same_task(page, tmp_path: Path):
    records = Records().add_episodes([solved(1), solved(2)], "before").add_episodes([solved(2)], "after")
    page.goto(write_page(records, tmp_path / "p.html").as_uri() + "#episode/1")
    page.wait_for_selector(".episode >> nth=1")
    assert "before" in page.locator(".episode").first.inner_text()
    assert "after" in page.locator(".episode").nth(1).inner_text()


@pytest.mark.browser
def test_ten_thousand_served_episodes_stay_usable(page):
    episodes = [solved(1), failed(2)]
    records = Records()
    for number in range(5000):
        records.add_episodes(episodes, run=f"r{number % 7}")
    server = make_server(records)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        started = time.monotonic()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.wait_for_selector("tbody tr")
        page.fill("#filter", "no idea r3")
        page.fill("#filter", "r3 x1")
        page.wait_for_selector("tbody tr")
        page.click("tbody tr >> nth=5")
        page.wait_for_selector(".message.tool img")
        page.evaluate(DECODE)
        assert time.monotonic() - started < 120
    finally:
        server.shutdown()
        server.server_close()


def test_the_server_answers_on_loopback_alone_and_refuses_what_is_not_there():
    import urllib.error
    import urllib.request

    server = make_server(Records().add_episodes([solved(1)]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert server.server_address[0] == "127.0.0.1"
        for path in ("api/episode/9", "api/episode/../../etc/passwd", "api/image/x", "etc/passwd"):
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{path}")
            assert error.value.code == 404
    finally:
        server.shutdown()
        server.server_close()


def test_a_folder_without_trajectories_is_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="holds no trajectories"):
        Records().add_store(tmp_path)


def test_trajectories_of_a_store_are_shown_with_their_tokens(tmp_path: Path):
    store = pytest.importorskip("agents.store")
    from agents.types import Task, Trajectory
    from mm_gym.stop import StopReason

    episode = solved(1)
    trajectory = Trajectory(task=Task("mm_gym/Pointing-v0", seed=1), episode=episode, reward=1.0)
    trajectory.append([1, 2, 3])
    trajectory.append([4, 5], [-0.1, -2.0])
    trajectory.stop_reason = StopReason.ENV_DONE
    with store.TrajectoryStore(tmp_path) as written:
        written.append(trajectory, step=7)
    records = Records().add_store(tmp_path, decode=lambda ids: [f"<{i}>" for i in ids])
    assert records.rows[0]["step"] == 7
    tokens = records.details[0]()["tokens"]
    assert tokens["text"] == ["<1>", "<2>", "<3>", "<4>", "<5>"]
    assert tokens["mask"] == [0, 0, 0, 1, 1]
    assert np.allclose(tokens["logprobs"][3:], [-0.1, -2.0])
    assert len(records.images) == len({image.tobytes() for image in episode.images})
