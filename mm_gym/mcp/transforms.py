"""Argument transforms: the lambda strings of an adapter's YAML, evaluated without Python's eval.

Knows a small expression language: numbers, strings, lists, dicts, conditionals, comprehensions, a few
functions, and methods of str, list, tuple and dict that only read. It is built on simpleeval's walk over
the syntax tree, narrowed: no attribute is ever a value, every intermediate result has a size limit, and the
number of steps is limited, so that an expression from a stranger's file can neither reach Python's
internals nor use up time or memory. Knows nothing of tools or servers.

>>> Transform("lambda d, ctx: ctx.get('n', 1) * (120 if d == 'down' else -120)")("up", {"n": 2})
-240
"""

from __future__ import annotations

import ast
import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium.error import DependencyNotInstalled

try:
    import simpleeval
except ImportError as error:  # pragma: no cover - needs an installation without the extra
    raise DependencyNotInstalled(
        'transforms in an MCP configuration need simpleeval: pip install "mm-gym[mcp]"'
    ) from error

MAX_SOURCE = 2_000
"""Characters of a transform's text."""
MAX_STEPS = 20_000
"""Nodes evaluated in one call."""
MAX_SECONDS = 1.0
"""Wall time of one call: a last resort, the step limit comes first."""
MAX_TEXT = 1 << 16
"""Characters of any text that an expression makes."""
MAX_ITEMS = 10_000
"""Items of any list, tuple, dict or set that an expression makes."""
MAX_BITS = 1_024
"""Bits of any integer that an expression makes."""
MAX_WORK = 400_000
"""Of all intermediate results together: an item counts 1, a text 1 for every 16 characters."""


class TransformError(ValueError):
    """A transform is not in the language, or failed on a value; the text says why."""


