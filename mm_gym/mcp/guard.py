"""Child processes that end with their parent, also when the parent is killed.

One small guard process per process of ours reads the process groups to watch from a pipe. When the pipe
closes, since its owner ended in whatever way, it ends the groups. Works on any POSIX system, reaches
grandchildren, and needs no code in the child. Knows nothing of MCP.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

from mm_gym.mcp.loop import on_fork

_SCRIPT = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for number in (signal.SIGTERM, signal.SIGKILL):
    for group in groups:
        try:
            os.killpg(group, number)
        except OSError:
            pass
    time.sleep(0.5 if groups else 0)
"""

_lock = threading.Lock()
_guard: subprocess.Popen[str] | None = None
_groups: set[int] = set()


def watch(group: int) -> None:
    """End process group `group` when this process ends."""
    with _lock:
        _groups.add(group)
        _tell(f"+{group}")


def unwatch(group: int) -> None:
    """Forget a group whose leader has been waited for: its number may be given anew."""
    with _lock:
        _groups.discard(group)
        _tell(f"-{group}")


def kill_group(group: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a group, if it still exists."""
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def _tell(line: str) -> None:
    global _guard
    if _guard is None or _guard.poll() is not None:
        _guard = subprocess.Popen(
            [sys.executable, "-S", "-I", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            start_new_session=True,  # a Ctrl-C for the parent must not end its guard
        )
        line = "\n".join([*(f"+{group}" for group in sorted(_groups)), line])
    assert _guard.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        _guard.stdin.write(line + "\n")
        _guard.stdin.flush()


def _forget() -> None:
    """In a forked child: let go of the parent's pipe, or its guard would wait for the child too."""
    global _guard, _groups, _lock
    _lock = threading.Lock()
    if _guard is not None and _guard.stdin is not None:
        with contextlib.suppress(OSError):
            os.close(_guard.stdin.fileno())
        _guard.returncode = 0  # not this process's child: nothing to wait for
        _leaked.append(_guard)  # its file object would close the number again, by then another's
    _guard = None
    _groups = set()


_leaked: list[subprocess.Popen[str]] = []
on_fork(_forget)
