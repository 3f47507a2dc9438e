"""What is freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent("""
    import threading
    from train.memory import give_back_freed_memory

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096 / 2**20

    def fill():
        # Too small to be mapped by themselves; one in a hundred stays, so that no heap can shrink from its end.
        blocks = [bytearray(60_000) for _ in range(1500)]
        kept.append(blocks[::100])

    kept = []
    threads = [threading.Thread(target=fill) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = resident()
    give_back_freed_memory()
    print(before, resident())
""")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_freed_memory_that_threads_keep_is_given_back():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    before, after = map(float, done.stdout.split())
    assert before > 200, "the C library kept what was freed"
    assert after < before - 150
