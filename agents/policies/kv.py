"""Key-value caches whose rows come and go: gather, merge, cut, and a store of finished prefixes.

Works on caches that keep every position of every layer (`DynamicLayer`). Knows no model and no policy.
A batch is left-padded; holes in a row are marked in its mask and never attended to.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

LayerPair = tuple[torch.Tensor, torch.Tensor]


@dataclass
class Batch:
    """Rows that are decoded together."""

    cache: DynamicCache
    mask: torch.Tensor
    """(rows, length) int64: 1 where the cache holds a real position of the row."""

    @property
    def length(self) -> int:
        return self.mask.shape[1]


@dataclass
class Prefix:
    """The cache of one row, without padding."""

    token_ids: list[int]
    layers: list[LayerPair]
    """Keys and values of each layer, (heads, len(token_ids), head_dim)."""
    position: int
    """The position of the token that follows."""
    images: list[Any] = field(default_factory=list)
    """The very objects whose pads stand in `token_ids`."""

    @property
    def image_count(self) -> int:
        return len(self.images)

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for pair in self.layers for t in pair)


def layer_pairs(cache: DynamicCache) -> list[LayerPair]:
    """Keys and values of each layer, (rows, heads, length, head_dim)."""
    return [(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[misc, union-attr]


class GrowingLayer(DynamicLayer):
    """A layer that writes new positions into spare room instead of copying all of it at every token."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = keys, values
        self.is_initialized = True
        self._room: LayerPair | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> LayerPair:
        assert self.keys is not None
        assert self.values is not None
        start, end = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        if self._room is None or self._room[0].shape[2] < end:
            self._room = (_with_room(self.keys, end), _with_room(self.values, end))
        keys, values = self._room
        keys[:, :, start:end] = key_states
        values[:, :, start:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values


def _with_room(tensor: torch.Tensor, length: int) -> torch.Tensor:
    """A copy whose third axis has room for `length` positions and a quarter more."""
    rows, heads, filled, width = tensor.shape
    out = tensor.new_empty(rows, heads, length + length // 4 + 16, width)
    out[:, :, :filled] = tensor
    return out


def from_pairs(pairs: Sequence[LayerPair]) -> DynamicCache:
    """A cache that holds these keys and values."""
    cache = DynamicCache()
    cache.layers = [GrowingLayer(keys, values) for keys, values in pairs]
    return cache


def growing(batch: Batch) -> Batch:
    """The batch with layers that grow in place; one with other kinds of layers as it is."""
    if any(type(layer) is not DynamicLayer for layer in batch.cache.layers):
        return batch
    return Batch(from_pairs(layer_pairs(batch.cache)), batch.mask)


def gather(
    prefixes: Sequence[Prefix | None], device: torch.device, empty: Callable[[], DynamicCache] = DynamicCache
) -> Batch:
    """One left-padded batch of prefixes; None is a row without one, `empty` makes a cache for none at all."""
    length = max((len(p.token_ids) for p in prefixes if p), default=0)
    mask = torch.zeros(len(prefixes), length, dtype=torch.long, device=device)
    first = next((p for p in prefixes if p), None)
    if first is None:
        return Batch(empty(), mask)
    pairs: list[LayerPair] = []
    for index in range(len(first.layers)):
        rows = []
        for tensor in range(2):
            sample = first.layers[index][tensor]
            out = sample.new_zeros(len(prefixes), sample.shape[0], length, sample.shape[2])
            for row, p in enumerate(prefixes):
                if p:
                    out[row, :, length - len(p.token_ids) :] = p.layers[index][tensor]
            rows.append(out)
        pairs.append((rows[0], rows[1]))
    for row, p in enumerate(prefixes):
        if p:
            mask[row, length - len(p.token_ids) :] = 1
    return Batch(from_pairs(pairs), mask)


def merge(a: Batch | None, b: Batch) -> Batch:
    """The rows of `a`, then those of `b`, left-padded to the longer."""
    if a is None:
        return b
    length = max(a.length, b.length)
    mask = torch.cat([pad(a.mask, (length - a.length, 0)), pad(b.mask, (length - b.length, 0))])
    pairs = [
        (_join(ka, kb, length), _join(va, vb, length))
        for (ka, va), (kb, vb) in zip(layer_pairs(a.cache), layer_pairs(b.cache), strict=True)
    ]
    return Batch(from_pairs(pairs), mask)


def _join(a: torch.Tensor, b: torch.Tensor, length: int) -> torch.Tensor:
    return torch.cat([pad(t, (0, 0, length - t.shape[2], 0)) for t in (a, b)])


def select(batch: Batch, rows: Sequence[int]) -> Batch | None:
    """These rows alone, without the columns that are padding in all of them at the left."""
    if not rows:
        return None
    index = torch.tensor(rows, device=batch.mask.device)
    mask = batch.mask[index]
    start = int(mask.any(0).long().argmax())
    pairs = [(k[index, :, start:], v[index, :, start:]) for k, v in layer_pairs(batch.cache)]
    return Batch(from_pairs(pairs), mask[:, start:])


def cut(batch: Batch, row: int, token_ids: list[int], position: int, images: list[Any]) -> Prefix:
    """A row's cache without padding, to continue from later; a copy."""
    keep = batch.mask[row].nonzero().squeeze(1)[: len(token_ids)]
    layers = [
        (k[row].index_select(1, keep), v[row].index_select(1, keep)) for k, v in layer_pairs(batch.cache)
    ]
    return Prefix(token_ids, layers, position, images)


class PrefixStore:
    """Prefixes by name, the least recently used dropped first when they exceed `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._prefixes: OrderedDict[Hashable, Prefix] = OrderedDict()

    def put(self, name: Hashable, prefix: Prefix) -> None:
        self.pop(name)
        if prefix.bytes > self.max_bytes:
            return
        self._prefixes[name] = prefix
        self.bytes += prefix.bytes
        while self.bytes > self.max_bytes:
            self.bytes -= self._prefixes.popitem(last=False)[1].bytes

    def find(
        self, name: Hashable, token_ids: Sequence[int], images: Sequence[Any] | None = None
    ) -> Prefix | None:
        """The prefix of that name if the stream really starts with it and goes on after it.

        Args:
            name: What it was put under.
            token_ids: The whole stream.
            images: Compared by identity; None where the name stands for their content already.
        """
        prefix = self._prefixes.get(name)
        if prefix is None or not _starts_with(token_ids, images, prefix):
            return None
        self._prefixes.move_to_end(name)
        return prefix

    def pop(self, name: Hashable) -> None:
        dropped = self._prefixes.pop(name, None)
        if dropped is not None:
            self.bytes -= dropped.bytes

    def clear(self) -> None:
        self._prefixes.clear()
        self.bytes = 0


def _starts_with(token_ids: Sequence[int], images: Sequence[Any] | None, prefix: Prefix) -> bool:
    count = len(prefix.token_ids)
    if count >= len(token_ids):
        return False
    if images is not None:
        if len(images) < prefix.image_count:
            return False
        if any(a is not b for a, b in zip(prefix.images, images, strict=False)):
            return False
    return list(token_ids[:count]) == prefix.token_ids
