"""The warm-up as a stage of a run: evaluate the start, follow the experts, save, or find it done.

Knows the scripts' arguments; what is trained and how is in `train.warmup`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from agents.chat import ChatRenderer
from train.arguments import ScriptArguments
from train.evaluation import held_out
from train.models import load_model
from train.report import Report
from train.rollouts import RolloutConfig, Rollouts
from train.tasks import EARLY, EVALUATION, WARMUP, TaskSource
from train.warmup import WarmupSettings, warm_up

LAST = "last"


def checkpoint_of(args: TrainingArguments) -> str | None:
    """The checkpoint to go on from: `resume_from_checkpoint` is a folder, or "last" for the newest one."""
    wanted = args.resume_from_checkpoint
    return _last(Path(str(args.output_dir))) if wanted == LAST else wanted


def _last(folder: Path) -> str | None:
    return get_last_checkpoint(str(folder)) if folder.is_dir() else None


def warmed_up(
    folder: str,
    processor: Any,
    script: ScriptArguments,
    rollout: RolloutConfig,
    args: TrainingArguments,
    report: Report,
) -> str:
    """Warm the model of `folder` up; returns the folder of the result. A resumed run does not repeat it."""
    saved = Path(str(args.output_dir)) / "warmup" / "model"
    resuming = args.resume_from_checkpoint is not None
    if resuming and (saved / "config.json").is_file():
        report.say(f"warm-up is done: {saved}")
        return str(saved)
    model = load_model(folder, freeze_vision=script.freeze_vision)
    renderer = ChatRenderer(processor)
    vocabulary = model.get_output_embeddings().weight.shape[0]
    rollouts = Rollouts(model, renderer, rollout, vocabulary=vocabulary, seed=args.seed)
    if script.eval_before_warmup:
        members = script.members("eval_environments")
        held = TaskSource(members, seed=args.seed, stream=EVALUATION, ordered=script.eval_ordered)
        report.add("before warm-up", held_out(rollouts, held, script.eval_episodes or len(held))[0])
    tasks = TaskSource(script.members("expert_environments"), seed=args.seed, stream=WARMUP)
    settings = WarmupSettings(
        script.expert_steps,
        script.expert_batch_size,
        script.expert_episodes,
        script.expert_learning_rate,
        script.expert_recorded,
    )
    report.say(f"warm-up: {settings.steps} steps of {settings.batch_size} solved episodes a process")
    enough = [EnoughSuccess(rollouts, script, args.seed, report)] if script.expert_until is not None else []
    trainer = warm_up(
        model,
        renderer,
        tasks,
        settings,
        args=args,
        banned_token_ids=rollouts.banned_token_ids,
        callbacks=enough,
    )
    rollouts.close()
    trainer.save_model(str(saved))
    if args.should_save:
        processor.save_pretrained(saved)
    trainer.accelerator.wait_for_everyone()
    return str(saved)


class EnoughSuccess(TrainerCallback):
    """Ends a warm-up once the model solves `expert_until` of some tasks: GRPO has a start, and room above it.

    The tasks are drawn from `environments`, with seeds that neither training nor evaluation has.

    Args:
        rollouts: Samples with the model in warm-up.
        script: Says what is enough, and on what.
        seed: Of the run.
        report: Told about each look.
    """

    EVERY, FIRST, EPISODES = 2, 5, 50

    def __init__(self, rollouts: Rollouts, script: ScriptArguments, seed: int, report: Report) -> None:
        self._rollouts = rollouts
        self._tasks = TaskSource(script.members(), seed=seed, stream=EARLY)
        self._until = float(script.expert_until or 0.0)
        self._report = report

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look every few steps."""
        if state.global_step % self.EVERY:
            return
        # Most looks come long before: a few tasks show that, and screens are slow to play.
        success = held_out(self._rollouts, self._tasks, self.FIRST)[0].success
        if success >= self._until / 2:
            success = held_out(self._rollouts, self._tasks, self.EPISODES)[0].success
        self._report.say(f"warm-up, step {state.global_step}: success {success:.0%}")
        control.should_training_stop = success >= self._until
