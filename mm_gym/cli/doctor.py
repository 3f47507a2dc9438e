"""`mm-gym doctor`: what is installed, what is missing or shadowed, and the command that mends it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import typer
from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table

from mm_gym.cli.listing import describe
from mm_gym.registry import IDS

_SKIPPED_EXTRAS = ("all", "test")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    area: str
    name: str
    state: str
    """"ok", "missing" (an option that is not there) or "broken" (something that will not work)."""
    detail: str = ""
    remedy: str = ""


def doctor(as_json: bool = typer.Option(False, "--json", help="Print JSON for scripts.")) -> None:
    """Look at what is installed, missing or shadowed. Exit code 1 when something is broken."""
    findings = [*_python(), *_packages(), *_checkout(), *_accelerator(), *_environments()]
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(1)


def _python() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return [Finding("python", version, "ok")]
    return [Finding("python", version, "broken", "needs 3.11 to 3.13", "make a venv with python3.12, say")]


def _packages() -> list[Finding]:
    """One finding a requirement of the package and of its extras."""
    findings = []
    for line in metadata.requires("mm-gym") or []:
        requirement = Requirement(line)
        extra = _extra(requirement)
        if extra in _SKIPPED_EXTRAS or requirement.name == "mm-gym":
            continue
        findings.append(_package(requirement, extra))
    return findings


def _extra(requirement: Requirement) -> str:
    marker = requirement.marker
    if marker is None:
        return ""
    extras = metadata.metadata("mm-gym").get_all("Provides-Extra") or []
    return next((extra for extra in extras if marker.evaluate({"extra": extra})), "")


def _package(requirement: Requirement, extra: str) -> Finding:
    area = f"extra {extra}" if extra else "base"
    remedy = f'pip install "mm-gym[{extra}]"' if extra else "pip install --force-reinstall mm-gym"
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return Finding(area, requirement.name, "missing" if extra else "broken", "not installed", remedy)
    if not requirement.specifier.contains(version, prereleases=True):
        detail = f"{version} is installed, {requirement.specifier} is needed"
        return Finding(
            area,
            requirement.name,
            "broken",
            detail,
            f'pip install "{requirement.name}{requirement.specifier}"',
        )
    return Finding(area, requirement.name, "ok", version)


def _checkout() -> list[Finding]:
    """Whether `agents` and `train` are ours: other packages are called so too."""
    from mm_gym.cli import checkout

    root = checkout()
    if root is None:
        detail = "installed from a wheel: agents and train run from a checkout"
        return [
            Finding(
                "checkout",
                "agents, train",
                "missing",
                detail,
                'clone the project and pip install -e ".[train]"',
            )
        ]
    findings = []
    for name in ("agents", "train"):
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).parent if spec and spec.origin else None
        if origin == root / name:
            findings.append(Finding("checkout", name, "ok", str(origin)))
        else:
            detail = f"import {name} gives {origin}, which shadows {root / name}"
            remedy = f"run from the checkout, or put {root} first on PYTHONPATH"
            findings.append(Finding("checkout", name, "broken", detail, remedy))
    return findings


def _accelerator() -> list[Finding]:
    if importlib.util.find_spec("torch") is None:
        return []
    code = (
        "import torch; n = torch.cuda.device_count(); "
        "names = ', '.join(torch.cuda.get_device_name(i) for i in range(n)); "
        "print(torch.__version__, names or 'no GPU: CPU only')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    if result.returncode:
        detail = result.stderr.strip().splitlines()[-1:]
        remedy = "install torch and torchvision together, by version"
        return [Finding("torch", "import", "broken", " ".join(detail), remedy)]
    return [Finding("torch", "device", "ok", result.stdout.strip())]


def _environments() -> list[Finding]:
    rows = map(describe, IDS)
    return [
        Finding("environment", str(r["id"]), "ok" if r["ready"] else "missing", "", str(r["missing"]))
        for r in rows
    ]


def _print(findings: list[Finding]) -> None:
    colours = {"ok": "green", "missing": "yellow", "broken": "red"}
    table = Table("area", "what", "state", "detail", "to mend it")
    for f in findings:
        state = f"[{colours[f.state]}]{f.state}[/]"
        table.add_row(f.area, f.name, state, f.detail, f.remedy if f.state != "ok" else "")
    Console().print(table)
