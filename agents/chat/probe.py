"""Finds a template's `Rules` by rendering small conversations and looking at the text.

Nothing is written per model; what can't be found is refused, with a reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from agents.chat.probe_tools import ToolProber
from agents.chat.rules import DummyCall, Ending, Form, Rules, ToolRule
from agents.chat.shape import dummy_turn, text_block
from agents.chat.template import RenderError, Template, TemplateRefused
from agents.chat.trial import (
    ANSWER,
    RAW_BLOCK,
    RESULT,
    SYSTEM,
    THOUGHT,
    TOOL_NAMES,
    USER,
    Controls,
    Trial,
    probe_tools,
)


class Prober:
    """One probing of one template.

    Args:
        template: What to probe.
        controls: The tokenizer's control tokens.
        placeholders: Strings that may stand for a picture, likeliest first; empty without an image processor.
    """

    def __init__(self, template: Template, controls: Controls, placeholders: Sequence[str] = ()) -> None:
        self.trial = Trial(template, controls)
        self.placeholders = placeholders

    def rules(self) -> Rules:
        """All rules.

        Raises:
            TemplateRefused: The template can't be rendered in deltas; the text says why.
        """
        self._find_forms()
        ending, last_ending = self.trial.find_ending([], DummyCall.NONE)
        header, prompt = self._find_headers()
        image, image_text, images_first = self._find_image()
        user_delta = self.trial.delta([self.trial.message("user", USER + "2")], DummyCall.NONE)
        self._check_positions(user_delta)
        tool = ToolProber(self.trial, user_delta, image).rule()
        starts = self._find_starts(prompt, ending, user_delta, tool)
        tools_listed = self.trial.tools_listed()
        return Rules(
            forms=dict(self.trial.forms),
            merged_text=self._find_merged(),
            system=self.trial.system,
            default_system=self._find_default_system(),
            users_in_a_row=self._users_in_a_row(),
            ending=ending,
            last_ending=last_ending,
            generation_prompt=prompt,
            starts=starts,
            start_inside_turn=self._start_inside_turn(starts),
            tool=tool,
            tools_listed=tools_listed,
            delta_reads_tools=tools_listed and self._delta_reads_tools(tool),
            image=image,
            image_text=image_text,
            images_touch=image is not None and self._images_touch(image),
            images_first=images_first,
            thinking=self._find_thinking(),
            history_header=header,
            loop_header=self._find_loop_header(prompt) if tool.own else header,
            dated="strftime_now" in self.trial.template.source,
        )

    # -- single rules --------------------------------------------------------------------------------------

    def _find_forms(self) -> None:
        problems: dict[str, str] = {}
        for with_system in (True, False):
            self.trial.system = with_system
            for user, assistant, system in itertools.product(
                Form, Form, Form if with_system else [Form.BLOCKS]
            ):
                self.trial.forms = {"system": system, "user": user, "assistant": assistant, "tool": user}
                problem = self._form_problem()
                if problem is None:
                    return
                problems.setdefault(problem, f"with {user} content{', a system message' * with_system}")
        raise TemplateRefused(
            "the chat template renders no plain conversation of (system,) user, assistant and user: "
            + "; ".join(f"{where}: {problem}" for problem, where in problems.items())
        )

    def _form_problem(self) -> str | None:
        second = self.trial.message("user", USER + "2")
        try:
            text = self.trial.render([*self.trial.opening(), self.trial.message("assistant", ANSWER), second])
            alone = self.trial.render(self.trial.opening())
        except RenderError as error:
            return str(error)
        wanted = [*([SYSTEM] if self.trial.system else []), USER, ANSWER, USER + "2"]
        missing = [word for word in wanted if word not in text]
        if missing:
            return f"the text of {len(missing)} message(s) is missing"
        if RAW_BLOCK.search(text) or RAW_BLOCK.search(alone):
            return "content blocks are printed as they are"
        return None

    def _find_headers(self) -> tuple[str, str]:
        """The assistant's header in the history and in the generation prompt."""
        prompt = self.trial.after(self.trial.render(self.trial.opening()), USER)
        closed = self.trial.after(self.trial.render(self.trial.opening(), generation_prompt=False), USER)
        second = self.trial.message("user", USER + "2")
        text = self.trial.render([*self.trial.opening(), self.trial.message("assistant", ANSWER), second])
        between = text[text.index(USER) + len(USER) : text.index(ANSWER)]
        tail = self.trial.controls.common_prefix(self.trial.controls.common_prefix(prompt, closed), between)
        return between[len(tail) :], prompt[len(tail) :]

    def _find_loop_header(self, prompt: str) -> str:
        """The assistant's header where a tool message follows and no further user message."""
        messages = [*self.trial.opening(), self.trial.message("assistant", ANSWER), self.trial.tool(RESULT)]
        closed = self.trial.after(self.trial.render(self.trial.opening(), generation_prompt=False), USER)
        opened = self.trial.after(self.trial.render(self.trial.opening()), USER)
        try:
            text = self.trial.render(messages)
        except RenderError:  # a tool message needs a call before it: the header is the call's own
            return prompt
        if ANSWER not in text:
            return prompt
        between = text[text.index(USER) + len(USER) : text.index(ANSWER)]
        tail = self.trial.controls.common_prefix(self.trial.controls.common_prefix(opened, closed), between)
        return between[len(tail) :]

    def _find_image(self) -> tuple[str | None, str, bool]:
        if not self.placeholders or self.trial.forms["user"] is not Form.BLOCKS:
            return None, "", False
        a, b = text_block(USER + "a"), text_block(USER + "b")
        plain = {"role": "user", "content": [a, b]}
        pictured = {"role": "user", "content": [a, {"type": "image"}, b]}
        system = self.trial.opening()[:-1]
        try:
            text = self.trial.render([*system, pictured])
            without = self.trial.render([*system, plain])
        except RenderError as error:
            raise TemplateRefused(
                f"the processor takes pictures but the chat template fails on one: {error}"
            ) from error
        for placeholder in self.placeholders:
            if text.count(placeholder) == without.count(placeholder) + 1:
                between = text[text.index(USER + "a") + len(USER + "a") : text.index(USER + "b")]
                first = placeholder not in between
                return placeholder, placeholder if first else between, first
        raise TemplateRefused(
            f"the processor takes pictures but the chat template drops them (none of "
            f"{', '.join(self.placeholders)} is written): take the processor's template, not the tokenizer's"
        )

    def _images_touch(self, image: str) -> bool:
        content = [text_block(USER), {"type": "image"}, {"type": "image"}]
        return image + image in self.trial.render(
            [*self.trial.opening()[:-1], {"role": "user", "content": content}]
        )

    def _find_merged(self) -> frozenset[str]:
        """Roles of which a second text block is lost."""
        merged = set()
        for role in ("system", "user"):
            if self.trial.forms[role] is not Form.BLOCKS or (role == "system" and not self.trial.system):
                continue
            two = {"role": role, "content": [text_block("Firstmark"), text_block("Secondmark")]}
            messages = [two] if role == "user" else [two, self.trial.message("user", USER)]
            if "Secondmark" not in self.trial.render(messages):
                merged.add(role)
        return frozenset(merged)

    def _find_default_system(self) -> str:
        if not self.trial.system:
            return ""
        try:
            bare = self.trial.render([self.trial.message("user", USER)]).partition(USER)[0]
        except RenderError:
            return ""
        full = self.trial.render(self.trial.opening())
        between = self.trial.after(full.partition(USER)[0], SYSTEM)
        mine, theirs = self.trial.controls.pieces(bare), self.trial.controls.pieces(between)
        while mine and theirs and mine[-1] == theirs[-1]:
            mine.pop()
            theirs.pop()
        words = " ".join(p for p in mine if p not in self.trial.controls.tokens).strip()
        return words if len(words.split()) > 2 else ""

    def _users_in_a_row(self) -> bool:
        two = [self.trial.message("user", USER + "2"), self.trial.message("user", USER + "3")]
        try:
            text = self.trial.delta(two, DummyCall.NONE)
        except RenderError:
            return False
        return USER + "2" in text and USER + "3" in text

    def _find_starts(self, prompt: str, ending: Ending, user_delta: str, tool: ToolRule) -> tuple[str, ...]:
        """The first control token of each header."""
        found = self.trial.controls.inside(prompt)[:1]
        deltas = [(user_delta, ending)]
        if tool.own:
            deltas.append((self.trial.delta([self.trial.tool(RESULT)], tool.dummy), tool.ending))
        for text, end in deltas:
            pieces = [p for p in self.trial.controls.pieces(self.trial.cut(text, end)) if p.strip()]
            found += [p for p in pieces[:1] if p in self.trial.controls.tokens]
        return tuple(dict.fromkeys(found))

    def _start_inside_turn(self, starts: Sequence[str]) -> bool:
        fields = dict.fromkeys(("thinking", "reasoning", "reasoning_content"), THOUGHT)
        try:
            text = self.trial.render(
                [*self.trial.opening(), self.trial.message("assistant", ANSWER, **fields)],
                generation_prompt=False,
            )
        except RenderError:
            return False
        between = text.rpartition(ANSWER)[0].rpartition(THOUGHT)[2]
        return THOUGHT in text and any(start in between for start in starts)

    def _find_thinking(self) -> str:
        answer = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
        messages = [
            *self.trial.opening(),
            self.trial.message("assistant", answer),
            self.trial.message("user", USER + "2"),
        ]
        try:
            text = self.trial.render(messages)
        except RenderError:
            return "changed"
        if answer in text:
            return "kept"
        return "changed" if THOUGHT in text else "stripped"

    def _delta_reads_tools(self, tool: ToolRule) -> bool:
        news = [([self.trial.message("user", USER + "2")], DummyCall.NONE)]
        if tool.own:
            news.append(([self.trial.tool(RESULT)], tool.dummy))
        for new, dummy in news:
            turn = dummy_turn(dummy, ANSWER, TOOL_NAMES[:1], self.trial.forms["assistant"])
            listed = self.trial.render([*self.trial.opening(), turn, *new], probe_tools())
            if self.trial.after(listed, ANSWER) != self.trial.delta(new, dummy):
                return True
        return False

    def _check_positions(self, user_delta: str) -> None:
        """A user's delta must be the same wherever in the conversation it stands."""
        answer = self.trial.message("assistant", ANSWER)
        other = self.trial.message("user", USER)
        later = self.trial.render(
            [*self.trial.opening(), answer, other, answer, self.trial.message("user", USER + "2")]
        )
        if self.trial.after(later, ANSWER) != user_delta:
            raise TemplateRefused(
                "the chat template writes a user's message differently in later turns: "
                f"{user_delta!r} after the first answer, {self.trial.after(later, ANSWER)!r} after the second"
            )
