"""`mm-gym eval`: the real engine and store, a solver, a tiny model, a real HTTP endpoint, a real kill."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner
from vllm_server import SETTINGS

from agents.evaluation import eval_tasks
from agents.store import read_trajectories
from mm_gym.cli import build
from mm_gym.shards import read_rows

HERE = Path(__file__).resolve().parent
SLOW, FIXED = "eval_env:test/Slow-v0", "eval_env:test/Fixed-v0"


def invoke(*arguments: object):
    return CliRunner().invoke(build(), [str(a) for a in arguments])


def evaluated(*arguments: object) -> dict:
    result = invoke("eval", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def stored(folder: Path) -> list[dict]:
    rows = read_rows(folder / "rollouts" / "trajectories", ["group", "step", "masked", "task_id"])
    return sorted(rows, key=lambda row: (row["group"], row["step"]))


def test_the_solver_solves_and_its_figures_are_told(tmp_path):
    arguments = ["mm_gym/Pointing-v0", "--model", "expert", "-n", 8, "-o", tmp_path / "a"]
    told = evaluated(*arguments, "--env-args", '{"tasks": ["zoom"]}')
    assert told["success"] == pytest.approx({"value": 1.0, "low": 0.676, "high": 1.0, "tasks": 8}, abs=1e-3)
    assert (told["turns"], told["tools"], told["late_images"]) == (2.0, {"zoom": 8}, 1.0)
    assert told["stop_reasons"] == {"env_done": 8}
    assert told["audit"]["hints"] == []
    shown = invoke("eval", *arguments, "--env-args", '{"tasks": ["zoom"]}')
    assert "8 of 8 episodes are stored" in shown.output
    assert "100.0% (67.6% to 100.0%)" in shown.output


def test_guessing_from_other_tasks_is_the_chance_baseline(tmp_path):
    arguments = ["mm_gym/Pointing-v0", "--env-args", '{"tasks": ["cell"]}', "-n", 20, "-k", 3]
    told = evaluated(*arguments, "--model", "random", "-o", tmp_path / "a")
    assert 0.0 < told["success"]["value"] < 0.3  # one of nine cells
    passed = [told["pass_at"][k]["value"] for k in ("1", "2", "3")]
    assert passed == sorted(passed)
    assert passed[0] == pytest.approx(told["success"]["value"])
    assert told["success"]["tasks"] == 20
    assert told["episodes"] == 60


def test_a_solver_with_a_plan_is_followed_from_turn_to_turn_also_with_few_environments():
    """Plan: says one step more each time that it is asked; asked too often or too rarely it fails."""
    from agents.engine import RolloutEngine
    from agents.policies.solver import SolverPolicy
    from agents.types import Task

    tasks = [Task("eval_env:test/Plan-v0", seed=seed, group=seed) for seed in range(4)]
    for open_at_once in (1, 4):
        with RolloutEngine(SolverPolicy(max_open=open_at_once)) as engine:
            found = engine.collect(tasks)
        assert [t.success for t in found] == [True] * 4
        assert [len(t.turns) for t in found] == [3] * 4


def test_the_same_seed_gives_the_same_tasks_and_a_fixed_set_is_taken_once():
    few, many = eval_tasks(SLOW, 5, seed=3), eval_tasks(SLOW, 9, seed=3)
    assert many[:5] == few
    assert len({t.seed for t in many}) == 9
    assert [t.seed for t in eval_tasks(SLOW, 5, seed=4)] != [t.seed for t in few]
    names = [t.options["task"] for t in eval_tasks(FIXED, None, seed=3)]
    assert sorted(names) == ["a", "b", "c", "d", "e"]
    assert [t.options["task"] for t in eval_tasks(FIXED, 2, seed=3)] == names[:2]


def test_drawn_tasks_are_the_ones_that_training_holds_out():
    source = pytest.importorskip("train.tasks")
    held = source.TaskSource(SLOW, seed=7, stream=source.EVALUATION)
    assert [t.seed for t in eval_tasks(SLOW, 6, seed=7)] == [held.task(i).seed for i in range(6)]


def test_a_killed_evaluation_goes_on_without_redoing_an_episode(tmp_path):
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    kwargs = json.dumps({"ledger": str(ledger), "seconds": 0.1})
    arguments = ["eval", SLOW, "--model", "expert", "-n", 12, "-k", 2, "--env-args", kwargs]
    arguments += ["--concurrency", 2, "-o", tmp_path / "a"]
    command = [sys.executable, "-c", "from mm_gym.cli import main; main()", *map(str, arguments)]
    child = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(HERE)}, cwd=tmp_path)
    while child.poll() is None and len(list((tmp_path / "a").glob("rollouts/trajectories/*.parquet"))) < 4:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    done, before = stored(tmp_path / "a"), len(list(ledger.iterdir()))
    assert 4 <= len(done) < 24
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert f"{len(done)} of 24 episodes are stored" in result.stderr
    after = [(row["group"], row["step"]) for row in stored(tmp_path / "a")]
    assert after == [(task, sample) for task in range(12) for sample in range(2)]
    assert len(list(ledger.iterdir())) - before == 24 - len(done)
    assert json.loads(result.stdout)["episodes"] == 24


def test_samples_of_a_task_are_distinct_also_when_one_is_run_later(tmp_path):
    """The second sample alone must not repeat the first one's random stream."""
    from agents.engine import RolloutEngine
    from agents.evaluation import EvalRun, EvalSettings
    from agents.policies.solver import SolverPolicy

    env = "mm_gym/Pointing-v0"
    settings = EvalSettings(env, {"tasks": ["click"]}, {}, "random", "solver", samples=2)
    tasks = eval_tasks(env, 3, env_kwargs=settings.env_kwargs)
    whole = EvalRun(tmp_path / "whole", settings, tasks)
    late = EvalRun(tmp_path / "late", settings, tasks)
    with RolloutEngine(SolverPolicy("random")) as engine:
        whole.run(engine)
        jobs = late.missing()
        late.missing = lambda: [job for job in jobs if job.sample == 1]  # type: ignore[method-assign]
        late.run(engine)
    answers = {
        run: {(t.task.group, t.episode.actions[0]) for t in read_trajectories(run.rollouts)}
        for run in (whole, late)
    }
    assert len(answers[whole]) == 6
    assert answers[late] < answers[whole]


