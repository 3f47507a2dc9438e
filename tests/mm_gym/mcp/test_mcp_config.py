"""The YAML: hud-vf-gym's keys and ours, lines in errors, mapping of actions, and safe transforms."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from mm_gym.mcp import ConfigError, load_config
from mm_gym.mcp.config import MCPConfig
from mm_gym.mcp.transforms import Transform, TransformError
from mm_gym.tools import ToolError

EXAMPLES = Path(__file__).resolve().parents[3] / "configs" / "mcp"


def config_of(tmp_path: Path, text: str) -> MCPConfig:
    path = tmp_path / "adapter.yaml"
    path.write_text(textwrap.dedent(text))
    return load_config(path)


HUD_EXAMPLE = """
    system_prompt: "Use <tool>tap(x, y)</tool>, <tool>swipe(dir, n)</tool> or <tool>done()</tool>."
    defaults: {max_turns: 12}
    parser: {use_thinking: false}
    action_mappings:
      tap:   {_tool: pointer, _parser: {positional: [x, y]}, kind: press, pos: {from_args: [x, y], defaults: [0, 0]}}
      swipe: {_tool: pointer, _parser: {positional: [dir, n]}, kind: wheel,
              dy: {from_arg: dir, use_context: true, transform: "lambda d, ctx: ctx.get('n', 1) * (120 if d == 'down' else -120)"}}
"""  # noqa: E501


def test_the_example_of_the_description_maps_as_it_says(tmp_path: Path) -> None:
    config = config_of(tmp_path, HUD_EXAMPLE)
    tap, swipe = config.actions["tap"], config.actions["swipe"]
    assert swipe.build(swipe.bind(["down", 2], {})) == {"kind": "wheel", "dy": 240}
    assert tap.build(tap.bind([3], {})) == {"kind": "press", "pos": [3, 0]}
    assert (config.max_turns, config.parser.use_thinking) == (12, False)
    assert config.rubric.weights == {"task_completion": 0.8, "tool_execution": 0.1, "format_compliance": 0.1}


def test_every_key_of_hud_vf_gym_is_read(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        job: {name: run 7, metadata: {a: 1}, dataset_link: owner/name}
        system_prompt: hi
        defaults: {max_turns: 3}
        parser: {use_thinking: true, xml_weight: 1, action_weight: 3}
        allowed_tools: [move]
        logging: {level: INFO, format: "%(message)s"}
        action_mappings:
          a:
            _tool: t
            _parser: {positional: [p]}
            scalar: 5
            items: [1, 2]
            constant: {static: {deep: [1]}}
            plain: {from_arg: p}
            filled: {from_arg: p, default: 7, transform: "lambda v: v + 1"}
        rubric: {weights: {task_completion: 0.9}}
        """,
    )
    assert (config.job.name, config.job.metadata, config.job.dataset_link) == (
        "run 7",
        {"a": 1},
        "owner/name",
    )
    assert config.rubric.weights == {"task_completion": 0.9, "tool_execution": 0.1, "format_compliance": 0.1}
    assert config.allowed_tools == ("move",)
    built = {"scalar": 5, "items": [1, 2], "constant": {"deep": [1]}}
    action = config.actions["a"]
    assert action.build({"p": 1}) == {**built, "plain": 1, "filled": 2}
    assert action.build({}) == {**built, "filled": 8}
    assert action.build({}, lenient=True) == {**built, "plain": None, "filled": 8}  # hud-vf-gym sends null


