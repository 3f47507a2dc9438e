"""Memory that is freed, and that the C library keeps.

Knows the C library alone. glibc has arenas of its own for each thread, and keeps in them what is freed there:
rollouts of many threads, with tensors of ever other sizes, otherwise grow by gigabytes on a CPU.
"""

from __future__ import annotations

import ctypes


def give_back_freed_memory() -> None:
    """Return to the system what this process has freed; nothing where the C library can't (not glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