def test_another_evaluation_in_the_same_folder_is_refused(tmp_path):
    evaluated(FIXED, "--model", "expert", "-n", 2, "-o", tmp_path)
    more = evaluated(FIXED, "--model", "expert", "-n", 4, "-o", tmp_path)  # more tasks are welcome
    assert more["episodes"] == 4
    result = invoke("eval", FIXED, "--model", "random", "-n", 2, "-o", tmp_path)
    assert result.exit_code == 2
    assert "model was 'expert' and is 'random'" in result.stderr


def test_a_model_folder_is_evaluated_and_blanking_its_pictures_is_compared(tmp_path, tiny_vlm_dir):
    arguments = [SLOW, "--model", tiny_vlm_dir, "-n", 3, "--max-tokens", 6, "--temperature", 1]
    told = evaluated(*arguments, "-o", tmp_path / "sees", "--price-in", 2, "--price-out", 10)
    assert told["episodes"] == 3
    assert 0 < told["sampled_tokens"] <= 12
    assert told["cost"] == pytest.approx(3 * (2 * told["prompt_tokens"] + 10 * told["sampled_tokens"]) / 1e6)
    blind = evaluated(*arguments, "-o", tmp_path / "blind", "--blank-images")
    assert blind["prompt_tokens"] > 0
    said = [
        [t.episode.actions for t in read_trajectories(tmp_path / name / "rollouts")]
        for name in ("sees", "blind")
    ]
    assert said[0] != said[1]
    compared = evaluated("--compare", tmp_path / "sees", tmp_path / "blind")
    assert compared["tasks"] == 3
    assert compared["unpaired"] == 0
    assert compared["p_value"] == 1.0
    assert compared["low"] < 0 < compared["high"]


