"""The text and image spaces, alone and as Gymnasium's vector environments and wrappers use them."""

from __future__ import annotations

import copy
import functools
import json
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.vector.utils import (
    batch_differing_spaces,
    batch_space,
    concatenate,
    create_empty_array,
    iterate,
)
from gymnasium.wrappers import FilterObservation, FlattenObservation, RecordEpisodeStatistics, TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st

import mm_gym
from mm_gym.spaces import Image, UnicodeText, observation_space

SPACES = [UnicodeText(), UnicodeText(max_length=8), Image(), Image(max_side=40), observation_space()]
ID = "mm_gym:mm_gym/Pointing-v0"


def same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_samples_are_contained_and_repeat_with_the_seed(space: spaces.Space[Any]) -> None:
    space.seed(3)
    first = [space.sample() for _ in range(30)]
    assert all(space.contains(x) for x in first)
    space.seed(3)
    assert all(same(x, space.sample()) for x in first)
    assert len({repr(x) for x in first}) > 20


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_samples_go_to_json_and_back(space: spaces.Space[Any]) -> None:
    space.seed(4)
    samples = [space.sample() for _ in range(5)]
    back = space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples))))
    assert all(same(x, y) for x, y in zip(samples, back, strict=True))
    assert all(space.contains(y) for y in back)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_compare_copy_pickle_and_stay_small(space: spaces.Space[Any]) -> None:
    assert space == copy.deepcopy(space) == pickle.loads(pickle.dumps(space))
    assert sum(space == other for other in SPACES) == 1
    assert space != "a space"
    assert len(pickle.dumps(space)) < 10_000
    assert not space.is_np_flattenable


def test_text_holds_any_scalar_values_up_to_its_length() -> None:
    space = UnicodeText(max_length=5)
    assert all(text in space for text in ("", "abc", "∠√π²", "日本", "𝑥😀", "\x00\n", "|im|>"))
    assert not any(thing in space for thing in ("abcdef", "\ud800", "a\udfff", b"abc", None, 5, ["a"]))
    assert "<|im_end|>" in UnicodeText()


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=20))
def test_text_is_contained_exactly_when_utf8_can_carry_it(text: str) -> None:
    try:
        text.encode()
        carried = True
    except UnicodeEncodeError:
        carried = False
    assert (text in UnicodeText()) == carried


def test_image_holds_uint8_pictures_of_any_size_up_to_its_side() -> None:
    space = Image(max_side=100)
    assert np.zeros((1, 100, 3), np.uint8) in space
    assert np.zeros((37, 12, 3), np.uint8)[::2, ::3] in space  # not contiguous
    for shape, dtype in (
        ((0, 5, 3), np.uint8),
        ((101, 5, 3), np.uint8),
        ((5, 5), np.uint8),
        ((5, 5, 4), np.uint8),
        ((5, 5, 3), np.float32),
        ((1, 5, 5, 3), np.uint8),
    ):
        assert np.zeros(shape, dtype) not in space
    assert [[[0, 0, 0]]] not in space
    with pytest.raises(ValueError, match="at least 1"):
        Image(0)
    with pytest.raises(ValueError, match="at least 1"):
        UnicodeText(0)


@pytest.mark.parametrize("space", SPACES[:4], ids=str)
def test_masks_are_refused(space: spaces.Space[Any]) -> None:
    with pytest.raises(ValueError, match="mask"):
        space.sample(mask=np.ones(3))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_batch(space: spaces.Space[Any]) -> None:
    batched = batch_space(space, 3)
    items = [space.sample() for _ in range(3)]
    out = concatenate(space, items, create_empty_array(space, 3))
    assert batched.contains(out)
    assert all(same(a, b) for a, b in zip(iterate(batched, out), items, strict=True))
    assert len(batched.sample() if not isinstance(space, spaces.Dict) else batched.sample()["text"]) == 3


def test_differing_spaces_batch() -> None:
    batched = batch_differing_spaces([UnicodeText(5), UnicodeText(9)])
    assert ("abcde", "abcdefghi") in batched
    assert ("abcdefghi", "abcde") not in batched
    pictures = batch_differing_spaces([Image(5), Image(9)])
    assert (np.zeros((5, 5, 3), np.uint8), np.zeros((9, 9, 3), np.uint8)) in pictures


