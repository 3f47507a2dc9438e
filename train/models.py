"""Loads what is trained: a model by name or path, or the tiny one made on the spot; and its processor.

Knows transformers and the tiny model; neither TRL's trainers nor environments' contents.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import PartialState
from transformers import AutoConfig, AutoProcessor, AutoTokenizer, PreTrainedModel

from train.arguments import SMOLLM, TINY, ScriptArguments
from train.smollm import build_smollm
from train.tiny import build_tiny_vlm, episode_texts


def model_folder(
    name: str | None, script: ScriptArguments, output: Path, *, seed: int, say: Callable[[str], None]
) -> str:
    """The name or path to load from; `tiny` and `smollm2` are made in the output folder first, unless there.

    Raises:
        ValueError: No name is given.
        DependencyNotInstalled: The package that carries SmolLM2's weights is missing.
    """
    if name is None:
        raise ValueError('model_name_or_path is missing: give a name, a folder, or "tiny" to have one made')
    if name not in (TINY, SMOLLM):
        return name
    folder = output / name
    if name == SMOLLM:
        with PartialState().main_process_first():
            if not (folder / "config.json").is_file():
                build_smollm(folder)
                say(f"SmolLM2-135M-Instruct is in {folder}: unpacked from an installed package")
        return str(folder)
    with PartialState().main_process_first():
        if not (folder / "config.json").is_file():
            made_for = script.tiny_processor
            build_tiny_vlm(
                folder,
                processor=made_for,
                texts=() if made_for else episode_texts(script.members("expert_environments")),
                tied=script.tiny_tied,
                seed=seed,
                min_pixels=script.min_pixels,
                max_pixels=script.max_pixels,
            )
            say(f"made a tiny Qwen3-VL with RANDOM weights (seed {seed}) in {folder}: nothing was downloaded")
    return str(folder)


def load_processor(folder: str, script: ScriptArguments) -> Any:
    """The processor, or the tokenizer of a text model, with the picture limits of the run."""
    config = AutoConfig.from_pretrained(folder)
    if not hasattr(config, "vision_config"):
        return AutoTokenizer.from_pretrained(folder, padding_side="left")
    processor = AutoProcessor.from_pretrained(folder)
    size = dict(processor.image_processor.size)
    if script.min_pixels:
        size["shortest_edge"] = script.min_pixels
    if script.max_pixels:
        size["longest_edge"] = script.max_pixels
    processor.image_processor.size = {k: v for k, v in size.items() if v is not None}
    processor.tokenizer.padding_side = "left"
    return processor


def load_model(
    folder: str,
    *,
    dtype: str | None = None,
    attention: str | None = None,
    revision: str | None = None,
    freeze_vision: bool = False,
) -> PreTrainedModel:
    """The model, of the class that its config names.

    Args:
        folder: Name or path.
        dtype: "float32", "bfloat16", ... or "auto" for the stored one.
        attention: transformers' `attn_implementation`.
        revision: Of a name on the hub.
        freeze_vision: Leave the vision tower out of training.
    """
    config = AutoConfig.from_pretrained(folder, revision=revision)
    name = (config.architectures or ["none"])[0]
    if not hasattr(transformers, name):
        raise ValueError(f"{folder} names the architecture {name!r}, which transformers does not have")
    kind = (
        torch.float32 if dtype in (None, "float32") else "auto" if dtype == "auto" else getattr(torch, dtype)
    )
    model = getattr(transformers, name).from_pretrained(
        folder, config=config, dtype=kind, attn_implementation=attention, revision=revision
    )
    if freeze_vision:
        for part in ("visual", "vision_tower", "vision_model"):
            tower = getattr(model.base_model, part, None)
            if tower is not None:
                tower.requires_grad_(False)
    return model
