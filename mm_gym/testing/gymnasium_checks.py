"""Checks of what Gymnasium does with an environment, and of growth over many resets."""

from __future__ import annotations

import contextlib
import functools
import gc
import pickle
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from mm_gym.testing.common import Make, assert_same_observation, episode, opened


def gymnasiums_check_env_passes(make: Make) -> None:
    """`gymnasium.utils.env_checker.check_env` on the bare environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = make(render_mode="rgb_array")
        try:
            # its render check makes environments through the spec, which a factory's need not have
            check_env(env.unwrapped, skip_render_check=env.unwrapped.spec is None)
        finally:
            env.close()


def the_constructor_starts_nothing(make: Make) -> None:
    """No thread and no process before the first reset, so that vector environments may fork."""
    make().close()  # imports have happened
    before = _running()
    with opened(make):
        started = _running() - before
    assert not started, f"the constructor started {started}"


def _running() -> set[str]:
    """The threads and child processes there are."""
    children = {f"process {child.pid} {child.name()}" for child in _process().children(recursive=True)}
    return children | {f"thread {thread.ident} {thread.name}" for thread in threading.enumerate()}


def a_fresh_environment_pickles(make: Make) -> None:
    """And its copy plays the same episode."""
    with opened(make) as env:
        copy = pickle.loads(pickle.dumps(env.unwrapped))
        try:
            assert_same_observation(env.reset(seed=5)[0], copy.reset(seed=5)[0])
        finally:
            copy.close()


def rendering_has_one_size(make: Make) -> None:
    """`render` gives uint8 (H, W, 3), of one size within an episode, and nothing without a mode."""
    env = make(render_mode="rgb_array")
    try:
        shapes = set()
        for _ in episode(env, 0):
            frame: Any = env.render()
            assert isinstance(frame, np.ndarray), f"a frame must be an array, got {type(frame).__name__}"
            assert frame.dtype == np.uint8, f"a frame must be uint8, got {frame.dtype}"
            assert frame.shape[2:] == (3,), f"a frame must be (H, W, 3), got {frame.shape}"
            shapes.add(frame.shape)
        assert len(shapes) == 1, f"frames of the shapes {shapes} in one episode"
    finally:
        env.close()
    with opened(make) as env:
        env.reset(seed=0)
        assert env.unwrapped.render() is None, "a frame without a render mode"


def it_records_a_video(make: Make) -> None:
    """`gymnasium.wrappers.RecordVideo` writes a file (needs the package moviepy)."""
    from gymnasium.wrappers import RecordVideo

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = RecordVideo(make(render_mode="rgb_array"), folder, episode_trigger=lambda _: True)
        try:
            for _ in episode(env, 0):
                pass
        finally:
            env.close()
        assert any(file.stat().st_size for file in Path(folder).glob("*.mp4")), "no video was written"


def sync_vector_environments_work(make: Make) -> None:
    """`SyncVectorEnv` of two resets and steps as two environments do."""
    _compare_vector(make, lambda makers: SyncVectorEnv(makers))


def async_vector_environments_work_forked(make: Make) -> None:
    """`AsyncVectorEnv(shared_memory=False)` with forked workers."""
    _compare_vector(make, lambda makers: AsyncVectorEnv(makers, shared_memory=False, context="fork"))


def async_vector_environments_work_spawned(make: Make) -> None:
    """`AsyncVectorEnv(shared_memory=False)` with spawned workers."""
    _compare_vector(make, lambda makers: AsyncVectorEnv(makers, shared_memory=False, context="spawn"))


def _compare_vector(make: Make, make_vector: Callable[[Any], Any]) -> None:
    makers = [functools.partial(make), functools.partial(make)]
    with opened(make) as env, contextlib.closing(make_vector(makers)) as vector:
        observations, infos = vector.reset(seed=[3, 4])
        for index, seed in enumerate((3, 4)):
            observation, info = env.reset(seed=seed)
            assert_same_observation(_at(observations, index), observation)
            assert infos["task_id"][index] == info["task_id"], "another task in the vector environment"
        observations, rewards, *_ = vector.step(("no call", "and no answer"))
        assert len(rewards) == 2, f"{len(rewards)} rewards of two environments"
        observation, *_ = env.step("and no answer")
        assert_same_observation(_at(observations, 1), observation)


def _at(batch: dict[str, Any], index: int) -> dict[str, Any]:
    return {key: value[index] for key, value in batch.items()}


def many_resets_do_not_grow(make: Make, resets: int = 50, megabytes: float = 48.0) -> None:
    """Memory, threads, child processes and open files stay as they were after the first episodes.

    Args:
        make: The factory.
        resets: Episodes: one step each, then the next reset.
        megabytes: Growth of the resident memory that is still allowed (allocators keep some).
    """
    with opened(make) as env:
        _reset_and_step(env, range(10))
        counts, memory = _resources()
        _reset_and_step(env, range(resets))
        counts_after, memory_after = _resources()
    names = "threads, open files, child processes"
    assert all(a <= b + 2 for a, b in zip(counts_after, counts, strict=True)), (
        f"{resets} resets: {names} grew from {counts} to {counts_after}"
    )
    grown = memory_after - memory
    assert grown <= megabytes, f"{resets} resets grew the memory by {grown:.0f} MiB"


def _reset_and_step(env: gymnasium.Env[dict[str, Any], str], seeds: range) -> None:
    for seed in seeds:
        env.reset(seed=seed)
        env.step("no call and no answer")


def _resources() -> tuple[tuple[int, int, int], float]:
    """(threads, open files, child processes), and the resident memory in MiB."""
    gc.collect()
    process = _process()
    counts = (process.num_threads(), process.num_fds(), len(process.children(recursive=True)))
    return counts, process.memory_info().rss / 2**20


def _process() -> Any:
    try:
        import psutil
    except ImportError:
        raise DependencyNotInstalled("this check reads psutil: pip install 'mm-gym[test]'") from None
    return psutil.Process()
