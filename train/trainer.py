"""`GymGRPOTrainer`: TRL's GRPO on episodes of Gymnasium environments.

The ONE module that knows TRL's private names (trl 1.16). What is overridden, and why:

- `_generate`: rollouts come from `agents.RolloutEngine`; it returns TRL's 8-tuple, with the pictures of
  all turns in the places of `images` and `tool_images` and `self.tools` truthy, so that TRL takes the
  branch for pictures anywhere in the stream;
- `_generate_and_score_completions`: exact zero advantage for groups of equal reward, advantages and importance
  ratios of turns where asked for, the share of live rows;
- `_get_per_token_logps_and_entropies`: log-probs only where the mask is 1, over the allowed ids, without the
  padding of the whole generation batch;
- `_compute_loss`: dead rows leave the denominator of losses that average over rows; importance correction
  where log-probs of the sampler call for it, not where `use_vllm` is set; clipping by turn;
- `evaluate` (of `train.evaluation`): held-out episodes with sampling settings of their own;
- the checkpoint also holds the task cursor.

`tests/train/test_trl_seam.py` fails clearly when a new TRL changes one of these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import AutoProcessor
from trl import GRPOConfig, GRPOTrainer
from trl.generation.vllm_generation import VLLMGeneration
from trl.trainer.utils import maybe_gather_lm_head_ctx

from agents.chat import ChatRenderer
from agents.store import TrajectoryStore
from agents.types import Trajectory
from train import checks
from train.credit import credit_of, equal_groups, turn_advantages
from train.evaluation import EvaluatesEpisodes, step_figures
from train.forward import Pictures, Scorer, base_of, scorer_for
from train.generation import Generator, generator_for
from train.importance import TURN_MODES, old_logprobs_by_turn, over_ranks, spread_of, turn_ratios
from train.logprobs import add_sampled_logprobs
from train.rewards import RewardFunc, columns_of, environment_reward, live_only, tickets
from train.rollouts import RolloutConfig, Rollouts
from train.rows import Row, rows_of
from train.tasks import EVALUATION, EnvSpec, TaskSource
from train.turns import loss_mask, on_tokens, turn_index

ROW_AVERAGED = ("grpo", "sapo", "dr_grpo", "luspo")
"""Losses that divide by the number of rows, in which a dead row would still count."""
STATE_FILE = "gym_state.json"


class GymGRPOTrainer(EvaluatesEpisodes, GRPOTrainer):
    """GRPO on episodes of environments.

    `GymGRPOTrainer("Qwen/Qwen3-VL-2B-Instruct", env="mm_gym/Geo3k-v0", args=GRPOConfig(...)).train()`

    Args:
        model: A name, a path, a model or a PEFT model.
        env: The environment to train on, or several with weights; see `train.tasks.EnvSpec`.
        args: TRL's configuration. `max_completion_length` is an episode's token budget after the prompt.
        processing_class: Processor or tokenizer; default the model's own.
        rollout: How episodes are run and sampled; see `RolloutConfig`.
        eval_env: What to evaluate on; default `env`, with seeds of their own.
        eval_episodes: Episodes of one evaluation; 0 with `eval_ordered` takes every task once.
        eval_ordered: Take the evaluation environment's tasks one after another.
        epoch_tasks: Tasks (groups) that make an epoch, where `max_steps` does not set the length.
        reward_funcs: Further rewards as TRL takes them, added to the environment's.
        policy: A generation back end; default samples with `model` itself.
        kwargs: Passed to `trl.GRPOTrainer` (`callbacks`, `optimizers`, `peft_config`, ...).
    """

    _tag_names = ["trl", "grpo", "mm-gym"]  # noqa: RUF012  (as in TRL)
    args: GRPOConfig
    model: Any
    num_generations: int
    beta: float

    def __init__(
        self,
        model: Any,
        env: EnvSpec,
        args: GRPOConfig | None = None,
        processing_class: Any = None,
        *,
        rollout: RolloutConfig | None = None,
        eval_env: EnvSpec | None = None,
        eval_episodes: int = 100,
        eval_ordered: bool = False,
        epoch_tasks: int = 1000,
        reward_funcs: Sequence[RewardFunc] = (),
        policy: Any = None,
        **kwargs: Any,
    ) -> None:
        args = args or GRPOConfig(output_dir="runs/grpo")
        rollout = rollout or RolloutConfig()
        checks.refuse_unsupported(args, allow_biased_sampling=rollout.allow_biased_sampling)
        checks.groups_on_one_rank(args)
        args.log_multimodal = False  # TRL would log a picture a row, and a row may have none or several
        if processing_class is None:
            name = model if isinstance(model, str) else model.config._name_or_path
            processing_class = AutoProcessor.from_pretrained(name)
        self.renderer = ChatRenderer(processing_class)
        self.tasks = TaskSource(env, seed=args.seed)
        self.eval_tasks = TaskSource(eval_env or env, seed=args.seed, stream=EVALUATION, ordered=eval_ordered)
        self.eval_episodes = eval_episodes or len(self.eval_tasks)
        self.task_cursor = 0
        """Number of the next group to run, over all ranks."""
        self._rows: list[Row] = []
        self._row_mask: torch.Tensor | None = None
        self._micro_batch: dict[str, Any] = {}
        """What `_compute_loss` is computing."""
        self.credit = credit_of(args)
        generates = args.use_vllm and policy is None
        args.use_vllm = False  # the engine is ours to build and to drive, and TRL would build another
        super().__init__(
            model=model,
            reward_funcs=[environment_reward, *(live_only(f) for f in reward_funcs)],
            args=args,
            train_dataset=tickets(max(epoch_tasks, int(args.generation_batch_size or 0))),
            eval_dataset=tickets(1) if args.eval_strategy != "no" else None,
            processing_class=processing_class,
            **kwargs,
        )
        # TRL has no turns: it goes by tokens, and what it works with is replaced.
        self.turn_level = args.importance_sampling_level == "turn"
        self.turn_mode = args.vllm_importance_sampling_mode in TURN_MODES
        if self.turn_mode:
            self.vllm_importance_sampling_mode = "token_truncate"
        self.importance_sampling_level = "token" if self.turn_level else args.importance_sampling_level
        # Truthy, so that TRL takes pictures from anywhere in the stream; it is never called.
        self.tools = [environment_reward] if self._is_vlm else []
        self.policy_model = self.accelerator.unwrap_model(self.model)
        args.use_vllm = generates
        if generates:
            policy = self._make_generator(rollout)
        self.rollouts = Rollouts(
            self.policy_model if policy is None else policy,
            self.renderer,
            rollout,
            temperature=args.temperature,
            top_p=args.top_p,
            top_k=args.top_k,
            min_p=args.min_p or 0.0,
            vocabulary=self.policy_model.get_output_embeddings().weight.shape[0],
            seed=args.seed,
        )
        if self.rollouts.own_model:
            checks.refuse_sharded_sampling(args)
        self.correct_sampler = rollout.correct_sampler or not self.rollouts.own_model
        self._rollout_config = rollout
        rank, ranks = self.accelerator.process_index, self.accelerator.num_processes
        self._collector = self.rollouts.group_collector(
            self.tasks.task, self.num_generations, rank=rank, ranks=ranks
        )
        folder = Path(args.output_dir or ".") / "rollouts"
        self._store = TrajectoryStore(folder, rank=rank) if rollout.store else None
        self._add_heads()
        self._scorer = self._make_scorer()
        if self._scorer.dummy is not None:
            checks.pictures_matter(self.policy_model, self.renderer)

    # -- set-up ----------------------------------------------------------------------------------------

    def _make_generator(self, rollout: RolloutConfig) -> Generator:
        """vLLM as `vllm_mode` says, following this model's weights."""
        walk = _Weights(self.model, self.accelerator, self.renderer.processor)
        return generator_for(
            self.args, rollout, self.policy_model, self.renderer, walk._iter_named_params, self.accelerator
        )

    def _add_heads(self) -> None:
        for model in (self.model, self.ref_model):
            if model is None:
                continue
            add_sampled_logprobs(
                base_of(self.accelerator.unwrap_model(model)),
                temperature=self.temperature,
                banned_ids=self.rollouts.banned_token_ids,
                float32_head=self.args.cast_lm_head_to_fp32,
                gather_head=maybe_gather_lm_head_ctx,
            )

    def _make_scorer(self) -> Scorer:
        pad = self._image_pad_token_id if self._is_vlm else None
        return scorer_for(self.policy_model, self.renderer, pad, any_rank=self._any_rank)

    def _any_rank(self, flag: bool) -> bool:
        if self.accelerator.num_processes == 1:
            return flag
        mine = torch.tensor([float(flag)], device=self.accelerator.device)
        return bool(self.accelerator.gather(mine).any())

    # -- rollouts --------------------------------------------------------------------------------------

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As transformers'; nothing goes on collecting behind it, also after an exception or Ctrl-C."""
        try:
            return super().train(*args, **kwargs)
        except BaseException:
            self.rollouts.give_up()
            raise
        finally:
            self.rollouts.give_up_ahead()

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """Run one group of episodes for each group of tickets; returns TRL's 8-tuple, rows in order."""
        trajectories = self._collect(len(prompts) // self.num_generations)
        rows = rows_of(
            trajectories,
            self.renderer,
            group_size=self.num_generations,
            keep_survivors=self._rollout_config.keep_survivors,
        )
        self._rows = rows
        self.use_vllm = self._correction_needed(trajectories)
        self._log_rollouts(rows)
        prompts[:] = [row.prompt for row in rows]  # what logs and rewards read in place of the tickets
        pictures = [row.images for row in rows]
        return (
            [row.prompt_ids for row in rows],
            [row.completion_ids for row in rows],
            [row.mask for row in rows],
            [row.completion for row in rows],
            [row.logprobs for row in rows],
            columns_of(rows),
            pictures if any(pictures) else None,
            pictures,
        )

    def _collect(self, groups: int) -> list[Trajectory]:
        if self._collector is not None:
            collection = self.rollouts.collect_groups(
                self._collector, groups, version=self.state.global_step, more=self._generates_again()
            )
            for name, value in collection.metrics.items():
                self._metrics["train"][f"rollout/groups_{name}"].append(value)
            return collection.trajectories
        rank, ranks = self.accelerator.process_index, self.accelerator.num_processes
        tasks = self.tasks.tasks(self.task_cursor + rank * groups, groups, copies=self.num_generations)
        self.task_cursor += ranks * groups
        return self.rollouts.collect(tasks, version=self.state.global_step)

    def _generates_again(self) -> bool:
        """Whether another rollout follows the present one before `max_steps`."""
        accumulation = self.args.gradient_accumulation_steps
        left = (self.state.max_steps - self.state.global_step) * accumulation - self._step % accumulation
        return left > self.args.steps_per_generation * self.num_iterations

    def _correction_needed(self, trajectories: Sequence[Trajectory]) -> bool:
        """Whether any token was sampled by other weights or another back end than the one trained."""
        if self.correct_sampler:
            return True
        current = self.state.global_step
        return self._any_rank(any(turn.policy_version != current for t in trajectories for turn in t.turns))

    def _log_rollouts(self, rows: Sequence[Row]) -> None:
        trajectories = [row.trajectory for row in rows if row.trajectory is not None]
        figures, tokens = step_figures(trajectories, version=self.state.global_step)
        figures["rollout/dropped_rows"] = float(sum(gather_object([not row.live for row in rows])))
        self.state.num_input_tokens_seen += tokens
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        for name, value in figures.items():
            self._metrics["train"][name].append(value)
        if self._store is not None:
            self._store.append(trajectories, step=self.state.global_step)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        live = torch.tensor([float(row.live) for row in self._rows], device=self.accelerator.device)
        output["live_share"] = self.accelerator.gather(live).mean().clamp(min=1e-8)
        turns = output["turns"] = turn_index(self._rows, output["completion_ids"].shape[1]).to(live.device)
        if self.credit is None:
            output["advantages"] = output["advantages"].masked_fill(self._constant, 0.0)
        else:
            output["advantages"] = on_tokens(self._turn_advantages().to(live.device), turns)
        if self.turn_mode and "importance_sampling_ratio" in output:
            output["importance_sampling_ratio"] = self._turn_ratios(output, turns)
        return output

    def _turn_advantages(self) -> torch.Tensor:
        assert self.credit is not None
        start = self.accelerator.process_index * len(self._rows)
        return turn_advantages(
            self._rows,
            self._rewards[start : start + len(self._rows)].tolist(),
            self.credit,
            group_size=self.num_generations,
            weight=float(self.reward_weights[0]),
            batch_std=float(self._rewards[~self._rewards.isnan()].std()),
        )

    def _turn_ratios(self, output: dict[str, Any], turns: torch.Tensor) -> torch.Tensor:
        ratio = turn_ratios(
            output["old_per_token_logps"] - output["sampling_per_token_logps"],
            turns,
            self.args.vllm_importance_sampling_mode,
            lowest=self.vllm_importance_sampling_clip_min,
            highest=self.vllm_importance_sampling_clip_max,
        )
        everywhere = self.accelerator.gather(spread_of(ratio, turns)).view(-1, 3)
        for name, value in zip(("min", "mean", "max"), over_ranks(everywhere), strict=True):
            self._metrics["train"][f"sampling/importance_sampling_ratio/{name}"][-1] = value
        return ratio

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As TRL's; notes the episodes' rewards, and which rows are of a group whose rewards are all equal."""
        rewards = super()._calculate_rewards(*args, **kwargs)
        weighted = rewards * self.reward_weights.to(rewards.device)
        self._rewards = weighted.nansum(1).masked_fill(rewards.isnan().all(1), torch.nan)
        constant = equal_groups(rewards, self.num_generations)
        if self.scale_rewards == "batch":  # there a constant group has an advantage of its own
            constant = torch.zeros_like(constant)
        start = self.accelerator.process_index * len(self._rows)
        self._constant = constant[start : start + len(self._rows)]
        return rewards

    # -- the loss --------------------------------------------------------------------------------------

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        pixel_values: torch.Tensor | None = None,
        image_grid_thw: torch.Tensor | None = None,
        num_images: list[int] | None = None,
        **unused: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        scored = torch.zeros_like(input_ids)
        mask = self._row_mask  # TRL does not pass it on
        scored[:, -logits_to_keep:] = loss_mask(self._rows, logits_to_keep) if mask is None else mask
        with self.accelerator.autocast():
            logprobs, entropies, aux_loss = self._scorer(
                model,
                input_ids,
                attention_mask,
                scored,
                Pictures.of(pixel_values, image_grid_thw, num_images),
                batch_size=batch_size,
                with_entropy=compute_entropy,
                **({"output_router_logits": True} if compute_aux_loss else {}),
            )
        logprobs = logprobs[:, -logits_to_keep:]
        entropies = entropies[:, -logits_to_keep:] if entropies is not None else None
        old = self._micro_batch.get("old_per_token_logps")
        if self.turn_level and old is not None:  # TRL reads it after this call
            old.copy_(old_logprobs_by_turn(logprobs, old, self._micro_batch["turns"]))
        return logprobs, entropies, aux_loss

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self._row_mask = inputs["completion_mask"] * inputs["tool_mask"]
        # What a generation batch carries decides, not what is set when its micro-batches are trained.
        self.use_vllm = "importance_sampling_ratio" in inputs
        share = inputs["live_share"]
        beta = self.beta
        if self.loss_type in ROW_AVERAGED:
            # Every policy term is linear in the advantage and the KL term in beta, so scaling the two takes
            # dead rows out of the denominator and leaves entropy bonus and auxiliary loss alone.
            inputs = {**inputs, "advantages": inputs["advantages"] / share}
            self.beta = float(beta / share)
        if self.turn_level and "old_per_token_logps" in inputs:
            inputs = {**inputs, "old_per_token_logps": inputs["old_per_token_logps"].clone()}
        self._micro_batch = inputs
        try:
            return super()._compute_loss(model, inputs)
        finally:
            self.beta = beta
            self._row_mask, self._micro_batch = None, {}

    # -- checkpoints -----------------------------------------------------------------------------------

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        groups = None if self._collector is None else gather_object([self._collector.state_dict()])
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            (folder / STATE_FILE).write_text(json.dumps({"task_cursor": self.task_cursor, "groups": groups}))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        state = Path(checkpoint or ".") / STATE_FILE
        if checkpoint is not None and state.is_file():
            saved = json.loads(state.read_text())
            self.task_cursor = saved["task_cursor"]
            if self._collector is not None and saved.get("groups"):
                self._collector.load_state_dict(saved["groups"][self.accelerator.process_index])


class _Weights(VLLMGeneration):
    """TRL's walk over plain, merged and sharded weights, without the engine that TRL would build."""

    def _init_vllm(self) -> None:
        """Nothing: `train.generation` builds the engine."""
