"""``aqmlab evaluate``: the report card of a queue discipline, and suites of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab._util.console import Progress, out, print_json, say, show
from aqmlab.cli.options import Jobs, Json, Memory, Seeds
from aqmlab.engine.store import STORE_ROOT
from aqmlab.errors import AqmlabError, RunError
from aqmlab.scenario import vary

__all__ = ["command"]


def command(
    queue: Annotated[
        str | None,
        typer.Argument(
            metavar="QUEUE",
            help="A plug-in file (.py or .so, whose code runs), a preset or a kind; parameters "
            "behind a colon: 'pie: qdelay_ref 5 ms'.",
            show_default=False,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="SUITE",
            help="Run one suite by its section numbers instead of the card: rfc7928, rfc9743, "
            "tcpeval, rfc8867, responsiveness or card.",
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Print the tests with their cost, and run nothing.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="TEST,...", help="Run these tests only: names, or sections such as 5.1."
        ),
    ] = None,
    tier: Annotated[
        str, typer.Option(metavar="TIER", help="Tests of the card: quick, standard or full.")
    ] = "quick",
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE,...",
            help="Queues to compare with; default: fq-codel,pie,dualpi2,cake. Drop-tail always is "
            "one.",
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="CONTROL",
            help="Congestion control under test in a suite: a name or a plug-in file. The queue is "
            "drop-tail unless one is given.",
        ),
    ] = None,
    seeds: Seeds = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the scenario file of each test there, and run nothing."
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the card; default: runs/cards/QUEUE.", show_default=False
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Dask scheduler that makes the runs: tcp://HOST:8786."
        ),
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of the runs, by key.")] = STORE_ROOT,
    as_json: Json = False,
    jobs: Jobs = None,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
) -> None:
    """Make a report card of a queue discipline, beside the queues that are deployed.

    The card grades delay, users, bursts, stability and fairness on a fixed set of tests, and names
    the gates that fail. Only what the store lacks is run: an evaluation that was interrupted goes
    on where it was.
    """
    from aqmlab.cards import candidates, evaluation, overview, suites
    from aqmlab.cards.card import card_rows
    from aqmlab.cli import evaluate_tables

    words = _split(only)
    if listed:
        rows = suites.rows(suite) if suite else [*card_rows(_tier(tier))]
        found = suites.chosen(rows, words)
        if as_json:
            print_json(evaluate_tables.listed_json(found))
            return
        show(*evaluate_tables.listed(found, suites.SUITES[suite or suites.CARD]))
        return
    if control is not None and suite is None:
        raise AqmlabError(
            "--control: found it without --suite; cards of congestion controls are not made yet, "
            "--suite rfc9743 runs their tests"
        )
    if queue is None and (control is None or suite is None):
        raise AqmlabError(
            "QUEUE: found none; expected a plug-in file, a preset or a kind, such as fq-codel; "
            "--list prints the tests"
        )
    under_test = candidates.candidate(queue or candidates.DROPTAIL)
    number = None if seeds is None else vary.seeds(seeds)
    if suite is not None or write is not None:
        chosen_control, _ = candidates.control(control) if control else ('"cubic"', None)
        rows = suites.rows(suite) if suite else card_rows(_tier(tier))
        chosen, left = overview.suite_cells(
            suites.chosen(rows, words), is_control=control is not None and queue is None
        )
        if write is not None:
            for path in overview.written(chosen, under_test, write, chosen_control):
                out(str(path))
        else:
            with Progress("evaluate") as progress:
                observed = overview.observe(
                    chosen,
                    under_test,
                    control=chosen_control,
                    seeds=number or (1,),
                    jobs=jobs,
                    scheduler=scheduler,
                    store=store,
                    progress=progress.task(under_test.name),
                    say=say,
                )
            if as_json:
                print_json([evaluate_tables.observed_json(one) for one in observed])
            else:
                show(*evaluate_tables.observed(observed))
        for line in evaluate_tables.left_out(left):
            say(line)
        failed = [] if write else [one for one in observed if isinstance(one.numbers, AqmlabError)]
        if failed:
            raise RunError(
                f"{len(failed)} of {len(observed)} runs failed; the first, {failed[0].cell.id}: "
                f"{failed[0].numbers}"
            )
        return
    with Progress("evaluate") as progress:
        card = evaluation.evaluate(
            under_test,
            tier=_tier(tier),
            baselines=_split(baseline) or evaluation.BASELINES,
            only=words,
            seeds=number,
            jobs=jobs,
            scheduler=scheduler,
            store=store,
            progress=progress.task(under_test.name),
            say=say,
        )
    evaluate_tables.print_card(card, directory, as_json=as_json)


def _split(text: str | None) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _tier(text: str) -> str:
    """A tier; an error if there is none of that name."""
    from aqmlab.cards.card import TIERS

    if text not in TIERS:
        raise AqmlabError(f'--tier: found "{text[:40]}"; expected one of {", ".join(TIERS)}')
    return text
