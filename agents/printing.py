"""Evaluations, comparisons and audits as tables for a terminal. Knows rich and the figures; prints only."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents.evaluation import Comparison, Figures
from agents.evaluation.figures import Share
from agents.hacking import Audit


def print_figures(console: Console, figures: Figures, title: str) -> None:
    """One row a figure."""
    table = Table("figure", title=escape(title), title_justify="left")
    table.add_column("value", justify="right")
    for name, value in _rows(figures).items():
        table.add_row(name, value)
    console.print(table)


def _rows(f: Figures) -> dict[str, str]:
    rows = {
        "success": _share(f.success),
        **{f"pass@{k}": _share(share) for k, share in f.pass_at.items()},
        "episodes (tasks)": f"{f.episodes} ({f.tasks})",
        "lost to failures of ours": str(f.lost),
        "mean reward": f"{f.reward:.3f}",
        "turns": f"{f.turns:.2f}",
        "tool calls": f"{f.tool_calls:.2f}",
        "episodes with a tool call": f"{f.episodes_with_tools:.1%}",
        **{f"  {name}": str(count) for name, count in f.tools.items()},
        "failed calls": str(f.failed_calls),
        "turns with a mistake": str(f.mistakes),
        "pictures (after turn 1)": f"{f.images:.2f} ({f.late_images:.2f})",
        "prompt tokens": f"{f.prompt_tokens:.1f}",
        "sampled tokens": f"{f.sampled_tokens:.1f}",
        "seconds": f"{f.seconds:.2f}",
    }
    if f.cost is not None:
        rows["cost of all"] = f"{f.cost:.4f}"
    return rows | {f"stop: {reason}": str(count) for reason, count in f.stop_reasons.items()}


def _share(share: Share) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def print_comparison(console: Console, c: Comparison, a: str, b: str) -> None:
    """A, B and their difference."""
    table = Table("paired by task", title=f"{c.tasks} tasks in both", title_justify="left")
    table.add_column("value", justify="right")
    table.add_row(f"A: {escape(a)}", f"{c.a:.1%}")
    table.add_row(f"B: {escape(b)}", f"{c.b:.1%}")
    table.add_row("B - A", f"{c.difference:+.1%} ({c.low:+.1%} to {c.high:+.1%})")
    table.add_row("tasks that A / B solves more often", f"{c.only_a} / {c.only_b}")
    if c.p_value is not None:
        table.add_row("McNemar's exact test", f"p = {c.p_value:.4f}")
    table.add_row("tasks that only one has", str(c.unpaired))
    console.print(table)
    console.print(f"interval: 95%, {c.method}", style="dim")


def print_audit(console: Console, audit: Audit) -> None:
    """What earns reward, and the hints."""
    table = Table(f"{audit.episodes} episodes", title="What earns reward", title_justify="left")
    for column in ("with", "success", "reward", "without", "success", "reward"):
        table.add_column(column, justify="right")
    for s in audit.splits:
        table.add_row(
            escape(s.property),
            *(str(s.with_it), f"{s.success_with:.1%}", f"{s.reward_with:.3f}"),
            *(str(s.without_it), f"{s.success_without:.1%}", f"{s.reward_without:.3f}"),
        )
    if audit.splits:
        console.print(table)
    for c in audit.correlations:
        console.print(f"reward with {c.trait}: rank correlation {c.rho:+.2f} ({c.low:+.2f} to {c.high:+.2f})")
    for hint in audit.hints:
        console.print(f"[yellow]look:[/] {escape(hint)}")
    if not audit.hints:
        console.print("reward hacking: nothing looks suspicious")
