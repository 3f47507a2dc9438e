"""What task files are written with: paths into JSON data, placeholders, comparisons. None of it runs code.

A path is a text of keys with dots between: `mails.m3.read`. In a list a part is an index, or the `id` of one
of its things; `size` is the number of things in a list or mapping, or of characters in a text.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

Names = dict[str, Any]

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_MAX_TEXT = 100_000


def lookup(data: Any, path: str) -> Any:
    """What lies at a path.

    >>> lookup({"mails": [{"id": "m3", "read": True}]}, "mails.m3.read")
    True

    Raises:
        LookupError: Nothing does; the text says how far the path goes.
    """
    node, gone = data, ""
    for part in path.split("."):
        try:
            node = node[_key(node, part)]
        except LookupError:
            if part != "size" or not isinstance(node, (str, list, dict)):
                raise LookupError(
                    f"{path!r}: there is no {part!r} {f'in {gone!r}' if gone else ''}"
                ) from None
            node = len(node)
        gone = f"{gone}.{part}".lstrip(".")
    return node


def set_at(data: Any, path: str, function: Callable[[Any], Any] | None) -> None:
    """Replace what lies at a path by a function of it, or take it away (None). Only what is there is set.

    Raises:
        LookupError: Nothing lies at the path.
    """
    *way, last = path.split(".")
    node = lookup(data, ".".join(way)) if way else data
    key = _key(node, last)
    if function is None:
        del node[key]
    else:
        node[key] = function(node[key])


def _key(node: Any, part: str) -> Any:
    if isinstance(node, dict) and part in node:
        return part
    if isinstance(node, list):
        for index, item in enumerate(node):
            if isinstance(item, dict) and str(item.get("id")) == part:
                return index
        if part.isdecimal() and int(part) < len(node):
            return int(part)
    raise LookupError(f"there is no {part!r}")


def fill(value: Any, names: Names) -> Any:
    """A copy of JSON data with `{name}` and `{name.path}` in its texts replaced; `{{` and `}}` are braces.

    A text that is nothing but one placeholder becomes the value itself, whatever its type.

    >>> fill({"a": "{n}", "b": "{n} of {who.name}"}, {"n": 2, "who": {"name": "Ada"}})
    {'a': 2, 'b': '2 of Ada'}

    Raises:
        LookupError: A name is not known.
    """
    if isinstance(value, dict):
        return {str(fill(key, names)): fill(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole and whole[1] is not None:
        return copy.deepcopy(lookup(names, whole[1]))
    text = _PLACEHOLDER.sub(lambda m: m[0][0] if m[1] is None else _said(lookup(names, m[1])), value)
    if len(text) > _MAX_TEXT:
        raise ValueError(f"{value[:40]!r} becomes a text of more than {_MAX_TEXT} characters")
    return text


def _said(value: Any) -> str:
    return ", ".join(map(_said, value)) if isinstance(value, list) else str(value)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "is": lambda have, want: _same(have, want),
    "is_not": lambda have, want: not _same(have, want),
    "above": lambda have, want: have > want,
    "below": lambda have, want: have < want,
    "at_least": lambda have, want: have >= want,
    "at_most": lambda have, want: have <= want,
    "has": lambda have, want: want in have,
    "one_of": lambda have, want: any(_same(have, one) for one in want),
}


def compare(data: Any, path: str, condition: Any) -> str | None:
    """None where what lies at the path fits, else what is wrong, in words.

    Args:
        data: JSON data.
        path: Into it.
        condition: The value that it must have, or a mapping of comparisons: `is`, `is_not`, `above`, `below`,
            `at_least`, `at_most`, `has` (a list or text that holds it), `one_of`.

    >>> compare({"good": 3}, "good", {"at_least": 2, "below": 9}), compare({"good": 3}, "good", 2)
    (None, 'good: 3 is not 2')
    """
    try:
        have = lookup(data, path)
    except LookupError as error:
        return str(error)
    wanted = condition if _is_comparisons(condition) else {"is": condition}
    for name, want in wanted.items():
        try:
            fits = _COMPARISONS[name](have, want)
        except TypeError:
            fits = False
        if not fits:
            return f"{path}: {have!r} is not {'' if name == 'is' else name + ' '}{want!r}"
    return None


def _is_comparisons(condition: Any) -> bool:
    return isinstance(condition, dict) and bool(condition) and set(condition) <= set(_COMPARISONS)


def _same(have: Any, want: Any) -> bool:
    return bool(have == want) and isinstance(have, bool) == isinstance(want, bool)
