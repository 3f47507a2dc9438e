"""Writes tables of the docs from what they describe: `python docs/tables.py`. A test fails when one is stale.

`<!-- options module:Class -->` in a page is followed by the options of that class: names and defaults are those
of the constructor, the words those of the docstring's `Args:`. `<!-- recipes -->` is followed by the recipes in
configs/recipes, from the comments that they begin with. Each table ends with `<!-- end -->`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"<!-- (?P<what>options|recipes) ?(?P<of>[\w.:]*) -->\n.*?<!-- end -->", re.DOTALL)
_ARGUMENT = re.compile(r"^ {4}(\*{0,2}[\w, *]+): (.*)$")


def written(page: str) -> str:
    """A page's text with its tables made anew.

    Raises:
        ValueError: A parameter is missing in the docstring's `Args:`.
    """
    seen: set[str] = set()

    def block(found: re.Match[str]) -> str:
        rows = recipes() if found["what"] == "recipes" else options(_named(found["of"]), seen)
        return f"{found[0].splitlines()[0]}\n{rows}\n<!-- end -->"

    return BLOCK.sub(block, page)


def recipes() -> str:
    """The recipes as a Markdown table."""
    rows = []
    for path in sorted((ROOT / "configs/recipes").glob("*.yaml")):
        comments = [line[1:].strip() for line in path.read_text().splitlines() if line.startswith("#")]
        title, command, setting = comments[:3]
        back_end = command.split("configs/accelerate/")[1].split()[0]
        run = "not run" if comments[3].startswith("NOT RUN") else "run"
        rows.append(f"| `{path.name}` | {title}. {setting} | `{back_end}` | {run} |")
    return "\n".join(["| recipe | what | back end | |", "|---|---|---|---|", *rows])


def options(cls: type, seen: set[str]) -> str:
    """The options of a class as a Markdown table.

    Args:
        cls: Whose constructor and docstring are read.
        seen: Options that stand on the page already and are left out; the new ones are added.
    """
    words = _arguments(inspect.getdoc(cls) or "")
    parameters = [
        p for p in inspect.signature(cls).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    missing = [p.name for p in parameters if p.name not in words]
    if missing:
        raise ValueError(f"{cls.__name__}'s docstring says nothing of {missing}: add them to its Args")
    fresh = [p for p in parameters if p.name not in seen]
    seen.update(p.name for p in fresh)
    rows = [f"| `{p.name}` | {_default(p)} | {_cell(words[p.name])} |" for p in fresh]
    return "\n".join(["| option | default | what |", "|---|---|---|", *rows])


def _named(dotted: str) -> type:
    module, name = dotted.split(":")
    cls: type = getattr(importlib.import_module(module), name)
    return cls


def _arguments(doc: str) -> dict[str, str]:
    """Name to words, of the docstring's `Args:`."""
    words: dict[str, str] = {}
    names: list[str] = []
    _, _, section = doc.partition("\nArgs:\n")
    for line in section.splitlines():
        if line.strip() and not line.startswith("    "):
            break  # the next section
        found = _ARGUMENT.match(line)
        if found:
            names = [name.strip(" *") for name in found[1].split(",")]
            words.update(dict.fromkeys(names, found[2]))
        else:
            words.update({name: f"{words[name]} {line.strip()}".rstrip() for name in names})
    return words


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "required"
    text = repr(parameter.default)
    return f"`{text}`" if len(text) <= 40 else "a text"


def _cell(text: str) -> str:
    """Words inside a table's cell: no pipe, and no tag outside of code."""
    parts = text.replace("|", "&#124;").split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def main() -> None:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (made := written(text)) != text:
            path.write_text(made, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
