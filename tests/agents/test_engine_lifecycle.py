"""Own rollout functions, sinks, asynchronous callers, Ctrl-C, Ray, and what is left over at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from faulty_env import ENV_ID
from scripted import CharRenderer, ScriptedPolicy

from agents.engine import EpisodeContext, RolloutEngine
from agents.store import TrajectoryStore, read_trajectories
from agents.types import Task, Trajectory
from mm_gym import StopReason

ROOT = Path(__file__).resolve().parents[2]


def test_a_rollout_function_by_dotted_path_replaces_the_loop():
    rollout = "agents.rollouts:stop_when_stuck"
    with RolloutEngine(ScriptedPolicy(), CharRenderer(), rollout=rollout) as engine:
        stuck = engine.collect([Task(ENV_ID, {"length": 20})])[0]
    assert len(stuck.turns) == 3
    assert stuck.stop_reason == StopReason.ABORTED
    assert stuck.reward == 0.25
    assert stuck.metrics["stuck"] == 1.0
    varied = ScriptedPolicy(lambda request: f"reply {len(request.token_ids)}")
    with RolloutEngine(varied, CharRenderer(), rollout=rollout) as engine:
        assert engine.collect([Task(ENV_ID, {"length": 20})])[0].reward == 1.0


def test_a_failure_that_a_rollout_function_does_not_catch_masks_the_trajectory(tmp_path):
    fault = {"kind": "failure", "turn": 1, "times": 1000, "ledger": str(tmp_path)}
    with RolloutEngine(ScriptedPolicy(), CharRenderer(), rollout="agents.rollouts.stop_when_stuck") as engine:
        assert engine.collect([Task(ENV_ID, options={"fault": fault})])[0].masked


def test_an_unknown_rollout_function_is_named():
    with pytest.raises(ValueError, match="no_such"):
        RolloutEngine(ScriptedPolicy(), CharRenderer(), rollout="agents.rollouts:no_such")


def test_a_rollout_function_may_be_anything_awaitable():
    async def one_turn(context: EpisodeContext) -> Trajectory:
        context.stream.begin(await context.reset())
        action = await context.generate(8)
        assert action is not None
        context.stream.take(await context.step(action))
        context.record_turn()
        context.stream.settle(StopReason.MAX_TURNS, *await context.finish(StopReason.MAX_TURNS))
        return context.trajectory

    with RolloutEngine(ScriptedPolicy(), CharRenderer(), rollout=one_turn) as engine:
        trajectory = engine.collect([Task(ENV_ID)])[0]
    assert len(trajectory.turns) == 1
    assert trajectory.reward == 0.25


def test_every_episode_reaches_the_sink(tmp_path):
    store = TrajectoryStore(tmp_path)
    with RolloutEngine(ScriptedPolicy(), CharRenderer(), on_trajectory=store.append) as engine:
        collected = engine.collect([Task(ENV_ID, seed=i, group=i) for i in range(5)])
    stored = list(read_trajectories(tmp_path))
    assert sorted(t.task.seed for t in stored) == [t.task.seed for t in collected]


def test_an_asynchronous_caller_is_not_blocked():
    async def main() -> tuple[list[Trajectory], int]:
        ticks = 0
        collecting = asyncio.ensure_future(engine.acollect([Task(ENV_ID, {"latency": 0.05})]))
        while not collecting.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return await collecting, ticks

    with RolloutEngine(ScriptedPolicy(), CharRenderer()) as engine:
        (trajectory,), ticks = asyncio.run(main())
    assert trajectory.reward == 1.0
    assert ticks > 3


def test_a_closed_engine_says_so_and_closes_twice():
    engine = RolloutEngine(ScriptedPolicy(), CharRenderer())
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.collect([Task(ENV_ID)])


def test_a_dropped_engine_closes_its_environments():
    engine = RolloutEngine(ScriptedPolicy(), CharRenderer(), workers="process")
    engine.collect([Task(ENV_ID)])
    children = {p.pid for p in psutil.Process().children(recursive=True)}
    assert children
    del engine
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and children & {
        p.pid for p in psutil.Process().children(recursive=True)
    }:
        time.sleep(0.05)
    assert not children & {p.pid for p in psutil.Process().children(recursive=True)}


SCRIPT = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
sys.path[:0] = [{root!r}, {here!r}]
from scripted import CharRenderer, ScriptedPolicy
from agents.engine import RolloutEngine
from agents.types import Task
from faulty_env import ENV_ID
engine = RolloutEngine(ScriptedPolicy(), CharRenderer(), workers="process")
engine.collect([Task(ENV_ID)])

def tell():
    while engine.open_environments < 3:
        time.sleep(0.01)
    print("ready", flush=True)

threading.Thread(target=tell, daemon=True).start()
try:
    engine.collect([Task(ENV_ID, {{"length": 1000, "latency": 0.05}}, group=i) for i in range(3)])
except KeyboardInterrupt:
    print("interrupted", engine.open_environments, engine.policy.running, flush=True)
    engine.close()
"""


def start_script() -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A process that is collecting in three child processes, and those."""
    here = Path(__file__).resolve().parent
    code = SCRIPT.format(root=str(ROOT), here=str(here))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process, psutil.Process(process.pid).children(recursive=True)


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=60)
    return not [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_ctrl_c_closes_every_environment_and_stops_the_policy():
    process, children = start_script()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert output == "interrupted 0 False\n"
    assert gone(children)


def test_children_die_with_a_killed_engine():
    process, children = start_script()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    with contextlib.suppress(psutil.NoSuchProcess):
        assert gone(children)


def test_many_collections_leave_no_thread_or_file_behind():
    own = psutil.Process()
    with RolloutEngine(ScriptedPolicy(), CharRenderer(), workers="process") as engine:
        engine.collect([Task(ENV_ID)])
    threads, files = own.num_threads(), own.num_fds()
    for _ in range(5):
        with RolloutEngine(ScriptedPolicy(), CharRenderer(), workers="process") as engine:
            engine.collect([Task(ENV_ID, group=i) for i in range(3)])
    deadline = time.monotonic() + 60  # a thread ends a moment after its last job
    while own.num_threads() > threads and time.monotonic() < deadline:
        time.sleep(0.05)
    assert own.num_threads() <= threads
    assert own.num_fds() <= files


def test_environments_live_in_ray_actors(tmp_path):
    """Results, a dead actor's replacement and a hung one's, on a local Ray."""
    ray = pytest.importorskip("ray")
    from agents.engine import Timeouts

    here = str(Path(__file__).resolve().parent)
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([str(ROOT), here])}},
    )
    try:
        tasks = [Task(ENV_ID)]
        for group, kind in enumerate(("death", "hang"), start=1):
            fault = {"kind": kind, "turn": 2, "ledger": str(tmp_path / kind)}
            tasks.append(Task(ENV_ID, options={"fault": fault}, group=group))
        timeouts = Timeouts(reset=30.0, step=3.0)
        with RolloutEngine(ScriptedPolicy(), CharRenderer(), workers="ray", timeouts=timeouts) as engine:
            clean, dead, hung = engine.collect(tasks)
        assert clean.reward == dead.reward == hung.reward == 1.0
        assert dead.failures == {"worker_death": 1}
        assert hung.failures == {"timeout": 1}
        assert clean.token_ids == dead.token_ids == hung.token_ids
        assert engine.open_environments == 0
    finally:
        ray.shutdown()
