"""``aqmlab replay``: a capture's applications behind other queues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aqmlab._util.console import Progress, out, print_json, say, show
from aqmlab._util.places import RUNS_ROOT
from aqmlab.cli import predict_tables
from aqmlab.cli.build import Opt
from aqmlab.cli.commands import compare
from aqmlab.cli.completion import disciplines
from aqmlab.cli.options import Jobs, Json, Seed, Seeds, Sets
from aqmlab.errors import AqmlabError
from aqmlab.scenario import vary
from aqmlab.scenario.quantities import parsed_buffers, parsed_rates, parsed_rtt
from aqmlab.traffic.checked import check
from aqmlab.traffic.foreseen import foresee
from aqmlab.traffic.replay import refuse_unknown, replay

__all__ = ["command"]


_BASELINE = "droptail"
"""What a single discipline is compared with."""


def command(
    capture: Path,
    discipline: Annotated[
        str,
        Opt(
            "A,B,...",
            "Queues to compare: presets, TOML tables, droptail or red. droptail and red get a "
            "buffer of 100 ms at the faster rate of the link. If you name only one queue, the "
            "command compares it with droptail.",
            complete=disciplines,
        ),
    ] = "droptail,fq-codel",
    *,
    rate: str | None = None,
    rtt: str | None = None,
    baseline: str | None = None,
    present: Annotated[
        str | None,
        Opt(
            "QUEUE",
            "Queue of the link during the capture; default: droptail. With --predict the default "
            "is the queue that explains the capture best.",
            complete=disciplines,
        ),
    ] = None,
    predict: Annotated[
        str | None,
        Opt(
            "A,B,...",
            "Predict response times and delays with these queues, instead of a comparison.",
            complete=disciplines,
        ),
    ] = None,
    buffer: str | None = None,
    what_if: bool = False,
    overrides: Sets = None,
    seed: Seed = None,
    seeds: Seeds = None,
    figure: Path | None = None,
    root: Path = RUNS_ROOT,
    as_json: Json = False,
    jobs: Jobs = None,
) -> None:
    """Replay a capture with several queues and compare them.

    The command sends the data of the applications again, not the captured packets. Standard error
    lists the assumptions, and the traffic that the command leaves out. The command first uses the
    present queue: the queue of the captured link. If the results differ much from the capture, an
    assumption is wrong, and the command ends with an error. The folder `replay` of --out contains
    the scenario and its connection vectors.

    --predict estimates how much response times and delays change with each queue. It prints the
    ratio of new to old values, with a range of likely ratios.

    Options:
        capture (FILE): Capture file: pcap or pcapng.
        rate (DOWN/UP): Rate of the link in Mbit/s; default: the rate that the capture shows.
        rtt (MS): Round-trip time of every connection; default: the round-trip times in the capture.
        baseline (LABEL): Label of the runs to compare with, such as fq-codel; default: drop-tail.
        buffer (DOWN/UP): With --predict: longest queueing delay of the present drop-tail queue in
            ms, such as 150/600; default: from the round-trip times in the capture.
        what_if (--what-if): Compare even if the replay with the present queue differs much from the
            capture.
        figure (-o, --output FILE): Figure file (.svg, .png, .pdf, .html); default:
            runs/compare.svg.
        root (--out FOLDER): Folder for new run directories.
    """
    rates_bps = parsed_rates(rate) if rate else None
    if predict:
        beside = {
            "--rtt": rtt,
            "--baseline": baseline,
            "--set": overrides,
            "--seed": seed,
            "--seeds": seeds,
            "--output": figure,
        }
        if other := [name for name, value in beside.items() if value]:
            raise AqmlabError(f"{other[0]}: --predict does not take it; leave one of them out")
        _predict(capture, predict, rates_bps, present, buffer, jobs, as_json=as_json)
        return
    if buffer:
        raise AqmlabError("--buffer: states the present queue of --predict; it is not given")
    if figure is not None:
        compare.check_figure(figure)
    words = vary.split(discipline)
    if len(words) == 1 and words != [_BASELINE]:
        words = [_BASELINE, *words]
    with Progress("reading") as progress:
        found = replay(
            capture,
            root / "replay",
            words,
            rates_bps=rates_bps,
            rtt_s=parsed_rtt(rtt) if rtt else None,
            present=present or _BASELINE,
            progress=progress.task(capture.name),
        )
    for text in found.notes:
        say(f"note: {text}")
    for text in found.assumed:
        say(f"assumed: {text}")
    for text in found.left_out:
        say(f"left out: {text}")
    say(f"scenario: {found.file}")
    checked = check(capture, found)
    for text in checked.lines:
        say(text)
    if checked.failure and not what_if:
        raise AqmlabError(checked.failure)
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


def _predict(
    capture: Path,
    queues: str,
    rates_bps: tuple[float, float] | None,
    present: str | None,
    buffer: str | None,
    jobs: int | None,
    *,
    as_json: bool,
) -> None:
    """Prints what queues are predicted to do."""
    words = vary.split(queues)
    refuse_unknown(words, "--predict")
    if present:
        refuse_unknown([present], "--present")
    found = foresee(
        capture,
        words,
        rates_bps=rates_bps,
        present=present,
        buffers_s=parsed_buffers(buffer) if buffer else None,
        jobs=jobs,
        report=say,
    )
    if as_json:
        print_json(predict_tables.content(found))
        return
    lines = "\n".join(predict_tables.sentences(found))
    if found.nothing_to_gain:
        show(lines, f"\nnothing to gain: {found.nothing_to_gain}")
        return
    show(lines, predict_tables.self_test_table(found), predict_tables.ratio_table(found))
    out(f"widest part of the band: {found.widest}")
    for text in found.left_out:
        out(f"not predicted: {text}")
