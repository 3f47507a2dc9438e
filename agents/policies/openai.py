"""An OpenAI-compatible chat endpoint as a policy: for evaluation only, since it gives no token stream.

Messages go out with their pictures as data URLs and with the environment's tools; tool calls that come
back structured are written as `<tool_call>` JSON, the form that the environments read. Knows HTTP and
messages; not environments or budgets. Needs httpx, which the extra `train` brings.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from PIL import Image

from agents.types import FinishReason, GenerationFailure, TextResponse
from mm_gym.episode import Episode
from mm_gym.messages import Message

_MISCONFIGURED = frozenset({401, 403, 404})
"""Statuses that no retry mends: key, permission, model or address."""


class OpenAIPolicy:
    """Answers through `POST {base_url}/chat/completions`.

    Args:
        model: The name that the endpoint knows.
        base_url: Of the endpoint, with its version ("http://localhost:8000/v1"); default `OPENAI_BASE_URL`.
        api_key: Default `OPENAI_API_KEY`, or none.
        temperature: Of sampling.
        max_concurrent: Most requests in flight.
        timeout: Seconds of one request.
        tools: How the environment's tools are told: "native" (the request's `tools`), or "prompt" when the
            endpoint takes none: then the environment's system prompt has to explain them.
        extra_body: Further fields of the request (`{"chat_template_kwargs": ...}`, say).
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float = 0.0,
        max_concurrent: int = 32,
        timeout: float = 300.0,
        tools: str = "native",
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        if tools not in ("native", "prompt"):
            raise ValueError(f'tools must be "native" or "prompt", got {tools!r}')
        url = base_url or os.environ.get("OPENAI_BASE_URL")
        if not url:
            raise ValueError("no endpoint: pass base_url (http://host:port/v1) or set OPENAI_BASE_URL")
        self.model = model
        self.version = 0
        self.temperature = temperature
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._key = api_key or os.environ.get("OPENAI_API_KEY")
        self._timeout = timeout
        self._tools = tools
        self._extra = dict(extra_body or {})
        self._max_concurrent = max_concurrent
        self._slots: asyncio.Semaphore | None = None
        self._client: Any = None

    async def start(self) -> None:
        """Open the connection pool."""
        try:
            import httpx
        except ImportError as error:
            raise DependencyNotInstalled('OpenAIPolicy needs httpx: pip install "mm-gym[train]"') from error
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._client = httpx.AsyncClient(timeout=self._timeout, headers=headers)
        self._slots = asyncio.Semaphore(self._max_concurrent)

    async def stop(self) -> None:
        """Close the connection pool."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def respond(self, episode: Episode, *, max_tokens: int, seed: int) -> TextResponse:
        """The endpoint's next response.

        Raises:
            GenerationFailure: The endpoint can't be reached, is overloaded or answers nonsense.
            ValueError: Key, model name or address is wrong (the endpoint's message is in the error).
        """
        import httpx

        if self._client is None or self._slots is None:
            raise GenerationFailure("the policy is not running: await policy.start() first", kind="stopped")
        body = {
            "model": self.model,
            "messages": chat_messages(episode),
            "max_tokens": max_tokens,
            "temperature": self.temperature,
            "seed": seed % 2**31,
            **self._extra,
        }
        if episode.tools and self._tools == "native":
            body["tools"] = episode.tools
        async with self._slots:
            try:
                answer = await self._client.post(self._url, json=body)
            except httpx.HTTPError as error:
                raise GenerationFailure(f"{self._url}: {error!r}", kind="endpoint") from error
        if answer.status_code in _MISCONFIGURED:
            raise ValueError(f"{self._url} refused the request: {answer.status_code} {answer.text[:500]}")
        if answer.status_code >= 400:
            raise GenerationFailure(f"{self._url}: {answer.status_code} {answer.text[:500]}", kind="endpoint")
        try:
            return _read(answer.json())
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise GenerationFailure(f"no chat completion: {answer.text[:500]}", kind="endpoint") from error


def chat_messages(episode: Episode) -> list[dict[str, Any]]:
    """The episode in the endpoint's form.

    Responses stay the text that the model gave; what answers a tool call goes as a user message, so that
    pictures in it are allowed and no call ids are needed.
    """
    return [_message(message, episode.images) for message in episode.messages]


def _message(message: Message, images: list[np.ndarray]) -> dict[str, Any]:
    if message["role"] in ("assistant", "system"):
        text = "".join(block["text"] for block in message["content"])
        return {"role": message["role"], "content": text}
    content: list[dict[str, Any]] = []
    if message["role"] == "tool":
        content.append({"type": "text", "text": f"<tool_response>\n[{message['name']}]"})
    for block in message["content"]:
        if block["type"] == "text":
            content.append({"type": "text", "text": block["text"]})
        else:
            content.append({"type": "image_url", "image_url": {"url": data_url(images[block["index"]])}})
    if message["role"] == "tool":
        content.append({"type": "text", "text": "</tool_response>"})
    return {"role": "user", "content": content}


def data_url(image: np.ndarray) -> str:
    """A picture (uint8, H x W x 3) as a PNG data URL."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="PNG", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _read(answer: dict[str, Any]) -> TextResponse:
    choice = answer["choices"][0]
    message = choice["message"]
    parts = [message.get("content") or ""]
    for call in message.get("tool_calls") or []:
        parts.append(_call_text(call["function"]))
    usage = answer.get("usage") or {}
    finish: FinishReason = "length" if choice.get("finish_reason") == "length" else "stop"
    return TextResponse(
        text="\n".join(p for p in parts if p),
        finish_reason=finish,
        tokens=int(usage.get("completion_tokens", 0)),
        context=int(usage.get("total_tokens", 0)),
    )


def _call_text(function: dict[str, Any]) -> str:
    """A structured call as the environments read it; arguments that are no JSON are passed on as they are."""
    arguments = function.get("arguments") or "{}"
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    name = json.dumps(function["name"], ensure_ascii=False)
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
