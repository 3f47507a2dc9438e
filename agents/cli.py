"""`mm-gym eval`, `mm-gym export` and `mm-gym audit`: the commands that need `agents`.

They join the command line by the entry-point group `mm_gym.commands`. What they do is in
`agents.evaluation`, `agents.export` and `agents.hacking`; here are arguments, progress and exit codes.

Exit codes of eval: 0 done; 1 success is below `--fail-under`; 2 something that was asked for is wrong or
not there; 3 episodes were lost to failures (the same command runs them again); 130 interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import typer
from rich.console import Console

from agents.types import Trajectory

FIGURES_FILE = "figures.json"


def evaluate(
    env_id: str = typer.Argument("", help='An id, e.g. "mm_gym/Geo3k-v0", or "module:id".'),
    model: str = typer.Option(
        "", help='Folder or hub name, a model of the endpoint, or the baselines "expert" and "random".'
    ),
    n: int = typer.Option(200, "-n", help="Tasks; 0 for the whole of a fixed set."),
    k: int = typer.Option(1, "-k", min=1, help="Episodes of each task, for pass@k."),
    env_args: str = typer.Option("{}", help="Keyword arguments of the environment, as JSON."),
    env_options: str = typer.Option("{}", help="Options of every reset, as JSON."),
    base_url: str | None = typer.Option(None, help="OpenAI-compatible endpoint; key in OPENAI_API_KEY."),
    backend: str = typer.Option("transformers", help="Of a local model: transformers or vllm."),
    seed: int = typer.Option(0, help="Same seed, same tasks."),
    temperature: float | None = typer.Option(None, help="Default 0, and 1 with -k above 1."),
    max_turns: int | None = typer.Option(None, help="Beside the environment's own cap."),
    max_tokens: int = typer.Option(1024, help="Of one response."),
    max_episode_tokens: int | None = typer.Option(None, help="Of one episode, observations included."),
    blank_images: bool = typer.Option(False, help="Show black pictures: what is solved without seeing?"),
    concurrency: int = typer.Option(16, min=1, help="Episodes at a time."),
    workers: str = typer.Option("thread", help="Where environments live: thread, process or ray."),
    env_timeout: float = typer.Option(60.0, help="Seconds of one reset or step."),
    dtype: str = typer.Option("auto", help="Of a local model."),
    device: str = typer.Option("auto", help="Of a local model (transformers)."),
    vllm_args: str = typer.Option("{}", help='Of vllm.LLM, as JSON: {"tensor_parallel_size": 2}, say.'),
    endpoint_tools: str = typer.Option("native", help="How an endpoint is told tools: native or prompt."),
    price_in: float | None = typer.Option(None, help="Price of a million prompt tokens."),
    price_out: float | None = typer.Option(None, help="Price of a million sampled tokens."),
    output: Path | None = typer.Option(None, "--output", "-o", help="Folder; default by the settings."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for scripts."),
    fail_under: float | None = typer.Option(None, help="Exit with 1 when success is below this share."),
    compare: tuple[Path, Path] | None = typer.Option(None, help="Compare two evaluations by task, run none."),
) -> None:
    """Evaluate a model on an environment; the same command again goes on after a kill."""
    with _told():
        if compare is not None:
            _compare(*compare, as_json=as_json)
            return
        if not env_id or not model:
            raise ValueError("name an environment and a --model, or two evaluations with --compare A B")
        from agents.evaluation import EvalRun, EvalSettings, eval_tasks
        from agents.evaluation.policies import backend_of

        kind = backend_of(model, base_url, backend)
        settings = EvalSettings(
            env_id=env_id,
            env_kwargs=_object(env_args, "--env-args"),
            options=_object(env_options, "--env-options"),
            model=model,
            backend=kind,
            seed=seed,
            samples=k,
            temperature=temperature if temperature is not None else float(k > 1),
            max_turns=max_turns,
            max_tokens_per_turn=max_tokens,
            max_tokens_per_episode=max_episode_tokens,
            blank_images=blank_images,
            extra={"base_url": base_url, "tools": endpoint_tools} if kind == "endpoint" else {"dtype": dtype},
        )
        tasks = eval_tasks(
            env_id, n or None, env_kwargs=settings.env_kwargs, options=settings.options, seed=seed
        )
        run = EvalRun(output or Path("runs") / "eval" / settings.name, settings, tasks)
        machine = _Machine(
            concurrency, workers, env_timeout, dtype, device, _object(vllm_args, "--vllm-args")
        )
        _run(run, machine)
        _report(run, price_in, price_out, as_json=as_json, fail_under=fail_under)


def export(
    path: Path = typer.Argument(help="A run, an evaluation, or a folder of trajectories."),
    to: str = typer.Option("hf", help="hf (all, as they were), sft (conversations) or trl (one row a turn)."),
    output: Path = typer.Option(..., "--output", "-o", help="A new folder, for datasets.load_dataset."),
    min_reward: float | None = typer.Option(None, help="Keep by reward, in place of success."),
    keep_all: bool = typer.Option(False, "--all", help="Keep unsolved episodes too."),
    per_task: int | None = typer.Option(None, min=1, help="Keep at most so many episodes of a task."),
    dedupe: bool = typer.Option(True, help="Drop episodes of a task whose responses are the same."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for scripts."),
) -> None:
    """Export trajectories: a Hugging Face dataset, or conversations to fine-tune on.

    For sft and trl the solved episodes are kept (rejection sampling), for hf all.
    """
    with _told():
        from agents.evaluation.run import live_trajectories
        from agents.export import ALL, Selection
        from agents.export import export as write

        selection = ALL
        if to != "hf" or min_reward is not None or per_task is not None:
            every = keep_all or (to == "hf" and min_reward is None)
            selection = Selection(not every, min_reward, dedupe, per_task)
        kept = set(selection.choose(live_trajectories(path, images=False)))
        total = sum(1 for _ in live_trajectories(path, images=False))
        chosen = (t for number, t in enumerate(live_trajectories(path)) if number in kept)
        rows = write(chosen, to, output)
    if as_json:
        typer.echo(json.dumps({"episodes": total, "kept": len(kept), "rows": rows, "path": str(output)}))
        return
    typer.echo(f"{len(kept)} of {total} episodes kept, {rows} rows: datasets.load_dataset({str(output)!r})")


def audit(
    path: Path = typer.Argument(help="A run, an evaluation, or a folder of trajectories."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for scripts."),
    strict: bool = typer.Option(False, help="Exit with 1 when something looks suspicious."),
) -> None:
    """Report what earns reward in stored trajectories, with hints against reward hacking."""
    with _told():
        from agents.evaluation.run import live_trajectories
        from agents.hacking import audit as examine
        from agents.printing import print_audit

        found = examine(live_trajectories(path, images=False))
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        print_audit(Console(highlight=False), found)
    if strict and found.hints:
        raise typer.Exit(1)


# -- running -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Machine:
    """How an evaluation is run; nothing of it changes what is measured."""

    concurrency: int
    workers: str
    env_timeout: float
    dtype: str
    device: str
    vllm_args: dict[str, Any]


def _run(run: Any, machine: _Machine) -> None:
    """Run what is missing of an evaluation, behind a progress bar on stderr."""
    from agents.engine import Budgets, RolloutEngine, Timeouts

    settings = run.settings
    console = Console(stderr=True, highlight=False)
    wanted, missing = len(run.tasks) * settings.samples, len(run.missing())
    if missing < wanted:
        console.print(f"{wanted - missing} of {wanted} episodes are stored in {run.folder}", markup=False)
    if not missing:
        return
    policy, sampling = _policy(settings, machine)
    budgets = Budgets(
        max_turns=settings.max_turns,
        max_tokens_per_turn=settings.max_tokens_per_turn,
        max_tokens_per_episode=settings.max_tokens_per_episode,
    )
    timeouts = Timeouts(reset=machine.env_timeout, step=machine.env_timeout)
    with (
        RolloutEngine(
            policy,
            budgets=budgets,
            sampling=sampling,
            workers=machine.workers,
            timeouts=timeouts,
            max_open=machine.concurrency,
            seed=settings.seed,
        ) as engine,
        _progress(console, wanted, wanted - missing) as on_episode,
    ):
        run.run(engine, concurrency=machine.concurrency, on_episode=on_episode)


def _policy(settings: Any, machine: _Machine) -> tuple[Any, Any]:
    """Who answers, and how it samples where that is ours to say."""
    from agents.evaluation import policies
    from agents.policies.solver import SolverPolicy

    policy: Any
    sampling = None
    if settings.backend == "solver":
        if settings.blank_images:
            raise ValueError(f"--model {settings.model} doesn't look at pictures: drop --blank-images")
        policy = SolverPolicy(settings.model, max_open=machine.concurrency)
    elif settings.backend == "endpoint":
        policy = policies.endpoint(
            settings.model,
            settings.extra["base_url"],
            temperature=settings.temperature,
            concurrency=machine.concurrency,
            tools=settings.extra["tools"],
        )
    else:
        if settings.backend == "vllm":
            policy, rows = policies.vllm_policy(
                settings.model,
                dtype=machine.dtype,
                max_batch=machine.concurrency,
                context=settings.max_tokens_per_episode,
                engine_args=machine.vllm_args,
            )
        else:
            policy, rows = policies.transformers_policy(
                settings.model, dtype=machine.dtype, device=machine.device, max_batch=machine.concurrency
            )
        sampling = policies.sampling_of(policy, rows, settings.temperature)
    return (policies.blanked(policy) if settings.blank_images else policy), sampling


@contextmanager
def _progress(console: Console, wanted: int, stored: int) -> Iterator[Any]:
    """A bar with the share solved so far in this session; yields what to call with each episode."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from agents.evaluation.figures import solved

    columns = (
        TextColumn("episodes"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[state]}"),
    )
    counts = {"ran": 0, "solved": 0, "lost": 0}
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("episodes", total=wanted, completed=stored, state="")

        def on_episode(trajectory: Trajectory) -> None:
            counts["lost" if trajectory.masked else "ran"] += 1
            counts["solved"] += not trajectory.masked and solved(trajectory)
            state = f"{counts['solved']} of {counts['ran']} solved"
            progress.update(bar, advance=1, state=state + f", {counts['lost']} lost" * bool(counts["lost"]))

        yield on_episode


