"""The command line: ``aqmlab``.

Exit status 0: done, 1: a run failed, 2: the user's input is wrong. What was asked for goes to
standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab import _native
from aqmlab._util.console import Progress, out, say, show
from aqmlab._util.pool import available_cpus
from aqmlab.cli import tables
from aqmlab.cli import traffic as traffic_cli
from aqmlab.engine import parallel
from aqmlab.engine.calibrate import calibrate
from aqmlab.engine.execute import RUNS_ROOT, World, default_path, execute, existing_run
from aqmlab.engine.store import STORE_ROOT
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results import run as runs
from aqmlab.results.compare import compared_groups, differences, distances
from aqmlab.results.run import Run
from aqmlab.scenario import vary
from aqmlab.scenario.catalog import Catalog, scenario_files
from aqmlab.scenario.scenario import Override, Scenario
from aqmlab.sweeps.campaign import SWEEPS_ROOT, sweep

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

app = typer.Typer(
    help="What will this queue do to the people whose traffic crosses it?",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(traffic_cli.app, name="traffic")

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Replaces a field, such as traffic.browsers.users=3000; may be repeated.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of every random stream.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; default: the number of processors.")
]


@app.command("run")
def run_command(
    scenario: ScenarioFile,
    overrides: Sets = None,
    seed: Seed = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="A..B", help="One run per seed, several at a time: 1..8 or 1,5,9."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The run directory; default: runs/NAME-KEY-sSEED. With --seeds their folder.",
        ),
    ] = None,
    world: Annotated[
        World, typer.Option("--on", help="Where: simulated, or on this machine's kernel (as root).")
    ] = World.SIM,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Run a scenario.

    Users that the scenario leaves to its load are calibrated first. A run is never done twice: the
    same scenario and seed give the same results, and a finished run directory is used again.
    """
    if seeds is not None:
        if seed is not None:
            raise AqmlabError("--seed and --seeds: found both; give one of them")
        if world is World.LIVE:
            raise AqmlabError("--seeds: live runs go one at a time; give each its --seed")
        chosen_seeds = vary.seeds(seeds)
        replicas(scenario, overrides, chosen_seeds, directory or RUNS_ROOT, jobs, as_json=as_json)
        return
    chosen = load(scenario, overrides, seed)
    if world is World.LIVE and (lacking := _native.live_missing()):
        raise AqmlabError(lacking)  # before the work of calibration, too
    if directory is not None and os.path.lexists(directory):
        existing_run(directory)  # an error is told before the work, not after it
    [ready] = calibrated([chosen], jobs)
    with Progress("running") as progress:
        run = execute(
            ready, directory, world=world, progress=progress.task(chosen.name), reuse=True
        )
    for reason in run.invalid:
        say(f"invalid: {reason}")
    if as_json:
        print_json(run.summary)
        return
    show(*tables.run_tables(run))
    out(f"run directory: {run.path}")


live_app = typer.Typer(help="The live bed: the same scenarios on this machine's kernel.")
app.add_typer(live_app, name="live", no_args_is_help=True)


@live_app.command("clean")
def live_clean_command(as_json: Json = False) -> None:
    """Remove the network namespaces that killed live runs left behind."""
    removed = _native.live_clean()
    if as_json:
        print_json(removed)
        return
    out("\n".join(f"removed: {name}" for name in removed) or "nothing to remove")


