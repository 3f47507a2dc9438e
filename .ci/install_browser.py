"""Find a Chromium for the computer-use tests, install it where that is possible, else say how.

Never fails: without a browser the tests marked `browser` are skipped, and this says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from gymnasium.error import DependencyNotInstalled

from mm_gym.computer.install import find_browser


def main() -> None:
    try:
        find_browser()
        return
    except DependencyNotInstalled:
        pass
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("installing chromium-headless-shell with apt-get ...", flush=True)
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "chromium-headless-shell"]):
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                print(result.stderr[-2000:], file=sys.stderr)
                break
    try:
        find_browser()
    except DependencyNotInstalled as missing:
        print(f"NO BROWSER: the computer-use tests will be skipped. {missing}")


if __name__ == "__main__":
    main()
