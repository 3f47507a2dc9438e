"""What a chat template does, as data: `Rules`, found by `probe` at start-up and read by the renderer.

Nothing here is written for one model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Form(StrEnum):
    """How a role's content is handed to the template."""

    BLOCKS = "blocks"
    """A list of blocks: `{"type": "text", ...}`, `{"type": "image"}`."""
    STRING = "string"
    """One string."""


class DummyCall(StrEnum):
    """What the dummy assistant turn before a tool message looks like."""

    NONE = "plain text"
    MAPPING = "tool call, arguments as an object"
    STRING = "tool call, arguments as a JSON string"


@dataclass(frozen=True)
class Ending:
    """How an assistant's turn ends in the history, before what comes next."""

    tokens: tuple[str, ...] = ()
    """The run of control tokens up to the cut; the last one is the end-of-turn token. Where a template has
    none (GLM), the token that starts the next turn is what a model ends its turn with."""
    gap: str = ""
    """Plain text that the template puts between the assistant's text and the first of `tokens`."""


@dataclass(frozen=True)
class ToolRule:
    """How tool messages are rendered."""

    own: bool
    """True: with the template's tool role. False: as a user message."""
    reason: str
    """Why."""
    dummy: DummyCall = DummyCall.NONE
    ending: Ending = field(default_factory=Ending)
    images: bool = False
    """Pictures in a tool message keep their place in it."""
    grouped: bool = False
    """Several tool messages share one turn."""
    named: bool = False
    """The tool's name is in the text."""
    one_by_one: bool = False
    """Several tool messages are rendered each behind a call of its own: one render gives them one name."""
    with_user: bool = True
    """A user message may follow a tool message in the same observation."""


@dataclass(frozen=True)
class Rules:
    """Everything that the renderer needs to know about a template."""

    forms: dict[str, Form]
    """By role: system, user, assistant, tool."""
    merged_text: frozenset[str]
    """Roles of which the template reads the first text block alone: neighbouring texts are joined."""
    system: bool
    """False: the template has no system role; the system prompt goes in front of the first user message."""
    default_system: str
    """What the template says on its own when there is no system prompt, "" for nothing."""
    users_in_a_row: bool
    """False: neighbouring user messages are joined, since the template insists on taking turns."""
    ending: Ending
    last_ending: Ending
    """Of a conversation's last assistant turn, where it differs from `ending` (gpt-oss)."""
    generation_prompt: str
    starts: tuple[str, ...]
    """Control tokens that start a turn."""
    start_inside_turn: bool
    """A model needs a start token inside its own turn (several channels): it can't be banned."""
    tool: ToolRule
    tools_listed: bool
    """The template writes the tools' schemas. False: the renderer adds them to the system prompt."""
    delta_reads_tools: bool
    """An observation's text depends on the tools that are listed."""
    image: str | None
    """The placeholder of one picture; None for text alone."""
    image_text: str
    """What the template writes for one picture, placeholder included."""
    images_touch: bool
    """Nothing stands between two neighbouring pictures."""
    images_first: bool
    """Pictures of a message are moved in front of its text."""
    thinking: str
    """What happens to an earlier turn's <think> block: "kept", "stripped" or "changed"."""
    history_header: str
    """The assistant's header in the history, up to its text."""
    loop_header: str
    """The same for a turn that a tool message follows, after the last user message."""
    dated: bool
    """The template writes today's date: prompts change from day to day."""

    def differences(self) -> list[str]:
        """How a full render of a conversation differs from the stream of the same conversation."""
        out = []
        if self.history_header != self.generation_prompt:
            out.append(
                f"assistant turns start with {self.history_header!r} in a full render's history, with the "
                f"generation prompt {self.generation_prompt!r} in the stream"
            )
        if self.loop_header != self.history_header:
            out.append(
                f"assistant turns that tool results follow start with {self.loop_header!r} in a full render"
            )
        if self.thinking != "kept":
            out.append(f"thinking of earlier turns is {self.thinking} in a full render, kept in the stream")
        if self.ending.gap:
            out.append(f"a full render puts {self.ending.gap!r} between a response and its end-of-turn token")
        if self.last_ending.tokens != self.ending.tokens:
            out.append(
                f"a full render ends the last turn with {' '.join(self.last_ending.tokens) or 'nothing'}, "
                f"earlier ones with {' '.join(self.ending.tokens)}"
            )
        return out
