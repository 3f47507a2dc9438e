"""A chat template as it is: messages in, text out, or a `RenderError` that says why not.

Knows transformers' `apply_chat_template`. Must not know rules, ids or pictures' features.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


class TemplateRefused(ValueError):  # noqa: N818  (says what happened to the template)
    """This tokenizer, processor or template can't be rendered token-exactly: why, and what to do."""


class RenderError(ValueError):
    """The template raised on these messages."""


class Template:
    """The chat template of a processor or tokenizer, with fixed arguments.

    Args:
        processor: A transformers processor, or a tokenizer.
        kwargs: Arguments of the template (`enable_thinking`, say), the same in every render.

    Raises:
        TemplateRefused: There is no template, or it does not read one of the arguments.
    """

    def __init__(self, processor: Any, kwargs: Mapping[str, Any] | None = None) -> None:
        self.processor = processor
        # some processors' own method takes the template's arguments for image arguments, and warns
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self.kwargs = dict(kwargs or {})
        self.source = self._find_source()
        unread = [name for name in self.kwargs if not re.search(rf"\b{name}\b", self.source)]
        if unread:
            raise TemplateRefused(
                f"the chat template does not read {', '.join(unread)}: leave it out of template_kwargs"
            )

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        generation_prompt: bool = True,
    ) -> str:
        """The text of these messages.

        Raises:
            RenderError: The template raised (roles must alternate, a field is missing, ...).
        """
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    copy.deepcopy(list(messages)),
                    chat_template=self.source,
                    tools=copy.deepcopy(list(tools)) if tools else None,
                    add_generation_prompt=generation_prompt,
                    tokenize=False,
                    **self.kwargs,
                )
            )
        except Exception as error:  # a template can fail with any error that Python has
            roles = [m["role"] for m in messages]
            raise RenderError(f"{type(error).__name__} on roles {roles}: {error}") from error

    def _find_source(self) -> str:
        tokenizer = self._tokenizer
        source = getattr(self.processor, "chat_template", None)
        if source is None and tokenizer is not self.processor and getattr(tokenizer, "chat_template", None):
            raise TemplateRefused(
                f"the {type(self.processor).__name__} has no chat template but its tokenizer has one: "
                "set processor.chat_template = processor.tokenizer.chat_template"
            )
        if isinstance(source, dict):
            source = source.get("default")
        if not source:
            raise TemplateRefused(
                f"the {type(self.processor).__name__} has no chat template (a base model?): load the "
                "instruct version, or set `chat_template` to the Jinja source that the model was trained with"
            )
        return str(source)
