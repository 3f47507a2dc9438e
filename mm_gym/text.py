"""Text from data, pages, servers and models, made safe to hand on.

Knows Unicode. Does not know tokens: that a special-token string stays text is `agents.chat`'s work.
"""

from __future__ import annotations

REPLACEMENT = "\ufffd"


def scalar_text(text: str) -> str:
    """Replace lone surrogates, which no tokenizer accepts and UTF-8 cannot carry, by U+FFFD.

    >>> scalar_text("a\\ud800b")
    'a\ufffdb'
    """
    if text.isascii():
        return text
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        return text
    # surrogatepass joins proper pairs; "replace" turns what is left into U+FFFD
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
