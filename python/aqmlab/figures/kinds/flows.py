"""Connections over time: congestion window, round-trip time, rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from aqmlab.errors import AqmlabError
from aqmlab.figures.cases import Case, Sources, cases
from aqmlab.figures.files import Chart
from aqmlab.figures.findings import Finding, finding, shown
from aqmlab.figures.theme import Heading, Look, View
from aqmlab.figures.timelines import Panel, Series, stacked
from aqmlab.results.run import Run

__all__ = ["flows", "trace"]


_MOST = 4
"""Connections of a run that are drawn."""


def flows(
    runs: Sources,
    *,
    flow: int | None = None,
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Congestion window, round-trip time and rate of connections over time.

    From flow_trace.parquet, which measure.flow_trace asks for, of the smallest seed. Of one
    configuration its first four connections are drawn, of several the first connection of each.
    The round-trip time is the smoothed one of the sender, the rate an estimate: what is in flight
    over that time.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        flow: A connection by its number; default: the first ones.
        look: Width and theme.
    """
    found = cases(runs)
    return _view(found, flow, look).chart(look)


def _view(found: Sequence[Case], flow: int | None, look: Look) -> View:
    """The three plots."""
    traced = {case.label: trace(case.runs[0], flow) for case in found}
    series = _named(traced)
    if not series:
        raise AqmlabError(
            "no run recorded a connection: set measure.flow_trace, such as "
            '{ flows = 4, period = "20 ms" }, and run again'
        )
    panels = [
        Panel("", title, {name: _column(one, column) for name, one in series.items()})
        for title, column in (
            ("Cwnd (kB)", pl.col("cwnd_bytes") / 1e3),
            ("RTT (ms)", 1e3 * pl.col("rtt_s")),
            ("Rate (Mbit/s)", 8e-6 * pl.col("in_flight_bytes") / pl.col("rtt_s")),
        )
    ]
    of_seed = ", ".join(f"seed {seed}" for seed in sorted({case.runs[0].seed for case in found}))
    who = f"{found[0].label}, " if len(found) == 1 else ""
    which = f"connection{'s' if len(series) > 1 else ''} {', '.join(series)}" if who else "one each"
    heading = Heading(
        _finding(found, series),
        (
            f"{who}{which}; {of_seed}",
            "RTT: the sender's smoothed one; rate: an estimate, bytes in flight / RTT",
        ),
    )

    def build(room: float) -> Chart:
        return stacked(panels, list(series), look, room)

    return View(heading, build)


def _finding(found: Sequence[Case], series: Mapping[str, pl.DataFrame]) -> str:
    """What happens to the round-trip time."""
    medians = {name: 1e3 * float(np.median(_rtt(one))) for name, one in series.items()}
    if len(found) > 1:
        said = [Finding(name, {0: value}) for name, value in medians.items()]
        return finding(said, "median round-trip time", "ms")
    least = 1e3 * min(float(_rtt(one).min()) for one in series.values())
    middle = float(np.median(list(medians.values())))
    return (
        f"Round-trip times: {shown(least)} ms at the least, {shown(middle)} ms in the median "
        "(one seed)"
    )


def _named(traced: Mapping[str, Sequence[tuple[str, pl.DataFrame]]]) -> dict[str, pl.DataFrame]:
    """The connections that are drawn, by their names in the legend."""
    known = {label: one for label, one in traced.items() if one}
    if len(known) == 1:
        return dict(next(iter(known.values()))[:_MOST])
    return {label: one[0][1] for label, one in known.items()}


def trace(run: Run, flow: int | None = None) -> list[tuple[str, pl.DataFrame]]:
    """A run's traced connections, each with its name; one of them if its number is given."""
    table = run.read("flow_trace")
    if table is None:
        return []
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col("class").cast(pl.String))
    parts = frame.sort("time_s").partition_by("flow", as_dict=True, maintain_order=True)
    numbered = {int(str(number)): part for (number,), part in sorted(parts.items())}
    if flow is not None and flow not in numbered:
        raise AqmlabError(
            f"{run.path}: flow: found {flow}; the trace has {', '.join(map(str, numbered))}"
        )
    return [
        (f"{number} ({part['class'][0]})", part)
        for number, part in numbered.items()
        if flow in (None, number) and part["rtt_s"].null_count() < len(part)
    ]


def _rtt(part: pl.DataFrame) -> np.ndarray:
    """A connection's round-trip times, in seconds."""
    return part["rtt_s"].drop_nulls().to_numpy()


def _column(part: pl.DataFrame, value: pl.Expr) -> Series:
    """A connection's values over time, where there are any."""
    rows = part.select("time_s", value.alias("value")).drop_nulls()
    return [(rows["time_s"].to_numpy(), rows["value"].to_numpy().astype(float))]
