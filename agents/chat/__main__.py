"""`python -m agents.chat MODEL_OR_PATH`: how a model's template is rendered, and what will not work."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from agents.chat.load import load_processor
from agents.chat.renderer import ChatRenderer
from agents.chat.report import markdown_table, print_report
from agents.chat.template import TemplateRefused


def main(arguments: list[str] | None = None) -> int:
    """Print the report, or write the docs' table; 1 when the template is refused."""
    parser = argparse.ArgumentParser(prog="python -m agents.chat", description=__doc__)
    parser.add_argument("model", nargs="?", help="a hub name, a folder, or a .jinja file")
    parser.add_argument(
        "--template-kwargs", type=json.loads, default={}, help="JSON: arguments of the template"
    )
    parser.add_argument(
        "--table", type=Path, help="write the table of all templates that TRL ships to this file"
    )
    options = parser.parse_args(arguments)
    if options.table is not None:
        options.table.write_text(trl_table(), encoding="utf-8")
        return 0
    if options.model is None:
        parser.error("name a model, a folder or a .jinja file")
    try:
        print_report(ChatRenderer(load_processor(options.model), template_kwargs=options.template_kwargs))
    except TemplateRefused as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    return 0


def trl_table(render: Callable[[str], ChatRenderer] | None = None) -> str:
    """The table of every template in the installed TRL.

    Args:
        render: From a template's name to its renderer, where they exist already.
    """
    from agents.chat.families import processor_for, tokenizer_kind, trl_templates

    templates = trl_templates()

    def rows() -> Iterator[tuple[str, str, ChatRenderer | TemplateRefused]]:
        for name, source in templates.items():
            try:
                renderer = render(name) if render else ChatRenderer(processor_for(name, source))
            except TemplateRefused as error:
                yield name, tokenizer_kind(name), error
            else:
                yield name, tokenizer_kind(name), renderer

    return markdown_table(rows())


if __name__ == "__main__":
    sys.exit(main())
