"""Supervised warm-up on solved episodes: the environments' own, or recorded ones.

An expert's episode is made into the very token stream that a rollout would have been, and the loss is
taken on the tokens that the model would have sampled, over the allowed ids: warm-up and GRPO train the
same distribution. Knows environments with a solver and transformers' Trainer; not TRL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from agents.chat import ChatRenderer
from agents.token_env import TokenEnv
from agents.types import Response, Task, Trajectory
from mm_gym.episode import Episode
from train.forward import Pictures, Scorer
from train.logprobs import add_sampled_logprobs
from train.recorded import RecordedEnv, read_episodes
from train.tasks import TaskSource


def expert_trajectory(env: gymnasium.Env[Any, Any], renderer: ChatRenderer, task: Task) -> Trajectory:
    """One episode of the environment's own solver as a token stream.

    Args:
        env: Where the task runs; its solver is `expert_action`.
        renderer: Turns messages into ids.
        task: Seed and options.

    Raises:
        ValueError: The environment has no solver for this task.
    """
    wrapped = TokenEnv(env, renderer, task=task)
    wrapped.reset(seed=task.seed, options=dict(task.options))
    ended = False
    while not ended:
        action = env.unwrapped.expert_action()  # type: ignore[attr-defined]
        if action is None:
            raise ValueError(
                f"{task.env_id} has no expert for task {wrapped.trajectory.episode.task_id!r}: "
                "warm up on another environment, or set warmup_steps to 0"
            )
        ids = renderer.encode_response(action)
        _, _, terminated, truncated, _ = wrapped.step(Response(ids, [0.0] * len(ids)))
        ended = terminated or truncated
    return wrapped.trajectory


class ExpertEpisodes(Dataset[Trajectory]):
    """Solved episodes, made when asked for: number i is always the same one.

    Args:
        tasks: Where the tasks come from.
        renderer: Turns messages into ids.
        count: Number of episodes.
        different: How many of them differ: these are made once and kept; 0 for all, of which none is kept.
    """

    def __init__(self, tasks: TaskSource, renderer: ChatRenderer, count: int, different: int = 0) -> None:
        self.tasks = tasks
        self.renderer = renderer
        self.count = count
        self.different = different
        self._kept: dict[int, Trajectory] = {}
        self._envs: dict[str, gymnasium.Env[Any, Any]] = {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Trajectory:
        if not self.different:
            return self._make(index)
        index %= self.different
        if index not in self._kept:
            self._kept[index] = self._make(index)
        return self._kept[index]

    def _make(self, index: int) -> Trajectory:
        task = self.tasks.task(index)
        key = repr((task.env_id, sorted(task.env_kwargs.items())))
        if key not in self._envs:
            self._envs[key] = gymnasium.make(task.env_id, **task.env_kwargs)
        return expert_trajectory(self._envs[key], self.renderer, task)

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs.values():
            env.close()
        self._envs.clear()


class RecordedEpisodes(Dataset[Trajectory]):
    """Recorded episodes, taken again and again.

    Args:
        folder: Of episodes as `python -m mm_gym.computer record` stores them.
        renderer: Turns messages into ids.
        count: Number of episodes to give.

    Raises:
        ValueError: An episode is broken, or none is solved.
    """

    def __init__(self, folder: str | Path, renderer: ChatRenderer, count: int) -> None:
        self.renderer = renderer
        self.count = count
        self._made = [self._make(episode) for episode in read_episodes(folder)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Trajectory:
        return self._made[index % len(self._made)]

    def close(self) -> None:
        """Nothing is open."""

    def _make(self, episode: Episode) -> Trajectory:
        task = Task(episode.env_id, dict(episode.env_kwargs), episode.seed or 0, dict(episode.options))
        return expert_trajectory(RecordedEnv(episode), self.renderer, task)


class Collator:
    """A batch of tensors from trajectories: right-padded ids, what is scored, and all pictures."""

    def __init__(self, renderer: ChatRenderer) -> None:
        self.renderer = renderer

    def __call__(self, trajectories: Sequence[Trajectory]) -> dict[str, torch.Tensor]:
        ids = [torch.tensor(t.token_ids) for t in trajectories]
        batch = {
            "input_ids": pad_sequence(ids, batch_first=True),
            "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
            "scored": pad_sequence([torch.tensor(t.loss_mask) for t in trajectories], batch_first=True),
            "num_images": torch.tensor([len(t.images) for t in trajectories]),
        }
        pictures = [image for t in trajectories for image in t.images]
        if pictures:
            made = self.renderer.processor.image_processor(images=pictures, return_tensors="pt")
            batch["pixel_values"], batch["image_grid_thw"] = made["pixel_values"], made["image_grid_thw"]
        return batch


class WarmupTrainer(Trainer):
    """transformers' Trainer with the loss on sampled tokens only.

    Args:
        model: Patched in place to return log-probs of sampled tokens.
        renderer: Of the episodes.
        scorer: Scores tokens; default one without a dummy picture.
        banned_token_ids: Left out of the softmax, as in rollouts.
        kwargs: Passed to `Trainer`.
    """

    def __init__(
        self,
        model: Any,
        renderer: ChatRenderer,
        *,
        banned_token_ids: Sequence[int],
        scorer: Scorer | None = None,
        **kwargs: Any,
    ) -> None:
        add_sampled_logprobs(model, temperature=1.0, banned_ids=banned_token_ids)
        super().__init__(model=model, data_collator=Collator(renderer), **kwargs)
        self.model_accepts_loss_kwargs = False
        image_token = getattr(model.config, "image_token_id", None)
        self._scorer = scorer or Scorer(model, image_token_id=image_token)

    def compute_loss(  # type: ignore[override]
        self, model: Any, inputs: dict[str, torch.Tensor], return_outputs: bool = False, **kwargs: Any
    ) -> torch.Tensor:
        """Mean negative log-probability of the sampled tokens."""
        pictures = None
        if "pixel_values" in inputs:
            counts = inputs["num_images"].tolist()
            pictures = Pictures(inputs["pixel_values"], inputs["image_grid_thw"], counts)
        scored = inputs["scored"]
        logprobs, _, _ = self._scorer(model, inputs["input_ids"], inputs["attention_mask"], scored, pictures)
        return -logprobs.sum() / scored.sum().clamp(min=1)


@dataclass(frozen=True)
class WarmupSettings:
    """How long and how fast; see `train.arguments.ScriptArguments`."""

    steps: int
    batch_size: int = 32
    episodes: int = 0
    """Different solved episodes; 0 for new ones in every step."""
    learning_rate: float = 1e-3
    recorded: str | None = None
    """A folder of recorded episodes to train on, in place of the solvers'."""
    rate_steps: int = 30
    """Steps over which the rate rises: without them the tiny model stays at chance."""


