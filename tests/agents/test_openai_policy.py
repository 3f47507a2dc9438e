"""Evaluation through an OpenAI-compatible endpoint, a real HTTP server in this process."""

from __future__ import annotations

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("httpx")

from faulty_env import ENV_ID
from PIL import Image

from agents import OpenAIPolicy, RolloutEngine, Task
from agents.engine import Budgets, GroupPolicy
from mm_gym import StopReason, parse_tool_calls


@pytest.fixture
def endpoint():
    """A server whose `answer(body) -> (status, answer)` a test sets; `bodies` are the requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.bodies.append((self.path, dict(self.headers), body))
            status, answer = server.answer(body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.bodies = []
    server.answer = lambda body: (200, completion("ok"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def completion(text: str | None, finish: str = "stop", calls: list | None = None, total: int = 0) -> dict:
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    usage = {"completion_tokens": 3, "total_tokens": total}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def run(endpoint, *, task: Task | None = None, policy: dict | None = None, **options):
    url = f"http://127.0.0.1:{endpoint.server_port}/v1"
    made = OpenAIPolicy("a-model", base_url=url, **(policy or {}))
    with RolloutEngine(made, groups=GroupPolicy(refills=0), **options) as engine:
        return engine.collect([task or Task(ENV_ID)])[0]


def test_an_episode_is_played_and_scored_without_tokens(endpoint):
    trajectory = run(endpoint, policy={"api_key": "secret", "temperature": 0.5})
    assert trajectory.reward == 1.0
    assert trajectory.stop_reason == StopReason.ENV_DONE
    assert trajectory.episode.success
    assert trajectory.episode.actions == ["ok"] * 3
    assert trajectory.token_ids == []
    assert len(trajectory.turns) == 3
    path, headers, body = endpoint.bodies[-1]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert body["model"] == "a-model"
    assert body["temperature"] == 0.5
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user", "assistant", "user"]


def test_pictures_arrive_pixel_for_pixel(endpoint):
    trajectory = run(endpoint)
    urls = [
        block["image_url"]["url"]
        for message in endpoint.bodies[-1][2]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "image_url"
    ]
    sent = [np.array(Image.open(io.BytesIO(base64.b64decode(u.split(",")[1])))) for u in urls]
    assert len(sent) == 3
    assert all(np.array_equal(a, b) for a, b in zip(sent, trajectory.episode.images, strict=True))


def test_structured_tool_calls_become_the_text_that_environments_parse(endpoint):
    calls = [
        {
            "id": "1",
            "type": "function",
            "function": {"name": "zoom", "arguments": '{"latex": "\\\\frac{1}{2}"}'},
        }
    ]
    endpoint.answer = lambda body: (200, completion("Let me see.", calls=calls))
    trajectory = run(endpoint)
    parsed = parse_tool_calls(trajectory.episode.actions[0])
    assert [(c.name, c.arguments) for c in parsed.calls] == [("zoom", {"latex": "\\frac{1}{2}"})]


def test_an_environments_tools_are_told(endpoint):
    run(endpoint, task=Task("mm_gym/Geo3k-v0"), budgets=Budgets(max_turns=1))
    names = {t["function"]["name"] for t in endpoint.bodies[0][2]["tools"]}
    assert {"calculator", "zoom"} <= names


def test_a_passing_overload_is_retried_and_a_lasting_one_masks(endpoint):
    answers = iter([(429, {}), (503, {})])
    endpoint.answer = lambda body: next(answers, (200, completion("ok")))
    assert run(endpoint).failures == {"endpoint": 2}
    endpoint.answer = lambda body: (200, {"error": "nonsense"})
    lost = run(endpoint)
    assert lost.masked
    assert lost.reward is None
    assert lost.stop_reason == StopReason.GENERATION_FAILURE


def test_a_wrong_key_stops_the_evaluation_with_the_endpoints_words(endpoint):
    endpoint.answer = lambda body: (401, {"error": "no such key"})
    with pytest.raises(ValueError, match="no such key"):
        run(endpoint)


def test_an_endpoint_that_is_not_there_is_a_failure_not_a_score():
    policy = OpenAIPolicy("m", base_url="http://127.0.0.1:9/v1")
    with RolloutEngine(policy, groups=GroupPolicy(refills=0)) as engine:
        assert engine.collect([Task(ENV_ID)])[0].masked


def test_budgets_hold_by_the_endpoints_own_count(endpoint):
    endpoint.answer = lambda body: (200, completion("ok", total=60 * len(body["messages"])))
    trajectory = run(endpoint, task=Task(ENV_ID, {"length": 9}), budgets=Budgets(max_context=200))
    assert trajectory.stop_reason == StopReason.CONTEXT_FULL
    assert trajectory.reward == 0.25
    endpoint.answer = lambda body: (200, completion("cut here", finish="length"))
    assert run(endpoint).stop_reason == StopReason.GENERATION_LENGTH


def test_no_endpoint_at_all_says_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match="OPENAI_BASE_URL"):
        OpenAIPolicy("m")
