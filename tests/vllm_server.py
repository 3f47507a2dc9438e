"""A real vLLM server on the CPU, in a process of its own, for the tests that need one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "OMP_NUM_THREADS": "1",
}


@contextlib.contextmanager
def vllm_server(model: Path, *, window: int = 2048, images: int = 8) -> Iterator[str]:
    """Serve `model` as "tiny", with the token endpoint and the weight endpoints; yields the base URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model), "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)),
        *("--dtype", "float32", "--max-model-len", str(window), "--enforce-eager", "--max-num-seqs", "8"),
        *("--limit-mm-per-prompt", f'{{"image": {images}, "video": 0}}', "--enable-scale-out"),
        *("--logprobs-mode", "processed_logprobs"),
    ]
    environment = {**os.environ, **SETTINGS, "VLLM_SERVER_DEV_MODE": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryFile() as log:  # a pipe that nobody reads would fill up and stop the server
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_the_parent,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_up(url, process, log)
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end_with_the_parent() -> None:
    """The kernel ends the server when the test run is killed, whose `finally` does not run then."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: object) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            raise RuntimeError(f"the vLLM server ended: {log.read().decode()[-3000:]}")
        try:
            urllib.request.urlopen(url + "/health", timeout=2)
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError("the vLLM server did not come up in 240 s")
