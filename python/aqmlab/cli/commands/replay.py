"""``aqmlab replay``: a capture's applications behind other queues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab._util.console import Progress, say
from aqmlab._util.places import RUNS_ROOT
from aqmlab.cli.commands import compare
from aqmlab.cli.completion import disciplines
from aqmlab.cli.options import Jobs, Json, Seed, Seeds, Sets
from aqmlab.scenario import vary
from aqmlab.scenario.quantities import parsed_rates, parsed_rtt
from aqmlab.traffic.replay import replay

__all__ = ["command"]


_BASELINE = "droptail"
"""What a single discipline is compared with."""


def command(
    capture: Annotated[Path, typer.Argument(metavar="FILE", help="Capture: pcap or pcapng.")],
    discipline: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Queue disciplines: presets, tables, or droptail and red, which are sized for the "
            "link. A single queue is compared with droptail.",
            autocompletion=disciplines,
        ),
    ] = "droptail,fq-codel",
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="DOWN/UP",
            help="Rate of the link in Mbit/s; default: what the capture shows.",
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(metavar="MS", help="Round-trip time; default: each connection's own."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Baseline: a label of the table; default: drop-tail."),
    ] = None,
    overrides: Sets = None,
    seed: Seed = None,
    seeds: Seeds = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Figure (.svg, .png, .pdf, .html); default: runs/compare.svg.",
        ),
    ] = None,
    root: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder of new run directories.")
    ] = RUNS_ROOT,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Replay a capture with several queues and compare them.

    The command sends the applications' data again, not the packets, which still show the old queue.
    The folder `replay` of --out keeps the scenario and its connection vectors, for changes of
    yours. Standard error lists what is assumed and what is left out.
    """
    words = vary.split(discipline)
    if len(words) == 1 and words != [_BASELINE]:
        words = [_BASELINE, *words]
    with Progress("reading") as progress:
        found = replay(
            capture,
            root / "replay",
            words,
            rates_bps=parsed_rates(rate) if rate else None,
            rtt_s=parsed_rtt(rtt) if rtt else None,
            progress=progress.task(capture.name),
        )
    for text in found.notes:
        say(f"note: {text}")
    for text in found.assumed:
        say(f"assumed: {text}")
    for text in found.left_out:
        say(f"left out: {text}")
    say(f"scenario: {found.file}")
    compare.command(
        [found.file],
        varied=[f"topology.bottleneck.discipline={','.join(found.disciplines)}"],
        baseline=baseline,
        overrides=overrides,
        seed=seed,
        seeds=seeds,
        figure=figure,
        root=root,
        as_json=as_json,
        jobs=jobs,
    )
