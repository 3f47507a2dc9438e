"""How a trainer collects episodes: a policy over the model in training, and the engine that drives it.

Knows the engine's parts and the settings of a run; neither TRL nor tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.chat import ChatRenderer
from agents.engine import (
    Budgets,
    Collection,
    DynamicSampling,
    GroupCollector,
    GroupPolicy,
    OneStepAhead,
    PartialRollouts,
    RetryPolicy,
    RolloutEngine,
    Timeouts,
)
from agents.policies.transformers import TransformersPolicy
from agents.types import Policy, SamplingParams, Task, Trajectory
from train import checks
from train.generation import Generator
from train.memory import give_back_freed_memory


@dataclass(frozen=True)
class RolloutConfig:
    """How episodes are run and sampled."""

    max_turns: int | None = None
    """The engine's cap on turns; the environment's own holds as well."""
    max_tokens_per_turn: int = 512
    """A response longer than this is cut."""
    cut_response: str = "end"
    """What a cut response does: "end" the episode, or "step" to the environment as it is."""
    max_tokens_per_episode: int | None = None
    """Prompt, responses and observations together."""
    wall_seconds: float | None = None
    """Of one episode. A rollout must end within `ddp_timeout`."""
    max_batch: int = 64
    """Episodes that the back end decodes at once."""
    max_images: int = 32
    """Most pictures of one episode, which vLLM must know (use_vllm)."""
    vllm_dtype: str = "auto"
    """"auto" is half precision also for a float32 model; "float32" makes log-probs equal to 1e-4."""
    vllm_enforce_eager: bool = False
    """No compilation or graph capture: slower turns, a start in seconds (tests, CPU)."""
    workers: str = "thread"
    """Where environments live: thread, process or ray."""
    env_timeout: float = 60.0
    """Seconds that one reset or step of an environment may take."""
    env_retries: int = 2
    """Retries of a turn whose environment failed."""
    refills: int = 1
    """Fresh episodes that may replace a lost one."""
    keep_survivors: bool = False
    """Keep the rest of a group that lost an episode for good, in place of dropping it whole."""
    over_provision: float = 1.0
    """Groups in flight, as a multiple of those wanted. Above 1 a step does not wait for the slowest groups:
    they are carried over and finished in a later one (partial rollouts)."""
    max_staleness: int = 1
    """Optimizer steps that a carried group may be behind; an older one is begun afresh."""
    one_step_ahead: bool = False
    """Collect the episodes of the next step while this one trains: only with vllm_mode: server."""
    redraws: float = 0.0
    """Groups drawn in place of those whose rewards are all equal, at most this multiple of those wanted."""
    audit_share: float = 0.01
    """Share of the episodes whose stream is compared with a full render (`drift_*`)."""
    store: bool = True
    """Keep each episode of training in `output_dir`/rollouts."""
    allow_biased_sampling: bool = False
    """Accept top-p, top-k and min-p in training."""
    correct_sampler: bool = False
    """Importance correction by the sampler's log-probs even where the sampler is the model in training."""
    eval_temperature: float = 1.0
    """0 is greedy."""
    eval_top_p: float = 1.0
    eval_top_k: int = 0


