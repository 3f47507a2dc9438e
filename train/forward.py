"""From padded rows and their pictures to the model's forward arguments and back, micro-batch by micro-batch.

Cuts padding away (a generation batch is padded to its longest row; a micro-batch need not be), slices
the image tensors, builds the per-token modality types from the final ids, and adds a dummy picture of
zero weight where other ranks have pictures and this micro-batch has none: a vision tower that runs on
some ranks only hangs or aborts the collectives. Knows Qwen-style image tensors; no trainer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch.nn.utils.rnn import pad_sequence

from agents.chat import ChatRenderer


@dataclass(frozen=True)
class Pictures:
    """The image tensors of some rows, in Qwen's form: patches of all pictures, one after another."""

    pixel_values: torch.Tensor
    """(patches, width of a patch)."""
    grid: torch.Tensor
    """int64 (pictures, 3): time, height and width in patches."""
    counts: list[int]
    """Pictures of each row."""

    @classmethod
    def of(
        cls, pixel_values: torch.Tensor | None, grid: torch.Tensor | None, counts: Sequence[int] | None
    ) -> Pictures | None:
        """The pictures of a batch as TRL hands them over; None when it has none."""
        if pixel_values is None or grid is None or counts is None or not len(grid):
            return None
        return cls(pixel_values, grid, [int(n) for n in counts])

    def rows(self, index: list[int]) -> Pictures | None:
        """The pictures of these rows, in this order; None when they have none."""
        per_picture = self.grid.prod(-1).tolist()
        first = [0]
        for count in self.counts:
            first.append(first[-1] + count)
        pictures = [p for row in index for p in range(first[row], first[row + 1])]
        if not pictures:
            return None
        patches = self.pixel_values.split(per_picture)
        return Pictures(
            torch.cat([patches[p] for p in pictures]),
            self.grid[pictures],
            [self.counts[row] for row in index],
        )


@dataclass(frozen=True)
class DummyPicture:
    """A tiny picture and the ids that carry its pads."""

    token_ids: list[int]
    pixel_values: torch.Tensor
    grid: torch.Tensor


def dummy_picture(renderer: ChatRenderer, side: int = 32) -> DummyPicture:
    """A small black picture, as the model's own processor makes it.

    Raises:
        ValueError: The family's image tensors can't be sliced picture by picture.
    """
    picture = Image.new("RGB", (side, side))
    segment = renderer.prompt([{"role": "user", "content": [{"type": "image", "image": picture}]}])
    tensors = renderer.processor.image_processor(images=[picture], return_tensors="pt")
    if "image_grid_thw" not in tensors:
        raise ValueError(
            f"{type(renderer.processor).__name__} gives {sorted(tensors)}, which are not sliced by picture "
            "here: training is supported for Qwen2.5-VL, Qwen3-VL and Qwen3.5 (image_grid_thw)"
        )
    return DummyPicture(segment.token_ids, tensors["pixel_values"], tensors["image_grid_thw"])


