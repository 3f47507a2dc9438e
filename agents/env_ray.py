"""An environment in a Ray actor: the same host on any machine of a Ray cluster (extra `ray`).

Knows Ray and time-outs; not tokens or retries. The checkout must be importable on the cluster's machines
(`ray.init(runtime_env={"working_dir": ...})`). A call whose answer was lost may be repeated: the host
recognises the step's id.
"""

from __future__ import annotations

from typing import Any

from gymnasium.error import DependencyNotInstalled

from agents.env_host import EnvHost, EnvRecipe, Observed, Stepped
from mm_gym.errors import EnvironmentFailure


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DependencyNotInstalled(
            'environments as Ray actors need Ray: pip install "mm-gym[ray]"'
        ) from error
    return ray


class RayHost:
    """An `EnvHost` in a Ray actor; each call has a time-out, after which the actor is killed.

    `timeout` (seconds) is that of the next call; the worker sets it. Ray is initialised when it is not.

    Args:
        recipe: Of the environment.
        make_timeout: Seconds for the actor's start.
        num_cpus: What the actor asks of Ray's scheduler; environments mostly wait, so a fraction.
    """

    def __init__(self, recipe: EnvRecipe, make_timeout: float = 120.0, num_cpus: float = 0.01) -> None:
        ray = self._ray = _ray()
        if not ray.is_initialized():
            ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False)
        self.timeout = make_timeout
        self.broken = False
        actor = ray.remote(_Actor)
        self._actor = actor.options(num_cpus=num_cpus, max_restarts=0).remote(recipe)
        self.deterministic: bool = self._call("is_deterministic")

    def reset(self, seed: int | None, options: dict[str, Any]) -> Observed:
        return self._call("reset", seed, options)

    def step(self, action: str, step_id: str) -> Stepped:
        return self._call("step", action, step_id)

    def finish(self, stop_reason: str) -> tuple[float, dict[str, float]]:
        return self._call("finish", stop_reason)

    def close(self) -> None:
        """Close the environment and end its actor."""
        if not self.broken:
            try:
                self._call("close")
            finally:
                self._end()

    def _call(self, method: str, *arguments: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(getattr(self._actor, method).remote(*arguments), timeout=self.timeout)
        except errors.GetTimeoutError as error:
            self._end()
            raise EnvironmentFailure(
                f"{method}() took more than {self.timeout:g} s; its actor was killed", kind="timeout"
            ) from error
        except errors.RayActorError as error:
            self._end()
            raise EnvironmentFailure(
                f"the environment's actor died during {method}()", kind="worker_death"
            ) from error
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error  # noqa: B904

    def _end(self) -> None:
        self.broken = True
        self._ray.kill(self._actor)


class _Actor(EnvHost):
    """The host with its attribute as a method: an actor answers calls only."""

    def is_deterministic(self) -> bool:
        return self.deterministic