class Rollouts:
    """Collects episodes for training and for evaluation.

    Args:
        policy: A generation back end, a `Generator` whose weights are pushed, or the model to sample with.
        renderer: Of the model's chat template.
        config: How episodes are run.
        temperature: Of sampling in training.
        top_p, top_k, min_p: Of sampling in training, where biased sampling is allowed.
        vocabulary: Rows of the model's output head; ids beyond the tokenizer's are banned.
        seed: Of the random streams of sampling.
    """

    def __init__(
        self,
        policy: Any,
        renderer: ChatRenderer,
        config: RolloutConfig,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        vocabulary: int,
        seed: int = 0,
    ) -> None:
        self._config = config
        self.generator = policy if isinstance(policy, Generator) else None
        policy = policy.policy if isinstance(policy, Generator) else policy
        self.own_model = not isinstance(policy, Policy)
        """Whether tokens are sampled by the very weights that are trained."""
        if config.one_step_ahead:
            checks.refuse_shared_generation(self.generator is not None and self.generator.apart)
        self._collector: GroupCollector | None = None
        self._ahead: OneStepAhead | None = None
        self.policy: Policy = (
            TransformersPolicy(policy, renderer, max_batch=config.max_batch) if self.own_model else policy
        )
        unused = range(len(renderer.tokenizer), vocabulary)  # padding rows of the head: no token at all
        self.banned_token_ids = tuple(sorted({*renderer.banned_token_ids, *unused}))
        sampling = SamplingParams(
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            min_p=min_p,
            stop_token_ids=renderer.stop_token_ids,
            banned_token_ids=self.banned_token_ids,
        )
        self.train_sampling = sampling
        self.eval_sampling = replace(
            sampling,
            temperature=config.eval_temperature,
            top_p=config.eval_top_p,
            top_k=config.eval_top_k,
            min_p=0.0,
        )
        self.engine = RolloutEngine(
            self.policy,
            renderer,
            budgets=Budgets(
                max_turns=config.max_turns,
                max_tokens_per_turn=config.max_tokens_per_turn,
                max_tokens_per_episode=config.max_tokens_per_episode,
                wall_seconds=config.wall_seconds,
                cut_response=config.cut_response,  # type: ignore[arg-type]
            ),
            sampling=sampling,
            retries=RetryPolicy(max_env_retries_per_turn=config.env_retries),
            groups=GroupPolicy(refills=config.refills, keep_survivors=config.keep_survivors),
            workers=config.workers,
            timeouts=Timeouts(reset=config.env_timeout, step=config.env_timeout),
            seed=seed,
            audit_share=config.audit_share,
        )

    def collect(self, tasks: Sequence[Task], *, version: int) -> list[Trajectory]:
        """Training episodes, one a task and in the tasks' order; `version` names the weights."""
        return self._run(tasks, self.train_sampling, version)

    def group_collector(
        self, draw: Callable[[int], Task], group_size: int, *, rank: int = 0, ranks: int = 1
    ) -> GroupCollector | OneStepAhead | None:
        """Partial rollouts, redraws and collection ahead, where the configuration asks for any.

        Args:
            draw: From an index to a task.
            group_size: Episodes of a group.
            rank, ranks: Of this process; each draws indices of its own.
        """
        config = self._config
        partial = dynamic = None
        if config.over_provision > 1.0:
            partial = PartialRollouts(config.over_provision, config.max_staleness)
        if config.redraws > 0:
            dynamic = DynamicSampling(config.redraws)
        if partial is None and dynamic is None and not config.one_step_ahead:
            return None
        ranks_of_an_engine = 1
        if self.generator is not None and self.generator.group is not None:
            ranks_of_an_engine = self.generator.group.size  # the first of them collects for all
        self._collector = GroupCollector(
            self.engine,
            draw,
            group_size,
            start=rank // ranks_of_an_engine,
            stride=ranks // ranks_of_an_engine,
            partial=partial,
            dynamic=dynamic,
        )
        self._ahead = OneStepAhead(self._collector) if config.one_step_ahead else None
        return self._ahead or self._collector

    def collect_groups(
        self, collector: GroupCollector | OneStepAhead, groups: int, *, version: int, more: bool = True
    ) -> Collection:
        """Whole groups of training episodes by the collector's schedule.

        Args:
            collector: From `group_collector`.
            groups: How many.
            version: Names the weights.
            more: Whether another step follows, which may be begun already.
        """

        def prepare() -> None:
            self._prepare(self.train_sampling, version)

        if isinstance(collector, OneStepAhead):
            return collector.next(groups, prepare, more=more)
        prepare()
        if self.generator is None:
            return collector.collect(groups)
        return self.generator.collect_groups(collector, groups)

    def give_up_ahead(self) -> None:
        """Drop the step that is being collected ahead, if any, and close its environments."""
        if self._ahead is not None:
            self._ahead.close()

    def give_up(self) -> None:
        """Drop what is being collected or carried over, and close all environments; collecting may go on."""
        self.give_up_ahead()
        if self._collector is not None:
            self._collector.close()
        self.engine.close_environments()

    def evaluate(self, tasks: Sequence[Task], *, version: int) -> list[Trajectory]:
        """Evaluation episodes: other sampling settings, and no episode is dropped for another's failure."""
        return self._run(tasks, self.eval_sampling, version)

    def close(self) -> None:
        """Close all environments."""
        self.give_up_ahead()
        self.engine.close()

    def _run(self, tasks: Sequence[Task], sampling: SamplingParams, version: int) -> list[Trajectory]:
        if self._ahead is not None:
            self._ahead.settle()  # its episodes have weights and sampling settings of their own
        self._prepare(sampling, version)
        if self.generator is None:
            return self.engine.collect(tasks)
        return self.generator.collect(tasks, self.engine.collect)

    def _prepare(self, sampling: SamplingParams, version: int) -> None:
        """Set what the next collection samples with, and begin it lean; not while another is running."""
        give_back_freed_memory()
        self.engine.sampling = sampling
        if self.generator is not None:
            self.generator.bring_up_to(version)
        self.policy.version = version
