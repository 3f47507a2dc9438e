"""The drift auditor: each kind of difference is found, and nothing where there is none."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("trl")

from agents.chat import ChatRenderer
from agents.chat.families import processor_for, trl_templates
from agents.drift import audit, differences
from agents.token_env import TokenEnv
from agents.types import Response
from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.messages import tool, user

CLEAN = dict.fromkeys(("join", "stripped_thinking", "whitespace", "role", "tokens", "unrenderable"), 0.0)


class Echo(ChatEnv):
    """Answers with a tool result and a picture."""

    pictures = True

    def begin(self, options):
        return Opening([user("What is this?", *self._picture())], "t", system_prompt="Look closely.")

    def respond(self, action):
        return Reply([tool("look", 0, "A grey square.", *self._picture())], reward=0.5)

    def _picture(self):
        return [np.full((40, 60, 3), 128, np.uint8)] if self.pictures else []


class Words(Echo):
    pictures = False


@functools.cache
def renderer_for(name: str) -> ChatRenderer:
    return ChatRenderer(processor_for(name, trl_templates()[name]))


def episode(renderer: ChatRenderer, responses: list[list[int]], env: ChatEnv | None = None):
    env = TokenEnv(env or (Echo(max_turns=4) if renderer.images else Words(max_turns=4)), renderer)
    env.reset(seed=0)
    for ids in responses:
        env.step(Response(ids, [-1.0] * len(ids)))
    return env.trajectory


@pytest.mark.parametrize("turns", [0, 1, 3, 4])
def test_nothing_is_found_where_the_model_writes_what_the_tokenizer_would(turns):
    renderer = renderer_for("qwen3_vl")
    trajectory = episode(renderer, [renderer.encode_response(f"Answer {i}.") for i in range(turns)])
    assert audit(trajectory, renderer) == CLEAN


def test_another_split_of_the_same_text_is_a_join():
    renderer = renderer_for("qwen3_vl")
    usual = renderer.encode_response("hello world")
    unusual = [*(renderer.tokenizer.encode(c)[0] for c in "hello"), *usual[1:]]
    trajectory = episode(renderer, [usual, unusual, usual])
    found = audit(trajectory, renderer)
    assert found == {**CLEAN, "join": 1.0, "tokens": 5.0}


def test_thinking_that_the_template_drops_is_counted():
    renderer = renderer_for("qwen3")
    response = renderer.encode_response("<think>\nlong thoughts\n</think>\n\nFour.")

    class Asks(Words):
        def respond(self, action):
            return Reply([user("And then?")])

    trajectory = episode(renderer, [response, response], Asks(max_turns=4))
    found = audit(trajectory, renderer)
    assert found["stripped_thinking"] == 2.0
    assert found["join"] == found["whitespace"] == found["role"] == 0.0
    assert found["tokens"] >= 6


def test_trimmed_blanks_are_whitespace():
    renderer = renderer_for("gemma3")

    class Asks(Echo):
        def respond(self, action):
            return Reply([user("And then?")])

    trajectory = episode(
        renderer, [renderer.encode_response("Four.  "), renderer.encode_response("Five.")], Asks()
    )
    found = audit(trajectory, renderer)
    assert found["whitespace"] == 1.0
    assert found["role"] == found["join"] == found["stripped_thinking"] == 0.0


def test_another_stop_token_in_the_middle_is_a_role_difference():
    renderer = renderer_for("qwen3_vl")
    other = renderer.tokenizer.convert_tokens_to_ids("<|endoftext|>")
    cut = [*renderer.encode_response("Four.")[:-1], other]
    trajectory = episode(renderer, [cut, renderer.encode_response("Five.")])
    assert audit(trajectory, renderer) == {**CLEAN, "role": 1.0, "tokens": 1.0}
    (difference,) = differences(trajectory, renderer)
    assert difference.stream.endswith("Four.<|endoftext|>")


def test_a_conversation_that_the_template_refuses_is_said():
    renderer = renderer_for("gptoss")
    response = renderer.encode_response("<|channel|>analysis<|message|>Hm.<|end|>")

    class Asks(Words):
        def respond(self, action):
            return Reply([user("And then?")])

    assert audit(episode(renderer, [response], Asks(max_turns=4)), renderer)["unrenderable"] == 1.0
