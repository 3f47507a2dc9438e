"""Rendered text to ids, keeping apart what the template wrote and what came in as data.

Before a template is rendered, each special-token string inside data (a page, a problem, a tool result) is
replaced by a marker (`protect`). After rendering, `encode` puts the strings back as plain text, while the
same strings written by the template become control ids. Text without markers goes through the tokenizer
unchanged, so that benign text has exactly the ids of a full render.

Knows tokenizers. Must not know roles, turns or images.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from functools import cached_property, lru_cache
from threading import Lock
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
        tokenizer, secret = self._disguised
        hidden = self._any.sub(
            lambda m: m[0] if m[0] in (_OPEN, _CLOSE) else self._alias(secret, self._index[m[0]]), rendered
        )
        return list(tokenizer.encode(self.reveal(hidden), add_special_tokens=False).ids)

    def _mark(self, text: str) -> str:
        return f"{_OPEN}{self._index[text]}{_CLOSE}"

    @staticmethod
    def _alias(secret: str, index: int) -> str:
        return f"{_CLOSE}{secret}.{index}{_OPEN}"

    @cached_property
    def _disguised(self) -> tuple[Any, str]:
        with _LOCK:  # building takes a second or two for a large vocabulary: once, whatever the threads
            return _twin(self.tokenizer.backend_tokenizer.to_str(), tuple(self.protected))


_LOCK = Lock()


@lru_cache(maxsize=4)
def _twin(tokenizer_json: str, protected: tuple[str, ...]) -> tuple[Any, str]:
    """A twin of the tokenizer that knows the protected tokens by secret names only, and the secret.

    Its pipeline is the original's, so that plain text on both sides of a special-token string joins exactly as
    any other text does.
    """
    from tokenizers import Tokenizer

    secret = secrets.token_hex(8)
    aliases = {text: TextEncoder._alias(secret, i) for i, text in enumerate(protected)}
    data = json.loads(tokenizer_json)
    ids = {token["content"]: token["id"] for token in data["added_tokens"]}
    data["post_processor"] = data["truncation"] = data["padding"] = None
    for token in data["added_tokens"]:
        token["content"] = aliases.get(token["content"], token["content"])
    vocabulary = data["model"].get("vocab")
    if isinstance(vocabulary, dict):
        data["model"]["vocab"] = {aliases.get(text, text): i for text, i in vocabulary.items()}
    twin = Tokenizer.from_str(json.dumps(data))
    for text, alias in aliases.items():
        if twin.token_to_id(alias) != ids[text]:
            raise ValueError(
                f"the tokenizer's special token {text!r} cannot be told from text: its id moved from {ids[text]} "
                f"to {twin.token_to_id(alias)} under another name"
            )
    return twin, secret
