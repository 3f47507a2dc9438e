"""slime's and miles' interaction environments, unchanged, as a Gymnasium environment.

Such an environment is a module with `build_env(sample, args)`; what it returns has `reset()`,
`step(text) -> (observation, done, info)`, `format_observation(observation) -> message`, perhaps `close()`,
and shows pictures under `multi_modal_data`. Its reward is a function of its own, by dotted path. Knows
that interface as slime's multi-turn example calls it; none of slime's code is needed.

    gymnasium.make("mm_gym.adapters.interaction:Interaction-v0",
                   module="my_env", data="tasks.jsonl", reward="my_env:reward", args="args.yaml")
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import yaml
from PIL import Image

from mm_gym.env import ChatEnv, Opening, Reply
from mm_gym.errors import EnvironmentFailure
from mm_gym.messages import Message, tool, user
from mm_gym.stop import StopReason


@dataclass
class InteractionSample:
    """What `build_env` and the reward function get: the fields of slime's `Sample` that they read."""

    index: int
    prompt: Any
    """Text, or chat messages."""
    label: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    multimodal_inputs: dict[str, Any] = field(default_factory=dict)
    """`images`: the pictures of the prompt."""
    response: str = ""
    """The model's own turns, joined by newlines; nothing that the environment wrote."""
    reward: float | None = None
    status: str = "pending"


@dataclass(frozen=True)
class InteractionTask:
    """One row of the data. It holds the label: do not show it to an agent."""

    index: int
    label: Any