def test_static_comes_before_from_arg_and_that_before_from_args(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        action_mappings:
          a:
            _tool: t
            _parser: {positional: [p]}
            one: {static: 1, from_arg: p}
        """,
    )
    assert config.actions["a"].build({"p": 9}) == {"one": 1}


def test_arguments_without_names_are_read_by_slot(tmp_path: Path) -> None:
    config = config_of(tmp_path, "action_mappings: {a: {_tool: t, x: {from_arg: arg0}, y: {from_arg: arg1}}}")
    action = config.actions["a"]
    assert action.build(action.bind([4, 5], {})) == {"x": 4, "y": 5}


def test_a_transform_that_fails_is_an_error_here_and_the_raw_value_in_hud_vf_gym(tmp_path: Path) -> None:
    x = "{from_arg: p, transform: 'lambda v: int(v)'}"
    text = f"action_mappings: {{a: {{_tool: t, _parser: {{positional: [p]}}, x: {x}}}}}"
    action = config_of(tmp_path, text).actions["a"]
    assert action.build({"p": "7"}) == {"x": 7}
    with pytest.raises(TransformError, match="failed on 'seven'"):
        action.build({"p": "seven"})
    assert action.build({"p": "seven"}, lenient=True) == {"x": "seven"}


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("system_promt: x", 1, "did you mean 'system_prompt'"),
        ("defaults:\n  max_turns: many", 2, "defaults.max_turns: must be a int of at least 1, got 'many'"),
        ("defaults: {max_turns: 0}", 1, "at least 1"),
        ("a: 1\nb: [", 2, "not valid YAML"),
        ("job: 3", 1, "job: must be a dict"),
        ("parser:\n  xml_weight: -1", 2, "at least 0"),
        ("parser: {xml_weight: 0, action_weight: 0}", 1, "both 0"),
        ("parser: {xml_weight: .nan}", 1, "xml_weight"),
        ("parser:\n  format: json", 2, "one of xml, hermes"),
        ("rubric:\n  weights:\n    speed: 1", 3, "unknown key 'speed'"),
        ("compat: hud", 1, "hud-vf-gym"),
        ("action_mappings:\n  up: {direction: up}", 2, "needs _tool"),
        ("action_mappings:\n  up:\n    _tool: t\n    x: {form_arg: y}", 4, "static, from_arg or from_args"),
        ("action_mappings:\n  up:\n    _tool: t\n    x: {from_arg: y}", 4, "reads argument 'y'"),
        ("action_mappings:\n  up:\n    _tool: t\n    _prser: {}", 4, "known keys with _"),
        (
            "action_mappings:\n  a:\n    _tool: t\n    _parser: {positional: [p]}\n"
            "    x:\n      from_arg: p\n      transform: 'lambda v: v.__class__'",
            7,
            ".__class__ is not allowed",
        ),
        (
            "action_mappings:\n  a: {_tool: t, _parser: {positional: [p]},\n"
            "    x: {from_arg: p, transform: 'lambda v, ctx: v'}}",
            3,
            "add use_context: true",
        ),
        ("action_mappings:\n  a: {_tool: t, _parser: {positional: [p, p]}}", 2, "stands twice"),
        (
            "action_mappings:\n  a: {_tool: t, _parser: {arguments: {p: {type: intt}}}}",
            2,
            "not a valid description",
        ),
        ("x: &a [1]\nx: 2", 2, "stands twice"),
        ("limits: {call: 0}", 1, "above 0"),
        ("rubric: {components: {short: {function: nowhere}}}", 1, "module:function"),
        ("rubric: {components: {reward: {function: 'a:b'}}}", 1, "taken"),
        ("!!python/object/apply:os.system ['true']", 1, "not allowed"),
        ("job: {name: !!python/name:os.system x}", 1, "not valid YAML"),
        ("- 1", 1, "a configuration is a mapping"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = tmp_path / "adapter.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert told in str(error.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.yaml"):
        load_config("nowhere.yaml")


def test_nested_aliases_do_not_take_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    start = time.process_time()
    with pytest.raises(ConfigError, match="more than 20000 values"):
        load_config(tmp_path / "bomb.yaml")
    assert time.process_time() - start < 5


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        action_mappings:
          left: &move {_tool: move, direction: left}
          right: {<<: *move, direction: right}
        """,
    )
    assert config.actions["right"].build({}) == {"direction": "right"}


TYPED = """
    action_mappings:
      go:
        _tool: t
        _parser:
          positional: [x, way, text]
          arguments:
            x: {type: int, min: 0, max: 10}
            way: {enum: [up, down], default: up}
            text: {type: str, max_length: 5, required: false}
            fast: {type: bool, required: false}
        x: {from_arg: x}
        way: {from_arg: way}
        text: {from_arg: text}
        fast: {from_arg: fast}
"""


