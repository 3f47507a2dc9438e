"""Finds a template's `Rules` by rendering small conversations with marked words and looking at the text.

Knows templates and control tokens. Nothing is written per model; what can't be found is refused, with a
reason.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from agents.chat.rules import DummyCall, Ending, Form, Rules, ToolRule
from agents.chat.shape import Message, call_id, dummy_turn, in_form, text_block
from agents.chat.template import RenderError, Template, TemplateRefused

# Words that no template writes itself, and that trimming, capitalising and JSON leave as they are.
SYSTEM, USER, ANSWER, RESULT, THOUGHT = "Sysmark1", "Usermark1", "Answermark1", "Resultmark1", "Thoughtmark1"
TOOL_NAMES = ("toolmark_a", "toolmark_b")
_GENERIC = "the template knows no tool role: it prints the role's name like any other"
_RAW_BLOCK = re.compile(r"""['"]type['"]: ?['"](text|image)['"]""")


def probe_tools() -> list[dict[str, Any]]:
    """Two function tools for probing and examples."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": f"Descmark of {name}.",
                "parameters": {
                    "type": "object",
                    "properties": {"value": {"type": "string", "description": "A value."}},
                    "required": ["value"],
                },
            },
        }
        for name in TOOL_NAMES
    ]


class Controls:
    """Splits text at control tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = frozenset(tokens)
        ordered = sorted(self.tokens, key=lambda s: (-len(s), s))
        self._split = re.compile("(" + "|".join(map(re.escape, ordered)) + ")") if ordered else None

    def pieces(self, text: str) -> list[str]:
        """Control tokens and the text between them, in order, nothing lost."""
        return [p for p in self._split.split(text) if p] if self._split else [text]

    def common_prefix(self, a: str, b: str) -> str:
        """The longest common start that cuts no control token in two."""
        out = []
        for x, y in zip(self.pieces(a), self.pieces(b), strict=False):
            if x == y:
                out.append(x)
                continue
            if x not in self.tokens and y not in self.tokens:
                n = next(
                    (i for i, (c, d) in enumerate(zip(x, y, strict=False)) if c != d), min(len(x), len(y))
                )
                out.append(x[:n])
            break
        return "".join(out)

    def inside(self, text: str) -> list[str]:
        return [p for p in self.pieces(text) if p in self.tokens]


class Prober:
    """One probing of one template.

    Args:
        template: What to probe.
        controls: The tokenizer's control tokens.
        placeholders: Strings that may stand for a picture, likeliest first; empty without an image processor.
    """

    def __init__(self, template: Template, controls: Controls, placeholders: Sequence[str] = ()) -> None:
        self.template = template
        self.controls = controls
        self.placeholders = placeholders
        self.forms: dict[str, Form] = {}
        self.system = True

    def rules(self) -> Rules:
        """All rules.

        Raises:
            TemplateRefused: The template can't be rendered in deltas; the text says why.
        """
        self._find_forms()
        ending, last_ending = self._find_ending([], DummyCall.NONE)
        header, prompt = self._find_headers()
        image, image_text, images_first = self._find_image()
        user_delta = self.delta([self._message("user", USER + "2")], DummyCall.NONE)
        self._check_positions(user_delta)
        tool = self._find_tool(user_delta, image)
        starts = self._find_starts(prompt, ending, user_delta, tool)
        tools_listed = self._tools_listed()
        return Rules(
            forms=dict(self.forms),
            merged_text=self._find_merged(),
            system=self.system,
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
            dated="strftime_now" in self.template.source,
        )

    # -- small conversations -------------------------------------------------------------------------------

    def _message(self, role: str, text: str, **extra: Any) -> Message:
        return {"role": role, "content": in_form([text_block(text)], self.forms[role]), **extra}

    def _opening(self) -> list[Message]:
        system = [self._message("system", SYSTEM)] if self.system else []
        return [*system, self._message("user", USER)]

    def _tool(self, text: str, index: int = 0) -> Message:
        return self._message("tool", text, name=TOOL_NAMES[index], tool_call_id=call_id(index))

    def delta(self, new: Sequence[Message], dummy: DummyCall, names: Sequence[str] = TOOL_NAMES[:1]) -> str:
        """The text after the dummy answer when `new` comes next, generation prompt included."""
        turn = dummy_turn(dummy, ANSWER, names, self.forms["assistant"])
        return self._after(self.template.render([*self._opening(), turn, *new]), ANSWER)

    @staticmethod
    def _after(text: str, mark: str) -> str:
        return text.rpartition(mark)[2]

    # -- single rules --------------------------------------------------------------------------------------

    def _find_forms(self) -> None:
        problems: dict[str, str] = {}
        for self.system in (True, False):
            for user, assistant, system in itertools.product(
                Form, Form, Form if self.system else [Form.BLOCKS]
            ):
                self.forms = {"system": system, "user": user, "assistant": assistant, "tool": user}
                problem = self._form_problem()
                if problem is None:
                    return
                problems.setdefault(problem, f"with {user} content{', a system message' * self.system}")
        raise TemplateRefused(
            "the chat template renders no plain conversation of (system,) user, assistant and user: "
            + "; ".join(f"{where}: {problem}" for problem, where in problems.items())
        )

    def _form_problem(self) -> str | None:
        second = self._message("user", USER + "2")
        try:
            text = self.template.render([*self._opening(), self._message("assistant", ANSWER), second])
            alone = self.template.render(self._opening())
        except RenderError as error:
            return str(error)
        wanted = [*([SYSTEM] if self.system else []), USER, ANSWER, USER + "2"]
        missing = [word for word in wanted if word not in text]
        if missing:
            return f"the text of {len(missing)} message(s) is missing"
        if _RAW_BLOCK.search(text) or _RAW_BLOCK.search(alone):
            return "content blocks are printed as they are"
        return None

    def _find_ending(self, new: Sequence[Message], dummy: DummyCall) -> tuple[Ending, Ending]:
        """Where a delta is cut: after the last control token that a turn has with and without `new`."""
        turn = dummy_turn(dummy, ANSWER, TOOL_NAMES[:1], self.forms["assistant"])
        last = self._after(self.template.render([*self._opening(), turn], generation_prompt=False), ANSWER)
        following = list(new) or [self._message("user", USER + "2")]
        more = self._after(self.template.render([*self._opening(), turn, *following]), ANSWER)
        common = self._ending_in(self.controls.common_prefix(last, more))
        if common.tokens:
            return common, common
        first = next(iter(self.controls.inside(more)), None)
        if first is None:
            raise TemplateRefused(
                "no control token follows an assistant's turn: there is nowhere to cut a delta"
            )
        following_end = self._ending_in(more[: more.index(first) + len(first)])
        return following_end, self._ending_in(last)

    def _ending_in(self, text: str) -> Ending:
        """The last run of control tokens without text between them, and what stands before it."""
        pieces = self.controls.pieces(text)
        while pieces and pieces[-1] not in self.controls.tokens:
            pieces.pop()
        first = len(pieces)
        while first and pieces[first - 1] in self.controls.tokens:
            first -= 1
        return Ending(tuple(pieces[first:]), "".join(pieces[:first]))

    def _cut(self, delta: str, ending: Ending) -> str:
        """What follows the end-of-turn token."""
        return delta.partition(ending.tokens[-1])[2]

    def _find_headers(self) -> tuple[str, str]:
        """The assistant's header in the history and in the generation prompt."""
        prompt = self._after(self.template.render(self._opening()), USER)
        closed = self._after(self.template.render(self._opening(), generation_prompt=False), USER)
        second = self._message("user", USER + "2")
        text = self.template.render([*self._opening(), self._message("assistant", ANSWER), second])
        between = text[text.index(USER) + len(USER) : text.index(ANSWER)]
        tail = self.controls.common_prefix(self.controls.common_prefix(prompt, closed), between)
        return between[len(tail) :], prompt[len(tail) :]

    def _find_loop_header(self, prompt: str) -> str:
        """The assistant's header where a tool message follows and no further user message."""
        messages = [*self._opening(), self._message("assistant", ANSWER), self._tool(RESULT)]
        closed = self._after(self.template.render(self._opening(), generation_prompt=False), USER)
        opened = self._after(self.template.render(self._opening()), USER)
        try:
            text = self.template.render(messages)
        except RenderError:  # a tool message needs a call before it: the header is the call's own
            return prompt
        if ANSWER not in text:
            return prompt
        between = text[text.index(USER) + len(USER) : text.index(ANSWER)]
        tail = self.controls.common_prefix(self.controls.common_prefix(opened, closed), between)
        return between[len(tail) :]

    def _find_image(self) -> tuple[str | None, str, bool]:
        if not self.placeholders or self.forms["user"] is not Form.BLOCKS:
            return None, "", False
        a, b = text_block(USER + "a"), text_block(USER + "b")
        plain = {"role": "user", "content": [a, b]}
        pictured = {"role": "user", "content": [a, {"type": "image"}, b]}
        system = self._opening()[:-1]
        try:
            text = self.template.render([*system, pictured])
            without = self.template.render([*system, plain])
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
        return image + image in self.template.render(
            [*self._opening()[:-1], {"role": "user", "content": content}]
        )

    def _find_merged(self) -> frozenset[str]:
        """Roles of which a second text block is lost."""
        merged = set()
        for role in ("system", "user"):
            if self.forms[role] is not Form.BLOCKS or (role == "system" and not self.system):
                continue
            two = {"role": role, "content": [text_block("Firstmark"), text_block("Secondmark")]}
            messages = [two] if role == "user" else [two, self._message("user", USER)]
            if "Secondmark" not in self.template.render(messages):
                merged.add(role)
        return frozenset(merged)

    def _find_default_system(self) -> str:
        if not self.system:
            return ""
        try:
            bare = self.template.render([self._message("user", USER)]).partition(USER)[0]
        except RenderError:
            return ""
        full = self.template.render(self._opening())
        between = self._after(full.partition(USER)[0], SYSTEM)
        mine, theirs = self.controls.pieces(bare), self.controls.pieces(between)
        while mine and theirs and mine[-1] == theirs[-1]:
            mine.pop()
            theirs.pop()
        words = " ".join(p for p in mine if p not in self.controls.tokens).strip()
        return words if len(words.split()) > 2 else ""

    def _users_in_a_row(self) -> bool:
        two = [self._message("user", USER + "2"), self._message("user", USER + "3")]
        try:
            text = self.delta(two, DummyCall.NONE)
        except RenderError:
            return False
        return USER + "2" in text and USER + "3" in text

    def _find_starts(self, prompt: str, ending: Ending, user_delta: str, tool: ToolRule) -> tuple[str, ...]:
        """The first control token of each header."""
        found = self.controls.inside(prompt)[:1]
        deltas = [(user_delta, ending)]
        if tool.own:
            deltas.append((self.delta([self._tool(RESULT)], tool.dummy), tool.ending))
        for text, end in deltas:
            pieces = [p for p in self.controls.pieces(self._cut(text, end)) if p.strip()]
            found += [p for p in pieces[:1] if p in self.controls.tokens]
        return tuple(dict.fromkeys(found))

    def _start_inside_turn(self, starts: Sequence[str]) -> bool:
        fields = dict.fromkeys(("thinking", "reasoning", "reasoning_content"), THOUGHT)
        try:
            text = self.template.render(
                [*self._opening(), self._message("assistant", ANSWER, **fields)], generation_prompt=False
            )
        except RenderError:
            return False
        between = text.rpartition(ANSWER)[0].rpartition(THOUGHT)[2]
        return THOUGHT in text and any(start in between for start in starts)

    def _find_thinking(self) -> str:
        answer = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
        messages = [*self._opening(), self._message("assistant", answer), self._message("user", USER + "2")]
        try:
            text = self.template.render(messages)
        except RenderError:
            return "changed"
        if answer in text:
            return "kept"
        return "changed" if THOUGHT in text else "stripped"

    def _tools_listed(self) -> bool:
        try:
            text = self.template.render(self._opening(), probe_tools())
        except RenderError:
            return False
        return all(name in text for name in TOOL_NAMES) and "Descmark" in text

    def _delta_reads_tools(self, tool: ToolRule) -> bool:
        news = [([self._message("user", USER + "2")], DummyCall.NONE)]
        if tool.own:
            news.append(([self._tool(RESULT)], tool.dummy))
        for new, dummy in news:
            turn = dummy_turn(dummy, ANSWER, TOOL_NAMES[:1], self.forms["assistant"])
            listed = self.template.render([*self._opening(), turn, *new], probe_tools())
            if self._after(listed, ANSWER) != self.delta(new, dummy):
                return True
        return False

    def _check_positions(self, user_delta: str) -> None:
        """A user's delta must be the same wherever in the conversation it stands."""
        answer = self._message("assistant", ANSWER)
        other = self._message("user", USER)
        later = self.template.render(
            [*self._opening(), answer, other, answer, self._message("user", USER + "2")]
        )
        if self._after(later, ANSWER) != user_delta:
            raise TemplateRefused(
                "the chat template writes a user's message differently in later turns: "
                f"{user_delta!r} after the first answer, {self._after(later, ANSWER)!r} after the second"
            )

    # -- tools ---------------------------------------------------------------------------------------------

    def _find_tool(self, user_delta: str, image: str | None) -> ToolRule:
        """The tool role as the template has it, else the reason for user messages instead."""
        reasons = []
        working: list[tuple[DummyCall, str, Form]] = []
        for dummy in (DummyCall.NONE, DummyCall.MAPPING, DummyCall.STRING):
            for form in sorted(Form, key=lambda f: f is not self.forms["user"]):
                self.forms["tool"] = form
                reason = self._tool_problem(dummy)
                if reason is None:
                    working.append((dummy, self.delta([self._tool(RESULT)], dummy), form))
                    break
                reasons.append(reason)
        if not working:
            self.forms["tool"] = self.forms["user"]
            return ToolRule(own=False, reason=reasons[0])
        chosen = working[0]
        with_calls = [w for w in working if w[0] is not DummyCall.NONE]
        cuts = []
        for dummy, text, self.forms["tool"] in working:
            ending, _ = self._find_ending([self._tool(RESULT)], dummy)
            cuts.append((ending.tokens[-1], self._cut(text, ending)))
        if with_calls and cuts[working.index(with_calls[0])] != cuts[0]:
            chosen = with_calls[0]  # as the model knows it: a result follows a call
        dummy, _, self.forms["tool"] = chosen
        if self._generic(chosen[1], dummy) and not with_calls:
            self.forms["tool"] = self.forms["user"]
            return ToolRule(own=False, reason=_GENERIC)
        return self._tool_details(dummy, image, user_delta)

    def _tool_problem(self, dummy: DummyCall) -> str | None:
        try:
            text = self.delta([self._tool(RESULT)], dummy)
            if RESULT not in text:
                return "the template leaves tool messages out"
            if _RAW_BLOCK.search(text):
                return "the template prints a tool message's blocks as they are"
            if self._generic(text, dummy) and not self._tools_listed():
                return _GENERIC
            turn = dummy_turn(dummy, ANSWER, TOOL_NAMES[:1], self.forms["assistant"])
            again = [*self._opening(), turn, self._tool(RESULT), turn, self._tool(RESULT)]
            if self._after(self.template.render(again), ANSWER) != text:
                return "the template writes tool results differently from the second tool turn on"
            mixed = [*self._opening(), turn, self._tool(RESULT), self._message("assistant", ANSWER)]
            user = self._message("user", USER + "2")
            after = self._after(self.template.render([*mixed, user]), ANSWER)
            if after != self.delta([user], DummyCall.NONE):
                return "the template writes a user's message differently after a tool turn"
        except RenderError as error:
            return f"the template raises on tool messages: {error}"
        return None

    def _generic(self, text: str, dummy: DummyCall) -> bool:
        """The role's name is printed, like that of any unknown role."""
        try:
            zebra = self.delta([{**self._tool(RESULT), "role": "zebra"}], dummy)
        except RenderError:
            return False
        return zebra.lower().replace("zebra", "tool") == text.lower()

    def _tool_details(self, dummy: DummyCall, image: str | None, user_delta: str) -> ToolRule:
        ending, _ = self._find_ending([self._tool(RESULT)], dummy)
        ending = Ending(ending.tokens[-1:])  # the model writes the rest of a call itself
        one = self._cut(self.delta([self._tool(RESULT)], dummy), ending)
        results = [self._tool(RESULT, 0), self._tool(RESULT + "b", 1)]
        named = TOOL_NAMES[0] in one
        grouped = False
        try:
            two = self._cut(self.delta(results, dummy, TOOL_NAMES), ending)
            one_by_one = RESULT + "b" not in two or (named and TOOL_NAMES[1] not in two)
            between = two.partition(RESULT)[2].partition(RESULT + "b")[0]
            grouped = not one_by_one and ending.tokens[-1] not in between
        except RenderError:
            one_by_one = True
        return ToolRule(
            own=True,
            reason="the template has a tool role",
            dummy=dummy,
            ending=ending,
            images=image is not None and self._tool_keeps_images(dummy, image),
            grouped=grouped,
            named=named,
            one_by_one=one_by_one,
            with_user=self._user_may_follow(dummy, user_delta),
        )

    def _tool_keeps_images(self, dummy: DummyCall, image: str) -> bool:
        if self.forms["tool"] is not Form.BLOCKS:
            return False
        content = [text_block(RESULT), {"type": "image"}, text_block(RESULT + "b")]
        try:
            text = self.delta([{**self._tool(RESULT), "content": content}], dummy)
        except RenderError:
            return False
        return text.count(image) == 1 and RESULT + "b" in text and not _RAW_BLOCK.search(text)

    def _user_may_follow(self, dummy: DummyCall, user_delta: str) -> bool:
        try:
            text = self.delta([self._tool(RESULT), self._message("user", USER + "2")], dummy)
        except RenderError:
            return False
        return RESULT in text and text.endswith(user_delta)
