"""Streamable HTTP: headers, large results in both answer forms, and servers that go away."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image

import mm_gym
from mm_gym.mcp.servers.common import Context, MCPServer, content, episode_of

CONFIG = {
    "parser": {"use_thinking": False, "max_calls": 1},
    "allowed_tools": ["*"],
    "limits": {"connect": 20, "call": 20, "message_bytes": 4 << 20},
}


def make_server() -> Any:
    server = MCPServer("http", log_level="ERROR")

    @server.tool(structured_output=False)
    def header(name: str, ctx: Context) -> str:
        """A header of the request."""
        return str(ctx.request_context.request.headers.get(name))

    @server.tool(structured_output=False)
    def episode(ctx: Context) -> str:
        """The episode's id."""
        return episode_of(ctx)

    @server.tool(structured_output=False)
    def big(size: int) -> str:
        """A long text."""
        return "y" * size

    @server.tool(structured_output=False)
    def picture() -> Any:
        """More than 1 MiB."""
        noise = np.random.default_rng(0).integers(0, 256, (700, 700, 3), dtype=np.uint8)
        return content(Image.fromarray(noise))

    return server


@contextlib.contextmanager
def served(json_response: bool) -> Iterator[str]:
    import uvicorn

    app = make_server().streamable_http_app(json_response=json_response)
    listening = socket.create_server(("127.0.0.1", 0))
    runner = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=runner.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        runner.should_exit = runner.force_exit = True
        thread.join(10)


@contextlib.contextmanager
def environment(url: str, **entry: Any) -> Iterator[Any]:
    row = {"prompt": "Go.", "mcp_config": {"h": {"url": url, **entry}}}
    env = gymnasium.make("mm_gym/MCP-v0", config=CONFIG, taskset=[row])
    try:
        yield env
    finally:
        env.close()


def test_headers_reach_the_server_and_secrets_in_them_stay_out_of_results(monkeypatch: Any) -> None:
    monkeypatch.setenv("MM_GYM_TEST_TOKEN", "tok-12345")
    with (
        served(True) as url,
        environment(url, headers={"X-Token": "${MM_GYM_TEST_TOKEN}", "X-Name": "n"}) as env,
    ):
        env.reset(seed=0)
        assert "n" in env.step('<tool>header("x-name")</tool>')[0]["text"]
        observation = env.step('<tool>header("x-token")</tool>')[0]
    assert "***" in observation["text"]
    assert "tok-12345" not in observation["text"]


def test_each_episode_has_an_id_of_its_own() -> None:
    with served(True) as url, environment(url) as env:
        seen = set()
        for seed in range(2):
            env.reset(seed=seed)
            texts = {env.step("<tool>episode()</tool>")[0]["text"] for _ in range(2)}
            assert len(texts) == 1
            seen |= texts
    assert len(seen) == 2


@pytest.mark.parametrize("json_response", [True, False])
def test_pictures_pass_and_floods_do_not(json_response: bool) -> None:
    with served(json_response) as url, environment(url) as env:
        env.reset(seed=0)
        observation, *_ = env.step("<tool>picture()</tool>")
        assert observation["images"][0].shape == (700, 700, 3)
        start = time.monotonic()
        with pytest.raises(mm_gym.EnvironmentFailure):
            env.step("<tool>big(50000000)</tool>")
        assert time.monotonic() - start < 25
        env.reset(seed=1)
        assert "yyy" in env.step("<tool>big(30)</tool>")[0]["text"]


def test_a_server_that_goes_away_is_a_failure() -> None:
    with contextlib.ExitStack() as stack:
        running = contextlib.ExitStack()
        url = running.enter_context(served(True))
        env = stack.enter_context(environment(url))
        env.reset(seed=0)
        env.step("<tool>big(3)</tool>")
        running.close()
        with pytest.raises(mm_gym.EnvironmentFailure):
            env.step("<tool>big(3)</tool>")
        with pytest.raises(mm_gym.EnvironmentFailure, match="can't be used"):
            env.reset(seed=0)
