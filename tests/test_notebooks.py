"""The notebooks: run from scratch, and committed with outputs that show results and name no machine."""

from __future__ import annotations

import getpass
import importlib.util
import re
import socket
from pathlib import Path

import pytest
from gymnasium.error import DependencyNotInstalled

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SIZE_LIMIT = 700_000
PATHS = re.compile(r"/(?:work|root|home|tmp|Users|mnt|data|opt|usr)/\w|[A-Z]:\\\\Users")
HOSTS = re.compile(r"https?://([\w.-]+)")
ALLOWED_HOSTS = {"mm-gym.test", "www.w3.org"}


def runner():
    spec = importlib.util.spec_from_file_location("notebooks_run", ROOT / "notebooks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(path: Path) -> str:
    """All text of a notebook's outputs, pictures left out."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            parts += [output.get("text", ""), *(data[kind] for kind in data if kind.startswith("text/"))]
    return re.sub(r"data:image/png;base64,[\w+/=]+", "", "\n".join(parts))


def needs_a_browser(path: Path) -> None:
    from mm_gym.computer.install import find_browser

    if path.stem == "computer_use":
        try:
            find_browser()
        except DependencyNotInstalled as missing:
            pytest.skip(str(missing))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_scratch(path: Path, tmp_path: Path):
    needs_a_browser(path)
    notebook = runner().execute(path, tmp_path)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_outputs_for_readers(path: Path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1)), "run `make notebooks`"
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert sum("image/png" in str(o) for o in outputs) >= 2, "people would rather look than read"
    assert path.stat().st_size < SIZE_LIMIT


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_name_no_machine(path: Path):
    text = shown(path)
    assert PATHS.findall(text) == []
    assert set(HOSTS.findall(text)) <= ALLOWED_HOSTS
    named = {socket.gethostname(), getpass.getuser()} - {"root", "localhost", ""}
    assert [name for name in named if re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_the_ones_that_the_docs_name_are_there():
    named = re.findall(r"notebooks/(\w+)\.ipynb", (ROOT / "docs/index.md").read_text())
    assert {"geo3k", "computer_use", "rollouts"} <= set(named) <= {path.stem for path in NOTEBOOKS}