def warm_up(
    model: Any,
    renderer: ChatRenderer,
    tasks: TaskSource,
    settings: WarmupSettings,
    *,
    args: TrainingArguments,
    banned_token_ids: Sequence[int],
    resume: str | bool | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> WarmupTrainer:
    """Train on solved episodes and return the trainer, whose model is the one that was given.

    Args:
        model: Changed in place.
        renderer: Of the model's chat template.
        tasks: Whose experts are followed, unless `settings.recorded` names episodes.
        settings: Steps, batch and rate.
        args: The run's arguments; precision, logging, seed and output folder are taken from them.
        banned_token_ids: Left out of the softmax, as in rollouts.
        resume: A checkpoint to go on from.
        callbacks: Of transformers' Trainer.
    """
    world = args.world_size
    count = settings.steps * settings.batch_size * world
    episodes: ExpertEpisodes | RecordedEpisodes
    if settings.recorded is not None:
        episodes = RecordedEpisodes(settings.recorded, renderer, count)
    else:
        episodes = ExpertEpisodes(tasks, renderer, count, settings.episodes)
    own = TrainingArguments(
        output_dir=str(Path(args.output_dir or "runs") / "warmup"),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.rate_steps,
        lr_scheduler_type="constant_with_warmup",
        bf16=args.bf16,
        fp16=args.fp16,
        seed=args.seed,
        report_to=args.report_to,
        run_name=f"{args.run_name}-warmup" if args.run_name else None,
        logging_steps=args.logging_steps,
        disable_tqdm=args.disable_tqdm,
        save_strategy=args.save_strategy,
        save_steps=args.save_steps,
        save_total_limit=args.save_total_limit,
        ddp_find_unused_parameters=args.ddp_find_unused_parameters,
        remove_unused_columns=False,
        dataloader_pin_memory=args.dataloader_pin_memory,
    )
    trainer = WarmupTrainer(
        model,
        renderer,
        banned_token_ids=banned_token_ids,
        args=own,
        train_dataset=episodes,
        callbacks=list(callbacks),
    )
    try:
        trainer.train(resume_from_checkpoint=resume)
    finally:
        episodes.close()
    return trainer
