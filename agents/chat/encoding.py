"""Rendered text to ids, keeping apart what the template wrote and what came in as data.

Before a template is rendered, each special-token string inside data (a page, a problem, a tool result) is
replaced by a marker (`protect`). After rendering, `encode` puts the strings back as plain text, while the
same strings written by the template become control ids. Text without markers goes through the tokenizer
unchanged, so that benign text has exactly the ids of a full render.

Knows tokenizers. Must not know roles, turns or images.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from mm_gym.text import scalar_text

# Unicode noncharacters, meant for use inside a program. One in data is protected like a special token.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"


class TextEncoder:
    """Encodes rendered chat text; `protected` are the strings that must be text when they come from data."""

    def __init__(self, tokenizer: Any, protected: Iterable[str]) -> None:
        self.tokenizer = tokenizer
        self.protected = sorted(set(protected), key=lambda s: (-len(s), s))
        self._table = [*self.protected, _OPEN, _CLOSE, ""]
        self._index = {text: i for i, text in enumerate(self._table)}
        self._any = re.compile("|".join(map(re.escape, self._table[:-1])))
        self._marker = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
        self._seam = self._mark("")
        self._heads = {text[:i] for text in self.protected for i in range(1, len(text))}
        self._tails = {text[i:] for text in self.protected for i in range(1, len(text))}
        self._longest = max(map(len, self.protected), default=0)

    def protect(self, text: str, keep: frozenset[str] = frozenset()) -> str:
        """Data made safe for a template: special-token strings become markers, lone surrogates U+FFFD.

        Args:
            text: Any text.
            keep: Special-token strings that may stay (an assistant's own `<think>`, say).
        """
        text = self._any.sub(lambda m: m[0] if m[0] in keep else self._mark(m[0]), scalar_text(text))
        # "<|im_" and "end|>" in two neighbouring blocks must not meet as one special-token string
        if any(text[-i:] in self._heads for i in range(1, self._longest)):
            text += self._seam
        if any(text[:i] in self._tails for i in range(1, self._longest)):
            text = self._seam + text
        return text

    def protect_tree(self, value: Any) -> Any:
        """`protect` on every string, keys included, of JSON-like data (a tool's schema)."""
        if isinstance(value, str):
            return self.protect(value)
        if isinstance(value, dict):
            return {self.protect_tree(k): self.protect_tree(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.protect_tree(v) for v in value]
        return value

    def reveal(self, rendered: str) -> str:
        """The rendered text as a person should read it: markers are the strings that they stand for."""
        return self._marker.sub(lambda m: self._table[int(m[1])], rendered)

    def encode(self, rendered: str) -> list[int]:
        """Ids of rendered text. No tokens are added."""
        if _OPEN not in rendered:
            return list(self.tokenizer.encode(rendered, add_special_tokens=False))
        aliases = self._disguised.aliases
        hidden = self._any.sub(lambda m: aliases.get(m[0], m[0]), rendered)
        return self._disguised.encode(self.reveal(hidden))

    def _mark(self, text: str) -> str:
        return f"{_OPEN}{self._index[text]}{_CLOSE}"

    @cached_property
    def _disguised(self) -> _Disguised:
        return _Disguised(self.tokenizer.backend_tokenizer, self.protected)


class _Disguised:
    """The tokenizer's pipeline, with the protected tokens under secret names only.

    Since nothing else differs, plain text around a special-token string joins as any other text does.
    """

    def __init__(self, backend: Any, protected: Sequence[str]) -> None:
        from tokenizers import AddedToken, Tokenizer

        secret = secrets.token_hex(8)
        self.aliases = {text: f"{_CLOSE}{secret}.{i}{_OPEN}" for i, text in enumerate(protected)}
        self._twin = Tokenizer(backend.model)  # shares the vocabulary
        self._twin.normalizer, self._twin.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
        self._original: dict[int, int] = {}
        for index, token in sorted(backend.get_added_tokens_decoder().items()):
            name = self.aliases.get(token.content, token.content)
            flags = {
                f: getattr(token, f) for f in ("single_word", "lstrip", "rstrip", "normalized", "special")
            }
            self._twin.add_tokens([AddedToken(name, **flags)])
            twin_id = self._twin.token_to_id(name)
            assert twin_id is not None  # it was just added
            self._original[twin_id] = index
        for text in protected:
            if backend.token_to_id(text) in self.encode(text):
                raise ValueError(
                    f"the tokenizer's model makes the special token {text!r} out of plain text: data that "
                    "holds it cannot be kept apart from what the template writes"
                )

    def encode(self, text: str) -> list[int]:
        return [self._original.get(i, i) for i in self._twin.encode(text, add_special_tokens=False).ids]
