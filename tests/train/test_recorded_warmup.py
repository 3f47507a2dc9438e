"""A person's recorded episodes as warm-up data: the same tokens as a rollout's, trained on end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gymnasium
import pytest

import mm_gym  # noqa: F401  (registers the ids)
from agents.chat import ChatRenderer
from agents.types import Task
from mm_gym.computer.install import find_browser
from mm_gym.computer.record import Recorder, save_episode
from mm_gym.computer.tasks import Rect, click
from train.recorded import read_episodes
from train.warmup import RecordedEpisodes, WarmupSettings, expert_trajectory, warm_up

pytestmark = [pytest.mark.browser, pytest.mark.train]
KWARGS = {"task": "target/order", "level": 2, "screen_size": (96, 96), "dialect": "qwen3_vl"}
TASK = Task("mm_gym/ComputerUse-v0", KWARGS, seed=3)


@pytest.fixture(scope="module")
def renderer(tiny_folder: Path) -> ChatRenderer:
    from transformers import AutoProcessor

    return ChatRenderer(AutoProcessor.from_pretrained(tiny_folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An episode recorded through the recorder's own functions, as the recording page calls them."""
    try:
        find_browser()
    except gymnasium.error.DependencyNotInstalled as missing:
        pytest.skip(str(missing))
    place = tmp_path_factory.mktemp("recorded")
    env = gymnasium.make(TASK.env_id, **TASK.env_kwargs)
    try:
        recorder = Recorder(env, seed=TASK.seed)
        screen = recorder.screen
        for name in screen._instance.check.expected["done"]:  # type: ignore[attr-defined]
            box = screen._screen.evaluate(
                f"(b => [b.x, b.y, b.width, b.height])"
                f"(document.querySelector('[data-k=\"{name}\"]').getBoundingClientRect())"
            )
            recorder.act(click(Rect(*box)))
        assert recorder.ended
        assert recorder.episode.success
        save_episode(recorder.episode, place)
    finally:
        env.close()
    return place


def test_a_recording_gives_the_token_stream_of_a_rollout(folder: Path, renderer: ChatRenderer) -> None:
    env = gymnasium.make(TASK.env_id, **TASK.env_kwargs)
    try:
        played = expert_trajectory(env, renderer, TASK)
    finally:
        env.close()
    recorded = RecordedEpisodes(folder, renderer, 5)
    assert len(recorded) == 5
    assert recorded[4].token_ids == played.token_ids
    assert recorded[4].loss_mask == played.loss_mask
    assert [i.tobytes() for i in recorded[4].images] == [i.tobytes() for i in played.images]
    assert recorded[4].reward == played.reward == 1.0


def test_two_steps_of_warm_up_on_a_recording(
    folder: Path, renderer: ChatRenderer, tiny_folder: Path, tmp_path: Path
) -> None:
    from transformers import Qwen3VLForConditionalGeneration, TrainingArguments

    from train.tasks import TaskSource

    model = Qwen3VLForConditionalGeneration.from_pretrained(tiny_folder)
    args = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[], logging_steps=1, seed=0)
    trainer = warm_up(
        model,
        renderer,
        TaskSource("mm_gym/Pointing-v0"),
        WarmupSettings(steps=2, batch_size=2, recorded=str(folder), rate_steps=0),
        args=args,
        banned_token_ids=renderer.banned_token_ids,
    )
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 2
    assert losses[1] < losses[0]


@pytest.mark.parametrize("broken", ["picture", "action", "json", "failed"])
def test_a_broken_recording_is_named(folder: Path, tmp_path: Path, broken: str) -> None:
    place = tmp_path / "episode_00007"
    shutil.copytree(next(folder.iterdir()), place)
    file = place / "episode.json"
    data = json.loads(file.read_text())
    if broken == "picture":
        (place / "0001.png").unlink()
    elif broken == "action":
        data["actions"].pop()
    elif broken == "failed":
        data["success"] = False
    file.write_text("{" if broken == "json" else json.dumps(data))
    says = "none that is solved" if broken == "failed" else "episode_00007 is not a whole recorded episode"
    with pytest.raises(ValueError, match=says):
        read_episodes(tmp_path)
