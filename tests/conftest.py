"""Shared fixtures: the real data beside the checkout, the real processor, the tiny model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `agents` and `train` run from the checkout, ahead of any installed namesake
    sys.path.insert(0, str(ROOT))

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the real Geometry3K and a real Qwen3-VL processor, beside the checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the real data in ../shared/data, which is not part of the project")
    return SHARED_DATA


@pytest.fixture(scope="session")
def qwen3_vl_processor(shared_data: Path):
    """The real Qwen3-VL processor (needs the extra `train`)."""
    transformers = pytest.importorskip("transformers")
    return transformers.AutoProcessor.from_pretrained(shared_data / "qwen3-vl-processor")