def test_actions_arrive_whole_in_vector_environments() -> None:
    """A registered `iterate` would hand "abc", "xyz" out as "a", "x"."""
    env = gymnasium.make_vec(
        ID, num_envs=2, vectorization_mode="sync", answer_format="plain", tasks=("color",)
    )
    env.reset(seed=[0, 1])
    *_, infos = env.step(("red", "two words"))
    assert list(infos["stop_reason"]) == ["env_done"] * 2
    assert list(infos["metrics"]["well_formed"]) == [1.0, 0.0]
    env.close()


# -- Gymnasium's own machinery -------------------------------------------------------------------------------


def test_make_vec_async_works_without_shared_memory_and_raises_with_it() -> None:
    env = gymnasium.make_vec(
        ID, num_envs=2, vectorization_mode="async", vector_kwargs={"shared_memory": False, "context": "fork"}
    )
    observations, _ = env.reset(seed=[0, 1])
    assert len(observations["text"]) == len(observations["images"]) == 2
    env.close()
    with pytest.raises(Exception, match=r"(?i)shared.?memory"):
        gymnasium.make_vec(ID, num_envs=2, vectorization_mode="async")


@pytest.mark.parametrize("vector", [SyncVectorEnv, functools.partial(AsyncVectorEnv, shared_memory=False)])
def test_environments_that_differ_in_picture_size_batch(vector: Any) -> None:
    makers = [functools.partial(gymnasium.make, ID, image_size=size) for size in (96, 160)]
    env = vector(makers, observation_mode="different")
    observations, _ = env.reset(seed=[5, 6])
    images = observations["images"] if isinstance(observations, dict) else [o["images"] for o in observations]
    assert [image[0].shape[0] for image in images] == [96, 160]
    env.close()


def test_wrappers() -> None:
    env = RecordEpisodeStatistics(TimeLimit(gymnasium.make(ID, max_turns=9), 2))
    env.reset(seed=0)
    env.step("no answer")
    *_, truncated, info = env.step("no answer")
    assert truncated
    assert info["episode"]["l"] == 2
    filtered = FilterObservation(gymnasium.make(ID), ["text"])
    assert list(filtered.reset(seed=0)[0]) == ["text"]
    with pytest.raises(NotImplementedError):
        FlattenObservation(gymnasium.make(ID))


def test_a_spec_goes_to_json_and_back() -> None:
    env = gymnasium.make(ID, level=2, tasks=("cell", "read"))
    spec = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
    again = gymnasium.make(spec)
    assert again.unwrapped.level == 2
    assert again.reset(seed=3)[0]["text"] == env.reset(seed=3)[0]["text"]


class Fails(mm_gym.ChatEnv):
    """Breaks on our side in the first step."""

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        return mm_gym.Opening([mm_gym.user("Go.")], task_id="fails")

    def respond(self, action: str) -> mm_gym.Reply:
        raise mm_gym.EnvironmentFailure("the server is gone", kind="server")


def test_a_failure_comes_out_of_an_async_vector_environment_as_itself() -> None:
    """AsyncVectorEnv raises `exctype(value)`: the message survives, and nothing hangs."""
    env = AsyncVectorEnv([Fails, Fails], shared_memory=False, context="fork")
    env.reset(seed=0)
    with pytest.raises(mm_gym.EnvironmentFailure, match="the server is gone"):
        env.step(("a", "b"))
    env.close(terminate=True)


def test_a_failure_copies_pickles_and_keeps_its_kind() -> None:
    failure = mm_gym.EnvironmentFailure("the server is gone", kind="server")
    for copied in (
        pickle.loads(pickle.dumps(failure)),
        mm_gym.EnvironmentFailure(failure),
        copy.copy(failure),
    ):
        assert (copied.message, copied.kind, str(copied)) == (
            "the server is gone",
            "server",
            "the server is gone",
        )
    assert mm_gym.EnvironmentFailure().kind == "environment"


def test_frames_are_collected_as_a_list() -> None:
    env = gymnasium.make(ID, render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step("no answer")
    frames = env.render()
    assert [frame.shape for frame in frames] == [(480, 480, 3)] * 2


def test_statistics_of_a_vector_environment() -> None:
    makers = [functools.partial(gymnasium.make, ID, max_turns=1)] * 2
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(SyncVectorEnv(makers))
    env.reset(seed=[0, 1])
    *_, infos = env.step(("no answer", "no answer"))
    assert list(infos["episode"]["l"]) == [1, 1]
    env.close()
