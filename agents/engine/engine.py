"""`RolloutEngine`: tasks in, trajectories out.

Runs an event loop in a thread of its own, so that episodes and environments outlive one call and the
caller may be synchronous. Knows episodes, groups and failures; not what a trainer does with them.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from agents.drift import audit
from agents.engine.config import Budgets, GroupPolicy, RetryPolicy
from agents.engine.context import EpisodeContext, Rollout
from agents.engine.loop import run_episode
from agents.engine.seeds import turn_seed
from agents.engine.session import EnvSession
from agents.engine.stream import MessageStream, Stream, TokenStream
from agents.env_host import EnvRecipe
from agents.types import EpisodePolicy, GenerationFailure, Policy, SamplingParams, Task, Trajectory
from agents.workers import EnvPool, Host, Timeouts, make_pool
from mm_gym.errors import EnvironmentFailure
from mm_gym.stop import StopReason

logger = logging.getLogger(__name__)
T = TypeVar("T")


class RolloutEngine:
    """Runs episodes, many at once.

    Args:
        policy: Who answers. With an `EpisodePolicy` the trajectories hold messages and no tokens.
        renderer: Turns messages into ids; default the policy's own (`policy.renderer`).
        budgets: Limits of each episode.
        sampling: How the policy samples. Stop and banned ids that are not given are the renderer's.
        retries: How much failure an episode survives.
        groups: What becomes of a group that lost one.
        workers: Where environments live: "thread", "process", "ray", or a function from recipe to host.
        timeouts: Of each call of an environment.
        max_open: Most environments open at once.
        seed: Of the random streams of sampling.
        rollout: The function that runs one episode, or its dotted path ("package.module:function").
        on_trajectory: Called with each episode when it ends, in a thread (`TrajectoryStore.append`).
        audit_share: Share of the episodes whose stream is compared with a full render; the differences
            go into their metrics as `drift_<kind>`.

    Example: `RolloutEngine(TransformersPolicy(model, processor)).collect([Task("mm_gym/Pointing-v0")])`
    """

    def __init__(
        self,
        policy: Policy | EpisodePolicy,
        renderer: Any = None,
        *,
        budgets: Budgets | None = None,
        sampling: SamplingParams | None = None,
        retries: RetryPolicy | None = None,
        groups: GroupPolicy | None = None,
        workers: str | Callable[[EnvRecipe], Host] = "thread",
        timeouts: Timeouts | None = None,
        max_open: int = 256,
        seed: int = 0,
        rollout: str | Rollout = run_episode,
        on_trajectory: Callable[[Trajectory], None] | None = None,
        audit_share: float = 0.0,
    ) -> None:
        self.policy = policy
        self.renderer: Any = renderer if renderer is not None else getattr(policy, "renderer", None)
        self.budgets = budgets or Budgets()
        self.sampling = _complete(sampling or SamplingParams(), self.renderer)
        self.retries = retries or RetryPolicy()
        self.groups = groups or GroupPolicy()
        self.seed = seed
        self.rollout = _resolve(rollout)
        self.on_trajectory = on_trajectory
        self.audit_share = audit_share
        self._loop = _LoopThread()
        self._pool = self._loop.run(_make_pool(workers, timeouts, max_open))
        self._gate = self._loop.run(_open_gate())
        self._turnstile = self._loop.run(_make_lock())
        self._running: set[EpisodeContext] = set()
        self._counter = 0
        self._closed = False
        weakref.finalize(self, _close_all, self._loop, self._pool)

    # -- the interface ---------------------------------------------------------------------------------

    def collect(self, tasks: Sequence[Task]) -> list[Trajectory]:
        """Run an episode of each task.

        Args:
            tasks: Those with equal `group` form a group.

        Returns:
            One trajectory a task, in the tasks' order. A lost one is `masked`, as are, unless
            `groups.keep_survivors`, the others of its group.

        Raises:
            gymnasium.error.Error: A task's environment can't be made here.
            Exception: What a policy or a rollout function raised that is no failure of a back end; all
                environments are closed then, as at Ctrl-C.
        """
        return self.wait(self.submit(tasks))

    async def acollect(self, tasks: Sequence[Task]) -> list[Trajectory]:
        """`collect` for a caller with an event loop of its own."""
        return await asyncio.wrap_future(self.submit(tasks))

    def submit(self, tasks: Sequence[Task]) -> Future[list[Trajectory]]:
        """Begin to collect; the future holds what `collect` returns. Collections run one after another."""
        return self.run_exclusively(lambda: self._collect(list(tasks)))

    @property
    def open_environments(self) -> int:
        """Environments that are open now, idle ones included."""
        return self._pool.counts.open

    @property
    def abandoned_threads(self) -> int:
        """Threads left behind in a hung environment since the engine was made."""
        return self._pool.counts.abandoned

    def close_environments(self) -> None:
        """Close every environment once nothing collects any more; the next collection makes new ones."""
        self._loop.run(self._close_environments())

    def close(self) -> None:
        """Close every environment and the event loop. Safe to call twice."""
        if not self._closed:
            self._closed = True
            _close_all(self._loop, self._pool)

    def __enter__(self) -> RolloutEngine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- for schedulers such as GroupCollector ---------------------------------------------------------

    def run_exclusively(
        self, make: Callable[[], Coroutine[Any, Any, T]], *, generates: bool = True
    ) -> Future[T]:
        """Run a coroutine on the engine's loop while nothing else collects.

        Args:
            make: Makes the coroutine.
            generates: Whether it needs the policy started.
        """
        if self._closed:
            raise RuntimeError("the engine is closed: make a new one")
        return self._loop.submit(self._exclusively(make, generates))

    def wait(self, future: Future[T]) -> T:
        """The future's result; at any exception, Ctrl-C too, it is cancelled and all environments closed."""
        try:
            return future.result()
        except BaseException:
            future.cancel()
            self.close_environments()
            raise

    def new_gate(self) -> asyncio.Event:
        """A gate, open at first, that episodes pass before each turn."""
        return self._loop.run(_open_gate())

    def begin(self, task: Task, sample: int, gate: asyncio.Event) -> asyncio.Task[Trajectory]:
        """Start an episode on the engine's loop (to be called there); it outlives the collection."""
        return asyncio.ensure_future(self._sample(task, sample, gate))

    def interrupt(self, gate: asyncio.Event) -> None:
        """Stop the turns that are being sampled behind a closed gate (to be called on the engine's loop)."""
        for context in self._running:
            if context.gate is gate:
                context.interrupt()

    def finish_groups(self, trajectories: Sequence[Trajectory]) -> None:
        """Do to whole groups what `groups` says about losses, and say what was lost."""
        lost = sum(t.masked for t in trajectories)
        if not lost:
            return
        if not self.groups.keep_survivors:
            drop_broken_groups(trajectories)
        failures: Counter[str] = Counter()
        for trajectory in trajectories:
            if trajectory.masked:
                failures.update(trajectory.failures)
        kinds = ", ".join(f"{kind} {count}" for kind, count in failures.most_common())
        logger.warning("%d of %d episodes were lost to failures: %s", lost, len(trajectories), kinds)

    # -- collecting ------------------------------------------------------------------------------------

    async def _exclusively(self, make: Callable[[], Coroutine[Any, Any, T]], generates: bool) -> T:
        async with self._turnstile:
            if generates:
                await self.policy.start()
            try:
                return await make()
            except BaseException:
                await self._pool.close()
                raise
            finally:
                if generates:
                    await self.policy.stop()

    async def _close_environments(self) -> None:
        async with self._turnstile:  # what was cancelled has cleaned up by then
            await self._pool.close()

    async def _collect(self, tasks: list[Task]) -> list[Trajectory]:
        trajectories = await _all(self._sample(task, n, self._gate) for task, n in _numbered(tasks))
        self.finish_groups(trajectories)
        return trajectories

    async def _sample(self, task: Task, sample: int, gate: asyncio.Event) -> Trajectory:
        """One episode; begun afresh after a loss as often as the group's policy allows."""
        failures: Counter[str] = Counter()
        for attempt in range(self.groups.refills + 1):
            trajectory = await self._episode(task, sample, attempt, gate)
            if not trajectory.masked:
                break
            if attempt < self.groups.refills:
                failures.update(trajectory.failures)
        for kind, count in failures.items():
            trajectory.failures[kind] = trajectory.failures.get(kind, 0) + count
        return trajectory

    async def _episode(self, task: Task, sample: int, attempt: int, gate: asyncio.Event) -> Trajectory:
        self._counter += 1
        name = f"{self._counter}-{task.env_id}-{task.group}-{sample}"
        session = EnvSession(self._pool, task, self.retries, name, self.budgets.max_turns)
        context = EpisodeContext(
            task,
            sample,
            attempt,
            session=session,
            stream=self._stream(task, name, interruptible=gate is not self._gate),
            budgets=self.budgets,
            retries=self.retries,
            seed=self.seed,
            gate=gate,
        )
        self._running.add(context)
        try:
            await self.rollout(context)
        except EnvironmentFailure as failure:
            context.lose(StopReason.ENV_FAILURE, failure)
        except GenerationFailure as failure:
            context.lose(StopReason.GENERATION_FAILURE, failure)
        finally:
            self._running.discard(context)
            await session.close()
        trajectory = context.seal()
        if trajectory.turns and self._is_audited(task, sample):
            drift = await asyncio.to_thread(audit, trajectory, self.renderer)
            trajectory.metrics |= {f"drift_{kind}": count for kind, count in drift.items()}
        if self.on_trajectory is not None:
            await asyncio.to_thread(self.on_trajectory, trajectory)
        return trajectory

    def _is_audited(self, task: Task, sample: int) -> bool:
        if isinstance(self.policy, EpisodePolicy):
            return False
        return turn_seed(self.seed, task, sample, 0, -1) < self.audit_share * 2**63

    def _stream(self, task: Task, name: str, *, interruptible: bool) -> Stream:
        if isinstance(self.policy, EpisodePolicy):
            return MessageStream(self.policy, task, self.budgets)
        return TokenStream(
            self.policy,
            self.renderer,
            task,
            name,
            self.budgets,
            self.sampling,
            interruptible=interruptible,
        )


