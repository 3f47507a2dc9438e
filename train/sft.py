"""Supervised fine-tuning on the environments' own solved episodes, with the loss on what a model samples.

    accelerate launch train/sft.py --config configs/quickstart.yaml --output_dir runs/sft

Reads the same arguments as grpo.py; the GRPO part of a configuration is not used. Its result is a model
folder for `model_name_or_path` of grpo.py, or of anything else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout, not this folder

from accelerate import PartialState
from trl import ModelConfig, TrlParser

from agents.chat import ChatRenderer
from train.arguments import GymGRPOConfig, ScriptArguments
from train.evaluation import held_out
from train.models import load_model, load_processor, model_folder
from train.report import Report
from train.rollouts import RolloutConfig, Rollouts
from train.stages import warmed_up
from train.tasks import EVALUATION, TaskSource


def main() -> None:
    # Arguments: the YAML of --config, then the command line.
    parts: list[Any] = [ScriptArguments, RolloutConfig, ModelConfig, GymGRPOConfig]
    script, rollout, model_args, args = TrlParser(parts).parse_args_and_config()
    if script.expert_steps < 1:
        raise ValueError(
            f"expert_steps must be at least 1 for supervised training, got {script.expert_steps}"
        )
    output = Path(args.output_dir)
    resuming = args.resume_from_checkpoint is not None
    report = Report(output, main=PartialState().is_main_process, resume=resuming)

    # Model, and training on solved episodes (`--resume_from_checkpoint last` goes on after a kill).
    folder = model_folder(model_args.model_name_or_path, script, output, seed=args.seed, say=report.say)
    processor = load_processor(folder, script)
    saved = warmed_up(folder, processor, script, rollout, args, report)

    # Evaluate on held-out tasks, and show.
    model = load_model(saved)
    vocabulary = model.get_output_embeddings().weight.shape[0]
    rollouts = Rollouts(model, ChatRenderer(processor), rollout, vocabulary=vocabulary, seed=args.seed)
    members = script.members("eval_environments")
    tasks = TaskSource(members, seed=args.seed, stream=EVALUATION, ordered=script.eval_ordered)
    figures, trajectories = held_out(rollouts, tasks, script.eval_episodes or len(tasks))
    rollouts.close()
    report.add("after warm-up", figures)
    report.table("held-out episodes")
    report.page(trajectories, script.page_episodes, "Held-out episodes after supervised training")
    report.say(f"model saved to {saved}")


if __name__ == "__main__":
    main()
