"""Runs the benchmarks one after another and sums up: `make bench`, or some of them by name.

    python tests/benchmarks/run.py            # all bench_*.py of this folder
    python tests/benchmarks/run.py chaos mcp  # bench_chaos.py and bench_mcp.py

Each is a script of its own that prints its table and exits with 0 when what it promises holds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


def chosen(names: Sequence[str]) -> list[Path]:
    """The scripts of these names, or all.

    Raises:
        SystemExit: A name fits no script.
    """
    scripts = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
    unknown = [name for name in names if name not in scripts]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(scripts)}")
    return [scripts[name] for name in names] or list(scripts.values())


def main(names: Sequence[str]) -> int:
    """Run the chosen scripts; returns how many failed."""
    outcomes = []
    for script in chosen(names):
        print(f"\n== {script.stem} ==", flush=True)
        started = time.perf_counter()
        code = subprocess.run([sys.executable, str(script)], check=False).returncode
        outcomes.append((script.stem, code, time.perf_counter() - started))
    print("\n== summary ==")
    for name, code, seconds in outcomes:
        print(f"{name:<32}{'ok' if code == 0 else f'exit status {code}':<16}{seconds:>8.0f} s")
    return sum(code != 0 for _, code, _ in outcomes)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