def drop_broken_groups(trajectories: Sequence[Trajectory]) -> None:
    """Mask the survivors of groups that lost an episode: a baseline over the rest would be biased."""
    broken = {t.task.group for t in trajectories if t.masked and t.task is not None}
    for trajectory in trajectories:
        if not trajectory.masked and trajectory.task is not None and trajectory.task.group in broken:
            trajectory.masked, trajectory.reward = True, None
            trajectory.failures["group_dropped"] = trajectory.failures.get("group_dropped", 0) + 1


def _numbered(tasks: Sequence[Task]) -> list[tuple[Task, int]]:
    """Each task with its number within its group."""
    seen: Counter[int] = Counter()
    numbered = []
    for task in tasks:
        numbered.append((task, seen[task.group]))
        seen[task.group] += 1
    return numbered


async def _all(coroutines: Any) -> list[Any]:
    """Results in order; the first exception cancels the rest and waits for them."""
    tasks = [asyncio.ensure_future(c) for c in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException as error:
        if not isinstance(error, asyncio.CancelledError):  # else they are cancelled, and are cleaning up
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _complete(sampling: SamplingParams, renderer: Any) -> SamplingParams:
    """The parameters with the template's stop and banned ids where none are given."""
    if renderer is None:
        return sampling
    return replace(
        sampling,
        stop_token_ids=sampling.stop_token_ids or tuple(renderer.stop_token_ids),
        banned_token_ids=sampling.banned_token_ids or tuple(renderer.banned_token_ids),
    )


def _resolve(rollout: str | Rollout) -> Rollout:
    if not isinstance(rollout, str):
        return rollout
    module, _, name = rollout.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"no rollout function {rollout!r}: {error}. Write package.module:function"
        ) from error


async def _make_pool(
    workers: str | Callable[[EnvRecipe], Host], timeouts: Timeouts | None, max_open: int
) -> EnvPool:
    return make_pool(workers, timeouts, max_open)


async def _open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def _make_lock() -> asyncio.Lock:
    return asyncio.Lock()


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rollout-engine", daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.submit(coroutine).result()

    def stop(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _close_all(loop: _LoopThread, pool: EnvPool) -> None:
    """Close environments and loop; also what runs when an engine is dropped or the interpreter ends."""
    if loop._loop.is_closed():
        return
    loop.run(pool.close())
    loop.stop()