class InteractionEnv(ChatEnv):
    """Runs an interaction environment.

    Args:
        module: Dotted name or .py file of the module with `build_env`.
        data: A .jsonl or .parquet file of rows, or the rows themselves.
        reward: `module:function` of `(args, sample) -> float`, sync or async; None takes `info["reward"]` of
            the last step (0.0 without one).
        args: The environment's `args`: a mapping, or a YAML file of one.
        input_key, label_key, image_key, metadata_key: Columns of the data.
        success_at: Reward from which an episode counts as solved.
        max_turns: The turn cap; default `args["max_turns"]`, else 8.
        render_mode: None or "rgb_array".
    """

    deterministic = False  # nothing is known of what such an environment does

    def __init__(
        self,
        *,
        module: str,
        data: str | Path | Sequence[Mapping[str, Any]],
        reward: str | None = None,
        args: str | Path | Mapping[str, Any] | None = None,
        input_key: str = "prompt",
        label_key: str = "label",
        image_key: str = "images",
        metadata_key: str = "metadata",
        success_at: float = 1.0,
        max_turns: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        settings = _settings(args)
        turns = max_turns if max_turns is not None else int(settings.get("max_turns") or 8)
        super().__init__(max_turns=turns, render_mode=render_mode)
        self.args = SimpleNamespace(**{**settings, "max_turns": turns})
        self.success_at = success_at
        self._build = _load(module).build_env
        self._reward = _function(reward) if reward is not None else None
        self._rows = _rows(str(data)) if isinstance(data, (str, Path)) else tuple(data)
        if not self._rows:
            raise ValueError(f"no rows in {data!r}")
        self._keys = (input_key, label_key, image_key, metadata_key)
        self._inner: Any = None
        self._sample: InteractionSample | None = None

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The rows' numbers, for `options["task"]`."""
        return tuple(str(i) for i in range(len(self._rows)))

    def begin(self, options: dict[str, Any]) -> Opening:
        """Options: `task`, a row's number."""
        task = options.pop("task", None)
        if options:
            raise ValueError(f"unknown options {sorted(options)}; Interaction takes `task` and `max_turns`")
        index = int(self.np_random.integers(len(self._rows))) if task is None else int(task)
        self._sample = self._read(index)
        self._release()
        self._inner = self._guard("build_env", lambda: _call_build(self._build, self._sample, self.args))
        self._guard("reset", self._inner.reset)
        system, messages = _prompt(self._sample.prompt, self._sample.multimodal_inputs.get("images") or [])
        return Opening(
            messages=messages,
            task_id=str(index),
            task=InteractionTask(index, self._sample.label),
            system_prompt=system,
            tools=self._sample.metadata.get("tools") or (),
        )

    def respond(self, action: str) -> Reply:
        assert self._sample is not None
        self._sample.response += ("\n" if self._sample.response else "") + action
        observation, done, info = self._guard("step", lambda: self._inner.step(action))
        info = info or {}
        last = bool(done) or self.turn >= self.max_turns
        reward = self._score(info) if last else 0.0
        messages: list[Message] = []
        if not done:
            message = self._guard("format_observation", lambda: self._inner.format_observation(observation))
            messages = [_as_message(message)]
        return Reply(messages, reward, bool(done), success=last and reward >= self.success_at)

    def settle(self, stop_reason: StopReason) -> tuple[float, dict[str, float]]:
        """An episode that was cut is scored on what was said, as slime scores a truncated sample."""
        reward = self._score({})
        return reward, {"success": float(reward >= self.success_at)}

    def close(self) -> None:
        self._release()
        super().close()

    # -- inside ----------------------------------------------------------------------------------------

    def _read(self, index: int) -> InteractionSample:
        row = self._rows[index]
        input_key, label_key, image_key, metadata_key = self._keys
        if input_key not in row:
            raise ValueError(f"row {index} has no column {input_key!r}; it has {sorted(row)}")
        pictures = [_picture(one) for one in row.get(image_key) or []]
        metadata = dict(row.get(metadata_key) or {})
        return InteractionSample(
            index, row[input_key], row.get(label_key), metadata, {"images": pictures} if pictures else {}
        )

    def _score(self, info: Mapping[str, Any]) -> float:
        sample = self._sample
        assert sample is not None
        sample.status = "completed"
        if self._reward is None:
            reward = info.get("reward", 0.0)
        else:
            function = self._reward
            reward = self._guard("reward", lambda: _finished(function(self.args, sample)))
        sample.reward = float(reward)
        return sample.reward

    def _guard(self, what: str, call: Callable[[], Any]) -> Any:
        """What breaks inside the foreign environment is a failure of ours, not of the agent."""
        try:
            return call()
        except Exception as error:
            raise EnvironmentFailure(
                f"{what} raised {type(error).__name__}: {error}", kind="interaction"
            ) from error

    def _release(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None and hasattr(inner, "close"):
            self._guard("close", inner.close)


def _prompt(prompt: Any, pictures: Sequence[Image.Image]) -> tuple[str, list[Message]]:
    """System prompt and opening messages; pictures stand where `<image>` marks are, else first."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    rest = list(pictures)
    system, messages = "", []
    for message in prompt:
        if message["role"] == "system":
            system = _text_of(message["content"])
        else:
            messages.append(user(*_blocks(message["content"], rest)))
    if rest and messages:
        messages[0]["content"] = user(*rest, *messages[0]["content"])["content"]
    return system, messages


def _blocks(content: Any, pictures: list[Image.Image]) -> list[Any]:
    """Texts and pictures; an `<image>` mark, or a picture block without data, takes the next picture."""
    if not isinstance(content, str):
        return [_block(block, pictures) for block in content]
    out: list[Any] = []
    for i, text in enumerate(content.split("<image>")):
        if i and pictures:
            out.append(pictures.pop(0))
        if text:
            out.append(text)
    return out


def _block(block: Mapping[str, Any], pictures: list[Image.Image]) -> Any:
    if block.get("type") == "image":
        shown = block.get("image")
        return _picture(shown) if shown is not None else pictures.pop(0)
    return str(block.get("text", ""))


def _as_message(message: Mapping[str, Any]) -> Message:
    content = message.get("content", "")
    parts = [content] if isinstance(content, str) else [_block(block, []) for block in content]
    if message.get("role") == "tool":
        return tool(str(message.get("name") or "environment"), 0, *parts)
    return user(*parts)


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(b.get("text", "")) for b in content)


def _picture(value: Any) -> Image.Image:
    """A picture from an image, its bytes, a path, or a parquet cell `{bytes, path}`."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        value = io.BytesIO(value)
    return value if isinstance(value, Image.Image) else Image.open(value).convert("RGB")


def _call_build(build: Callable[..., Any], sample: Any, args: Any) -> Any:
    """By keyword, or by position where the function names its parameters otherwise."""
    names = inspect.signature(build).parameters
    keyword = {"sample", "args"} <= set(names) or any(p.kind is p.VAR_KEYWORD for p in names.values())
    return build(sample=sample, args=args) if keyword else build(sample, args)


def _finished(value: Any) -> Any:
    """The value itself, or what an awaitable gives."""

    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value


def _settings(args: str | Path | Mapping[str, Any] | None) -> dict[str, Any]:
    if args is None or isinstance(args, Mapping):
        return dict(args or {})
    read = yaml.safe_load(Path(args).read_text(encoding="utf-8"))
    if not isinstance(read, dict):
        raise ValueError(f"{args} must hold a mapping of arguments, got {type(read).__name__}")
    return read


def _load(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name)
    spec = importlib.util.spec_from_file_location(f"interaction_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"no module at {name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses in it look their module up
    spec.loader.exec_module(module)
    return module


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.replace(":", ".").rpartition(".")
    found = getattr(_load(module), name, None) if module else None
    if not callable(found):
        raise ValueError(f"reward must name a function as module:function, got {path!r}")
    return found


@lru_cache(maxsize=8)
def _rows(path: str) -> tuple[Mapping[str, Any], ...]:
    if path.endswith(".parquet"):
        import pyarrow.parquet

        return tuple(pyarrow.parquet.read_table(path).to_pylist())
    if path.endswith((".jsonl", ".json")):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return tuple(json.loads(line) for line in lines if line.strip())
    raise ValueError(f"data must be a .jsonl or .parquet file, or rows, got {path!r}")


if "Interaction-v0" not in gymnasium.registry:
    gymnasium.register("Interaction-v0", entry_point="mm_gym.adapters.interaction:InteractionEnv")
