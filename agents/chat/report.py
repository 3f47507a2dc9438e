"""What a person wants to know about a template: its rules, an example with its mask, what will not work.

Knows renderers and how to print; finds nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

from agents.chat.renderer import ChatRenderer
from agents.chat.shape import text_block
from agents.chat.template import TemplateRefused
from agents.forward import training_refusal

_EXAMPLE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "measure",
        "description": "Measure a side of the figure.",
        "parameters": {
            "type": "object",
            "properties": {"side": {"type": "string", "description": "Name of the side."}},
            "required": ["side"],
        },
    },
}
CONTEXT, SAMPLED = "blue", "bold green"


@dataclass(frozen=True)
class Piece:
    """A stretch of an example stream with one mask value."""

    text: str
    sampled: bool


def rule_lines(renderer: ChatRenderer) -> list[tuple[str, str]]:
    """Each rule, by name."""
    rules = renderer.rules
    forms = ", ".join(f"{role} as {form}" for role, form in rules.forms.items())
    lines = [
        ("family", family(renderer)),
        ("content", forms),
        ("system prompt", "own role" if rules.system else "in front of the first user message"),
        ("default system prompt", repr(rules.default_system[:200]) if rules.default_system else "none"),
        ("tools", "listed by the template" if rules.tools_listed else "listed by us, in the system prompt"),
        ("turn starts with", " ".join(rules.starts) or "plain text"),
        ("turn ends with", " ".join(rules.ending.tokens)),
        ("delta is cut after", rules.ending.tokens[-1]),
        ("generation prompt", repr(rules.generation_prompt) if rules.generation_prompt else "none"),
        ("thinking in history", rules.thinking),
        ("user turns in a row", "as they are" if rules.users_in_a_row else "joined"),
        ("tool results", tool_line(renderer)),
        ("pictures", image_line(renderer)),
        ("stop tokens", names(renderer, renderer.stop_token_ids)),
        ("banned tokens", names(renderer, renderer.banned_token_ids)),
    ]
    return lines


def family(renderer: ChatRenderer) -> str:
    """The processor's class and how turns look."""
    rules = renderer.rules
    return f"{type(renderer.processor).__name__}, {' '.join(rules.starts)}...{rules.ending.tokens[-1]}"


def tool_line(renderer: ChatRenderer) -> str:
    """How tool results are rendered."""
    tool = renderer.rules.tool
    if not tool.own:
        return f"as user messages: {tool.reason}"
    parts = ["own role", f"after {tool.ending.tokens[-1]}"]
    parts += ["grouped in one turn"] if tool.grouped else []
    parts += ["with the tool's name"] if tool.named else []
    parts += ["one by one"] if tool.one_by_one else []
    parts += ["not followed by a user message"] if not tool.with_user else []
    if renderer.images:
        parts += ["pictures kept"] if tool.images else ["with pictures as user messages"]
    return ", ".join(parts)


def image_line(renderer: ChatRenderer) -> str:
    """What stands for a picture."""
    if renderer.images is None:
        return "none: text alone"
    size = (640, 480)
    expansion = renderer.images.expansion(Image.new("RGB", size))
    extra = len(expansion.ids) - expansion.features
    marks = f" and {extra} marks" if extra else ""
    first = ", in front of the message's text" if renderer.rules.images_first else ""
    return (
        f"{renderer.rules.image_text!r}; {size[0]}x{size[1]} has {expansion.features} features{marks}{first}"
    )


def names(renderer: ChatRenderer, ids: Iterable[int], limit: int = 12) -> str:
    """Ids as tokens, a long list cut."""
    ids = list(ids)
    known = [renderer.tokenizer.convert_ids_to_tokens(i) for i in ids[:limit]]
    more = f" and {len(ids) - limit} more" if len(ids) > limit else ""
    return " ".join(str(t) for t in known) + more


def limits(renderer: ChatRenderer) -> list[str]:
    """What will not work, or not as one might think."""
    out = [*renderer.notes, *renderer.rules.differences()]
    refusal = training_refusal(renderer.processor)
    if refusal:
        out.append(f"TRL's trainer can't train it: {refusal}")
    if renderer.images is None and getattr(renderer.processor, "image_processor", None) is None:
        out.append("no pictures: messages that hold one are refused")
    return out


