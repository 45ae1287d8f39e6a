"""What comes in each interval of time: response times, and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow.compute as pc

from aqmlab.errors import AqmlabError
from aqmlab.figures import curves
from aqmlab.figures.axes import linear
from aqmlab.figures.compared import compared
from aqmlab.figures.findings import Finding, finding
from aqmlab.figures.grammar import Chart
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.results.configurations import Configuration, Sources
from aqmlab.results.run import Run

__all__ = ["arrived_bytes", "mean_responses", "over_time"]

What: TypeAlias = Literal["response", "bytes"]

_MOST = 1000
"""Most intervals that are drawn."""


def over_time(
    runs: Sources,
    *,
    of: What = "response",
    window_s: float = 1.0,
    link: str = "bottleneck",
    direction: str = "forward",
    look: Look = Look(),  # noqa: B008 - it never changes
) -> Chart:
    """Mean response time, or bytes, in each interval of time.

    Responses count in the interval in which they end, and come from responses.parquet. Bytes count
    in the interval in which their packet reaches the queue, and come from packets.parquet. The
    title states the mean of the intervals' means, or the coefficient of variation of the bytes:
    their standard deviation over their mean. It falls with the root of the interval where packets
    come independently of each other. Each curve is the run with the smallest seed. The first 1,000
    intervals of the measured span are drawn; the title counts all.

    Args:
        runs: Runs, run directories, folders of them, or folders of sweeps.
        of: Mean response time (response), or bytes that reach the queue of a link (bytes).
        window_s: Length of the intervals in seconds.
        link: Name of the link, with --of bytes.
        direction: Direction of the link, with --of bytes.
        look: Width and theme.
    """
    if not window_s > 0:
        raise AqmlabError(f"window_s: found {window_s}; expected a time above 0")
    found = compared(runs, look)
    first = {entry.label: min(entry.runs, key=lambda run: run.seed) for entry in found}
    values = {
        name: mean_responses(run, window_s)
        if of == "response"
        else arrived_bytes(run, window_s, link, direction)
        for name, run in first.items()
    }
    where = "" if of == "response" else f" at {link}, {direction}"
    if not any(np.isfinite(one).any() for one in values.values()):
        table = "responses" if of == "response" else "packets"
        raise AqmlabError(
            f"no run has {table}{where} in an interval of {window_s:g} s: add "
            f'"{table}" to measure.record, or choose a shorter window_s, and run again'
        )
    return _view(found, first, values, of, window_s, where, look).chart(look)


def _view(
    found: Sequence[Configuration],
    first: dict[str, Run],
    values: dict[str, np.ndarray],
    of: What,
    window_s: float,
    where: str,
    look: Look,
) -> Figure:
    """The curves; `where` is the link of bytes and its direction."""
    rows: list[curves.Row] = []
    said = []
    for name, one in values.items():
        known = one[np.isfinite(one)]
        if not len(known):
            continue
        number = known.mean() if of == "response" else known.std() / max(known.mean(), 1e-300)
        said.append(Finding(name, {first[name].seed: float(number)}))
        begin = _begin(first[name])
        for at, value in enumerate(one[:_MOST]):
            shown = (
                None
                if np.isnan(value)
                else curves.number(value if of == "response" else value / 1e3)
            )
            middle = round(begin + (at + 0.5) * window_s, 9)
            rows.append({"series": name, "x": middle, "y": shown, "low": shown, "high": shown})
    heights = [float(str(row["y"])) for row in rows if row["y"] is not None]
    x = linear("Simulated time (s)", [float(str(row["x"])) for row in rows], count=6, tight=True)
    if of == "response":
        what, unit, title = (
            "mean over the intervals of the response time",
            "s",
            "Mean response time (s)",
        )
    else:
        what, unit, title = "coefficient of variation of the bytes", "", "Bytes (kB)"
    y = linear(title, heights, zero=True)
    who = f" of {found[0].label}" if len(found) == 1 else ""
    count = max(len(one) for one in values.values())
    drawn = (
        f"the first {_MOST:,} of {count:,} intervals" if count > _MOST else f"{count:,} intervals"
    )
    heading = Heading(
        finding(said, what, unit),
        (f"{drawn}{who}{where}, {window_s:g} s each; the run with the smallest seed",),
    )

    def build(room: float) -> Chart:
        plot: Chart = curves.banded(
            rows, list(values), look, x, y, width=room, height=look.size.height
        )
        return plot

    return Figure(heading, build)


def _begin(run: Run) -> float:
    """When the measured span begins."""
    return float(run.summary["simulated_s"]) - float(run.summary["measured_s"])


def _count(run: Run, window_s: float) -> int:
    """How many whole intervals the measured span has."""
    return int(float(run.summary["measured_s"]) / window_s + 1e-9)


def mean_responses(run: Run, window_s: float) -> np.ndarray:
    """Mean response time of what ended in each interval; not a number where nothing did."""
    count = _count(run, window_s)
    total, seen = np.zeros(count), np.zeros(count)
    for part in run.without_tables().batches("responses", ("start_s", "response_s")):
        took = part["response_s"].to_numpy()
        _add(total, (part["start_s"].to_numpy() + took - _begin(run)) / window_s, took)
        _add(seen, (part["start_s"].to_numpy() + took - _begin(run)) / window_s, np.ones(len(took)))
    with np.errstate(invalid="ignore"):
        return np.where(seen > 0, total / np.maximum(seen, 1), np.nan)


def arrived_bytes(run: Run, window_s: float, link: str, direction: str) -> np.ndarray:
    """Bytes that reached the queue of a link in each interval; not numbers without packets."""
    total = np.zeros(_count(run, window_s))
    found = False
    for part in run.without_tables().batches(
        "packets", ("link", "direction", "arrive_ns", "size_bytes")
    ):
        here = part.filter(
            pc.and_(pc.equal(part["link"], link), pc.equal(part["direction"], direction))
        )
        found = found or len(here) > 0
        at = here["arrive_ns"].to_numpy() / 1e9 - _begin(run)
        _add(total, at / window_s, here["size_bytes"].to_numpy().astype(float))
    return total if found else np.full(len(total), np.nan)


def _add(sums: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    """Adds values to the sums of the intervals in which they lie."""
    index = np.floor(at + 1e-9).astype(int)
    inside = (index >= 0) & (index < len(sums))
    sums += np.bincount(index[inside], weights=values[inside], minlength=len(sums))
