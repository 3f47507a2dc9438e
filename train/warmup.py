"""Supervised warm-up on the environments' own solved episodes.

An expert's episode is made into the very token stream that a rollout would have been, and the loss is
taken on the tokens that the model would have sampled, over the allowed ids: warm-up and GRPO train the
same distribution. Knows environments with a solver and transformers' Trainer; not TRL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import Trainer

from agents.chat import ChatRenderer
from agents.token_env import TokenEnv
from agents.types import Response, Task, Trajectory
from train.forward import Pictures, Scorer
from train.logprobs import add_sampled_logprobs
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
    """

    def __init__(self, tasks: TaskSource, renderer: ChatRenderer, count: int) -> None:
        self.tasks = tasks
        self.renderer = renderer
        self.count = count
        self._envs: dict[str, gymnasium.Env[Any, Any]] = {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Trajectory:
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
