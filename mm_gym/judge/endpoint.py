"""An OpenAI-compatible chat endpoint as a callable: messages in, text out, tokens and cost counted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from gymnasium.error import DependencyNotInstalled


class Answer(NamedTuple):
    """What an endpoint answered."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """In the currency of the endpoint's prices."""


@dataclass(frozen=True)
class ChatEndpoint:
    """A model behind an OpenAI-compatible endpoint (OpenAI, vLLM, `transformers serve`, ...).

    Args:
        base_url: With "/v1", e.g. "http://127.0.0.1:8000/v1".
        model: Its name there.
        api_key_env: Environment variable with the key; a local server needs none.
        timeout: Seconds for one answer.
        max_tokens: Of one answer.
        temperature: 0 for a judge that repeats itself.
        prices: (input, output) per million tokens, for the cost counter.
        structured: Send the verdict's JSON schema along, so that the server samples nothing else. Turn
            it off for an endpoint without `response_format`.
    """

    base_url: str
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    timeout: float = 60.0
    max_tokens: int = 1024
    temperature: float = 0.0
    prices: tuple[float, float] = (0.0, 0.0)
    structured: bool = True

    @cached_property
    def _client(self) -> Any:
        try:
            import openai
        except ImportError as error:
            raise DependencyNotInstalled(
                'ChatEndpoint needs the openai package: pip install "mm-gym[judge]"'
            ) from error
        key = os.environ.get(self.api_key_env) or "none"
        return openai.OpenAI(base_url=self.base_url, api_key=key, timeout=self.timeout, max_retries=0)

    def __call__(self, messages: list[dict[str, Any]], schema: dict[str, Any] | None = None) -> Answer:
        """Ask once, for JSON of `schema` where given. Raises whatever the client raises; `Judge` retries."""
        extra: dict[str, Any] = {}
        if schema is not None and self.structured:
            wanted = {"name": "verdict", "schema": schema, "strict": True}
            extra["response_format"] = {"type": "json_schema", "json_schema": wanted}
        reply = self._client.chat.completions.create(
            model=self.model,
            messages=messages,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            **extra,
        )
        usage = reply.usage
        read, written = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        cost = (read * self.prices[0] + written * self.prices[1]) / 1e6
        return Answer(reply.choices[0].message.content or "", read, written, cost)