@app.command("show")
def show_command(
    directories: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    batches: Annotated[
        int | None,
        typer.Option(
            min=2, help="Also how sure each run is, from that many batches of its responses."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what runs measured."""
    from aqmlab.cli import sweep_tables
    from aqmlab.results import warm_up

    found = runs.distinguish([Run.open(path) for path in directories])
    if as_json:
        print_json(found[0].summary if len(found) == 1 else [run.summary for run in found])
        return
    for run in found:
        show(*tables.run_tables(run))
        if batches is not None:
            show(sweep_tables.batches_table(warm_up.batched(run, batches)))
            out(sweep_tables.warm_up_line(warm_up.warm_up_columns(run)))


@app.command("compare")
def compare_command(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_OR_SCENARIO...", help="Run directories or scenario files."),
    ],
    varied: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="FIELD=A,B,...",
            help="Runs scenarios once with each value; commas inside quotes, brackets and braces "
            "belong to a value. Repeated: every combination.",
        ),
    ] = None,
    overrides: Sets = None,
    seed: Seed = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="A..B", help="Every run once with each seed: 1..8 or 1,5,9."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Figure (.svg, .png, .pdf, .html); default: runs/compare.svg."
        ),
    ] = None,
    root: Annotated[Path, typer.Option("--out", help="Folder of new run directories.")] = RUNS_ROOT,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Compare runs: the same users under different queues.

    Scenario files are run first, unless their finished runs are found. Runs that differ in their
    seed alone are taken together: means over the seeds, and differences seed by seed.
    """
    from aqmlab.cli import sweep_tables
    from aqmlab.figures import base as figures
    from aqmlab.figures import groups as replica_figures

    target = figure or root / "compare.svg"
    if target.suffix.lower() not in figures.WRITERS:
        raise AqmlabError(
            f"{target}: a figure is written as {', '.join(figures.WRITERS)}; choose one of these"
        )
    planned = [
        entry
        for source in sources
        for entry in opened_or_varied(source, varied or [], overrides, seed, seeds)
    ]
    if len(planned) < 2:
        raise AqmlabError("a comparison needs two runs at least; add one, or --vary FIELD=A,B")
    curves = len(planned) // (len(vary.seeds(seeds)) if seeds else 1)
    if figure and curves > figures.MOST_RUNS:
        raise AqmlabError(
            f"{figure}: a figure shows at most {figures.MOST_RUNS} runs, not {curves}"
        )
    opened = made(planned, root, jobs)
    found = runs.distinguish(opened)
    groups = compared_groups(opened)
    alone = len(groups) == len(found)
    compared, apart = differences(groups), distances(groups)
    too_many = len(groups) > figures.MOST_RUNS
    recorded = any(run.responses is not None or run.queue is not None for run in found)
    drawn = recorded and not too_many
    if drawn:
        figures.save(replica_figures.comparison(groups), target)
    if as_json:
        content = {
            "runs": [
                {"label": run.label, "path": str(run.path), "summary": run.summary} for run in found
            ],
            "differences": [difference.to_json() for difference in compared],
            "distances": [distance.to_json() for distance in apart],
            "figure": str(target) if drawn else None,
        }
        print_json(content)
        return
    show(tables.compare_table(found) if alone else sweep_tables.replicas_table(groups))
    for run in found:
        for reason in run.invalid:
            say(f"invalid: {run.label}: {reason}")
    if compared:
        out("")
        show(tables.difference_table(compared))
    if apart:
        out("")
        show(tables.distance_table(apart))
    out("")
    for run in found:
        out(f"run directory: {run.path} ({run.label})")
    why = "it would show too many runs" if too_many else "measure.record is empty"
    out(f"figure: {target}" if drawn else f"no figure: {why}")


@app.command("sweep")
def sweep_command(
    file: Annotated[Path, typer.Argument(metavar="SWEEP", help="Sweep file (TOML).")],
    overrides: Sets = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="A..B", help="Seeds instead of the file's: 1..8 or 1,5,9."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Dask scheduler that makes the runs: tcp://HOST:8786."
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the results; default: runs/sweeps/NAME."),
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of the runs, by key.")] = STORE_ROOT,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Run a sweep: a scenario with many values of some fields, each with several seeds.

    Only what the store lacks is run: an interrupted sweep goes on where it was, an extended one
    runs what is new.
    """
    from aqmlab.cli import sweep_tables
    from aqmlab.sweeps.file import Sweep
    from aqmlab.sweeps.summary import SweepSummary

    plan = Sweep.load(file).with_overrides(
        vary.assignment(text, "--set") for text in overrides or []
    )
    if seeds is not None:
        plan = plan.with_seeds(vary.seeds(seeds))
    target = directory or SWEEPS_ROOT / plan.name
    with Progress("sweep") as progress:
        table = sweep(
            plan,
            jobs=jobs,
            scheduler=scheduler,
            out=target,
            store=store,
            progress=sweep_tables.TerminalProgress(progress),
        )
    summary = SweepSummary(plan, table)
    if as_json:
        print_json({"results": str(target / "results.parquet"), **summary.to_json()})
    else:
        show(sweep_tables.points_table(summary.points))
        if summary.differences:
            out("")
            show(sweep_tables.differences_table(summary))
        out(f"\nresults: {target / 'results.parquet'}")
    for point in summary.under_warmed:
        say(f"warning: the warm-up is too short at {point.label} (p = {point.warm_up_p:.1g})")
    if failures := summary.failures:
        raise RunError(f"{len(failures)} of {table.num_rows} runs failed; the first, {failures[0]}")


@app.command("calibrate")
def calibrate_command(
    scenario: ScenarioFile,
    overrides: Sets = None,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Find the users (or connections per second) that cause the scenario's load."""
    chosen = load(scenario, overrides, None)
    if not chosen.uncalibrated:
        raise AqmlabError(
            f"{scenario}: nothing to calibrate, for every class has its own users, connections or "
            "flows; remove them and state a load"
        )
    with Progress("calibrating") as progress:
        _, answers = calibrate(chosen, jobs=jobs, progress=progress.task(chosen.name))
    if as_json:
        print_json([answer.to_json() for answer in answers])
        return
    for answer in answers:
        out(str(answer))


@app.command("reproduce")
def reproduce_command(
    paper: Annotated[
        str, typer.Argument(help="Name of a paper (see `aqmlab list papers`), or `all`.")
    ],
    chosen: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE|FIGURE]...", help="Default: all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short runs, whose numbers are not scored.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Runs as long as the paper's, where ours are shorter.")
    ] = False,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: leave out what has not been run.")
    ] = False,
    seeds: Annotated[
        list[int] | None, typer.Option("--seed", help="Seed; may be repeated.")
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Default: out/reproduce/PAPER.")
    ] = None,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Repeat a paper's tables, or all papers: every published number beside ours."""
    from aqmlab.papers.fidelity import reproduce_all
    from aqmlab.papers.reproduce import reproduce

    if quick and full:
        raise AqmlabError("--quick and --full exclude each other: give one of them")
    if paper == "all" and chosen:
        raise AqmlabError(f"found {chosen[0]} after all; expected one paper when tables are named")
    with Progress("running") as progress:
        options: dict[str, Any] = {
            "out": directory,
            "quick": quick,
            "full": full,
            "finished_only": finished,
            "jobs": jobs or available_cpus(),
            "seeds": seeds or None,
            "progress": progress.update,
        }
        result = (
            reproduce_all(**options)
            if paper == "all"
            else reproduce(paper, chosen or None, **options)
        )
    if as_json:
        print_json(result)
    else:
        show(tables.score_table(result))
        for name, path in result["figures"].items():
            out(f"figure {name}: {path}")
        for kind, path in result["files"].items():
            out(f"{kind}: {path}")
    if failed := result["failed"]:
        name, reason = next(iter(failed.items()))
        raise RunError(
            f"{len(failed)} of {result['runs']} runs failed; the first, {name}: {reason}"
        )


@app.command("report")
def report_command(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_OR_FOLDER...", help="Run directories, or folders of them."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The file (.html, .md, .pdf, .png); default: report.html."
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--format", metavar="html|md|pdf|png", help="What is written.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title; default: the scenario's.")] = None,
    question: Annotated[
        str | None, typer.Option(help="What the runs are to answer; default: made from them.")
    ] = None,
) -> None:
    """Write a report about runs: one file that needs no network."""
    from aqmlab.reports import write as report

    report.target(output, kind)  # an error is told before the work, not after it
    place = report.write(report.gather(sources), output, kind=kind, title=title, question=question)
    out(f"report: {place}")


class Kind(str, Enum):
    """What `aqmlab list` lists."""

    disciplines = "disciplines"
    presets = "presets"
    transports = "transports"
    traffic = "traffic"
    profiles = "profiles"
    scenarios = "scenarios"
    papers = "papers"


@app.command("list")
def list_command(
    kind: Annotated[Kind, typer.Argument(help="What to list.")], as_json: Json = False
) -> None:
    """List what there is."""
    entries = listed(kind)
    if as_json:
        print_json(entries)
        return
    show(tables.list_table(kind.value, entries))


@app.command("explain")
def explain_command(
    name: Annotated[str, typer.Argument(help="A discipline, profile, traffic model, ...")],
    as_json: Json = False,
) -> None:
    """Explain a queue discipline, traffic model, stack profile, ...: what it is, its parameters."""
    found = Catalog.load().find(name)
    if as_json:
        print_json([entry.to_json() for entry in found])
        return
    for entry in found:
        show(*tables.explanation(entry))


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    out(_native.schema())


def load(file: Path, overrides: Sequence[str] | None, seed: int | None) -> Scenario:
    """The scenario that a command is about."""
    pairs: list[Override] = [vary.assignment(text, "--set") for text in overrides or []]
    if seed is not None:
        pairs.append(("seed", str(seed)))
    return Scenario.load(file, pairs)


def calibrated(scenarios: Sequence[Scenario], jobs: int | None) -> list[Scenario]:
    """The scenarios with all their users; says how many they are."""
    ready: list[Scenario] = []
    told: list[str] = []
    with Progress("calibrating") as progress:
        for scenario in scenarios:
            found, answers = calibrate(scenario, jobs=jobs, progress=progress.task(scenario.name))
            ready.append(found)
            told += map(str, answers)
    for answer in dict.fromkeys(told):
        say(answer)
    return ready


def opened_or_varied(
    source: Path,
    varied: Sequence[str],
    overrides: Sequence[str] | None,
    seed: int | None,
    seeds: str | None = None,
) -> list[Run | Scenario]:
    """A run directory as it is; a scenario file in all its variations, with every seed."""
    if source.is_dir():
        return [Run.open(source)]
    if seed is not None and seeds is not None:
        raise AqmlabError("--seed and --seeds: found both; give one of them")
    bases = [load(source, overrides, number) for number in (vary.seeds(seeds) if seeds else [seed])]
    return [base.with_overrides(pairs) for pairs in vary.combinations(varied) for base in bases]


def made(planned: Sequence[Run | Scenario], root: Path, jobs: int | None) -> list[Run]:
    """Runs as they are; scenarios calibrated and run. The order stays."""
    scenarios = calibrated([entry for entry in planned if isinstance(entry, Scenario)], jobs)
    named = {default_path(entry, root).name: entry for entry in scenarios}
    with Progress("running") as progress:
        results = parallel.execute_all(list(named.items()), root, jobs, progress.update)
    # A scenario that is named twice is run once.
    fresh = iter([results[default_path(entry, root).name] for entry in scenarios])
    found = []
    for entry in planned:
        result = entry if isinstance(entry, Run) else next(fresh)
        if isinstance(result, AqmlabError):
            raise result
        found.append(result)
    return found


def replicas(
    file: Path,
    overrides: Sequence[str] | None,
    seeds: Sequence[int],
    root: Path,
    jobs: int | None,
    *,
    as_json: bool,
) -> None:
    """Runs a scenario once per seed and shows the runs side by side."""
    found = runs.distinguish(made([load(file, overrides, seed) for seed in seeds], root, jobs))
    if as_json:
        print_json([run.summary for run in found])
        return
    show(tables.compare_table(found))
    out("")
    for run in found:
        out(f"run directory: {run.path}")


def listed(kind: Kind) -> dict[str, str]:
    """Names and what they mean."""
    if kind is Kind.scenarios:
        return {str(file): Scenario.load(file).title for file in scenario_files()}
    if kind is Kind.papers:
        from aqmlab.papers.paper import Paper, names

        return {name: Paper.load(name).title for name in names()}
    return Catalog.load().summaries(kind.value)


def print_json(content: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """Prints JSON on standard output."""
    out(json.dumps(content, indent=2, ensure_ascii=False))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    try:
        status = app(list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False)
    except typer.TyperException as error:
        return failure(error.format_message(), error.exit_code)
    except AqmlabError as error:
        return failure(str(error), error.exit_status)
    # typer turns an interrupt into this status.
    if status == INTERRUPTED:
        return failure("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def failure(message: str, status: int) -> int:
    """Says in one line what went wrong."""
    say(" ".join(message.split()))
    return status
