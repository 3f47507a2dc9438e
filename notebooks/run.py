"""Runs the notebooks from scratch and keeps their outputs: `make notebooks`, or `python notebooks/run.py NAME`.

People read notebooks on the web, so outputs are committed; what names a machine or a moment is taken out
(execution times, warnings on stderr). Each runs in a folder of its own, beside which stand the checkout's `runs`:
after `make quickstart` the notebook of rollouts shows that run, else it trains a very short one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
RICH = ("text/html", "image/png")


def notebooks() -> list[Path]:
    """All of them, in order of name."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path, folder: Path, *, timeout: int = 300) -> nbformat.NotebookNode:
    """Run a notebook's cells in a fresh kernel and return it with its outputs.

    Args:
        path: The notebook; it is not changed.
        folder: Where its kernel runs.
        timeout: Seconds that a cell may take.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed; the text holds the cell and the traceback.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment())
    return tidy(notebook)


def environment() -> dict[str, str]:
    """Of the kernel: as in an activated environment, at the root of the checkout."""
    first = {"PATH": str(Path(sys.executable).parent), "PYTHONPATH": str(FOLDER.parent)}
    joined = {
        name: os.pathsep.join(filter(None, [path, os.environ.get(name)])) for name, path in first.items()
    }
    return {**os.environ, **joined}


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without what differs from machine to machine and from run to run."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [_richest(output) for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def _richest(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An output in the one form that readers show."""
    if "data" in output:
        form = next(kind for kind in (*RICH, *output.data) if kind in output.data)
        output.data = {form: output.data[form]}
    return output


def main() -> None:
    names = sys.argv[1:]
    for path in notebooks():
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "runs").symlink_to(FOLDER.parent / "runs")
            folder = Path(name) / "notebooks"
            folder.mkdir()
            notebook = execute(path, folder, timeout=3600)
        text = nbformat.writes(notebook, version=4) + "\n"
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text.encode()) // 1000} kB")


if __name__ == "__main__":
    main()
