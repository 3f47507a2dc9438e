"""What MCP costs: steps per second by transport, and what our layer adds to the bare SDK's call.

    python tests/benchmarks/bench_mcp.py            # a table, and JSON with --json FILE

The same small server (a tool that answers a text, one that answers a picture) is called in turns, so that
noise meets all: by the SDK's own client on asyncio ("bare"), by the same from a caller that blocks, as any
`env.step` must ("blocking"), and by `env.step` of MCP-v0. "CPU" is the client's processor time a call, which a
loaded machine changes least.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from PIL import Image as PILImage

import mm_gym  # noqa: F401

ME = str(Path(__file__).resolve())
TEXT, PICTURE = '<tool>say("hello")</tool>', "<tool>show()</tool>"
CONFIG = {
    "parser": {"use_thinking": False},
    "defaults": {"max_turns": 1_000_000},
    "action_mappings": {
        "say": {"_tool": "say", "_parser": {"positional": ["text"]}, "text": {"from_arg": "text"}},
        "show": {"_tool": "show"},
    },
}


def make_server() -> Any:
    """`say` answers its text, `show` a picture whose base64 takes about 250 kB."""
    from mcp.server.mcpserver import MCPServer

    from mm_gym.mcp.servers.common import content

    server = MCPServer("bench", log_level="WARNING")
    noise = np.random.default_rng(0).integers(0, 256, (250, 250, 3), dtype=np.uint8)
    picture = content(PILImage.fromarray(noise))

    @server.tool(structured_output=False)
    async def say(text: str) -> str:
        """Say it again."""
        return text

    @server.tool(structured_output=False)
    async def show() -> Any:
        """Show a picture."""
        return picture

    return server


class Bare:
    """The SDK's own client on a loop of its own thread; `call` is timed inside the loop."""

    def __init__(self, target: Any) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stop = asyncio.Event()
        self._ready: Any = None
        self._target = target

    def __enter__(self) -> Bare:
        ready = threading.Event()

        async def keep() -> None:
            from mcp import Client

            async with Client(self._target) as self._client:
                await self._client.list_tools()
                ready.set()
                await self._stop.wait()

        self._task = asyncio.run_coroutine_threadsafe(keep(), self._loop)
        if not ready.wait(60):
            raise RuntimeError("the bare client did not connect")
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._task.result(10)

    def times(self, tool: str, arguments: dict[str, Any], count: int) -> list[float]:
        async def run() -> list[float]:
            taken = []
            for _ in range(count):
                start = time.perf_counter()
                await self._client.call_tool(tool, arguments)
                taken.append(time.perf_counter() - start)
            return taken

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(300)

    def blocking_times(self, tool: str, arguments: dict[str, Any], count: int) -> list[float]:
        """Of calls by a thread that waits for each."""
        taken = []
        for _ in range(count):
            start = time.perf_counter()
            call = self._client.call_tool(tool, arguments)
            asyncio.run_coroutine_threadsafe(call, self._loop).result(60)
            taken.append(time.perf_counter() - start)
        return taken


def step_times(env: Any, action: str, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        env.step(action)
        taken.append(time.perf_counter() - start)
    return taken


@contextlib.contextmanager
def http_url() -> Iterator[str]:
    command = [sys.executable, ME, "--serve", "--http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("listening on "))
        yield line.split()[-1]
    finally:
        process.kill()
        process.wait()


def measure(transport: str, rounds: int, calls: int) -> dict[str, float]:
    """Median times in milliseconds of one transport."""
    from mcp import StdioServerParameters

    with contextlib.ExitStack() as stack:
        if transport == "in process":
            target, server = make_server(), {"python": "bench_mcp:make_server"}
        elif transport == "stdio":
            target = StdioServerParameters(command=sys.executable, args=[ME, "--serve"])
            server = {"command": "python", "args": [ME, "--serve"]}
        else:
            target = stack.enter_context(http_url())
            server = {"url": target}
        row = {"id": "b", "prompt": "Go.", "mcp_config": {"b": server}}
        bare = stack.enter_context(Bare(target))
        env = gymnasium.make("mm_gym/MCP-v0", config=CONFIG, taskset=[row], disable_env_checker=True)
        stack.callback(env.close)
        start = time.perf_counter()
        env.reset(seed=0)
        connect = time.perf_counter() - start
        hello = {"text": "hello"}
        text_calls: dict[str, Callable[[], list[float]]] = {
            "bare": lambda: bare.times("say", hello, calls),
            "blocking": lambda: bare.blocking_times("say", hello, calls),
            "step": lambda: step_times(env, TEXT, calls),
        }
        found: dict[str, list[float]] = {name: [] for name in (*text_calls, "bare picture", "step picture")}
        used: dict[str, list[float]] = {name: [] for name in text_calls}
        for _ in range(rounds):
            for name, call in text_calls.items():
                before = time.process_time()
                found[name] += call()
                used[name].append((time.process_time() - before) / calls)
            found["bare picture"] += bare.times("show", {}, calls // 4)
            found["step picture"] += step_times(env, PICTURE, calls // 4)
            env.reset(seed=0)  # so that the record of turns stays short
    result = {name: 1e3 * statistics.median(times) for name, times in found.items()}
    result |= {f"{name} CPU": 1e3 * statistics.median(times) for name, times in used.items()}
    result["connect"] = 1e3 * connect
    result["steps per second"] = 1e3 / result["step"]
    result["added"] = result["step"] - result["blocking"]
    return result


def layer(count: int) -> float:
    """Milliseconds of a text step that are ours alone: all but the SDK's call itself."""
    row = {"id": "b", "prompt": "Go.", "mcp_config": {"b": {"python": "bench_mcp:make_server"}}}
    env = gymnasium.make("mm_gym/MCP-v0", config=CONFIG, taskset=[row], disable_env_checker=True)
    env.reset(seed=0)
    servers: Any = env.unwrapped._servers  # type: ignore[attr-defined]
    result = servers.call("say", {"text": "hello"}, 10)
    servers.call = lambda *_: result
    taken = step_times(env, TEXT, count)
    env.close()
    return 1e3 * statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--http", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--host", default="127.0.0.1", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        from mm_gym.mcp.servers.common import run_server

        run_server(make_server(), arguments)
        return
    sys.modules.setdefault("bench_mcp", sys.modules["__main__"])
    report: Callable[[str], Any] = lambda line: sys.stdout.write(line + "\n")  # noqa: E731
    columns = ("bare", "blocking", "step", "added", "bare CPU", "step CPU", "bare picture", "step picture")
    columns += ("connect", "steps per second")
    report(f"{'p50, ms':<12}" + "".join(f"{name:>17}" for name in columns))
    results = {}
    for transport in ("in process", "stdio", "http"):
        results[transport] = found = measure(transport, arguments.rounds, arguments.calls)
        report(f"{transport:<12}" + "".join(f"{found[name]:>17.2f}" for name in columns))
    ours = layer(1_000)
    stdio = results["stdio"]
    report(f"parsing, mapping, rubric, messages of a text step, without the call: {ours:.3f} ms")
    report(
        f"a stdio step against the SDK's call: {stdio['step'] / stdio['blocking'] - 1:+.0%} from a caller "
        f"that blocks, {stdio['step'] / stdio['bare'] - 1:+.0%} from within its loop"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({"transports": results, "layer_ms": ours}, indent=1))


if __name__ == "__main__":
    main()