class Scorer:
    """Scores sampled tokens with a model that `train.logprobs.add_sampled_logprobs` has patched.

    Args:
        model: Read for the arguments that its forward takes.
        image_token_id: The image pad; None for a text model.
        dummy: For ranks without a picture; None for a text model.
        any_rank: From this rank's "has pictures" to whether any rank has; called once a chunk.
    """

    def __init__(
        self,
        model: Any,
        *,
        image_token_id: int | None,
        dummy: DummyPicture | None = None,
        any_rank: Callable[[bool], bool] | None = None,
    ) -> None:
        self.image_token_id = image_token_id
        self.dummy = dummy
        self.any_rank = any_rank
        parameters = inspect.signature(type(model.base_model).forward).parameters
        self._types = next((n for n in ("mm_token_type_ids", "token_type_ids") if n in parameters), None)

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        scored: torch.Tensor,
        pictures: Pictures | None = None,
        *,
        batch_size: int | None = None,
        with_entropy: bool = False,
        **model_kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Log-probs and entropies at the positions that are scored.

        Args:
            model: The (wrapped) model to call.
            input_ids: int64 (batch, length), padded anywhere outside one run of real tokens a row.
            attention_mask: (batch, length), 1 on real tokens.
            scored: (batch, length), 1 on tokens whose log-prob is wanted.
            pictures: Of all rows.
            batch_size: Rows a forward; all by default. Rows of like length go together.
            with_entropy: Also return entropies.
            model_kwargs: Passed to the forward.

        Returns:
            `(logprobs, entropies, aux_loss)`: float32 (batch, length), zero where not scored; entropies
            None unless asked for; aux_loss the mean over forwards, None when the model gave none.
        """
        rows = input_ids.shape[0]
        size = batch_size or rows
        order = list(range(rows))
        if size < rows:
            order = attention_mask.sum(1).argsort(stable=True).tolist()
        logprobs: list[torch.Tensor] = [torch.empty(0)] * rows
        entropies: list[torch.Tensor] = [torch.empty(0)] * rows
        losses = []
        for start in range(0, rows, size):
            index = order[start : start + size]
            out = self._forward(
                model, input_ids, attention_mask, scored, pictures, index, with_entropy, model_kwargs
            )
            for row, values in zip(index, out[0], strict=True):
                logprobs[row] = values
            if out[1] is not None:
                for row, values in zip(index, out[1], strict=True):
                    entropies[row] = values
            if out[2] is not None:
                losses.append(out[2])
        return (
            torch.stack(logprobs),
            torch.stack(entropies) if with_entropy else None,
            torch.stack(losses).mean() if losses else None,
        )

    def _forward(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        scored: torch.Tensor,
        pictures: Pictures | None,
        index: list[int],
        with_entropy: bool,
        model_kwargs: dict[str, Any],
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        real = attention_mask[index].bool()
        lengths = real.sum(1).tolist()
        ids = list(input_ids[index][real].split(lengths))
        labels = list(input_ids[index].masked_fill(scored[index] == 0, -100)[real].split(lengths))
        chosen = pictures.rows(index) if pictures is not None else None
        if chosen is None and self.any_rank is not None and self.any_rank(False):
            chosen = self._add_dummy(ids, labels)
        elif chosen is not None and self.any_rank is not None:
            self.any_rank(True)
        inputs = self._inputs(ids, chosen, input_ids.device)
        out = model(
            **inputs,
            scored_labels=pad_sequence(labels, batch_first=True, padding_value=-100),
            with_entropy=with_entropy,
            **model_kwargs,
        )
        packed = inputs["attention_mask"][: len(index)].bool()

        def unpack(values: torch.Tensor) -> torch.Tensor:
            at_token = torch.nn.functional.pad(values[: len(index)], (1, 0))  # the first token has none
            blank = at_token.new_zeros(real.shape)
            return blank.masked_scatter(real, at_token[packed])

        entropy = unpack(out.entropy) if out.entropy is not None else None
        return unpack(out.logprobs), entropy, out.aux_loss

    def _inputs(
        self, ids: list[torch.Tensor], pictures: Pictures | None, device: torch.device
    ) -> dict[str, torch.Tensor]:
        padded = pad_sequence(ids, batch_first=True, padding_value=0)
        lengths = torch.tensor([len(row) for row in ids], device=device)
        mask = torch.lt(torch.arange(padded.shape[1], device=device)[None], lengths[:, None]).long()
        inputs = {"input_ids": padded, "attention_mask": mask}
        if pictures is not None:
            inputs["pixel_values"] = pictures.pixel_values.to(device)
            inputs["image_grid_thw"] = pictures.grid.to(device)
            if self._types is not None:
                inputs[self._types] = padded.eq(self.image_token_id).long()  # type: ignore[arg-type]
        return inputs

    def _add_dummy(self, ids: list[torch.Tensor], labels: list[torch.Tensor]) -> Pictures:
        if self.dummy is None:
            raise ValueError("another rank has pictures, but this scorer was made without a dummy picture")
        row = torch.tensor(self.dummy.token_ids, device=ids[0].device)
        ids.append(row)
        labels.append(torch.full_like(row, -100))
        return Pictures(
            self.dummy.pixel_values, self.dummy.grid, [0] * (len(ids) - 1) + [len(self.dummy.grid)]
        )


def base_of(model: Any) -> Any:
    """The model itself, under PEFT's wrapper where it has one."""
    return model.get_base_model() if hasattr(model, "peft_config") else model


def scorer_for(
    model: Any,
    renderer: ChatRenderer,
    image_token_id: int | None,
    *,
    any_rank: Callable[[bool], bool] | None = None,
) -> Scorer:
    """A scorer for this model, PEFT's wrapper or not; `image_token_id` is None for a text model."""
    if image_token_id is None:
        return Scorer(base_of(model), image_token_id=None)
    return Scorer(
        base_of(model), image_token_id=image_token_id, dummy=dummy_picture(renderer), any_rank=any_rank
    )