@pytest.mark.parametrize(
    ("args", "kwargs", "built"),
    [
        ([3], {}, {"x": 3, "way": "up"}),
        ([3.0, "down"], {}, {"x": 3, "way": "down"}),
        ([], {"x": 0, "text": 12}, {"x": 0, "way": "up", "text": "12"}),
        ([10, "up", "abc"], {"fast": True}, {"x": 10, "way": "up", "text": "abc", "fast": True}),
    ],
)
def test_arguments_of_the_right_type_pass(tmp_path: Path, args: Any, kwargs: Any, built: Any) -> None:
    action = config_of(tmp_path, TYPED).actions["go"]
    assert action.build(action.check(action.bind(args, kwargs))) == built


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ([], {}, "needs x"),
        (["a"], {}, "(integer from 0 to 10)"),
        ([11], {}, "(integer from 0 to 10)"),
        ([1.5], {}, "integer"),
        ([True], {}, "integer"),
        ([1, "left"], {}, "one of up, down"),
        ([1, "up", "toolong"], {}, "text"),
        ([1], {"speed": 2}, "has no argument 'speed'"),
        ([1], {"x": 2}, "twice"),
        ([1, "up", "a", 4], {}, "at most 3"),
        ([1], {"fast": "yes"}, "boolean"),
    ],
)
def test_arguments_of_the_wrong_type_are_told(tmp_path: Path, args: Any, kwargs: Any, told: str) -> None:
    action = config_of(tmp_path, TYPED).actions["go"]
    with pytest.raises(ToolError) as error:
        action.check(action.bind(args, kwargs))
    assert told in str(error.value)


@pytest.mark.parametrize("name", ["2048.yaml", "computer.yaml"])
def test_the_published_examples_load(name: str) -> None:
    assert load_config(EXAMPLES / name).actions


@pytest.mark.parametrize(
    ("call", "args", "built"),
    [
        ("click", [5, 6], {"action": "click", "x": 5, "y": 6}),
        ("key", ["Ctrl + A"], {"action": "press", "keys": ["ctrl", "a"]}),
        ("scroll", ["up"], {"action": "scroll", "x": 640, "y": 400, "scroll_x": 0, "scroll_y": -300}),
        ("scroll", ["right", 2], {"action": "scroll", "x": 640, "y": 400, "scroll_x": 200, "scroll_y": 0}),
        ("wait", [2.5], {"action": "wait", "time": 2500}),
        ("wait", [], {"action": "wait", "time": 1000}),
        ("type", ["héllo"], {"action": "type", "text": "héllo"}),
    ],
)
def test_the_computer_example_maps_to_huds_tool(call: str, args: Any, built: Any) -> None:
    action = load_config(EXAMPLES / "computer.yaml").actions[call]
    assert action.build(action.check(action.bind(args, {}))) == built


# -- transforms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "value", "context", "result"),
    [
        ("lambda x: int(x) * 2", "3", {}, 6),
        ("lambda x: x.split('+')", "ctrl+a", {}, ["ctrl", "a"]),
        ("lambda s: [k.strip().lower() for k in s.split('+') if k]", "Ctrl + A", {}, ["ctrl", "a"]),
        ("lambda d, ctx: ctx.get('n', 3) if d == 'down' else -ctx['n']", "up", {"n": 2}, -2),
        ("lambda x: max(0, min(int(x), 100))", 250, {}, 100),
        ("lambda x: f'{x:.2f}px {x!r}'", 1.5, {}, "1.50px 1.5"),
        ("lambda x: {'a': x, **{'b': 1}}", 2, {}, {"a": 2, "b": 1}),
        ("lambda x: (x, x + 1)", 1, {}, [1, 2]),
        ("lambda x: x[::-1][:2]", "abc", {}, "cb"),
        ("lambda x: {'up': 1}.get(x, 0)", "up", {}, 1),
        ("lambda x: [a + b for a, b in zip(x, range(3))]", [1, 2, 3], {}, [1, 3, 5]),
        ("lambda x: x if x is not None and x not in ('a', 'b') else 'z'", "b", {}, "z"),
        ("lambda x: sum(x) / len(x)", [1, 2], {}, 1.5),
        ("lambda x: ', '.join(sorted(x))", ["b", "a"], {}, "a, b"),
        ("lambda x: x.replace('\\n', ' ').title()", "a\nb", {}, "A B"),
        ("lambda x: not x or 1 < x <= 3", 2, {}, True),
    ],
)
def test_transforms_that_such_files_use(source: str, value: Any, context: Any, result: Any) -> None:
    assert Transform(source)(value, context) == result


