"""A tiny model and trainers over it, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = str(Path(__file__).parent)
if FOLDER not in sys.path:  # `mixed_env:test/Mixed-v0` imports by name
    sys.path.insert(0, FOLDER)

MIXED = "mixed_env:test/Mixed-v0"
TEXT_ONLY = {"id": MIXED, "kwargs": {"pictures": 0}}


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen3-VL with a trimmed vocabulary."""
    from train.tiny import build_tiny_vlm

    texts = ["Look at this. And this? a word or two again", "zoom cell red green blue mark color"] * 20
    return build_tiny_vlm(tmp_path_factory.mktemp("tiny"), texts=texts, vocab_size=300, layers=2)


@pytest.fixture
def make_trainer(tiny_folder: Path, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes a `GymGRPOTrainer` on the tiny model; keyword arguments go to TRL's configuration."""
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    from train.arguments import GymGRPOConfig
    from train.rollouts import RolloutConfig
    from train.trainer import GymGRPOTrainer

    made: list[Any] = []

    def make(
        env: Any = MIXED,
        *,
        rollout: dict[str, Any] | None = None,
        trainer_kwargs: dict[str, Any] | None = None,
        **config: Any,
    ) -> Any:
        settings = {
            "output_dir": str(tmp_path / f"run{len(made)}"),
            "per_device_train_batch_size": 8,
            "num_generations": 4,
            "max_steps": 2,
            "learning_rate": 1e-3,
            "max_completion_length": 64,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "logging_steps": 1,
            "save_strategy": "no",
            "disable_tqdm": True,
            **config,
        }
        trainer = GymGRPOTrainer(
            Qwen3VLForConditionalGeneration.from_pretrained(tiny_folder),
            env=env,
            args=GymGRPOConfig(**settings),
            processing_class=AutoProcessor.from_pretrained(tiny_folder),
            rollout=RolloutConfig(**{"max_tokens_per_turn": 12, "cut_response": "step", **(rollout or {})}),
            **{"eval_episodes": 8, **(trainer_kwargs or {})},
        )
        made.append(trainer)
        return trainer

    yield make
    for trainer in made:
        trainer.rollouts.close()


@pytest.fixture
def tickets() -> Callable[[int], list[dict[str, Any]]]:
    """Rows as TRL's data loader hands them over."""
    return lambda count: [{"prompt": [{"role": "user", "content": "ticket"}]} for _ in range(count)]