@pytest.mark.vllm
@pytest.mark.xdist_group("vllm")
@pytest.mark.timeout(300)
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM")
def test_a_model_folder_is_evaluated_by_vllm(tmp_path, tiny_vlm_dir):
    command = ["mm_gym/Pointing-v0", "--model", str(tiny_vlm_dir), "--backend", "vllm", "-n", "6", "--json"]
    limits = ["--max-tokens", "8", "--temperature", "1", "--max-episode-tokens", "1024"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from mm_gym.cli import main; main()",
            "eval",
            *command,
            *limits,
            "-o",
            str(tmp_path),
        ],
        env={**os.environ, **SETTINGS, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert (told["episodes"], told["lost"]) == (6, 0)
    trajectories = list(read_trajectories(tmp_path / "rollouts"))
    assert all(t.images and t.sampled_tokens and not t.masked for t in trajectories)


@pytest.fixture
def endpoint():
    """An OpenAI-compatible server whose `status` and `text` a test sets."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            message = {"role": "assistant", "content": server.text}
            usage = {"completion_tokens": 3, "total_tokens": 103}
            answer = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
            data = json.dumps(answer if server.status == 200 else {"error": "no such key"}).encode()
            self.send_response(server.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.text, server.status = "a", 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_endpoint_is_evaluated_with_its_own_token_counts(tmp_path, endpoint):
    url = f"http://127.0.0.1:{endpoint.server_port}/v1"
    told = evaluated(FIXED, "--model", "m", "--base-url", url, "-n", 0, "-o", tmp_path / "a")
    assert told["success"]["value"] == pytest.approx(0.2)
    assert (told["prompt_tokens"], told["sampled_tokens"]) == (100.0, 3.0)
    endpoint.status = 401
    refused = invoke("eval", FIXED, "--model", "m", "--base-url", url, "-o", tmp_path / "b")
    assert refused.exit_code == 2
    assert "no such key" in refused.stderr


def test_lost_episodes_give_their_own_exit_code_and_are_run_again(tmp_path):
    flag = tmp_path / "broken"
    flag.touch()
    arguments = ["eval", SLOW, "--model", "expert", "-n", 8, "-o", tmp_path / "a", "--json"]
    arguments += ["--env-args", json.dumps({"broken": str(flag)})]
    result = invoke(*arguments)
    told = json.loads(result.stdout)
    assert result.exit_code == 3
    assert 0 < told["lost"] < 8
    assert told["success"]["value"] == 1.0  # of those that were not lost
    flag.unlink()
    result = invoke(*arguments)
    assert result.exit_code == 0
    assert (json.loads(result.stdout)["lost"], json.loads(result.stdout)["episodes"]) == (0, 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name an environment and a --model"),
        (["no/Such-v0", "--model", "expert"], "Namespace no not found"),
        (["no_such_module:test/X-v0", "--model", "expert"], "no_such_module"),
        ([FIXED, "--model", "expert", "--env-args", "[1]"], "JSON object"),
        ([FIXED, "--model", "expert", "--env-args", '{"colour": 1}'], "colour"),
        ([SLOW, "--model", "expert", "-n", "0"], "without end"),
        ([FIXED, "--model", "no/such/folder"], "no model could be loaded"),
        ([FIXED, "--model", "expert", "--blank-images"], "look at pictures"),
        (["--compare", "nowhere", "nowhere"], "holds no trajectories"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    result = invoke("eval", *arguments)
    assert result.exit_code == 2, result.output
    assert said in result.stderr.replace("\n", " ")


def test_fail_under_is_for_scripts(tmp_path):
    arguments = ["eval", FIXED, "--model", "expert", "-n", 3, "-o", tmp_path]
    assert invoke(*arguments, "--fail-under", 1.0).exit_code == 0
    assert invoke(*arguments, "--fail-under", 1.01).exit_code == 1
