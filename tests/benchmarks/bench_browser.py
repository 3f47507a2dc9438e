"""MiniWoB++ here against BrowserGym and Farama's miniwob with Selenium: same tasks, actions and machine.

    python tests/benchmarks/bench_browser.py                       # all three, then our scaling
    python tests/benchmarks/bench_browser.py --skip-peers          # ours alone

Prerequisites on Debian: `apt-get install -y chromium chromium-driver chromium-headless-shell`. The peers pin
other versions of what we use, so the script makes a virtual environment for each (in `--venvs`).

Every worker does the same: reset a task, click twice where nothing is (each step returns a screenshot), then
next episode. Reported are medians in milliseconds, and episodes a second back to back. `ours_warm` pauses
before each reset, as a model's thinking does, so that the pool has the next page ready; `ours` does not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TASKS = ("click-test-2", "click-button", "enter-text")
PEERS = {"browsergym": "browsergym-miniwob==0.14.3", "farama": "miniwob==1.1.0"}
NOWHERE = (155, 205)
SHELL = "/usr/lib/chromium/chromium-headless-shell"


def measure(
    reset: Callable[[int], Any], step: Callable[[], Any], episodes: int, steps: int, think: float = 0.0
) -> dict[str, float]:
    """Medians of resets and steps in ms, and the rate of whole episodes."""
    reset(0)
    step()  # both warm
    resets, clicks = [], []
    start = time.perf_counter()
    for episode in range(episodes):
        time.sleep(think)
        begun = time.perf_counter()
        reset(episode + 1)
        resets.append(time.perf_counter() - begun)
        for _ in range(steps):
            begun = time.perf_counter()
            step()
            clicks.append(time.perf_counter() - begun)
    return {
        "reset_ms": statistics.median(resets) * 1e3,
        "step_ms": statistics.median(clicks) * 1e3,
        "episodes_per_s": episodes / (time.perf_counter() - start),
    }


def ours(size: tuple[int, int], episodes: int, steps: int, think: float = 0.0) -> list[dict[str, float]]:
    import gymnasium

    import mm_gym  # noqa: F401  (registers the ids)

    x, y = NOWHERE
    click = {"name": "computer", "arguments": {"action": "click", "x": x, "y": y}}
    action = f"<tool_call>{json.dumps(click)}</tool_call>"
    results = []
    for task in TASKS:
        env = gymnasium.make("mm_gym/MiniWoB-v0", task=task, dialect="hud", screen_size=size, max_turns=1000)
        reset = lambda seed, env=env: env.reset(seed=seed)  # noqa: E731
        results.append(measure(reset, lambda env=env: env.step(action), episodes, steps, think))
        env.close()
    return results


def browsergym(size: tuple[int, int], episodes: int, steps: int) -> list[dict[str, float]]:
    import importlib.util

    import gymnasium

    pages = Path(importlib.util.find_spec("miniwob").submodule_search_locations[0])  # type: ignore
    os.environ["MINIWOB_URL"] = f"file://{pages}/html/miniwob/"
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = _as_playwrights_own(
        SHELL
    )  # its chat window starts one by that name
    import browsergym.miniwob  # noqa: F401  # type: ignore

    x, y = NOWHERE
    results = []
    for task in TASKS:
        env = gymnasium.make(
            f"browsergym/miniwob.{task}",
            viewport=None if size == (160, 210) else {"width": size[0], "height": size[1]},
            pw_chromium_kwargs={"executable_path": SHELL},
            action_mapping=lambda code: code,
        )
        reset = lambda seed, env=env: env.reset(seed=seed)  # noqa: E731
        step = lambda env=env: env.step(f"page.mouse.click({x}, {y})")  # noqa: E731
        results.append(measure(reset, step, episodes, steps))
        env.close()
    return results


def _as_playwrights_own(executable: str) -> str:
    """A folder in which Playwright finds `executable` as the Chromium that it would have downloaded."""
    import playwright

    listed = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
    browsers = json.loads(listed.read_text())["browsers"]
    revision = next(b["revision"] for b in browsers if b["name"] == "chromium")
    folder = Path(tempfile.mkdtemp())
    place = folder / f"chromium-{revision}" / "chrome-linux"
    place.mkdir(parents=True)
    (place / "chrome").symlink_to(executable)
    return str(folder)


def farama(size: tuple[int, int], episodes: int, steps: int) -> list[dict[str, float]]:
    import gymnasium
    import miniwob  # type: ignore
    from miniwob.action import ActionTypes  # type: ignore

    gymnasium.register_envs(miniwob)
    results = []
    for task in TASKS:
        env = gymnasium.make(f"miniwob/{task}-v1")
        action = env.unwrapped.create_action(ActionTypes.CLICK_COORDS, coords=list(NOWHERE))  # type: ignore
        reset = lambda seed, env=env: env.reset(seed=seed)  # noqa: E731
        results.append(measure(reset, lambda env=env, action=action: env.step(action), episodes, steps))
        env.close()
    return results


def scaling(counts: tuple[int, ...], seconds: float) -> list[dict[str, float]]:
    """Steps a second and memory of ours with 1 to 64 environments, one thread each."""
    import threading

    import gymnasium
    import psutil

    import mm_gym  # noqa: F401

    x, y = NOWHERE
    click = {"name": "computer", "arguments": {"action": "click", "x": x, "y": y}}
    action = f"<tool_call>{json.dumps(click)}</tool_call>"
    rows = []
    for count in counts:
        envs = [
            gymnasium.make("mm_gym/MiniWoB-v0", tasks=list(TASKS), dialect="hud", max_turns=10**6)
            for _ in range(count)
        ]
        for seed, env in enumerate(envs):
            env.reset(seed=seed)
        family = [psutil.Process(), *psutil.Process().children(recursive=True)]
        memory = sum(p.memory_full_info().pss for p in family[1:]) / 2**20
        done, stop = [0] * count, time.perf_counter() + seconds

        def run(
            index: int,
            envs: list[Any] = envs,
            done: list[int] = done,
            stop: float = stop,
        ) -> None:
            while time.perf_counter() < stop:
                envs[index].step(action)
                done[index] += 1

        begun = time.perf_counter()
        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = sum(done) / (time.perf_counter() - begun)
        rows.append(
            {"environments": count, "steps_per_s": rate, "browser_MiB": memory, "MiB_each": memory / count}
        )
        for env in envs:
            env.close()
    return rows


def worker(name: str, size: tuple[int, int], episodes: int, steps: int, python: str = sys.executable) -> dict:
    """Run a worker in its own interpreter; medians over the tasks."""
    command = [python, __file__, "--worker", name, "--size", f"{size[0]}x{size[1]}"]
    command += ["--episodes", str(episodes), "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    rows = json.loads(done.stdout.splitlines()[-1])
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def peer_python(name: str, folder: Path) -> str:
    """The interpreter of a peer's virtual environment, made if need be."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEERS[name], "miniwob==1.1.0"], check=True)
    return str(python)


