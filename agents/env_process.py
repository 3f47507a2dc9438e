"""An environment in a child process: a host that a worker's thread calls, and that can be killed.

Knows time-outs and processes; not tokens or retries. See `env_server` for the other end.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from agents.env_host import EnvRecipe, Observed, Stepped
from agents.env_server import FORK, KILL, PID
from mm_gym.errors import EnvironmentFailure


class EnvServer:
    """The process that environments are forked from; started with the first, ended with the last.

    Args:
        preload: Modules that every child finds imported.
    """

    def __init__(self, preload: tuple[str, ...] = ("mm_gym", "agents.env_host")) -> None:
        self._preload = preload
        self._lock = threading.Lock()
        self._users = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self) -> tuple[int, Connection]:
        """A new child: its process id and the connection to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            reply = self._request(FORK + PID.pack(0), theirs.fileno())
        self._users += 1
        return reply, Connection(ours.detach())

    def kill(self, pid: int) -> None:
        """Kill a child and everything that it started."""
        self._request(KILL + PID.pack(pid))
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._stop()

    def _request(self, request: bytes, descriptor: int | None = None) -> int:
        with self._lock:
            control = self._control or self._start()
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor or 0]))]
            try:
                control.sendmsg([request], rights if descriptor is not None else [])
                reply = control.recv(PID.size, socket.MSG_WAITALL)
            except OSError:
                reply = b""
            if len(reply) != PID.size:
                self._stop()
                raise EnvironmentFailure("the process that forks environments died", kind="worker")
            return int(PID.unpack(reply)[0])

    def _start(self) -> socket.socket:
        self._control, theirs = socket.socketpair()
        paths = [p for p in sys.path if p]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        environment.setdefault("OMP_NUM_THREADS", "1")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "agents.env_server", str(theirs.fileno()), *self._preload],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.wait()
            self._process = None


class ProcessHost:
    """An `EnvHost` in a child process; each call has a time-out, after which the child is killed.

    `timeout` (seconds) is that of the next call; the worker sets it.
    """

    def __init__(self, recipe: EnvRecipe, server: EnvServer, make_timeout: float = 120.0) -> None:
        self.timeout = make_timeout
        self._server = server
        self.pid, self._connection = server.fork()
        self._alive = True
        self.deterministic: bool = self._call("make", recipe)

    @property
    def broken(self) -> bool:
        """Whether the child is gone."""
        return not self._alive

    def reset(self, seed: int | None, options: dict[str, Any]) -> Observed:
        return self._call("reset", seed, options)

    def step(self, action: str, step_id: str) -> Stepped:
        return self._call("step", action, step_id)

    def finish(self, stop_reason: str) -> tuple[float, dict[str, float]]:
        return self._call("finish", stop_reason)

    def close(self) -> None:
        """Close the environment and end its process."""
        if self._alive:
            try:
                self._call("close")
            finally:
                self._end()

    def _call(self, method: str, *arguments: Any) -> Any:
        if not self._alive:
            raise EnvironmentFailure("the environment's process is gone", kind="worker_death")
        try:
            self._connection.send((method, arguments))
            if not self._connection.poll(self.timeout):
                self._end()
                raise EnvironmentFailure(
                    f"{method}() took more than {self.timeout:g} s; its process was killed", kind="timeout"
                )
            succeeded, result = self._connection.recv()
        except (EOFError, OSError) as error:
            self._end()
            raise EnvironmentFailure(
                f"the environment's process died during {method}()", kind="worker_death"
            ) from error
        if not succeeded:
            raise result
        return result

    def _end(self) -> None:
        if self._alive:
            self._alive = False
            with contextlib.suppress(OSError):
                self._connection.close()
            self._server.kill(self.pid)
