"""What the scripts read from YAML and the command line, as dataclasses.

`TrlParser` fills `ScriptArguments`, `RolloutConfig`, TRL's `ModelConfig` and `GymGRPOConfig`; the command
line wins over the YAML. (`env:` in the YAML is TrlParser's own: it sets environment variables.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trl import GRPOConfig

from train.tasks import EnvMember, parse_members

TINY = "tiny"
SMOLLM = "smollm2"


@dataclass
class GymGRPOConfig(GRPOConfig):
    """TRL's configuration with the defaults that multi-turn episodes need."""

    vllm_importance_sampling_mode: str = field(
        default="token_truncate",
        metadata={
            "help": "TRL's, or turn_truncate, turn_mask: the ratio of each turn. Sequence modes sum over a "
            "whole episode and mask long ones out."
        },
    )
    importance_sampling_level: str = field(
        default="token",
        metadata={"help": "TRL's, or turn: clipping by the mean log-ratio of each turn (GSPO by turn)."},
    )
    turn_credit: str = field(
        default="episode",
        metadata={"help": "episode: one advantage an episode. turn: each turn's from the rewards after it."},
    )
    turn_discount: float = field(
        default=1.0, metadata={"help": "What a reward counts for one turn earlier (turn_credit: turn)."}
    )
    log_multimodal: bool = field(
        default=False, metadata={"help": "TRL's table takes one picture a row only."}
    )
    output_dir: str | None = field(default="runs/grpo", metadata={"help": "Where everything is written."})
    job: dict[str, Any] | str | None = field(
        default=None,
        metadata={"help": "What trackers keep of the run beside its name; set from the environments' own."},
    )


@dataclass
class ScriptArguments:
    """What is trained on what, beyond TRL's own arguments."""

    dry_run: bool = field(default=False, metadata={"help": "Check the recipe without loading the model."})
    environments: str | None = field(
        default="mm_gym/Pointing-v0",
        metadata={"help": "An id, `module:id`, or (YAML, JSON) a list of {id, weight, kwargs, options}."},
    )
    eval_environments: str | None = field(
        default=None, metadata={"help": "What to evaluate on; default `environments`, with other seeds."}
    )
    expert_environments: str | None = field(
        default=None, metadata={"help": "What to warm up on; default `environments`, with other seeds."}
    )
    data: str | None = field(
        default=None,
        metadata={"help": "Where every Geo3k environment reads its problems: folder, file or hub name."},
    )
    eval_episodes: int = field(default=200, metadata={"help": "Held-out episodes; 0 takes each task once."})
    eval_ordered: bool = field(
        default=False, metadata={"help": "Take the held-out tasks one after another in place of drawing."}
    )
    eval_before_warmup: bool = field(
        default=True, metadata={"help": "Also evaluate the model that the warm-up starts from."}
    )
    epoch_tasks: int = field(
        default=1000, metadata={"help": "Tasks in an epoch, where max_steps is not set."}
    )
    expert_steps: int = field(default=0, metadata={"help": "Steps of supervised warm-up on solved episodes."})
    expert_batch_size: int = field(
        default=32, metadata={"help": "Episodes in a step of warm-up, per process."}
    )
    expert_episodes: int = field(
        default=0,
        metadata={"help": "Different solved episodes, taken again and again; 0: new ones in every step."},
    )
    expert_until: float | None = field(
        default=None,
        metadata={
            "help": "End the warm-up early, at this success on 100 tasks drawn for it (every 4 steps)."
        },
    )
    expert_recorded: str | None = field(
        default=None,
        metadata={
            "help": "Warm up on this folder of recorded episodes (`python -m mm_gym.computer record`) instead."
        },
    )
    expert_learning_rate: float = field(default=1e-3, metadata={"help": "Peak rate of the warm-up."})
    min_pixels: int | None = field(default=None, metadata={"help": "Smallest picture area after resizing."})
    max_pixels: int | None = field(default=None, metadata={"help": "Largest picture area after resizing."})
    freeze_vision: bool = field(default=False, metadata={"help": "Leave the vision tower as it is."})
    tiny_processor: str | None = field(
        default=None,
        metadata={"help": "With model_name_or_path `tiny`: a real Qwen3-VL processor to build it for."},
    )
    tiny_tied: bool = field(default=False, metadata={"help": "With `tiny`: share the embeddings."})
    page_episodes: int = field(default=12, metadata={"help": "Episodes on the rollout page."})

    def members(self, which: str = "environments") -> list[EnvMember]:
        """The environments of `environments`, `eval_environments` or `expert_environments`."""
        members = parse_members(getattr(self, which) or self.environments or [])
        if self.data is None:
            return members
        return [_with_data(member, self.data) for member in members]


def _with_data(member: EnvMember, data: str) -> EnvMember:
    if "Geo3k" not in member.id:
        return member
    kwargs: dict[str, Any] = {"data": data, **member.kwargs}
    return EnvMember(member.id, member.weight, kwargs, member.options)