ESCAPES = [
    "lambda x: x.__class__",
    "lambda x: ().__class__.__bases__[0].__subclasses__()",
    "lambda x: '{0.__class__}'.format(x)",
    "lambda x: x.format",
    "lambda x: f'{x.__class__}'",
    "lambda x: __import__('os').system('true')",
    "lambda x: eval('1')",
    "lambda x: getattr(x, 'upper')",
    "lambda x: [str][0](x)",
    "lambda x: (lambda: 1)()",
    "lambda x: [y := 1]",
    "lambda x: (yield x)",
    "lambda x: len",
    "lambda x: [len, [len for len in [1]]]",
    "lambda x: sorted(x, key=len)",
    "lambda x: type(x)",
    "lambda x: {x}",
    "lambda x: b'a'",
    "lambda x: 1j",
    "lambda x: ...",
    "lambda x: x.encode()",
    "lambda x: ctx",
    "lambda *x: x",
    "lambda x, y, z: x",
    "lambda: 1",
    "lambda x=1: x",
    "x + 1",
    "import os",
    "lambda x: x; import os",
    "lambda x:",
    "",
    "lambda x: " + "(" * 300 + "x" + ")" * 300,
    "lambda x: " + "-" * 1_900 + "x",
    "lambda x: '" + "a" * 3_000 + "'",
]


@pytest.mark.parametrize("source", ESCAPES, ids=lambda s: s[:40])
def test_no_transform_gets_out_of_the_language(source: str) -> None:
    with pytest.raises(TransformError):
        Transform(source)("7")


GREEDY = [
    "lambda x: 'a' * 10 ** 9",
    "lambda x: 9 ** 9 ** 9",
    "lambda x: 1 << 10 ** 9",
    "lambda x: '%999999999d' % 1",
    "lambda x: f'{1:>999999999}'",
    "lambda x: f'{1:.{9 ** 9}f}'",
    "lambda x: 'a'.center(10 ** 9)",
    "lambda x: '1'.zfill(10 ** 9)",
    "lambda x: ('a' * 60000).replace('a', 'b' * 60000)",
    "lambda x: ('a' * 60000).join(['b'] * 9000)",
    "lambda x: [y for y in range(10000) for z in range(10000)]",
    "lambda x: range(10 ** 9)",
    "lambda x: ['a' * 65536 for i in range(9999)]",
    "lambda x: sum([[1] * 9000 for i in range(9000)], [])",
    "lambda x: [[[1] * 9999] * 9999] * 9999 == [[[1] * 9999] * 9999] * 9999",
    "lambda x: str([[1] * 9999] * 9999)",
    "lambda x: max([[i] * 9999 for i in range(9999)])",
    "lambda x: int('9' * 60000)",
    "lambda x: 1.5 ** 1e308",
    "lambda x: float('inf')",
    "lambda x: float('nan')",
    "lambda x: 1 / 0",
    "lambda x: x[10]",
    "lambda x: {}['a']",
]


@pytest.mark.parametrize("source", GREEDY, ids=lambda s: s[:40])
def test_no_transform_takes_time_or_memory(source: str) -> None:
    start = time.process_time()
    with pytest.raises(TransformError):
        Transform(source)("7")
    assert time.process_time() - start < 2.5
