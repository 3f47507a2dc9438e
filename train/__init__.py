"""Training on mm-gym's environments. Runs from a checkout: the wheel holds `mm_gym` alone.

openai-agents installs a package named `agents` too. When that one wins on `sys.path`, this says so at
once, in place of a puzzling ImportError later.
"""

from __future__ import annotations

from pathlib import Path

import agents

ROOT = Path(__file__).resolve().parents[1]

if ROOT not in Path(agents.__file__ or ".").resolve().parents:
    raise ImportError(
        f"`import agents` found {agents.__file__}, which is not mm-gym's ({ROOT / 'agents'}). "
        f"Put {ROOT} first on sys.path, or run from a venv without the other package."
    )
