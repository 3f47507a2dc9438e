"""Child processes that each serve one environment, forked from one small parent.

The parent (`python -m agents.env_server`) imports the environments' code once and stays single-threaded,
so that a fork is quick and safe whatever runs in the trainer (torch, CUDA, gRPC). It forks on demand and
kills on demand, and everything dies with the process that started it: its control socket closes, and the
kernel kills the children (PR_SET_PDEATHSIG) even in a hung step.

Knows hosts and sockets. See `env_process` for the other end.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import importlib
import os
import signal
import socket
import struct
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

FORK, KILL = b"F", b"K"
PID = struct.Struct("!i")
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve fork and kill requests on the control socket, whose descriptor is the first argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the engine's to handle
    children: set[int] = set()
    while True:
        request, descriptor = _receive(control)
        if not request:
            break
        if request[:1] == FORK and descriptor is not None:
            pid = _fork(control, descriptor)
            children.add(pid)
            control.sendall(PID.pack(pid))
        elif request[:1] == KILL:
            (pid,) = PID.unpack(request[1:])
            if pid in children:
                children.discard(pid)
                _kill(pid)
            control.sendall(PID.pack(pid))
    for pid in children:
        _kill(pid)


def _receive(control: socket.socket) -> tuple[bytes, int | None]:
    """A request of 1 + 4 bytes and the descriptor that came with it; empty at the end."""
    data, ancillary, _, _ = control.recvmsg(1 + PID.size, socket.CMSG_SPACE(array.array("i", [0]).itemsize))
    descriptors = array.array("i")
    for _, _, payload in ancillary:
        descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    return data, descriptors[0] if descriptors else None


def _fork(control: socket.socket, descriptor: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    code = 1
    try:
        control.close()
        os.setsid()  # so that what the environment starts is killed with it
        _die_with(parent)
        serve(Connection(descriptor))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies (Linux; elsewhere the socket's end tells)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the request took effect
            os._exit(1)


def _kill(pid: int) -> None:
    """Kill a child and what it started, and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # it may not have made its group yet
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def serve(connection: Connection) -> None:
    """Answer calls on one host until the connection closes.

    A request is `(method, arguments)`; the first is `("make", (recipe,))`. An answer is `(True, result)`
    or `(False, exception)`.
    """
    host: Any = None
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:
            break
        try:
            if method == "make":
                from agents.env_host import EnvHost

                host = EnvHost(*arguments)
                result = host.deterministic
            else:
                result = getattr(host, method)(*arguments)
        except Exception as error:
            _send(connection, (False, error))
        else:
            _send(connection, (True, result))
        if method == "close":
            break


def _send(connection: Connection, answer: tuple[bool, Any]) -> None:
    try:
        connection.send(answer)
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)
    except Exception as error:  # it does not pickle
        text = f"the environment's answer can't be sent to another process: {type(error).__name__}: {error}"
        connection.send((False, RuntimeError(text)))


if __name__ == "__main__":
    main()
