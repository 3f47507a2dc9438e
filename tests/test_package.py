"""The package as a whole: layers, lightness, names, and what the wheel holds."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "transformers", "trl", "datasets", "vllm", "mcp", "playwright", "sympy", "pandas")


def run(code: str, *, cwd: Path = ROOT, path: str | None = str(ROOT)) -> str:
    """Run code in a fresh interpreter, with `path` first on its search path, and return what it prints."""
    prelude = f"import sys; sys.path.insert(0, {path!r})\n" if path else ""
    result = subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def loaded_by(statement: str) -> set[str]:
    return set(run(f"{statement}\nprint(' '.join(m.split('.')[0] for m in sys.modules))").split())


def test_importing_mm_gym_loads_nothing_heavy():
    assert loaded_by("import mm_gym").isdisjoint({*HEAVY, "agents", "train"})


def test_importing_every_module_of_mm_gym_loads_no_upper_layer():
    modules = sorted(
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in (ROOT / "mm_gym").rglob("*.py")
        if p.name not in ("__init__.py", "__main__.py")
    )
    loaded = loaded_by(
        "import importlib, gymnasium\n"
        f"for name in {modules!r}:\n"
        "    try: importlib.import_module(name)\n"
        "    except gymnasium.error.DependencyNotInstalled: pass"
    )
    assert loaded.isdisjoint({"agents", "train", "torch", "transformers", "trl"})


def test_importing_every_module_of_agents_loads_neither_trl_nor_train():
    modules = sorted(
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in (ROOT / "agents").rglob("*.py")
        if p.name not in ("__init__.py", "__main__.py")
    )
    loaded = loaded_by(f"import importlib\nfor name in {modules!r}: importlib.import_module(name)")
    assert loaded.isdisjoint({"trl", "train"})


def test_importing_agents_alone_is_light():
    assert loaded_by("import agents").isdisjoint({"torch", "transformers", "trl", "vllm"})


def test_only_one_module_of_train_names_trl_internals():
    """`_generate` and its like are TRL's private names; `train/trainer.py` alone may know them."""
    private = ("_generate_single_turn", "_generate_and_score_completions", "_get_per_token_logps")
    knowing = {
        p.name for p in (ROOT / "train").glob("*.py") if any(name in p.read_text() for name in private)
    }
    assert knowing <= {"trainer.py"}


def test_no_file_of_train_bears_the_name_of_another_module():
    """A script's own folder comes first on `sys.path`: train/datasets.py would break trl."""
    installed = set(metadata.packages_distributions()) - {"agents", "train", "mm_gym"}
    ours = {p.stem for p in (ROOT / "train").glob("*.py")} - {"__init__"}
    assert ours.isdisjoint(installed | set(sys.stdlib_module_names))


def test_agents_of_the_checkout_win_over_an_installed_openai_agents():
    pytest.importorskip("agents")
    if "openai-agents" not in {d.metadata["Name"] for d in metadata.distributions()}:
        pytest.skip("openai-agents, which also imports as `agents`, is not installed")
    out = run("import agents; print(agents.__file__)")
    assert Path(out.strip()).parent == ROOT / "agents"


def test_the_wheel_holds_mm_gym_alone(tmp_path: Path):
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"mm_gym"}
    assert "mm_gym/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)


def test_version_is_the_installed_one():
    assert run("import mm_gym; print(mm_gym.__version__)").strip() == metadata.version("mm-gym")


def test_nothing_committed_names_a_path_of_a_machine():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    machine = "/" + "work/main"  # split, or this very line would be found
    found = [
        name
        for name in files.splitlines()
        if (ROOT / name).suffix in (".py", ".md", ".yaml", ".toml", ".html", ".js", ".ipynb", "")
        and (ROOT / name).is_file()
        and machine in (ROOT / name).read_text(errors="replace")
    ]
    assert found == []
