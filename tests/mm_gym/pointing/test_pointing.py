"""Pointing-v0: its pictures, its answers, and what only a zoom shows."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest

import mm_gym
from mm_gym.pointing import COLORS, FAMILIES, LEVELS, SHAPES, Puzzle, make_puzzle
from mm_gym.pointing.env import well_formed
from mm_gym.pointing.puzzles import CELLS, cell_center, draw_board, draw_cell, parse_point


def make(**kwargs: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("mm_gym/Pointing-v0", **kwargs)


def cell_of(picture: np.ndarray, cell: int) -> np.ndarray:
    """The inner pixels of a cell (without the lines between cells)."""
    side = picture.shape[0] // 3
    row, column = divmod(cell - 1, 3)
    return picture[row * side + 2 : (row + 1) * side - 1, column * side + 2 : (column + 1) * side - 1]


def has_color(pixels: np.ndarray, color: str) -> bool:
    return bool((pixels == np.array(COLORS[color])).all(axis=-1).any())


@pytest.mark.parametrize(("family", "level"), itertools.product(FAMILIES, LEVELS))
@pytest.mark.parametrize("answer_format", ["boxed", "plain"])
def test_the_expert_solves_every_family_at_every_level(family: str, level: int, answer_format: Any) -> None:
    env = make(tasks=[family], level=level, answer_format=answer_format)
    for seed in range(20):
        episode = mm_gym.play(env, mm_gym.expert(env), seed=seed)
        assert episode.success
        assert episode.episode_return == 1.0
        assert len(episode.actions) == (2 if family == "zoom" else 1)
        assert len(episode.images) == (2 if family == "zoom" else 1)


@pytest.mark.parametrize(("family", "level"), itertools.product(FAMILIES, LEVELS))
def test_the_picture_shows_the_answer(family: str, level: int) -> None:
    """Checked on pixels: the target's colour is in the target's cell, in no empty one."""
    for seed in range(8):
        puzzle = make_puzzle(family, level, seed)
        if puzzle.covered:
            picture = draw_cell(puzzle, puzzle.cell, 96)
            assert has_color(picture, puzzle.answer)
            continue
        picture = draw_board(puzzle, 288)
        filled = {item.cell: item.color for item in puzzle.items}
        for cell in CELLS:
            pixels = cell_of(picture, cell)
            assert [c for c in COLORS if has_color(pixels, c)] == ([filled[cell]] if cell in filled else [])


@pytest.mark.parametrize("level", LEVELS)
def test_only_a_zoom_shows_what_is_covered(level: int) -> None:
    """The boards of puzzles that differ in what lies under the cards are the same, pixel by pixel."""
    for seed in range(10):
        puzzle = make_puzzle("zoom", level, seed)
        others = [
            dataclasses.replace(
                puzzle,
                items=tuple(dataclasses.replace(item, color=color, kind=kind) for item in puzzle.items),
            )
            for color, kind in itertools.product(COLORS, SHAPES)
        ]
        board = draw_board(puzzle, 96)
        assert all(np.array_equal(board, draw_board(other, 96)) for other in others)
        seen = {draw_cell(other, puzzle.cell, 96).tobytes() for other in others}
        assert len(seen) == len(others)


def test_the_mark_shows_which_cell_to_zoom_on() -> None:
    boards = {}
    for seed in range(60):
        puzzle = make_puzzle("zoom", 2, seed)
        assert str(puzzle.cell) not in puzzle.question
        boards.setdefault(puzzle.cell, draw_board(puzzle, 96).tobytes())
    assert len(set(boards.values())) == len(boards) == 9


@pytest.mark.parametrize("level", LEVELS)
def test_the_question_names_one_target(level: int) -> None:
    for family, seed in itertools.product(("cell", "click"), range(40)):
        puzzle = make_puzzle(family, level, seed)
        named = [
            i
            for i in puzzle.items
            if i.kind in puzzle.question and (level == 1 or i.color in puzzle.question)
        ]
        assert [item.cell for item in named] == [puzzle.cell]


def test_answers_words_and_pictures_vary_by_seed() -> None:
    for family, level in itertools.product(FAMILIES, LEVELS):
        puzzles = [make_puzzle(family, level, seed) for seed in range(90)]
        assert len({p.answer for p in puzzles}) >= {"shape": 3, "color": 5, "zoom": 5}.get(family, 9)
        assert len({p.question for p in puzzles}) >= 3
        assert len({draw_board(p, 96).tobytes() for p in puzzles}) >= (1 if family == "zoom" else 80)
    assert make_puzzle("cell", 1, 5) == make_puzzle("cell", 1, 5)


def test_guessing_does_not_pay() -> None:
    """No constant answer is right more often than its share, within chance."""
    for family, count in (("cell", 9), ("shape", 3), ("color", 5), ("zoom", 5), ("read", 10), ("click", 9)):
        answers = [make_puzzle(family, 1, seed).answer for seed in range(600)]
        most = max(answers.count(answer) for answer in set(answers))
        assert most / 600 < 1 / count + 0.06


def test_a_click_counts_within_the_targets_box() -> None:
    for seed in range(50):
        puzzle = make_puzzle("click", 3, seed)
        left, top, right, bottom = (round(v * 1000) for v in puzzle.target.box)
        assert puzzle.accepts(f"{left + 1},{top + 1}")
        assert puzzle.accepts(f"({right - 1}, {bottom - 1})")
        assert not puzzle.accepts(f"{max(left - 5, 0)},{max(top - 5, 0)}")
        x, y = cell_center(puzzle.cell % 9 + 1)
        assert not puzzle.accepts(f"{x},{y}")
        for text in ("", "5", "a,b", "500,167,1", "-5,3", "1001,3", "0.5,0.5", "１,２", "5" * 400 + ",1"):
            assert not puzzle.accepts(text)
    assert parse_point(" ( 7 , 8 ) ") == (7, 8)


def test_a_wrong_answer_ends_the_episode_without_reward() -> None:
    env = make(tasks=["cell"])
    _, info = env.reset(seed=0)
    wrong = "2" if info["task"].answer == "1" else "1"
    _, reward, terminated, truncated, info = env.step(rf"\boxed{{{wrong}}}")
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)


def test_the_format_reward_is_optional_and_for_a_wrong_answer_of_the_right_kind() -> None:
    env = make(tasks=["color"], format_reward=0.1)
    right = env.reset(seed=1)[1]["task"].answer
    for answer, reward in (*((c, 1.0 if c == right else 0.1) for c in COLORS), ("5", 0.0), ("magenta", 0.0)):
        env.reset(seed=1)
        assert env.step(rf"\boxed{{{answer}}}")[1] == reward
    for family in FAMILIES:
        puzzle = make_puzzle(family, 1, 0)
        assert well_formed(puzzle, puzzle.answer)
        assert not well_formed(puzzle, "nothing")


def test_answer_formats() -> None:
    boxed, plain = make(tasks=["shape"]), make(tasks=["shape"], answer_format="plain")
    _, info = boxed.reset(seed=2)
    answer = info["task"].answer
    observation, _, terminated, _, step_info = boxed.step(answer)
    assert not terminated
    assert step_info["error"]["kind"] == "no_answer"
    assert "\\boxed{...}" in observation["text"]
    assert boxed.step(rf"It is \boxed{{sphere}}, I mean \boxed{{ {answer.upper()}. }}")[1] == 1.0
    for text in (answer, f" {answer.capitalize()}.\n", f"<think>hm</think>{answer}"):
        plain.reset(seed=2)
        assert plain.step(text)[1] == 1.0
    plain.reset(seed=2)
    assert plain.step("  ")[2] is False


def test_a_prompt_for_a_tiny_model_is_short() -> None:
    env = make(list_tools=False, system_prompt="", answer_format="plain")
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        assert info["system_prompt"] == ""
        assert info["tools"] == []
        assert len(observation["text"].split()) <= 8
    assert make().reset(seed=0)[1]["tools"][0]["function"]["name"] == "zoom"


def test_zoom_works_unlisted_and_wrong_calls_are_explained() -> None:
    env = make(tasks=["zoom"], list_tools=False, max_turns=9)
    env.reset(seed=0)
    form = '<tool_call>{{"name": "zoom", "arguments": {}}}</tool_call>'
    observation, _, _, _, info = env.step(form.format('{"cell": 3}'))
    assert observation["images"][0].shape == (96, 96, 3)
    assert info["messages"][0]["role"] == "tool"
    for arguments in ('{"cell": 10}', '{"cell": "3"}', "{}", '{"cell": 2.5}'):
        observation, *_ = env.step(form.format(arguments))
        assert observation["images"] == ()
        assert 'Expected {"name": "zoom"' in observation["text"]


def test_tasks_are_picked_by_family_or_id() -> None:
    env = make()
    observation, info = env.reset(seed=0, options={"task": "read"})
    assert info["task"].family == "read"
    again, info_again = make(level=3).reset(seed=9, options={"task": info["task_id"]})
    assert info_again["task"] == info["task"]
    assert np.array_equal(observation["images"][0], again["images"][0])
    for task in ("jump", "read-1", "read-9-1", "read-x-1", "jump-1-1"):
        with pytest.raises(ValueError, match=r"unknown task|must be"):
            env.reset(options={"task": task})
    with pytest.raises(ValueError, match="unknown options"):
        env.reset(options={"family": "read"})


@pytest.mark.parametrize("size", [32, 96, 224, 1000])
def test_pictures_have_the_size_asked_for(size: int) -> None:
    env = make(image_size=size)
    for seed in range(5):
        episode = mm_gym.play(env, mm_gym.expert(env), seed=seed, options={"task": "zoom"})
        assert [image.shape for image in episode.images] == [(size, size, 3)] * 2


@pytest.mark.parametrize(
    "kwargs",
    [
        {"tasks": ["jump"]},
        {"tasks": []},
        {"tasks": "cell"},
        {"level": 0},
        {"image_size": 8},
        {"answer_format": "xml"},
        {"max_turns": 0},
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        make(**kwargs)


def test_a_puzzle_is_named_by_family_level_and_seed() -> None:
    puzzle = make_puzzle("click", 2, 77)
    assert isinstance(puzzle, Puzzle)
    assert puzzle.id == "click-2-77"
