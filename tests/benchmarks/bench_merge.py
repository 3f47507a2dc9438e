"""What the tensors of a long episode cost: ours, concatenating each turn, re-rendering each turn.

    python tests/benchmarks/bench_merge.py          # a table, and JSON with --json FILE

An episode of N turns with a picture each, on Qwen3-VL's processor. *ours*: each observation is rendered as a
delta, the pictures are processed once at the end (`ChatRenderer.model_inputs`). *concatenate*: the tensors of
each turn are appended to those before it. *re-render*: the whole conversation goes through the processor each
turn, as a loop without deltas does. Work is CPU time of this process (others don't count), and bytes of
tensors made. All three end with the same tensors; that is checked.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from PIL import Image

from agents.chat import ChatRenderer
from agents.chat.families import processor_for, trl_templates

TURNS = (1, 2, 4, 8, 16, 20, 32, 64)
SIZE = (320, 256)  # (width, height): 80 image tokens
TARGETS = {20: 8.0, 64: 24.0}
"""Turns, and how many times less work than re-rendering is wanted."""


@dataclass(frozen=True)
class Cost:
    """What one way of doing it cost."""

    seconds: float
    """CPU time."""
    megabytes: float
    """Of tensors made on the way."""


@dataclass(frozen=True)
class Row:
    """One length of episode."""

    turns: int
    ours: Cost
    concatenate: Cost
    rerender: Cost

    @property
    def ratio(self) -> float:
        """Work of re-rendering over ours."""
        return self.rerender.seconds / self.ours.seconds


class Episode:
    """The messages of an episode: an opening, then an answer and an observation per turn, a picture each."""

    def __init__(self, turns: int) -> None:
        noise = np.random.default_rng(turns)
        width, height = SIZE
        frames = noise.integers(0, 256, (turns, height, width, 3), dtype=np.uint8)
        self.images = [Image.fromarray(frame) for frame in frames]
        self.opening = [self._message("system", "You look at figures."), self._message("user", "Begin.")]
        self.answers = [f"I look at picture {turn}." for turn in range(turns)]
        self.observations = [self._message("tool", "Here it is.", image) for image in self.images]

    @staticmethod
    def _message(role: str, text: str, *images: Image.Image) -> dict[str, Any]:
        shown = [{"type": "image", "image": image} for image in images]
        return {"role": role, "content": [{"type": "text", "text": text}, *shown]}


def ours(renderer: ChatRenderer, episode: Episode) -> tuple[dict[str, Any], int]:
    """Deltas each turn, tensors once at the end."""
    ids, images = list(renderer.prompt(episode.opening).token_ids), []
    for answer, observation in zip(episode.answers, episode.observations, strict=True):
        segment = renderer.delta([observation])
        ids += [*renderer.encode_response(answer), *segment.token_ids]
        images += segment.images
    out = {"input_ids": torch.tensor([ids]), **renderer.model_inputs(ids, images)}
    return out, _bytes(out)


def concatenate(renderer: ChatRenderer, episode: Episode) -> tuple[dict[str, Any], int]:
    """The tensors of each turn appended to those before."""
    prompt = renderer.prompt(episode.opening).token_ids
    out = {"input_ids": torch.tensor([prompt]), **renderer.model_inputs(prompt, [])}
    made = _bytes(out)
    for answer, observation in zip(episode.answers, episode.observations, strict=True):
        segment = renderer.delta([observation])
        ids = [*renderer.encode_response(answer), *segment.token_ids]
        new = {"input_ids": torch.tensor([ids]), **renderer.model_inputs(ids, segment.images)}
        made += _bytes(new)
        for key, value in new.items():
            axis = 1 if value.shape[0] == 1 and key in ("input_ids", "mm_token_type_ids") else 0
            out[key] = torch.cat([out[key], value], dim=axis) if key in out else value
        made += _bytes(out)
    return out, made


def rerender(renderer: ChatRenderer, episode: Episode) -> tuple[dict[str, Any], int]:
    """The whole conversation through the processor each turn."""
    messages, made = list(episode.opening), 0
    out: dict[str, Any] = {}
    for turn, (answer, observation) in enumerate(zip(episode.answers, episode.observations, strict=True)):
        messages += [Episode._message("assistant", answer), observation]
        text = renderer.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        made_now = renderer.processor(
            text=[text], images=episode.images[: turn + 1], return_tensors="pt", add_special_tokens=False
        )
        out = {key: value for key, value in made_now.items() if key != "attention_mask"}
        made += _bytes(out)
    return out, made


def _bytes(tensors: dict[str, Any]) -> int:
    return sum(value.nbytes for value in tensors.values())


def measure(renderer: ChatRenderer, turns: int, *, repeats: int = 3) -> Row:
    """The least CPU time of some runs, for each way; raises when the ways disagree."""
    episode = Episode(turns)
    costs, results = [], []
    for way in (ours, concatenate, rerender):
        cost, result = _least(way, renderer, episode, repeats)
        costs.append(cost)
        results.append(result)
    for other in results[1:]:
        for key, value in results[0].items():
            if not torch.equal(value, other[key]):
                raise AssertionError(f"{key} differs between the ways at {turns} turns")
    return Row(turns, *costs)


def _least(
    way: Callable[[ChatRenderer, Episode], tuple[dict[str, Any], int]],
    renderer: ChatRenderer,
    episode: Episode,
    repeats: int,
) -> tuple[Cost, dict[str, Any]]:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result, made = way(renderer, episode)
        best = min(best, time.process_time() - start)
    return Cost(best, made / 2**20), result


def main() -> int:
    """Print the table; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    renderer = ChatRenderer(processor_for("qwen3_vl", trl_templates()["qwen3_vl"]))
    measure(renderer, 1)  # warm up
    rows = [measure(renderer, turns) for turns in options.turns]
    print(f"{'turns':>5} {'ours':>16} {'concatenate':>18} {'re-render':>18} {'times less':>11}")
    for row in rows:
        cells = [
            f"{c.seconds * 1e3:8.1f} ms {c.megabytes:6.1f} MB"
            for c in (row.ours, row.concatenate, row.rerender)
        ]
        print(f"{row.turns:>5} {'  '.join(cells)} {row.ratio:>9.1f}x")
    if options.json:
        options.json.write_text(json.dumps([{**asdict(r), "ratio": r.ratio} for r in rows], indent=1))
    missed = [r for r in rows if r.turns in TARGETS and r.ratio < TARGETS[r.turns]]
    for row in missed:
        print(f"missed: {row.ratio:.1f} times less work at {row.turns} turns, wanted {TARGETS[row.turns]}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
