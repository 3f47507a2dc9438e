"""README and docs are run: every Python block, its printed output, and the commands that train."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import CodeType

import gymnasium
import pytest
import yaml
from typer.testing import CliRunner

import mm_gym

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENVIRONMENTS = sorted((ROOT / "docs/environments").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def a_model() -> dict[str, object]:
    """`model` and `processor`, as the page says that they are there."""
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    from train.tiny import build_tiny_vlm

    build_tiny_vlm("tiny", layers=1)
    model = Qwen3VLForConditionalGeneration.from_pretrained("tiny").eval()
    return {"model": model, "processor": AutoProcessor.from_pretrained("tiny")}


def some_trajectories() -> dict[str, object]:
    """`trajectories`, of solved episodes."""
    from agents.types import Task, Trajectory

    env = gymnasium.make("mm_gym/Pointing-v0")
    episodes = [mm_gym.play(env, mm_gym.expert(env), seed=seed) for seed in range(3)]
    return {
        "trajectories": [
            Trajectory(Task("mm_gym/Pointing-v0", seed=i), episode=episode, reward=1.0)
            for i, episode in enumerate(episodes)
        ]
    }


def a_taskset() -> dict[str, object]:
    """`tasks.jsonl`, a taskset for the 2048 server."""
    from mm_gym.mcp.servers.tasks_2048 import tasks

    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tasks(count=10)))
    return {}


def an_app() -> dict[str, object]:
    """The page's own app, in the folder that the page names."""
    blocks = fences(ROOT / "docs/apps.md")
    folder = Path("path/to/demo")
    folder.mkdir(parents=True)
    (folder / "index.html").write_text(next(code for language, code in blocks if language == "html"))
    (folder / "tasks.yaml").write_text(next(code for language, code in blocks if language == "yaml"))
    (folder / "app.py").write_text(next(code for _, code in blocks if "TASKS = [" in code))
    return {}


PREPARED = {
    "docs/rollouts.md": a_model,
    "docs/trajectories.md": some_trajectories,
    "docs/mcp.md": a_taskset,
    "docs/apps.md": an_app,
}


def run_block(code: CodeType, namespace: dict[str, object]) -> None:
    try:
        exec(code, namespace)
    except gymnasium.error.DependencyNotInstalled as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path, monkeypatch):
    """Blocks of a page share a namespace; a `text` block after one is what it prints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    namespace: dict[str, object] = {"__name__": "page", **PREPARED.get(name(page), dict)()}
    blocks = fences(page)
    for i, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run_block(compile(code, f"{page.name}:block {i}", "exec"), namespace)
        if i + 1 < len(blocks) and blocks[i + 1][0] == "text":
            assert printed.getvalue() == blocks[i + 1][1]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_files_that_a_page_names_are_there(page: Path):
    text = page.read_text(encoding="utf-8")
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if not link.startswith("http")]
    missing = [link for link in local if not (page.parent / link).exists()]
    named = re.findall(r"(?<![\w/.])((?:configs|train|docs|notebooks)/[\w/.-]+\.(?:yaml|py|md|ipynb))", text)
    missing += [path for path in named if not (ROOT / path).exists()]
    assert missing == []


def raised_text() -> str:
    """All text of our code, with each value that is put into a message as NUL."""
    files = [path for folder in ("mm_gym", "agents", "train") for path in (ROOT / folder).rglob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    joined = re.sub(r'"\s*\n\s*f?"', "", code).replace("`", "")
    return re.sub(r"\{[^{}\n]*\}", "\0", joined)


FOREIGN = ("No module named", "make_vec(", "ConnectionResetError", "two processes were asked for")
"""Messages of other packages, and symptoms without one."""


def test_messages_that_troubleshooting_explains_are_still_ours():
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    messages = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][1:]
    ours = [m.strip("`") for m in messages if m.startswith("`") and not m.strip("`").startswith(FOREIGN)]
    code, gone = raised_text(), []
    for message in ours:
        parts = re.split(r"\.\.\.|\b[NM]\b|'[^']*'|/\S+", message.split("`")[0])
        pattern = ".{0,80}?".join(re.escape(part.strip()) for part in parts if part.strip())
        if not pattern or not re.search(pattern, code, re.DOTALL):
            gone.append(message)
    assert gone == []
    assert len(ours) > 15


def script_of_the_docs(stem: str):
    """docs/<stem>.py as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{stem}", ROOT / f"docs/{stem}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_site_shows_every_page():
    def leaves(node):
        if isinstance(node, str):
            return {node}
        return set().union(*map(leaves, node.values() if isinstance(node, dict) else node))

    shown = leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert shown == {p.relative_to(ROOT / "docs").as_posix() for p in PAGES if p.parent != ROOT}


