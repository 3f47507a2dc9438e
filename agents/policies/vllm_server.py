"""vLLM servers over HTTP: tokens in, tokens out, several replicas, one version of the weights.

Knows vLLM's token endpoint and its endpoints for weight updates (`VLLM_SERVER_DEV_MODE=1`). An episode
stays on one replica, so that its prefix cache is hit. Requests carry *collapsed* ids with the pictures
beside them as PNG data; the server expands them, and its expansion is compared with the stream. (Sending
expanded ids with features works too, but costs a second round trip and sends tensors instead of PNGs.)

Start a replica with

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-scale-out --logprobs-mode processed_logprobs
"""

from __future__ import annotations

import asyncio
import base64
import io
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from agents.policies.vllm import Collapser, expansion_error, finish_reason, vllm_sampling
from agents.types import GenerationFailure, Request, Response

_PNG_CACHE = 1024  # pictures of running episodes, encoded once instead of at each turn

_HOMES = 100_000  # episodes whose replica is remembered


class VLLMServerPolicy:
    """A policy over one or more vLLM servers that hold the same model.

    Args:
        urls: Base URLs of the replicas, without "/v1".
        renderer: For the collapsed view of the ids.
        timeout: Seconds that one turn may take.
    """

    def __init__(self, urls: str | Sequence[str], renderer: Collapser, *, timeout: float = 600.0) -> None:
        self.urls = [urls.rstrip("/")] if isinstance(urls, str) else [url.rstrip("/") for url in urls]
        if not self.urls:
            raise ValueError("VLLMServerPolicy needs at least one server URL")
        self.version = 0
        self._renderer = renderer
        self._timeout = timeout
        self._client: httpx.AsyncClient | None = None
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._next_home = 0
        self._pngs: OrderedDict[int, tuple[Image.Image, str]] = OrderedDict()

    async def start(self) -> None:
        """Open the connections."""
        if self._client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            self._client = httpx.AsyncClient(timeout=self._timeout, limits=limits)

    async def stop(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        self._pngs.clear()

    async def generate(self, request: Request) -> Response:
        """Sample one turn on the episode's replica."""
        body: dict[str, Any] = {
            "token_ids": self._renderer.collapse(request.token_ids, request.images),
            "sampling_params": vllm_sampling(
                request.sampling, request.max_tokens, request.seed + request.sampled
            ),
            "return_token_ids": True,
        }
        if request.images:
            body["content_parts"] = [
                {"type": "image_url", "url": self._png(image)} for image in request.images
            ]
        answer = await self._post(self._home(request.episode), "/inference/v1/generate", body)
        expanded = answer.get("prompt_token_ids")
        if expanded is not None and expanded != list(request.token_ids):
            raise GenerationFailure(expansion_error(request, expanded), kind="ids")
        choice = answer["choices"][0]
        logprobs = [entry["logprob"] for entry in choice["logprobs"]["content"]]
        return Response(list(choice["token_ids"]), logprobs, finish_reason(choice["finish_reason"]))

    async def update_weights_from_disk(self, path: str | Path) -> None:
        """Load a saved model on every replica, and drop every cache made with the old weights.

        All replicas pause first and resume only when all have loaded, so no turn is answered by mixed
        versions. `path` must be readable on the servers.
        """
        opened = self._client is None
        await self.start()
        try:
            await self._everywhere("/pause?mode=wait")
            reload = {"method": "reload_weights", "kwargs": {"weights_path": str(path)}}
            await self._everywhere("/collective_rpc", reload)
            for cache in ("prefix", "encoder", "mm"):
                await self._everywhere(f"/reset_{cache}_cache")
            await self._everywhere("/resume")
        finally:
            if opened:
                await self.stop()
        self.version += 1

    async def _everywhere(self, path: str, body: Any = None) -> None:
        await asyncio.gather(*(self._post(url, path, body) for url in self.urls))

    async def _post(self, url: str, path: str, body: Any) -> Any:
        if self._client is None:
            raise RuntimeError("VLLMServerPolicy was used outside start() and stop()")
        try:
            response = await self._client.post(url + path, json=body)
        except httpx.TimeoutException as error:
            raise GenerationFailure(
                f"{url}{path} gave no answer in {self._timeout} s", kind="timeout"
            ) from error
        except httpx.HTTPError as error:
            raise GenerationFailure(f"{url}{path} can't be reached: {error!r}", kind="connection") from error
        if response.status_code == 404:
            raise GenerationFailure(
                f"{url} has no {path}: start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out",
                kind="server",
            )
        if response.status_code != 200:
            raise GenerationFailure(
                f"{url}{path} answered {response.status_code}: {response.text[:500]}", kind="server"
            )
        return response.json() if response.content else None

    def _home(self, episode: str) -> str:
        """The episode's replica: fixed at its first turn, in turn over the replicas."""
        if episode not in self._homes:
            self._homes[episode] = self.urls[self._next_home]
            self._next_home = (self._next_home + 1) % len(self.urls)
            if len(self._homes) > _HOMES:
                self._homes.popitem(last=False)
        return self._homes[episode]

    def _png(self, image: Image.Image) -> str:
        key = id(image)
        known = self._pngs.get(key)
        if known is not None and known[0] is image:
            self._pngs.move_to_end(key)
            return known[1]
        buffer = io.BytesIO()
        image.save(buffer, format="PNG", compress_level=1)
        url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
        self._pngs[key] = (image, url)
        if len(self._pngs) > _PNG_CACHE:
            self._pngs.popitem(last=False)
        return url
