"""Environments in workers: each in a daemon thread of its own, its calls under a time-out.

The host behind a thread is the environment itself, or a proxy to a child process or a Ray actor. Knows
time-outs, reuse and closing; not tokens, policies or retries. All methods are called from one event loop.

A hung thread can't be killed: it is abandoned and counted, and closes its environment if it ever comes
back. Environments that may hang run in processes, where the child is killed.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import gymnasium

from agents.env_host import EnvHost, EnvRecipe, Observed, Stepped
from mm_gym.errors import EnvironmentFailure

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Host(Protocol):
    """What a worker's thread calls; see `EnvHost`."""

    @property
    def deterministic(self) -> bool: ...
    def reset(self, seed: int | None, options: dict[str, Any]) -> Observed: ...
    def step(self, action: str, step_id: str) -> Stepped: ...
    def finish(self, stop_reason: str) -> tuple[float, dict[str, float]]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Timeouts:
    """Seconds that each call of an environment may take, from when its worker starts on it."""

    make: float = 120.0
    reset: float = 60.0
    step: float = 60.0
    finish: float = 60.0
    close: float = 10.0


class EnvWorker:
    """One environment and the thread that alone touches it.

    Args:
        make: Makes the host; called in the thread.
        grace: Seconds added to each time-out: a host that enforces time-outs itself goes first.
    """

    def __init__(self, make: Callable[[], Host], name: str, grace: float = 0.0) -> None:
        self.abandoned = False
        """Its thread hangs in a call."""
        self.host: Host | None = None
        self._over = False
        self._make = make
        self._grace = grace
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def broken(self) -> bool:
        """Whether no call will be answered any more: abandoned, closed, or its host is gone."""
        return self._over or bool(getattr(self.host, "broken", False))

    async def open(self, timeout: float) -> None:
        """Make the environment."""
        await self._submit(self._open, timeout, "make")

    async def reset(self, seed: int | None, options: dict[str, Any], timeout: float) -> Observed:
        return await self._call(lambda host: host.reset(seed, options), timeout, "reset")

    async def step(self, action: str, step_id: str, timeout: float) -> Stepped:
        return await self._call(lambda host: host.step(action, step_id), timeout, "step")

    async def finish(self, stop_reason: str, timeout: float) -> tuple[float, dict[str, float]]:
        return await self._call(lambda host: host.finish(stop_reason), timeout, "finish")

    async def close(self, timeout: float) -> None:
        """Close the environment, also one that is just being made, and end the thread."""
        if not self._over:
            try:
                await self._submit(self._close_host, timeout, "close")
            except EnvironmentFailure as failure:
                logger.warning("closing an environment failed: %s", failure)
        self._over = True
        self._jobs.put(None)

    @property
    def deterministic(self) -> bool:
        return self.host is not None and self.host.deterministic

    # -- inside ----------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.host = self._make()

    def _close_host(self) -> None:
        if self.host is not None:
            self.host.close()

    async def _call(self, call: Callable[[Host], T], timeout: float, what: str) -> T:
        host = self.host
        if host is None or self.broken:
            raise EnvironmentFailure("the worker is gone", kind="worker")
        if hasattr(host, "timeout"):
            host.timeout = timeout
        return await self._submit(lambda: call(host), timeout + self._grace, what)

    async def _submit(self, function: Callable[[], T], timeout: float, what: str) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = function()
            except BaseException as error:
                _deliver(loop, future, None, error)
            else:
                _deliver(loop, future, result, None)

        self._jobs.put(job)
        deadline = loop.call_later(timeout, self._abandon, future, what, timeout)
        try:
            return await future
        except (EnvironmentFailure, gymnasium.error.Error, ImportError):
            raise
        except Exception as error:
            raise EnvironmentFailure(
                f"{what}() raised {type(error).__name__}: {error}", kind="exception"
            ) from error
        finally:
            deadline.cancel()

    def _abandon(self, future: asyncio.Future[Any], what: str, timeout: float) -> None:
        if future.done():
            return
        self._over = self.abandoned = True
        self._jobs.put(None)
        future.set_exception(
            EnvironmentFailure(
                f"{what}() took more than {timeout:g} s and its thread was abandoned: raise the time-out, "
                'or run the environment with workers="process"',
                kind="timeout",
            )
        )

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        if self.abandoned:  # it came back after all
            self._close_host()