def example(renderer: ChatRenderer) -> list[Piece]:
    """A short episode as the token environment builds it: prompt, response, result, response."""
    picture = Image.new("RGB", (96, 64), "white")
    ImageDraw.Draw(picture).polygon([(10, 50), (80, 50), (40, 10)], outline="black")
    shown = [{"type": "image", "image": picture}] if renderer.images else []
    tools = [_EXAMPLE_TOOL]
    opening = [
        {"role": "system", "content": [text_block("You solve geometry problems.")]},
        {"role": "user", "content": [*shown, text_block("How long is the base?")]},
    ]
    name = tools[0]["function"]["name"]
    result = {
        "role": "tool",
        "name": name,
        "call": 0,
        "content": [text_block("70 pixels <|im_end|>"), *shown],
    }
    prompt = renderer.prompt(opening, tools)
    response = renderer.encode_response("Let me measure it.")
    answer = renderer.answer(response, "stop", [result], tools)
    last = renderer.encode_response("The base is 70 pixels long.")
    parts = [(prompt.token_ids, False), (response, True), (answer.token_ids, False), (last, True)]
    return [Piece(_readable(renderer, ids), sampled) for ids, sampled in parts]


def _readable(renderer: ChatRenderer, ids: list[int]) -> str:
    text = str(renderer.tokenizer.decode(renderer.collapse(ids), skip_special_tokens=False))
    if renderer.images is None:
        return text
    pads = renderer.count_pads(ids)
    pictures = max(1, renderer.collapse(ids).count(renderer.images.placeholder_id))
    return text.replace(renderer.images.placeholder, f"{renderer.images.placeholder}×{pads // pictures}")


def print_report(renderer: ChatRenderer) -> None:
    """Print everything to the terminal, the mask in colour."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(title="Rules found by probing", show_header=False, title_justify="left")
    for name, value in rule_lines(renderer):
        table.add_row(Text(name), Text(value))
    console.print(table)
    console.print(
        Text.assemble("An episode: ", ("given, mask 0", CONTEXT), ", ", ("sampled, mask 1", SAMPLED))
    )
    text = Text()
    for piece in example(renderer):
        text.append(piece.text, style=SAMPLED if piece.sampled else CONTEXT)
    console.print(text)
    console.print("What differs or will not work:")
    for line in limits(renderer) or ["nothing found"]:
        console.print(Text(f"- {line}"))


def markdown_table(rendered: Iterable[tuple[str, str, ChatRenderer | TemplateRefused]]) -> str:
    """The docs' table: one row per template.

    Args:
        rendered: Name, kind of tokenizer ("own" or "stand-in"), and the renderer or why it was refused.
    """
    return "".join(f"{line}\n" for line in _table_lines(rendered))


def _table_lines(rendered: Iterable[tuple[str, str, Any]]) -> Iterator[str]:
    yield from _HEADER
    for name, kind, renderer in rendered:
        if isinstance(renderer, TemplateRefused):
            yield f"| {name} | {kind} | refused: {_cell(str(renderer))} | | | | |"
            continue
        cells = (
            *(name, kind, "exact", _pictures_cell(renderer), _results_cell(renderer)),
            _cell(renderer.rules.ending.tokens[-1], code=True),
            "<br>".join(map(_cell, [*renderer.rules.differences(), *renderer.notes])) or "none",
        )
        yield f"| {' | '.join(cells)} |"


def _pictures_cell(renderer: ChatRenderer) -> str:
    if renderer.images is None:
        return "no"
    features = renderer.images.count(Image.new("RGB", (640, 480)))
    sliced = "" if training_refusal(renderer.processor) else ", sliceable"
    return f"{features} features at 640x480{sliced}"


def _results_cell(renderer: ChatRenderer) -> str:
    tool = renderer.rules.tool
    if not tool.own:
        return "user message"
    dropped = "; with pictures user message" if renderer.images and not tool.images else ""
    return "tool role" + ", grouped" * tool.grouped + dropped


_HEADER = (
    "# Chat templates",
    "",
    "Every chat template that TRL ships, in its original and its training form, rendered by",
    "`agents.ChatRenderer`. Made by `python -m agents.chat --table docs/templates.md`; a test keeps it",
    "fresh.",
    "",
    "- Tokenizer *own*: the family's real one; *stand-in*: a byte-level one that carries the template's",
    "  control tokens. Image processors are always the family's own.",
    "- *exact*: on random conversations the stream equals transformers' rendering of the whole conversation,",
    "  token for token, but for the differences named in the last column.",
    "- *sliceable*: the picture tensors can be cut picture by picture, as a trainer's micro-batches need it.",
    "",
    "| template | tokenizer | rendered | pictures | tool results | turn ends with | differences, choices |",
    "|---|---|---|---|---|---|---|",
)


def _cell(text: str, *, code: bool = False) -> str:
    """Text inside a table cell: no pipe, no line break, no tag that a browser would read."""
    escaped = text.replace("\n", "\\n").replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return f"<code>{escaped}</code>" if code else escaped
