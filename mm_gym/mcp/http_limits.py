"""An HTTP client for MCP that stops reading where an answer outgrows its limit.

Knows HTTP and the size limits; no MCP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from mm_gym.mcp.config import Limits


def http_client(headers: Mapping[str, str], limits: Limits) -> Any:
    """A client with these headers whose connecting and answers are bounded."""
    return httpx2.AsyncClient(
        headers=dict(headers),
        transport=_BoundedTransport(limits.message_bytes),
        timeout=httpx2.Timeout(limits.connect, read=None),  # reads end by the call's own time-out
    )


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Refuses answers above a size while they arrive. An event stream has its own limit per event."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    async def handle_async_request(self, request: Any) -> Any:
        response = await super().handle_async_request(request)
        if request.method == "POST":
            response.stream = _BoundedStream(response.stream, 2 * self._limit)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit

    async def __aiter__(self) -> Any:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("the answer is larger than limits.message_bytes allows")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
