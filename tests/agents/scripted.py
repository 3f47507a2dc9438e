"""A renderer and a policy of almost no cost, for what does not need a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents.types import GenerationFailure, Request, Response, Segment

STOP, PAD, IMAGE = 1, 0, 2
FIRST = 10
"""The id of character 0."""


class CharRenderer:
    """One id a character, four ids a picture. The interface that engine and `TokenEnv` use."""

    end_of_turn_id = STOP
    stop_token_ids = (STOP,)
    banned_token_ids = (IMAGE,)
    vision_token_ids = frozenset({IMAGE})
    pad_id = PAD

    def prompt(self, messages: Any, tools: Any = None) -> Segment:
        return self.delta(messages, tools)

    def delta(self, messages: Any, tools: Any = None) -> Segment:
        ids: list[int] = []
        images: list[Any] = []
        for message in messages:
            for block in message["content"]:
                if block["type"] == "text":
                    ids += [FIRST + ord(c) for c in block["text"]]
                else:
                    ids += [IMAGE] * 4
                    images.append(block["image"])
        return Segment(ids, images)

    def decode(self, token_ids: Any) -> str:
        return "".join(chr(i - FIRST) for i in token_ids if i >= FIRST)

    def answer(self, token_ids: Any, finish_reason: str, messages: Any, tools: Any = None) -> Segment:
        closing = [] if token_ids and token_ids[-1] == STOP else [STOP]
        delta = self.delta(messages, tools)
        return Segment([*closing, *delta.token_ids], delta.images)

    def count_image_tokens(self, image: Any) -> int:
        return 4

    def count_pads(self, token_ids: Any) -> int:
        return list(token_ids).count(IMAGE)


class ScriptedPolicy:
    """Answers `reply(request)`; keeps the requests. Fails where `fault(request)` says so."""

    def __init__(
        self,
        reply: Callable[[Request], str] = lambda request: "ok",
        fault: Callable[[Request], bool] = lambda request: False,
        latency: float = 0.0,
    ) -> None:
        self.version = 0
        self.requests: list[Request] = []
        self.running = False
        self.starts = 0
        self.stops = 0
        self._reply = reply
        self._fault = fault
        self._latency = latency

    async def start(self) -> None:
        self.running = True
        self.starts += 1

    async def stop(self) -> None:
        self.running = False
        self.stops += 1

    async def generate(self, request: Request) -> Response:
        assert self.running
        self.requests.append(request)
        if self._latency:
            await asyncio.sleep(self._latency)
        if self._fault(request):
            raise GenerationFailure("the model is away")
        ids = [*(FIRST + ord(c) for c in self._reply(request)), STOP]
        if len(ids) > request.max_tokens:
            ids = ids[: request.max_tokens]
        finish = "stop" if ids[-1] == STOP else "length"
        return Response(ids, [-0.5] * len(ids), finish)
