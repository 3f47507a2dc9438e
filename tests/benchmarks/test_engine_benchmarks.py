"""Small runs of the engine's benchmarks: that they run and what must hold, not how fast."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "agents"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_chaos_every_trajectory_is_accounted_for_and_nothing_is_left(tmp_path, workers):
    from bench_chaos import check, report, run_chaos

    run_chaos(4, workers, tmp_path / "warm")
    outcome = run_chaos(240, workers, tmp_path, step_timeout=2.0)
    check(outcome)
    assert any(t.masked for t in outcome.trajectories)
    assert any(t.failures and not t.masked for t in outcome.trajectories)
    assert f"{workers}: 240 episodes" in report(outcome)


def test_overhead_is_measured_on_whole_episodes():
    from bench_engine_overhead import measure

    row = measure(8)
    assert row.per_second > 0
    assert row.per_cpu_second > 0


@pytest.mark.train
def test_both_loops_sample_the_same_number_of_tokens_and_see_the_same_pictures(tmp_path):
    pytest.importorskip("trl")
    from bench_engine_vs_trl import Load, run_engine, run_trl, table

    from train.tiny import build_tiny_vlm

    load = Load(episodes=3, turns=2, tokens=4, median=0.02)
    directory = build_tiny_vlm(tmp_path / "tiny", max_pixels=96 * 96)
    rows = [run_trl(directory, load), run_engine(directory, load, lockstep=True), run_engine(directory, load)]
    assert {row.sampled_tokens for row in rows} == {3 * 2 * 4}
    assert {row.images for row in rows} == {3 * 2}
    assert "environment_factory" in table(rows, load)


@pytest.mark.vllm
@pytest.mark.xdist_group("vllm")
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM")
def test_vllm_takes_more_prompts_at_once_than_fit_one_batch():
    """48 streams are more than vLLM computes in one step: on a CPU a split one used to stop the engine."""
    script = HERE / "bench_engine_vllm.py"
    command = [sys.executable, str(script), "--episodes", "48", "--turns", "4", "--tokens", "24"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("vLLM, ")]
    assert [row[-4] for row in rows] == [str(48 * 4 * 24)] * 2


def test_benchmarks_are_run_by_name_and_unknown_names_are_told():
    run = [sys.executable, str(HERE / "run.py")]
    done = subprocess.run([*run, "engine_overhead"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "turns per CPU second" in done.stdout
    assert "bench_engine_overhead" in done.stdout.split("== summary ==")[1]
    wrong = subprocess.run([*run, "nothing"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 1
    assert "no benchmark nothing" in wrong.stderr
