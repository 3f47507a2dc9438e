"""Messages, their flat view, the record of an episode, text and frames."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import mm_gym
from mm_gym.frame import frame
from mm_gym.messages import flatten, rgb, tool, user, with_images
from mm_gym.text import scalar_text

RED = np.full((4, 6, 3), (255, 0, 0), np.uint8)
BLUE = np.full((2, 3, 3), (0, 0, 255), np.uint8)


# -- text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain", "plain"),
        ("∠ √ 日本 😀", "∠ √ 日本 😀"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("é\ud800é", "é\ufffdé"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, safe: str) -> None:
    assert scalar_text(text) == safe


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=30))
def test_scalar_text_can_be_encoded_and_is_stable(text: str) -> None:
    safe = scalar_text(text)
    safe.encode()
    assert scalar_text(safe) == safe


# -- messages ------------------------------------------------------------------------------------------------


def test_flatten_puts_indices_for_pictures_and_joins_texts() -> None:
    messages = [tool("zoom", 0, "Here.", RED), user([BLUE, "What now?"], "Go on.")]
    plain, text, images = flatten(messages)
    assert text == "Here.\n\nWhat now?\nGo on."
    assert [image.shape for image in images] == [(4, 6, 3), (2, 3, 3)]
    assert plain[0] == {
        "role": "tool",
        "name": "zoom",
        "call": 0,
        "content": [{"type": "text", "text": "Here."}, {"type": "image", "index": 0}],
    }
    assert plain[1]["content"][0] == {"type": "image", "index": 1}
    assert with_images(plain, images)[1]["content"][0]["image"] is images[1]


def test_pictures_are_copied_and_converted_to_rgb() -> None:
    assert np.array_equal(rgb(RED), RED)
    assert rgb(RED) is not RED
    clear = Image.new("RGBA", (2, 2), (255, 0, 0, 0))
    assert rgb(clear).tolist() == [[[255, 255, 255]] * 2] * 2
    palette = Image.new("P", (2, 2), 0)
    palette.info["transparency"] = 0
    assert rgb(palette).min() == 255
    for mode in ("L", "1", "CMYK", "I;16", "P", "LA"):
        assert rgb(Image.new(mode, (3, 2))).shape == (2, 3, 3)


@pytest.mark.parametrize(
    "bad", [np.zeros((2, 2)), np.zeros((2, 2, 3)), np.zeros((0, 2, 3), np.uint8), 5, None]
)
def test_what_is_no_content_is_named(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"a picture must be|message content must be"):
        user(bad)


def test_roles_and_blocks_are_checked() -> None:
    with pytest.raises(ValueError, match="assistant"):
        flatten([{"role": "assistant", "content": "hi"}])
    with pytest.raises(ValueError, match="video"):
        flatten([{"role": "user", "content": [{"type": "video"}]}])


def test_surrogates_never_pass() -> None:
    plain, text, _ = flatten([user("a\ud800")])
    assert text == plain[0]["content"][0]["text"] == "a\ufffd"


# -- environments and episodes -------------------------------------------------------------------------------


class Counts(mm_gym.ChatEnv):
    """Shows the same picture object each turn; fails on demand."""

    def begin(self, options: dict[str, Any]) -> mm_gym.Opening:
        self.tool = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
        return mm_gym.Opening([mm_gym.user("Start.", RED)], task_id="counts", tools=[self.tool])

    def respond(self, action: str) -> mm_gym.Reply:
        if action == "break":
            raise mm_gym.EnvironmentFailure("broken")
        self.heard = action
        done = action == "end"
        return mm_gym.Reply(
            [mm_gym.user(f"Left: {self.turns_left}", BLUE)],
            reward=0.5,
            terminated=done,
            success=done,
            metrics={"turn": np.float32(self.turn)},
            tool_calls=[{"name": "t", "arguments": {"x": [1]}, "status": "ok"}],
            stop_reason=mm_gym.StopReason.NO_TOOL_CALL if done else None,
        )

    def settle(self, stop_reason: mm_gym.StopReason) -> tuple[float, dict[str, float]]:
        return 0.25, {"settled": 1}


def test_every_call_hands_out_fresh_objects() -> None:
    env = Counts()
    o1, i1 = env.reset(seed=0)
    o2, _ = env.reset(seed=0)
    assert o1["images"][0] is not o2["images"][0]
    assert i1["tools"][0] is not env.tool
    i1["tools"][0]["function"]["name"] = "changed"
    o1["images"][0][:] = 0
    assert env.reset(seed=0)[1]["tools"][0]["function"]["name"] == "t"
    assert np.array_equal(env.reset(seed=0)[0]["images"][0], RED)


def test_only_a_completed_interaction_advances_the_turn() -> None:
    env = Counts(max_turns=2)
    env.reset(seed=0)
    for _ in range(3):
        with pytest.raises(mm_gym.EnvironmentFailure):
            env.step("break")
    assert env.turn == 0
    assert env.step("on")[0]["text"] == "Left: 1"
    *_, truncated, info = env.step("on")
    assert truncated
    assert (info["stop_reason"], info["success"]) == ("env_truncated", False)


def test_turns_left_follows_the_smaller_cap() -> None:
    env = Counts(max_turns=5)
    env.reset(options={"max_turns": 3})
    assert env.turns_left == 3
    env.reset(options={"max_turns": 30})
    assert env.turns_left == 5
    _, _, _, truncated, _ = env.step("on")
    env.reset(options={"max_turns": 1})
    _, _, _, truncated, _ = env.step("on")
    assert not truncated  # the engine's cap ends episodes through finish, not through the environment


def test_the_stop_reason_of_a_reply_is_passed_on() -> None:
    env = Counts()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("end")
    assert (reward, terminated, info["stop_reason"], info["success"]) == (0.5, True, "no_tool_call", True)
    assert info["metrics"] == {"turn": 1.0}
    assert type(info["metrics"]["turn"]) is float


def test_finish_settles_once() -> None:
    env = Counts()
    assert env.finish("aborted") == (0.0, {})
    env.reset(seed=0)
    env.step("on")
    assert env.finish("token_budget") == (0.25, {"settled": 1.0})
    assert env.finish("token_budget") == (0.0, {})
    env.reset(seed=0)
    with pytest.raises(ValueError, match="bored"):
        env.finish("bored")


def test_an_action_reaches_the_environment_as_scalar_text() -> None:
    env = Counts()
    env.reset(seed=0)
    env.step("\ud800")
    assert env.heard == "\ufffd"


def test_an_episode_records_the_conversation_with_its_pictures() -> None:
    actions = iter(["on", "on", "end"])
    episode = mm_gym.play(Counts(), lambda _: next(actions), seed=3)
    assert [m["role"] for m in episode.messages] == ["user", "assistant"] * 3 + ["user"]
    assert len(episode.images) == 4
    indices = [b["index"] for m in episode.messages for b in m["content"] if b["type"] == "image"]
    assert indices == [0, 1, 2, 3]
    assert np.array_equal(episode.chat()[2]["content"][1]["image"], BLUE)
    assert (episode.episode_return, episode.stop_reason, episode.success) == (1.5, "no_tool_call", True)
    assert (episode.seed, episode.env_id, episode.task_id) == (3, "Counts", "counts")
    assert [info["metrics"]["turn"] for info in episode.infos] == [1.0, 2.0, 3.0]
    assert pickle.loads(pickle.dumps(episode)).messages == episode.messages


def test_an_episode_keeps_what_makes_it_again() -> None:
    env = gymnasium.make("mm_gym/Pointing-v0", level=2)
    episode = mm_gym.play(env, mm_gym.expert(env), seed=8, options={"task": "zoom"})
    again_env = gymnasium.make(episode.env_id, **episode.env_kwargs)
    again = mm_gym.play(again_env, mm_gym.expert(again_env), seed=episode.seed, options=episode.options)
    assert again.messages == episode.messages
    assert all(map(np.array_equal, again.images, episode.images))


def test_a_missing_expert_is_named() -> None:
    env = Counts()
    with pytest.raises(ValueError, match="no expert for task 'counts'"):
        mm_gym.play(env, mm_gym.expert(env))


# -- frames --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 900, 3), (900, 2, 3), (480, 480, 3)])
def test_a_frame_has_the_size_asked_for_and_shows_the_picture(shape: tuple[int, int, int]) -> None:
    picture = np.zeros(shape, np.uint8)
    drawn = frame(picture, "text " * 300, (480, 640))
    assert drawn.shape == (480, 640, 3)
    assert drawn.dtype == np.uint8
    assert (drawn[:360] < 60).any()


def test_a_frame_without_picture_shows_the_text() -> None:
    empty, text = frame(None, "", (200, 200)), frame(None, "∠ABC\ud800" + "x" * 500, (200, 200))
    assert not np.array_equal(empty, text)


def test_deep_copies_of_a_running_environment_do_not_share_state() -> None:
    env = gymnasium.make("mm_gym/Pointing-v0").unwrapped
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    twin.step("no answer")
    assert (env.turn, twin.turn) == (0, 1)
