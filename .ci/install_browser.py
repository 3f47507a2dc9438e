"""Find a Chromium for the computer-use tests, install it where that is possible, else say how.

Never fails: without a browser the tests marked `browser` are skipped, and this says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

KNOWN = (
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def main() -> None:
    if any(Path(path).exists() for path in KNOWN) or os.environ.get("MM_GYM_BROWSER"):
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("installing chromium-headless-shell with apt-get ...", flush=True)
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "chromium-headless-shell"]):
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                print(result.stderr[-2000:], file=sys.stderr)
                break
        else:
            return
    print("NO BROWSER: the computer-use tests will be skipped. To mend it:")
    print("  Debian, Ubuntu: sudo apt-get install chromium-headless-shell   (or: chromium)")
    print("  Fedora:         sudo dnf install chromium-headless")
    print("  macOS:          brew install --cask chromium")


if __name__ == "__main__":
    main()
