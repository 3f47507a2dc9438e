"""Finds how a template renders tool results, or why they must come as user messages.

Tries each kind of dummy turn before a result, and each form of content. Knows `Trial`s of a template.
"""

from __future__ import annotations

from agents.chat.rules import DummyCall, Ending, Form, ToolRule
from agents.chat.shape import dummy_turn, text_block
from agents.chat.template import RenderError
from agents.chat.trial import ANSWER, RAW_BLOCK, RESULT, TOOL_NAMES, USER, Trial

_GENERIC = "the template knows no tool role: it prints the role's name like any other"


class ToolProber:
    """One search for the rule of tool messages.

    Args:
        trial: The template under trial, its forms known.
        user_delta: What the template writes for a user message after the dummy answer.
        image: The placeholder of a picture, or None.
    """

    def __init__(self, trial: Trial, user_delta: str, image: str | None) -> None:
        self.trial = trial
        self.user_delta = user_delta
        self.image = image

    def rule(self) -> ToolRule:
        """The tool role as the template has it, else the reason for user messages instead."""
        reasons = []
        working: list[tuple[DummyCall, str, Form]] = []
        for dummy in (DummyCall.NONE, DummyCall.MAPPING, DummyCall.STRING):
            for form in sorted(Form, key=lambda f: f is not self.trial.forms["user"]):
                self.trial.forms["tool"] = form
                reason = self._problem(dummy)
                if reason is None:
                    working.append((dummy, self.trial.delta([self.trial.tool(RESULT)], dummy), form))
                    break
                reasons.append(reason)
        if not working:
            self.trial.forms["tool"] = self.trial.forms["user"]
            return ToolRule(own=False, reason=reasons[0])
        chosen = working[0]
        with_calls = [w for w in working if w[0] is not DummyCall.NONE]
        cuts = []
        for dummy, text, self.trial.forms["tool"] in working:
            ending, _ = self.trial.find_ending([self.trial.tool(RESULT)], dummy)
            cuts.append((ending.tokens[-1], self.trial.cut(text, ending)))
        if with_calls and cuts[working.index(with_calls[0])] != cuts[0]:
            chosen = with_calls[0]  # as the model knows it: a result follows a call
        dummy, _, self.trial.forms["tool"] = chosen
        if self._generic(chosen[1], dummy) and not with_calls:
            self.trial.forms["tool"] = self.trial.forms["user"]
            return ToolRule(own=False, reason=_GENERIC)
        return self._details(dummy)

    def _problem(self, dummy: DummyCall) -> str | None:
        try:
            text = self.trial.delta([self.trial.tool(RESULT)], dummy)
            if RESULT not in text:
                return "the template leaves tool messages out"
            if RAW_BLOCK.search(text):
                return "the template prints a tool message's blocks as they are"
            if self._generic(text, dummy) and not self.trial.tools_listed():
                return _GENERIC
            turn = dummy_turn(dummy, ANSWER, TOOL_NAMES[:1], self.trial.forms["assistant"])
            again = [*self.trial.opening(), turn, self.trial.tool(RESULT), turn, self.trial.tool(RESULT)]
            if self.trial.after(self.trial.render(again), ANSWER) != text:
                return "the template writes tool results differently from the second tool turn on"
            mixed = [
                *self.trial.opening(),
                turn,
                self.trial.tool(RESULT),
                self.trial.message("assistant", ANSWER),
            ]
            user = self.trial.message("user", USER + "2")
            after = self.trial.after(self.trial.render([*mixed, user]), ANSWER)
            if after != self.trial.delta([user], DummyCall.NONE):
                return "the template writes a user's message differently after a tool turn"
        except RenderError as error:
            return f"the template raises on tool messages: {error}"
        return None

    def _generic(self, text: str, dummy: DummyCall) -> bool:
        """The role's name is printed, like that of any unknown role."""
        try:
            zebra = self.trial.delta([{**self.trial.tool(RESULT), "role": "zebra"}], dummy)
        except RenderError:
            return False
        return zebra.lower().replace("zebra", "tool") == text.lower()

    def _details(self, dummy: DummyCall) -> ToolRule:
        ending, _ = self.trial.find_ending([self.trial.tool(RESULT)], dummy)
        ending = Ending(ending.tokens[-1:])  # the model writes the rest of a call itself
        one = self.trial.cut(self.trial.delta([self.trial.tool(RESULT)], dummy), ending)
        results = [self.trial.tool(RESULT, 0), self.trial.tool(RESULT + "b", 1)]
        named = TOOL_NAMES[0] in one
        grouped = False
        try:
            two = self.trial.cut(self.trial.delta(results, dummy, TOOL_NAMES), ending)
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
            images=self._keeps_images(dummy),
            grouped=grouped,
            named=named,
            one_by_one=one_by_one,
            with_user=self._user_may_follow(dummy),
        )

    def _keeps_images(self, dummy: DummyCall) -> bool:
        if self.image is None:
            return False
        if self.trial.forms["tool"] is not Form.BLOCKS:
            return False
        content = [text_block(RESULT), {"type": "image"}, text_block(RESULT + "b")]
        try:
            text = self.trial.delta([{**self.trial.tool(RESULT), "content": content}], dummy)
        except RenderError:
            return False
        return text.count(self.image) == 1 and RESULT + "b" in text and not RAW_BLOCK.search(text)

    def _user_may_follow(self, dummy: DummyCall) -> bool:
        try:
            text = self.trial.delta([self.trial.tool(RESULT), self.trial.message("user", USER + "2")], dummy)
        except RenderError:
            return False
        return RESULT in text and text.endswith(self.user_delta)
