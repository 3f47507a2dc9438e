"""vLLM for a trainer: building the engine, sharing it between ranks, and bringing new weights to it.

Knows vLLM, torch.distributed and our policies; none of TRL's private names (`train/trainer.py` hands over
what walks the weights). The engine is built here and not by TRL because an engine in the trainer's own
precision, or eager on a CPU, is not among TRL's options.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from huggingface_hub import save_torch_state_dict

from agents.chat import ChatRenderer
from agents.engine import Collection, GroupCollector
from agents.policies.vllm import VLLMPolicy, whole_prompts_on_a_cpu
from agents.policies.vllm_server import VLLMServerPolicy
from agents.types import Policy, Task, Trajectory

T = TypeVar("T")
Weights = Callable[[], Iterable[tuple[str, torch.Tensor]]]
"""Walks the weights under their Hugging Face names; collective where they are sharded."""


@dataclass(frozen=True)
class VLLMOptions:
    """How vLLM generates; the names follow TRL's `vllm_*` arguments where it has them."""

    mode: str = "colocate"
    """"colocate" (an engine in each process) or "server"."""
    server_urls: tuple[str, ...] = ()
    gpu_memory_utilization: float = 0.3
    tensor_parallel_size: int = 1
    max_model_length: int | None = None
    max_num_seqs: int = 64
    enable_sleep_mode: bool = False
    dtype: Any = "auto"
    """"auto" is half precision also for a float32 model; "float32" makes log-probs equal to 1e-4."""
    enforce_eager: bool = False
    """No graph capture or compilation: slower turns, a start in seconds (for tests, and on a CPU)."""


class TensorParallelGroup:
    """The ranks that share one engine; the first of them leads.

    Args:
        size: Ranks in a group; must divide the number of processes.
    """

    def __init__(self, size: int) -> None:
        world, rank = dist.get_world_size(), dist.get_rank()
        if world % size:
            raise ValueError(
                f"vllm_tensor_parallel_size ({size}) must divide the number of processes ({world})"
            )
        ranks = [list(range(start, start + size)) for start in range(0, world, size)]
        # gloo: the commands are Python objects on the CPU, and must not queue behind the engine's own NCCL
        self._group, _ = dist.new_subgroups_by_enumeration(ranks, backend="gloo")
        self._first = rank // size * size
        self.leader = rank == self._first
        self.index = rank - self._first
        self.size = size

    def share(self, commands: Any) -> Any:
        """The leader's object, on every rank of the group."""
        box = [commands]
        dist.broadcast_object_list(box, src=self._first, group=self._group)  # type: ignore[arg-type]
        return box[0]

    def gather(self, mine: Any) -> list[Any]:
        """Every rank's object, in rank order."""
        everyone: list[Any] = [None] * self.size
        dist.all_gather_object(everyone, mine, group=self._group)  # type: ignore[arg-type]
        return everyone


class Generator:
    """A policy whose weights follow the model in training.

    Args:
        policy: What samples.
        push: Brings the model's present weights to the policy; collective.
        group: The tensor-parallel group, where one engine spans several ranks.
        apart: Whether the policy samples with weights and a device of its own, so that it may go on while the
            model trains.
    """

    def __init__(
        self,
        policy: Policy,
        push: Callable[[], None],
        group: TensorParallelGroup | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self.policy = policy
        self.group = group
        self.apart = apart
        self._push = push
        self._pushed: int | None = None

    def bring_up_to(self, version: int) -> None:
        """Push the weights unless the policy has those of this step already."""
        if self._pushed != version:
            self._push()
            self._pushed = version

    def collect(
        self, tasks: Sequence[Task], run: Callable[[Sequence[Task]], list[Trajectory]]
    ) -> list[Trajectory]:
        """Run the episodes of `tasks`; with tensor parallelism the leader runs those of its whole group."""
        if self.group is None:
            return run(tasks)
        shares = self.group.gather(list(tasks))
        everyone = self.lead(lambda: run([task for share in shares for task in share]))
        start = sum(len(share) for share in shares[: self.group.index])
        return everyone[start : start + len(tasks)]

    def collect_groups(self, collector: GroupCollector, groups: int) -> Collection:
        """Collect `groups` groups; with tensor parallelism the leader collects those of its whole group.

        Returns:
            This rank's groups; the counts are those of the whole group of ranks.
        """
        if self.group is None:
            return collector.collect(groups)
        size = self.group.size
        collection = self.lead(lambda: collector.collect(groups * size))
        start = self.group.index * groups * collector.group_size
        mine = collection.trajectories[start : start + groups * collector.group_size]
        return replace(collection, trajectories=mine)

    def lead(self, run: Callable[[], T]) -> T:
        """What `run` gives on the leader, on every rank of a tensor-parallel group.

        The other ranks step the engine with the leader meanwhile.
        """
        assert self.group is not None
        assert isinstance(self.policy, VLLMPolicy)
        result: T | BaseException
        if not self.group.leader:
            self.policy.follow()
            result = self.group.share(None)
            if isinstance(result, BaseException):
                raise result
            return result
        try:
            result = run()
            return result
        except BaseException as error:
            result = RuntimeError(f"the leading rank's rollout failed: {error!r}")
            raise
        finally:
            self.policy.dismiss()
            self.group.share(result)


def colocated(
    model: str | Path,
    renderer: ChatRenderer,
    options: VLLMOptions,
    weights: Weights,
    *,
    rank: int,
    local_rank: int,
    processes: int,
    images_per_prompt: int,
) -> Generator:
    """An engine in this process.

    Args:
        model: The folder or name that the trained model was loaded from.
        renderer: Of the model's chat template.
        options: How vLLM generates.
        weights: Walks the weights of the model in training.
        rank, local_rank, processes: Of this process.
        images_per_prompt: Most pictures of one episode.
    """
    from vllm import LLM

    # vLLM's external launcher reads what torchrun would have set
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=str(processes))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", _free_port())
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine's worker must be reachable
    group = TensorParallelGroup(options.tensor_parallel_size) if options.tensor_parallel_size > 1 else None
    with _left_over_memory_explained():
        llm = LLM(
            model=str(model),
            dtype=options.dtype,
            tensor_parallel_size=options.tensor_parallel_size,
            gpu_memory_utilization=options.gpu_memory_utilization,
            max_model_len=options.max_model_length,
            max_num_seqs=options.max_num_seqs,
            enable_sleep_mode=options.enable_sleep_mode,
            enforce_eager=options.enforce_eager,
            distributed_executor_backend="external_launcher",
            seed=rank // options.tensor_parallel_size,  # the ranks of one engine must sample alike
            logprobs_mode="processed_logprobs",
            limit_mm_per_prompt={"image": images_per_prompt, "video": 0},
            **whole_prompts_on_a_cpu(),
        )
    policy = VLLMPolicy(llm, renderer, sleep=options.enable_sleep_mode, lockstep=group)
    return Generator(policy, lambda: policy.update_weights(weights()), group)