def test_the_walk_shows_the_commands_that_are_walked():
    walk = script_of_the_docs("walk")
    blocks = [code.splitlines() for language, code in fences(ROOT / "docs/walk.md") if language == "bash"]
    assert blocks == [list(stage.commands) for stage in walk.stages()], "run `python docs/walk.py --commands`"


def test_the_walks_times_are_the_differences_of_its_marks(tmp_path: Path):
    walk = script_of_the_docs("walk")
    short = [
        walk.Stage("A sleep", ("sleep 0.2", "cd . && true")),
        walk.Stage("A sum", (f"{sys.executable} -c 'sum(range(3000000))'",), before="export X=1"),
    ]
    spent = walk.walked(short, tmp_path)
    assert [len(row) for row in spent] == [2, 1]
    assert spent[0][0].wall >= 0.2
    assert spent[0][0].processor < 0.15
    assert spent[1][0].processor > 0.01
    page = walk.written(short, spent, "Here.")
    assert page.count("Times: ") == 2
    assert "| a sleep |" in page


def test_tables_of_the_docs_are_fresh():
    tables = script_of_the_docs("tables")
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if tables.written(text) != text:
            stale.append(name(page))
    assert stale == [], "run `python docs/tables.py`"


def test_every_environment_has_a_page_with_options_a_picture_and_a_way_to_play():
    for env_id in [*mm_gym.registry.IDS, "mm_gym/Judged-v0"]:
        (page,) = [p for p in ENVIRONMENTS if env_id in p.read_text() and p.stem != "index"][:1]
        text = page.read_text(encoding="utf-8")
        assert "<!-- options " in text
        assert re.search(r"!\[.+\]\(\.\./images/environments/\w+\.png\)", text)
        assert "mm-gym play " in text


def test_the_number_of_families_that_the_page_names_is_right():
    from mm_gym.geo3k.generator import FAMILIES

    assert f"{len(FAMILIES)} families" in (ROOT / "docs/environments/geo3k.md").read_text()


def plays() -> list[str]:
    return [
        line.strip()
        for page in ENVIRONMENTS
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("mm-gym play ")
    ]


@pytest.mark.parametrize("command", plays())
def test_what_pages_say_to_play_can_be_played(command: str):
    from mm_gym.cli import build

    result = CliRunner().invoke(build(), [*shlex.split(command)[1:], "--expert"])
    if isinstance(result.exception, gymnasium.error.DependencyNotInstalled):
        pytest.skip(str(result.exception))
    assert result.exit_code == 0, result.output
    assert "solved, return 1" in result.output


@pytest.mark.train
def test_the_readmes_own_environment_trains_by_the_readmes_command(tmp_path: Path):
    blocks = fences(ROOT / "README.md")
    (code,) = [code for language, code in blocks if language == "python" and "class Bars" in code]
    (command,) = [code for language, code in blocks if language == "bash" and "bars:Bars-v0" in code]
    (tmp_path / "bars.py").write_text(code)
    words = shlex.split(command)
    assert words[:3] == ["accelerate", "launch", "train/grpo.py"]
    words[2] = str(ROOT / words[2])
    launcher = Path(sys.executable).with_name("accelerate")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [str(launcher), *words[1:]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    assert "held-out" in result.stdout
    assert (tmp_path / "runs/bars/model/config.json").is_file()
    assert (tmp_path / "runs/bars/rollouts.html").is_file()


def test_make_targets_that_the_readme_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"make (\w[\w-]*)", (ROOT / "README.md").read_text()))
    assert {"quickstart", "test"} <= named
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)
