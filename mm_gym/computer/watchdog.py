"""Runs one browser and outlives nobody: a small process between ours and the browser's.

`python -I -S watchdog.py PROFILE LIFELINE_FD READ_FD WRITE_FD USER PROGRAM ARGS...`

It starts PROGRAM (as USER, unless that is "") in a process group of its own with the debugging pipe on
descriptors 3 and 4, and ends it and removes PROFILE as soon as the browser exits, the lifeline closes, or the
parent process dies, however that happened (SIGKILL too). If the watchdog itself is killed, Linux kills the
browser (PR_SET_PDEATHSIG).
Knows nothing of the protocol. Standard library only: it starts in about 15 ms.
"""

import contextlib
import ctypes
import fcntl
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys

POLL_SECONDS = 0.5  # how soon the parent's death is seen when a forked sibling still holds the lifeline


def _prepare_child(user: str) -> None:
    """In the child, before exec: a process group of its own, no privileges, death with the watchdog."""
    os.setpgid(0, 0)
    if user:
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
        os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main(profile: str, lifeline: int, read_fd: int, write_fd: int, user: str, command: "list[str]") -> None:
    """Start the browser and wait for a reason to end it."""
    parent = os.getppid()
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle; its end ends us
    lifeline, read_fd, write_fd = (_moved(fd) for fd in (lifeline, read_fd, write_fd))
    os.dup2(read_fd, 3)
    os.dup2(write_fd, 4)
    try:
        browser = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=profile,
            pass_fds=(3, 4),
            preexec_fn=lambda: _prepare_child(user),  # safe: there are no threads here
        )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(profile, ignore_errors=True)
        sys.exit(f"{command[0]} cannot be run: {error}")
    for fd in (3, 4, read_fd, write_fd):
        os.close(fd)
    try:
        while browser.poll() is None and os.getppid() == parent:
            if select.select([lifeline], [], [], POLL_SECONDS)[0] and not os.read(lifeline, 1):
                break
    finally:
        _end(browser)
        shutil.rmtree(profile, ignore_errors=True)


def _moved(fd: int) -> int:
    """The same file on a descriptor out of the way of 3 and 4."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved


def _end(browser: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
        os.killpg(browser.pid, signal.SIGKILL)
    browser.wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6:])