def served(
    renderer: ChatRenderer, options: VLLMOptions, weights: Weights, folder: Path, *, main: bool
) -> Generator:
    """Servers that reload the weights from a folder that they can read.

    Args:
        renderer: Of the model's chat template.
        options: With `server_urls`.
        weights: Walks the weights of the model in training.
        folder: Where weights are left for the servers; emptied of the step before.
        main: Whether this rank saves them and tells the servers.
    """
    if not options.server_urls:
        raise ValueError(
            "vllm_mode: server needs vllm_server_base_url: one base URL, or several separated by commas"
        )
    policy = VLLMServerPolicy(options.server_urls, renderer)
    pushes = 0

    def push() -> None:
        nonlocal pushes
        if dist.is_initialized():
            dist.barrier()  # no rank is generating any more: a turn would be answered by mixed versions
        target = folder.resolve() / f"weights-{pushes}"
        kept = {}
        for name, tensor in weights():  # every rank takes part in gathering, one keeps what is gathered
            if main:
                kept[name] = tensor.detach().cpu().clone()
        if main:
            target.mkdir(parents=True, exist_ok=True)
            save_torch_state_dict(kept, str(target))
            asyncio.run(policy.update_weights_from_disk(target))
            shutil.rmtree(folder.resolve() / f"weights-{pushes - 1}", ignore_errors=True)
        if dist.is_initialized():
            dist.barrier()
        pushes += 1

    return Generator(policy, push, apart=True)


def generator_for(
    args: Any, rollout: Any, model: Any, renderer: ChatRenderer, weights: Weights, accelerator: Any
) -> Generator:
    """The generator that `vllm_mode` asks for.

    Args:
        args: TRL's configuration.
        rollout: A `RolloutConfig`.
        model: The model in training, for where it was loaded from.
        renderer: Of the model's chat template.
        weights: Walks the weights of the model in training.
        accelerator: Says which process this is.
    """
    options = options_of(
        args,
        dtype=rollout.vllm_dtype,
        enforce_eager=rollout.vllm_enforce_eager,
        max_num_seqs=rollout.max_batch,
    )
    if options.mode == "server":
        folder = Path(args.output_dir or ".") / "served-weights"
        return served(renderer, options, weights, folder, main=accelerator.is_main_process)
    return colocated(
        model.config._name_or_path,
        renderer,
        options,
        weights,
        rank=accelerator.process_index,
        local_rank=accelerator.local_process_index,
        processes=accelerator.num_processes,
        images_per_prompt=rollout.max_images,
    )


def options_of(args: Any, *, dtype: str, enforce_eager: bool, max_num_seqs: int) -> VLLMOptions:
    """From TRL's `vllm_*` arguments and what they lack."""
    return VLLMOptions(
        mode=args.vllm_mode,
        server_urls=_urls(args.vllm_server_base_url),
        gpu_memory_utilization=args.vllm_gpu_memory_utilization,
        tensor_parallel_size=args.vllm_tensor_parallel_size,
        max_model_length=args.vllm_max_model_length,
        max_num_seqs=max_num_seqs,
        enable_sleep_mode=args.vllm_enable_sleep_mode,
        dtype=dtype,
        enforce_eager=enforce_eager,
    )


def _urls(text: str | Sequence[str] | None) -> tuple[str, ...]:
    parts = text.split(",") if isinstance(text, str) else list(text or ())
    return tuple(part.strip() for part in parts if part.strip())


@contextlib.contextmanager
def _left_over_memory_explained() -> Iterator[None]:
    """Says what to do where vLLM on a CPU finds the shared memory of another tensor-parallel run."""
    try:
        yield
    except RuntimeError as error:
        if "SHMManager" not in str(error):
            raise
        raise RuntimeError(
            "vLLM on a CPU shares memory between its ranks under one fixed name, and another run has it: wait "
            "for that run, or, where it was killed, remove what it left: rm /dev/shm/-tp:*cpushm*"
        ) from error


def _free_port() -> str:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