def _report(
    run: Any, price_in: float | None, price_out: float | None, *, as_json: bool, fail_under: float | None
) -> None:
    """Print and keep the figures and the audit; leave with the exit code that says how it went."""
    from agents.evaluation import figures
    from agents.evaluation.run import live_trajectories
    from agents.hacking import audit as examine
    from agents.printing import print_audit, print_figures

    outcomes, lost = run.outcomes()
    found = figures(outcomes, lost=lost, samples=run.settings.samples, price_in=price_in, price_out=price_out)
    examined = examine(live_trajectories(run.folder, images=False)) if outcomes else None
    told = {
        **found.as_dict(),
        "audit": examined.as_dict() if examined else None,
        "path": str(run.folder),
    }
    (run.folder / FIGURES_FILE).write_text(json.dumps(told, indent=2))
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        console = Console(highlight=False)
        print_figures(console, found, f"{run.settings.model} on {run.settings.env_id}")
        if examined:
            print_audit(console, examined)
        console.print(f"look at the episodes: mm-gym view {run.folder}", markup=False, soft_wrap=True)
    if fail_under is not None and found.success.value < fail_under:
        typer.echo(f"success {found.success.value:.1%} is below {fail_under:.1%}", err=True)
        raise typer.Exit(1)
    if lost:
        typer.echo(f"{lost} episodes were lost to failures; the same command runs them again", err=True)
        raise typer.Exit(3)


def _compare(a: Path, b: Path, *, as_json: bool) -> None:
    from agents.evaluation import compare
    from agents.evaluation.run import read_outcomes
    from agents.printing import print_comparison

    result = compare(read_outcomes(a), read_outcomes(b))
    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=2))
    else:
        print_comparison(Console(highlight=False), result, str(a), str(b))


@contextmanager
def _told() -> Iterator[None]:
    """What the user can mend is told in a line, with exit code 2; other errors keep their traceback."""
    from agents.evaluation.run import AlreadyRunning

    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted: the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    except (ValueError, FileNotFoundError, gymnasium.error.Error, AlreadyRunning) as error:
        typer.echo(f"mm-gym: {error}", err=True)
        raise typer.Exit(2) from None


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{option} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f'{option} must be a JSON object such as {{"level": 2}}, got {text}')
    return value