def compare(arguments: argparse.Namespace) -> None:
    pythons = {} if arguments.skip_peers else {n: peer_python(n, Path(arguments.venvs)) for n in PEERS}
    for size in ((160, 210), (1280, 720)):
        table: dict[str, dict[str, float]] = {}
        for name in ("ours", "ours_warm", *pythons):
            if name == "farama" and size != (160, 210):
                continue  # it has one size
            few = name == "browsergym"
            episodes = arguments.episodes // 5 if few else arguments.episodes
            table[name] = worker(
                name, size, max(3, episodes), arguments.steps, pythons.get(name, sys.executable)
            )
        print(f"\n{size[0]}x{size[1]}        reset ms   step ms   episodes/s")
        for name, row in table.items():
            print(f"{name:12s} {row['reset_ms']:10.1f} {row['step_ms']:9.1f} {row['episodes_per_s']:10.2f}")
        for peer in set(table) & set(PEERS):
            warm, cold, other = table["ours_warm"], table["ours"], table[peer]
            print(
                f"against {peer}: step {other['step_ms'] / warm['step_ms']:.0f} times as fast, "
                f"warm reset {other['reset_ms'] / warm['reset_ms']:.0f}, "
                f"back to back {cold['episodes_per_s'] / other['episodes_per_s']:.0f}"
            )
    print("\nenvironments  steps/s  browser MiB  MiB each")
    for row in scaling((1, 4, 16, 64), arguments.seconds):
        print("{environments:12.0f} {steps_per_s:8.0f} {browser_MiB:12.0f} {MiB_each:9.1f}".format(**row))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worker", choices=("ours", "ours_warm", *PEERS))
    parser.add_argument("--size", default="160x210")
    parser.add_argument("--episodes", type=int, default=30)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--venvs", default=str(Path(tempfile.gettempdir()) / "mm_gym_bench_venvs"))
    arguments = parser.parse_args()
    if arguments.worker is None:
        compare(arguments)
        return
    width, height = map(int, arguments.size.split("x"))
    workers: dict[str, Callable[..., list[dict[str, float]]]] = {
        "ours": ours,
        "ours_warm": lambda *a: ours(*a, think=0.5),
        "browsergym": browsergym,
        "farama": farama,
    }
    print(json.dumps(workers[arguments.worker]((width, height), arguments.episodes, arguments.steps)))


if __name__ == "__main__":
    main()