class Transform:
    """A lambda string, checked once and callable often.

    Args:
        source: `lambda value: ...` or `lambda value, ctx: ...`; `ctx` is the dict of all arguments.

    Raises:
        TransformError: It is not a lambda of this language; the text names what is not allowed.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        function = _parse(source)
        self._names = [argument.arg for argument in function.args.args]
        self._body = function.body
        _check(function.body, set(self._names))

    @property
    def takes_context(self) -> bool:
        """Whether the lambda has a second parameter, for the dict of all arguments."""
        return len(self._names) == 2

    def __call__(self, value: Any, context: Mapping[str, Any] | None = None) -> Any:
        """The transformed value: plain JSON data.

        Raises:
            TransformError: It failed on this value, grew too large or took too long.
        """
        values = (value, dict(context or {}))
        evaluator = _Evaluator(dict(zip(self._names, values, strict=False)))
        try:
            return _plain(evaluator.eval(self.source, previously_parsed=self._body))
        except TransformError:
            raise
        except simpleeval.InvalidExpression as error:
            raise TransformError(f"transform {self.source!r} is not allowed: {error}") from error
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise TransformError(
                f"transform {self.source!r} failed on {_short(value)}: {type(error).__name__}: {error}"
            ) from error
        except (RecursionError, MemoryError) as error:
            raise TransformError(f"transform {self.source!r} is nested too deeply") from error

    def __repr__(self) -> str:
        return f"Transform({self.source!r})"


# -- the language -------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "str": lambda value="": _scalar_text(value),
    "len": len,
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "sum": lambda numbers: _sum(numbers),
    "sorted": sorted,
    "any": any,
    "all": all,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "range": lambda *bounds: _bounded_range(*bounds),
    "enumerate": lambda items, start=0: list(enumerate(items, start)),
    "zip": lambda *lists: list(zip(*lists, strict=False)),
}

_STR_METHODS = frozenset((
    "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal",
    "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split",
    "splitlines", "startswith", "strip", "swapcase", "title", "upper",
))  # fmt: skip
_GROWING_STR_METHODS = frozenset(("join", "replace", "center", "ljust", "rjust", "zfill"))
_METHODS: dict[type, frozenset[str]] = {
    str: _STR_METHODS | _GROWING_STR_METHODS,
    list: frozenset(("count", "index")),
    tuple: frozenset(("count", "index")),
    dict: frozenset(("get", "items", "keys", "values")),
    int: frozenset(("bit_length",)),
    float: frozenset(("is_integer",)),
}
_ALL_METHODS = frozenset().union(*_METHODS.values())

_NODES: tuple[type[ast.AST], ...] = (
    ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call,
    ast.keyword, ast.Subscript, ast.Slice, ast.Attribute, ast.JoinedStr, ast.FormattedValue, ast.List,
    ast.Tuple, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.comprehension,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def _parse(source: str) -> ast.Lambda:
    if not isinstance(source, str):
        raise TransformError(f"a transform is a lambda string, got {type(source).__name__}")
    if len(source) > MAX_SOURCE:
        raise TransformError(f"a transform has at most {MAX_SOURCE} characters, this one has {len(source)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TransformError(f"transform {source!r} is not a Python expression: {error}") from error
    function = tree.body
    if not isinstance(function, ast.Lambda):
        raise TransformError(f'transform {source!r} must be a lambda such as "lambda x: int(x) * 2"')
    signature = function.args
    plain = not (signature.vararg or signature.kwarg or signature.kwonlyargs or signature.defaults)
    if not plain or signature.posonlyargs or not 1 <= len(signature.args) <= 2:
        raise TransformError(
            f'transform {source!r} must take one plain parameter, or two: "lambda v, ctx: ..."'
        )
    return function


def _check(body: ast.AST, names: set[str]) -> None:
    """Refuse at load what could never run: unknown forms, names and methods."""
    callees = {node.func for node in ast.walk(body) if isinstance(node, ast.Call)}
    bound = set(names)
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    for node in ast.walk(body):
        if not isinstance(node, _NODES):
            raise TransformError(f"{type(node).__name__} is not part of the transform language")
        if isinstance(node, ast.Constant) and not isinstance(node.value, (str, int, float, type(None))):
            raise TransformError(f"{node.value!r} is not part of the transform language")
        if isinstance(node, ast.Attribute):
            if node not in callees or node.attr not in _ALL_METHODS:
                allowed = ", ".join(sorted(_ALL_METHODS))
                raise TransformError(f".{node.attr} is not allowed in a transform; methods are: {allowed}")
        elif isinstance(node, ast.Call) and not isinstance(node.func, (ast.Name, ast.Attribute)):
            raise TransformError("only functions and methods by name can be called in a transform")
        elif isinstance(node, ast.Name) and node not in callees and node.id not in bound:
            raise TransformError(f"unknown name {node.id!r} in a transform; known are {sorted(bound)}")
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _FUNCTIONS
        ):
            raise TransformError(f"unknown function {node.func.id!r}; functions are: {', '.join(_FUNCTIONS)}")
        elif isinstance(node, ast.comprehension) and node.is_async:
            raise TransformError("async is not part of the transform language")


class _Evaluator(simpleeval.EvalWithCompoundTypes):
    """simpleeval's walk, with a step count, size limits, and methods that are called but never values."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(operators=_OPERATORS, functions=dict(_FUNCTIONS), names=names)
        self.functions = dict(_FUNCTIONS)  # the base class adds `set`
        self._steps = 0
        self._work = 0
        self._deadline = time.monotonic() + MAX_SECONDS

    def _eval(self, node: ast.AST) -> Any:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TransformError(f"the transform took more than {MAX_STEPS} steps")
        if self._steps % 256 == 0 and time.monotonic() > self._deadline:
            raise TransformError(f"the transform took more than {MAX_SECONDS} s")
        result = super()._eval(node)
        _check_size(result)
        self._work += _weight(result, MAX_WORK)
        if self._work > MAX_WORK:
            raise TransformError("the transform makes too much data")
        return result

    def _eval_call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Attribute):
            return super()._eval_call(node)
        owner = self._eval(node.func.value)
        name = node.func.attr
        if name not in _METHODS.get(type(owner), ()):
            raise TransformError(f"{type(owner).__name__} has no method .{name} in the transform language")
        arguments = [self._eval(argument) for argument in node.args]
        keywords = dict(self._eval(keyword) for keyword in node.keywords)
        if name in _GROWING_STR_METHODS:
            _check_growth(name, owner, arguments)
        result = getattr(owner, name)(*arguments, **keywords)
        return list(result) if name in ("items", "keys", "values") else result

    def _eval_name(self, node: ast.Name) -> Any:
        if node.id not in self.names:  # never a function: those are called, not passed around
            raise TransformError(f"unknown name {node.id!r} in a transform")
        return self.names[node.id]

    def _check_disallowed_items(self, item: Any) -> None:
        """Nothing to look for (values are plain data), and its own walk has no limit."""

    def _eval_attribute(self, node: ast.Attribute) -> Any:
        raise TransformError(f".{node.attr} can only be called in a transform")

    def _eval_formattedvalue(self, node: ast.FormattedValue) -> Any:
        value = self._eval(node.value)
        if node.conversion not in (-1, ord("s"), ord("r")):
            raise TransformError("a transform's f-string takes !s or !r only")
        if node.conversion == ord("r"):
            value = repr(value) if isinstance(value, str) else _scalar_text(value)
        spec = str(self._eval(node.format_spec)) if node.format_spec else ""
        _check_format(spec)
        return format(value, spec) if spec else _scalar_text(value)


