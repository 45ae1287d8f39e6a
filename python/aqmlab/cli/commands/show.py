"""``aqmlab show``: what runs measured."""

from __future__ import annotations

from typing import Annotated, Literal

from aqmlab._util.console import out, print_json, print_tsv, say, show
from aqmlab._util.markup import rendered
from aqmlab._util.table import TableModel
from aqmlab.cli import tables
from aqmlab.cli.build import Opt
from aqmlab.cli.options import Format, Json, Runs, Tsv, Where, check_format
from aqmlab.cli.planning import kept
from aqmlab.errors import AqmlabError
from aqmlab.results import subscriber_tables
from aqmlab.results.labels import distinguish
from aqmlab.results.run import Run
from aqmlab.results.sources import gather

__all__ = ["command"]

_MANY = 3
"""More runs than this are hard to read one by one."""


def command(
    places: Runs,
    batches: Annotated[
        int | None,
        Opt(
            "N",
            "Divide the responses of each run into N batches, and add confidence intervals (batch "
            "means).",
            least=2,
        ),
    ] = None,
    *,
    by: Literal["plan", "node"] | None = None,
    where: Where = None,
    as_json: Json = False,
    as_tsv: Tsv = False,
    markup: Format = None,
) -> None:
    """Show the results of runs.

    Options:
        by: Show tables of the plans or nodes of an access network, instead of classes.
    """
    check_format(as_json=as_json, as_tsv=as_tsv, markup=markup)
    found = distinguish(kept(places, where) if where else gather(places, needs_tables=False))
    if as_json:
        print_json(found[0].summary if len(found) == 1 else [run.summary for run in found])
        return
    if as_tsv:
        print_tsv(tables.runs_tsv(found))
        return
    parts: list[str | TableModel] = []
    for run in found:
        parts += [*([""] if parts else []), *_tables(run, by)]
        if batches is not None:
            from aqmlab.cli import sweep_tables  # loads what runs sweeps
            from aqmlab.results import warm_up

            parts.append(sweep_tables.batches_table(warm_up.batched(run, batches)))
            parts.append(sweep_tables.warm_up_line(warm_up.warm_up_columns(run)))
    if markup is None:
        show(*parts)
        if len(found) > _MANY:
            say(f"{len(found)} runs; `aqmlab compare` with the same arguments prints their means")
    else:
        out(rendered(markup, parts))


def _tables(run: Run, by: str | None) -> list[str | TableModel]:
    """What a run measured; by plan or node, if asked for."""
    if by is None:
        return tables.run_tables(run)
    found = subscriber_tables.tables(run, by)
    if not found:
        raise AqmlabError(
            f"--by {by}: {run.label} has no tree of rates; `aqmlab init --kind isp` writes one"
        )
    return [f"{run.label.removesuffix(f', seed {run.seed}')}, seed {run.seed}", *found]
