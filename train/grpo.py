"""GRPO on Gymnasium environments: warm-up on solved episodes (optional), GRPO, held-out evaluation.

    accelerate launch train/grpo.py --config configs/quickstart.yaml
    accelerate launch train/grpo.py --config configs/geo3k_smoke.yaml --data ../shared/data/geo3k

Reads from top to bottom: arguments, model, warm-up, trainer, train, evaluate, save.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout, not this folder

from accelerate import PartialState
from trl import ModelConfig, TrlParser, get_peft_config

from train.arguments import GymGRPOConfig, ScriptArguments
from train.dry_run import dry_run
from train.models import load_model, load_processor, model_folder
from train.records import record_run
from train.report import Report
from train.rollouts import RolloutConfig
from train.stages import checkpoint_of, warmed_up
from train.trainer import GymGRPOTrainer


def main(trainer_class: type[GymGRPOTrainer] = GymGRPOTrainer) -> None:
    # Arguments: the YAML of --config, then the command line.
    parts: list[Any] = [ScriptArguments, RolloutConfig, ModelConfig, GymGRPOConfig]
    parser = TrlParser(parts)
    script, rollout, model_args, args = parser.parse_args_and_config()
    output = Path(args.output_dir)
    resuming = args.resume_from_checkpoint is not None
    report = Report(output, main=PartialState().is_main_process, resume=resuming)

    # Model: a name, a path, or "tiny", which is made here.
    folder = model_folder(model_args.model_name_or_path, script, output, seed=args.seed, say=report.say)
    processor = load_processor(folder, script)
    if script.dry_run:
        lines = dry_run(folder, processor, script, rollout, args, lora=model_args.use_peft)
        sys.exit(int(any(line.problem for line in lines)))
    record_run(args, script.members(), write=report.main)

    # Warm-up on the environments' own solved episodes. The result is saved: GRPO's reference model and a
    # resumed run load it.
    if script.expert_steps:
        folder = warmed_up(folder, processor, script, rollout, args, report)

    # Trainer.
    trainer = trainer_class(
        load_model(
            folder,
            dtype=model_args.dtype,
            attention=model_args.attn_implementation,
            revision=model_args.model_revision,
            freeze_vision=script.freeze_vision,
        ),
        env=script.members(),
        args=args,
        processing_class=processor,
        rollout=rollout,
        eval_env=script.members("eval_environments"),
        eval_episodes=script.eval_episodes,
        eval_ordered=script.eval_ordered,
        epoch_tasks=script.epoch_tasks,
        peft_config=get_peft_config(model_args),
    )

    # Train; `--resume_from_checkpoint last` (or a folder) goes on from a checkpoint.
    checkpoint = checkpoint_of(args)
    if checkpoint is None:
        stage = "after warm-up" if script.expert_steps else "before GRPO"
        report.add(stage, trainer.evaluate_episodes()[0])
    report.say(f"GRPO: {args.world_size} process(es), {args.generation_batch_size} episodes a rollout")
    trainer.train(resume_from_checkpoint=checkpoint)

    # Evaluate on held-out tasks, save, show.
    figures, trajectories = trainer.evaluate_episodes()
    report.add("after GRPO", figures)
    trainer.rollouts.close()
    trainer.save_model(str(output / "model"))
    trainer.save_state()  # the logged metrics, for `mm-gym plot`
    report.table("held-out episodes")
    report.page(trajectories, script.page_episodes, "Held-out episodes after GRPO")
    report.say(f"step {trainer.state.global_step}; model saved to {output / 'model'}")


if __name__ == "__main__":
    main()
