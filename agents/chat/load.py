"""Loads what a user names: a hub name, a folder, or a bare chat template.

Knows transformers' Auto classes and what goes wrong with them; must not know rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.chat.template import TemplateRefused


def load_processor(name: str) -> Any:
    """A processor, or a tokenizer for a text model.

    Args:
        name: A hub name, a folder with a processor or tokenizer, or a `.jinja` file: then a stand-in
            tokenizer carries the template (and the family's own image processor, where TRL knows it).

    Raises:
        TemplateRefused: It can't be loaded; the text says why and what to do.
    """
    if name.endswith(".jinja"):
        return _stand_in(Path(name))
    from transformers import AutoProcessor

    try:
        return AutoProcessor.from_pretrained(name)
    except ImportError as error:
        missing = "torchvision" if "torchvision" in str(error).lower() else "a package"
        raise TemplateRefused(
            f"the processor of {name} needs {missing}: pip install 'mm-gym[train]', or {missing} alone "
            f"({_first_line(error)})"
        ) from error
    except (OSError, ValueError) as error:
        raise TemplateRefused(
            f"no processor or tokenizer could be loaded from {name!r}: give a hub name (and network), or a "
            "folder with tokenizer.json and, for a vision model, processor_config.json or "
            f"preprocessor_config.json ({_first_line(error)})"
        ) from error


def _stand_in(path: Path) -> Any:
    from agents.chat.families import processor_for
    from agents.chat.standin import byte_tokenizer, control_tokens

    if not path.is_file():
        raise TemplateRefused(f"there is no chat template at {path}")
    source = path.read_text(encoding="utf-8")
    try:
        return processor_for(path.stem, source)
    except KeyError:
        ends = [t for t in control_tokens(source) if "end" in t or "eot" in t or "eos" in t]
        return byte_tokenizer(source, eos=ends[0] if ends else "<|endoftext|>", bos="<|bos|>")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
