"""``aqmlab traffic ...``: what sources of traffic are like, without packets."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from aqmlab._util.console import Progress, out, print_json, say, show
from aqmlab._util.files import check_output_file
from aqmlab._util.table import TableModel
from aqmlab._util.words import nearest
from aqmlab.cli.build import Arg, Opt, built
from aqmlab.cli.options import Fields, Json, Seed, one_seed, renamed
from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.scenario import Override, Scenario
from aqmlab.traffic.capture_files import is_capture, notes_in_words
from aqmlab.traffic.describe import EXAMPLES, FOLLOWERS, SECONDS, describe, example, recorded

__all__ = ["COMMANDS", "command"]


_CAPTURES = (".pcap", ".pcapng")
"""How the names of captures end."""


def command() -> None:
    """Describe sources of traffic, and turn captures into traffic."""


def _describe_command(
    source: Annotated[
        str,
        Arg(
            "SOURCE",
            "A scenario file, connection vectors (.cvec), a capture (.pcap, .pcapng), or a "
            f"kind: {', '.join(EXAMPLES)}.",
        ),
    ],
    overrides: Fields = None,
    seed: Seed = None,
    seconds: Annotated[
        float, Opt("S", "Simulated time in seconds.", least=1.0, most=1e6)
    ] = SECONDS,
    *,
    figure: Path | None = None,
    as_json: Json = False,
) -> None:
    """Describe the traffic that a source offers.

    The source runs on an ideal network, which loses no packets and adds only the round-trip time.
    The command prints quantiles, tail indices (Hill estimator) and the Hurst parameter (logscale
    diagram of the Haar wavelet). For a capture it also describes the packet arrivals.

    Options:
        figure (-o, --output FILE): Figure file (.svg, .png, .pdf, .html).
    """
    from aqmlab.figures.files import save
    from aqmlab.traffic import views as describe_views

    if figure is not None:
        check_output_file(figure, "a figure")
    if source.endswith(_CAPTURES) or is_capture(Path(source)):
        if overrides or seed:
            raise AqmlabError(
                f"SOURCE: {source} is a capture, which has no seed and no fields to set"
            )
        _describe_capture(Path(source), figure, as_json)
        return
    pairs = overrides or []
    if (wanted := one_seed(seed)) is not None:
        pairs.append(("seed", str(wanted)))
    found = describe(_opened(source, pairs), seconds)
    if figure is not None:
        save(describe_views.describe_figure(found), figure)
    if as_json:
        print_json([description.to_json() for description in found])
        return
    for description in found:
        show(*describe_views.describe_tables(description))
    if figure is not None:
        out(f"figure: {figure}")


def _describe_capture(capture: Path, figure: Path | None, as_json: bool) -> None:
    """How the packets of a capture arrive."""
    from aqmlab.figures.files import save
    from aqmlab.traffic.arrivals import (
        arrivals,
        arrivals_figure,
        arrivals_table,
        ways,
        ways_table,
    )

    with Progress("reading") as progress:
        found = arrivals(capture, progress=progress.task(capture.name))
    passed, notes = ways(capture)
    for text in notes_in_words(notes):
        say(f"note: {text}")
    if figure is not None:
        save(arrivals_figure(found), figure)
    if as_json:
        print_json([one.to_json() for one in found])
        return
    show(arrivals_table(found), "", ways_table(passed, notes))
    if figure is not None:
        out(f"figure: {figure}")


def _opened(source: str, overrides: list[Override]) -> Scenario:
    """The scenario of a file, of recorded connections, or of a kind of traffic."""
    if source in EXAMPLES:
        return example(source, overrides)
    if source.endswith(".cvec"):
        return recorded(Path(source), overrides)
    if not Path(source).exists() and not source.endswith(".toml"):
        if source in FOLLOWERS:
            raise ScenarioError(
                f"SOURCE: found {source!r}, which asks for what the network allows: nothing can be "
                f"said without one; `aqmlab explain {source}` says how; expected a scenario, a "
                f"capture or one of {', '.join(EXAMPLES)}"
            )
        raise ScenarioError(
            f"SOURCE: found {source!r}; expected a scenario (.toml), connection vectors (.cvec), "
            f"a capture ({', '.join(_CAPTURES)}) or one of {', '.join(EXAMPLES)}"
            + nearest(source, EXAMPLES)
        )
    return Scenario.load(source, overrides)


@built(
    "aqmlab.traffic.captures.from_capture",
    capture=Arg("FILE"),
    output=Opt("FILE", "", "-o", "--output"),
    idle=Opt("TIME"),
    timeout=Opt("TIME"),
    partial=Annotated[Literal["keep", "drop"], Opt()],
    layout=Annotated[Literal["original", "alternate"], Opt()],
)
def _from_capture_command(
    made: functools.partial[dict[str, Any]],
    *,
    old_format: Annotated[str | None, renamed("--format", "--layout")] = None,  # noqa: ARG001
    as_json: Json = False,
) -> None:
    """Turn a capture into connection vectors.

    The vectors contain the sizes and times of the data that applications sent, without the effects
    of the network. The capture needs only packet headers: a snap length of 96 bytes is enough.
    """
    with Progress("reading") as progress:
        report = made(progress=progress.task(made.keywords["capture"].name))
    for text in notes_in_words(report["packets"]):
        say(f"note: {text}")
    if as_json:
        print_json(report)
        return
    show(_report_table(report))
    out(f"connection vectors: {made.keywords['output']}")


def _report_table(report: Mapping[str, Any]) -> TableModel:
    """What was read, made and skipped."""
    packets, connections, vectors = (report[part] for part in ("packets", "connections", "vectors"))
    table = TableModel("", ["what was read and made"], [""])

    def row(what: str, number: float) -> None:
        table.add_row(what, f"{number:,.0f}")

    def reasons(what: str, counts: Mapping[str, int]) -> None:
        for reason, number in counts.items():
            row(f"  {what}: {reason}", number)

    row("packets", packets["read"])
    row("  of TCP", packets["tcp"])
    reasons("skipped", packets["found"])
    for key, what in _OCCURRENCES.items():
        if packets[key]:
            row(f"  {what}", packets[key])
    row("seconds from first to last", packets["duration_s"])
    row("TCP connections", connections["seen"])
    reasons("skipped", connections["skipped"])
    row("connection vectors", connections["made"])
    row("  sequential", vectors["sequential"])
    row("  concurrent", vectors["concurrent"])
    reasons("not captured whole", connections["partial"])
    reasons("initiator known by", connections["initiator_by"])
    row("  with a round-trip time", vectors["with_rtt"])
    row("application data units", vectors["adus"])
    row("bytes from initiators", vectors["initiator_bytes"])
    row("bytes from acceptors", vectors["acceptor_bytes"])
    return table


_OCCURRENCES = {
    "repeated": "with data sent again or out of order",
    "keep_alives": "keep-alives",
    "implausible": "ignored: impossible sequence numbers",
    "stray": "of no connection: resets, remains of closed ones",
    "time_went_back": "earlier than the packet before",
}
"""Counts of the report that are shown if there are any."""


COMMANDS = {"describe": _describe_command, "from-capture": _from_capture_command}
