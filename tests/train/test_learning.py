"""The learning recipes: ablations take away what they say, the driver runs, skips and reports real runs."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import yaml
from transformers import AutoProcessor
from trl import ModelConfig, TrlParser

from agents.chat import ChatRenderer
from train.arguments import GymGRPOConfig, ScriptArguments
from train.learning import RECIPES, VARIANTS, Job, jobs_of, run_all
from train.learning_clicks import Clicks
from train.learning_mask import UnmaskedTrainer, unmasked
from train.learning_page import ABOUT, write_page
from train.learning_views import UNSEEN
from train.rollouts import RolloutConfig
from train.tasks import WARMUP, TaskSource
from train.warmup import ExpertEpisodes

pytestmark = pytest.mark.train

ROOT = Path(__file__).resolve().parents[2]
ZOOM = {"of": "mm_gym/Pointing-v0", "tasks": ["zoom"], "answer_format": "plain"}


def played(hidden: str) -> tuple[list[np.ndarray], float, bool]:
    env = gymnasium.make(UNSEEN, hidden=hidden, **ZOOM)
    observation, _ = env.reset(seed=3)
    pictures, ended = [*observation["images"]], False
    while not ended:
        observation, reward, terminated, truncated, info = env.step(env.unwrapped.expert_action())
        pictures += observation["images"]
        ended = terminated or truncated
    return pictures, reward, info["success"]


@pytest.mark.parametrize(("hidden", "blank"), [("all", [True, True]), ("later", [False, True])])
def test_blanked_pictures_keep_their_size_and_the_task_stays_what_it_was(hidden, blank):
    pictures, reward, success = played(hidden)
    assert [picture.std() == 0 for picture in pictures] == blank
    assert all(picture.shape == (96, 96, 3) and picture.dtype == np.uint8 for picture in pictures)
    assert (reward, success) == (1.0, True)


def test_an_unknown_way_to_hide_pictures_is_refused():
    with pytest.raises(ValueError, match='"all" or "later"'):
        gymnasium.make(UNSEEN, hidden="some", **ZOOM)


def test_the_wrong_mask_covers_what_follows_the_prompt_but_ids_without_probability(make_trainer):
    trainer = make_trainer()
    trainer.__class__ = UnmaskedTrainer
    banned = set(trainer.rollouts.banned_token_ids)
    plain = trainer.rollouts.collect(trainer.tasks.tasks(0, 1, copies=4), version=0)
    for trajectory, wrong in zip(plain, [unmasked(t, banned) for t in plain], strict=True):
        cut = trajectory.prompt_length
        expected = [0] * cut + [int(i not in banned) for i in trajectory.token_ids[cut:]]
        assert wrong.loss_mask == expected
        assert trajectory.loss_mask != expected
        assert wrong.token_ids == trajectory.token_ids
    trainer.train()
    for row in trainer._rows:
        sampled = sum(turn.end - turn.start for turn in row.trajectory.turns)
        assert sum(row.mask) > sampled or len(row.trajectory.turns) == 1


def test_few_solved_episodes_are_made_once_and_taken_in_turn(tiny_folder):
    renderer = ChatRenderer(AutoProcessor.from_pretrained(tiny_folder))
    tasks = TaskSource({"id": "mm_gym/Pointing-v0", "kwargs": {"tasks": ["zoom"]}}, stream=WARMUP)
    episodes = ExpertEpisodes(tasks, renderer, count=6, different=2)
    taken = [episodes[index] for index in range(6)]
    episodes.close()
    assert [id(t) for t in taken] == [id(taken[0]), id(taken[1])] * 3
    assert taken[0].token_ids != taken[1].token_ids


@pytest.mark.parametrize("response", ["", "17", "17,80,3", "-1,5", "x,y", "click 17,80", "１,２", "9" * 99])
def test_what_is_no_click_gets_a_short_answer(response):
    parsed = Clicks().parse(response)
    assert not parsed.calls
    assert parsed.error == "write x,y"


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_give_every_variant_real_arguments(recipe, tmp_path):
    plain = yaml.safe_load((ROOT / f"configs/learning/{recipe}.yaml").read_text())
    assert plain["eval_episodes"] == 500
    assert recipe in ABOUT
    parser = TrlParser([ScriptArguments, RolloutConfig, ModelConfig, GymGRPOConfig])
    for job in jobs_of(tmp_path, [recipe], [0, 1, 2]):
        script, _, _, args = parser.parse_args_and_config([*job.command()[2:], "--bf16", "false"])
        assert (args.seed, args.output_dir) == (job.variant.seed, str(job.folder))
        assert args.resume_from_checkpoint == "last"
        assert args.save_strategy == "steps"
        for which in ("environments", "expert_environments"):
            members = script.members(which)
            if job.variant.hidden is None:
                assert not any(member.id == UNSEEN for member in members)
            else:
                assert {(m.id, m.kwargs["hidden"]) for m in members} == {(UNSEEN, job.variant.hidden)}


@pytest.mark.timeout(300)
def test_a_real_run_is_recorded_not_repeated_and_written_into_the_page(tmp_path, capsys):
    jobs = [Job("pointing", VARIANTS[0], tmp_path / "runs" / "seed-0")]
    short = "--expert_steps 9 --expert_until 0 --expert_batch_size 4 --max_steps 2 --eval_before_warmup false"
    short += " --per_device_train_batch_size 8 --eval_episodes 8 --logging_steps 1 --save_strategy no"
    failed = run_all(jobs, 1, *short.split())
    log = (jobs[0].folder / "run.log").read_text()
    assert not failed, log[-3000:]
    assert "warm-up, step 2: success" in log  # which was enough
    assert "warm-up, step 4" not in log
    record = jobs[0].record
    assert record["starts"] == 1
    assert record["seconds"] > 1
    assert run_all(jobs, 1) == []
    assert jobs[0].record == record

    page = write_page([("pointing", VARIANTS[0], jobs[0].folder)], tmp_path / "docs").read_text()
    stages = json.loads((jobs[0].folder / "evaluation.json").read_text())
    after = stages["after GRPO"]
    (row,) = [line for line in page.splitlines() if line.startswith("| seed 0")]
    assert f"| {after['successes'] / after['episodes']:.1%} (" in row
    assert f"| {record['seconds']:.0f} |" in row
    assert record["finished"] in page
    assert (tmp_path / "docs/images/learning/pointing-seeds.png").read_bytes()[:4] == b"\x89PNG"