def _deliver(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed: nobody waits any more
        logger.debug("an environment answered after the engine was closed")


@dataclass
class PoolCounts:
    """What a pool has open and what it lost."""

    open: int = 0
    opened: int = 0
    """Environments made so far."""
    abandoned: int = 0
    """Threads left behind in a hung call, some of which may have come back."""


class EnvPool:
    """Environments, made when needed, reused between episodes, closed all at once.

    Args:
        host: Makes the host of a recipe: `EnvHost`, or a proxy class.
        timeouts: Of each call.
        max_open: Most environments open at once; an episode waits for one.
        grace: See `EnvWorker`.
    """

    def __init__(
        self,
        host: Callable[[EnvRecipe], Host] = EnvHost,
        timeouts: Timeouts | None = None,
        max_open: int = 256,
        grace: float = 0.0,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self.counts = PoolCounts()
        self.max_open = max_open
        self._host = host
        self._grace = grace
        self._idle: dict[str, list[EnvWorker]] = defaultdict(list)
        self._busy: set[EnvWorker] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    async def lease(self, recipe: EnvRecipe) -> EnvWorker:
        """An environment of this recipe for one episode.

        Raises:
            EnvironmentFailure: It could not be made.
            gymnasium.error.Error: The id is unknown, or a dependency is missing.
        """
        async with self._changed:
            while True:
                if self._idle[recipe.key]:
                    worker = self._idle[recipe.key].pop()
                    self._busy.add(worker)
                    return worker
                if self.counts.open < self.max_open or await self._close_idle():
                    break
                await self._changed.wait()
            self.counts.open += 1
            self.counts.opened += 1
        worker = EnvWorker(lambda: self._host(recipe), f"env-{self.counts.opened}", self._grace)
        self._busy.add(worker)
        try:
            await worker.open(self.timeouts.make)
        except BaseException:
            await self.release(worker, recipe, reusable=False)
            raise
        return worker

    async def release(self, worker: EnvWorker, recipe: EnvRecipe, *, reusable: bool = True) -> None:
        """Give an environment back; one that is broken or not reusable is closed."""
        if worker not in self._busy:
            return
        self._busy.discard(worker)
        if worker.broken or not reusable:
            await self._discard(worker)
        else:
            self._idle[recipe.key].append(worker)
        async with self._changed:
            self._changed.notify()

    async def close(self) -> None:
        """Close every environment, busy ones too."""
        workers = [*self._busy, *(w for idle in self._idle.values() for w in idle)]
        self._busy.clear()
        self._idle.clear()
        await asyncio.gather(*(self._discard(w) for w in workers))
        await asyncio.gather(*self._closing)  # what a cancelled episode was closing

    async def _discard(self, worker: EnvWorker) -> None:
        """Close a worker; goes on to its end also when the episode that waits for it is cancelled."""
        closing = asyncio.ensure_future(self._close_worker(worker))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)

    async def _close_worker(self, worker: EnvWorker) -> None:
        await worker.close(self.timeouts.close)
        self.counts.abandoned += worker.abandoned
        self.counts.open -= 1

    async def _close_idle(self) -> bool:
        for idle in self._idle.values():
            if idle:
                await self._discard(idle.pop())
                return True
        return False


def make_pool(
    workers: str | Callable[[EnvRecipe], Host], timeouts: Timeouts | None = None, max_open: int = 256
) -> EnvPool:
    """A pool whose environments live in threads, child processes or Ray actors.

    Args:
        workers: "thread", "process", "ray", or a function that makes the host of a recipe.
        timeouts: Of each call.
        max_open: Most environments open at once.

    Raises:
        ValueError: The name is unknown.
        DependencyNotInstalled: "ray" without Ray.
    """
    timeouts = timeouts or Timeouts()
    if workers == "thread":
        return EnvPool(EnvHost, timeouts, max_open)
    if workers == "process":
        from agents.env_process import EnvServer, ProcessHost

        server = EnvServer()
        return EnvPool(lambda r: ProcessHost(r, server, timeouts.make), timeouts, max_open, grace=_GRACE)
    if workers == "ray":
        from agents.env_ray import RayHost

        return EnvPool(lambda r: RayHost(r, timeouts.make), timeouts, max_open, grace=_GRACE)
    if isinstance(workers, str):
        raise ValueError(f'workers must be "thread", "process", "ray" or a function, got {workers!r}')
    return EnvPool(workers, timeouts, max_open, grace=_GRACE)


_GRACE = 5.0