# -- limits -------------------------------------------------------------------------------------------


def _check_size(value: Any) -> None:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise TransformError(f"the transform made a text of more than {MAX_TEXT} characters")
    if isinstance(value, (list, tuple, dict, set)) and len(value) > MAX_ITEMS:
        raise TransformError(f"the transform made a list of more than {MAX_ITEMS} items")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise TransformError(f"the transform made an integer of more than {MAX_BITS} bits")


def _weight(value: Any, limit: int) -> int:
    """The size of a value with all that it holds, counted until `limit` is passed.

    Counted deeply, since a list of references to one long list is small to make and endless to compare.
    """
    total = 0
    stack = [value]
    while stack and total <= limit:
        item = stack.pop()
        total += 1
        if isinstance(item, str):
            total += len(item) // 16
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
    return total


def _check_growth(name: str, owner: str, arguments: list[Any]) -> None:
    """Refuse a str method before it runs where its result would be too long."""
    size = len(owner)
    if name == "replace" and len(arguments) >= 2:
        size += (owner.count(arguments[0]) if arguments[0] else len(owner) + 1) * len(arguments[1])
    elif name == "join" and arguments:
        parts = list(arguments[0])
        size = sum(len(part) for part in parts) + len(owner) * len(parts)
    elif arguments:
        size = max(size, int(arguments[0]))
    if size > MAX_TEXT:
        raise TransformError(f"the transform would make a text of more than {MAX_TEXT} characters")


def _check_format(spec: str) -> None:
    digits = "".join(c if c.isdigit() else " " for c in spec).split()
    if any(len(run) > 3 for run in digits) or "{" in spec:
        raise TransformError(f"the width or precision in format {spec!r} is too large")


def _scalar_text(value: Any) -> str:
    if value is not None and not isinstance(value, (str, int, float)):
        raise TransformError(f"str of a {type(value).__name__} is not part of the transform language")
    return str(value)


def _sum(numbers: Any) -> Any:
    items = list(numbers)
    if not all(isinstance(item, (int, float)) for item in items):
        raise TransformError("sum takes numbers only in a transform")
    return sum(items)


def _bounded_range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > MAX_ITEMS:
        raise TransformError(f"range makes more than {MAX_ITEMS} numbers")
    return list(numbers)


def _multiply(left: Any, right: Any) -> Any:
    for items, times in ((left, right), (right, left)):
        limit = MAX_TEXT if isinstance(items, str) else MAX_ITEMS
        if isinstance(items, (str, list, tuple)) and isinstance(times, int) and len(items) * times > limit:
            raise TransformError(f"repeating {type(items).__name__} {times} times makes it too long")
    return left * right


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > MAX_BITS:
        raise TransformError(f"{left} ** {right} is too large")
    return left**right


def _shift(left: Any, right: Any) -> Any:
    if right > MAX_BITS:
        raise TransformError(f"<< {right} is too large")
    return left << right


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):  # "%999999999d" % 1 would make a text of a gigabyte
        raise TransformError("text % values is not part of the transform language; use an f-string")
    return left % right


_OPERATORS = {
    **simpleeval.DEFAULT_OPERATORS,
    ast.Mult: _multiply,
    ast.Pow: _power,
    ast.LShift: _shift,
    ast.Mod: _modulo,
}


def _plain(value: Any, depth: int = 0) -> Any:
    """Plain JSON data: tuples become lists; anything else is an error."""
    if depth > 16:
        raise TransformError("the transform's result is nested too deeply")
    if isinstance(value, float) and not math.isfinite(value):
        raise TransformError(f"the transform gave {value}, which no tool argument can carry")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    raise TransformError(f"the transform gave {type(value).__name__}, not plain JSON data")


def _short(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
