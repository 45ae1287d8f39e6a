"""A sweep on the terminal: what is planned, how it gets on, what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from aqmlab._util.console import Progress, say
from aqmlab._util.fields import Scalar
from aqmlab._util.table import Cell, TableModel
from aqmlab._util.words import counted, lasting
from aqmlab.results.compare import Difference
from aqmlab.results.formats import format_change, format_estimate
from aqmlab.results.quantity import Quantity
from aqmlab.results.statistics import Estimate, two_sided
from aqmlab.sweeps.axes import plain
from aqmlab.sweeps.campaign import SweepProgress
from aqmlab.sweeps.file import Sweep
from aqmlab.sweeps.summary import PointSummary, SweepSummary

__all__ = [
    "TerminalProgress",
    "batches_table",
    "differences_table",
    "points_table",
    "points_tsv",
    "warm_up_line",
]


class TerminalProgress(SweepProgress):
    """Tells on standard error how a sweep gets on; with bars on a terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def planned(self, sweep: Sweep, points: int, seeds: int) -> None:
        """See :class:`SweepProgress`."""
        more = f" at least, {sweep.max_seeds} at most" if sweep.precision else ""
        size = f"{counted(points, 'point')} x {counted(seeds, 'seed')}"
        say(f"{counted(points * seeds, 'run')}: {size}{more}")

    def noted(self, note: str) -> None:
        """See :class:`SweepProgress`."""
        say(f"warning: {note}")

    def calibrating(self, done: float) -> None:
        """See :class:`SweepProgress`."""
        self._progress.update("calibration", done)

    def calibrated(self, answer: str) -> None:
        """See :class:`SweepProgress`."""
        say(answer)

    def recording(self, size: str) -> None:
        """See :class:`SweepProgress`."""
        say(size)

    def making(self, missing: int, found: int, seconds: float, jobs: int) -> None:
        """See :class:`SweepProgress`."""
        say(
            f"{counted(missing, 'run')} to make, about {lasting(seconds)} with {jobs} at a time; "
            f"{found} in the store"
        )

    def progress(self, done: float, total: int) -> None:
        """See :class:`SweepProgress`."""
        self._progress.update(counted(total, "run"), done / total)

    def running(self, label: str, done: float) -> None:
        """See :class:`SweepProgress`."""
        self._progress.detail(label, done)


def points_table(points: Sequence[PointSummary]) -> TableModel:
    """A row for each point: its variables, its runs, the mean of each metric over its seeds."""
    table = _start(points[0].variables)
    table.add_number("runs")
    _add_metrics(table, points[0].estimates)
    for point in points:
        runs = f"{point.runs}" + (f", {point.failed} failed" if point.failed else "")
        table.add_row(*_texts(point.variables), runs, *_cells(point.estimates, _format_mean))
    return table


def points_tsv(points: Sequence[PointSummary]) -> list[dict[str, object]]:
    """A row for each point, for :func:`aqmlab._util.console.print_tsv`.

    Its variables, its runs, and by key of each metric the mean over its seeds and the ends of its
    interval, in the units of ``summary.json``; nothing where nothing tells them.
    """
    rows: list[dict[str, object]] = []
    for point in points:
        row: dict[str, object] = {**point.variables, "runs": point.runs, "failed": point.failed}
        for name, found in point.estimates.items():
            key = Quantity.read(name).key
            for end, value in (("", found.mean), (".low", found.low), (".high", found.high)):
                row[key + end] = value if math.isfinite(value) else None
        rows.append(row)
    return rows


def differences_table(summary: SweepSummary) -> TableModel:
    """A row for each point that is compared; clear differences are bold."""
    by_point: dict[str, dict[str, Difference]] = {}
    for difference in summary.differences:
        by_point.setdefault(difference.run, {})[difference.metric] = difference
    first = summary.differences[0]
    title = f"difference to {_baseline_of(summary)}, seed by seed, with 95 % intervals"
    table = _start(summary.variables[first.run], title)
    table.add_number("pairs")
    _add_metrics(table, by_point[first.run])
    for label, of_point in by_point.items():
        estimates = {metric: found.estimate for metric, found in of_point.items()}
        pairs = max(found.count for found in estimates.values())
        shown = _cells(estimates, _difference_cell)
        table.add_row(*_texts(summary.variables[label]), f"{pairs}", *shown)
    return table


def _baseline_of(summary: SweepSummary) -> str:
    """What the points are compared with: the variables that all baselines share."""
    compared = [
        (summary.variables[found.run], summary.variables[found.baseline])
        for found in summary.differences
    ]
    _, first = compared[0]
    shared = {
        name: value
        for name, value in first.items()
        if all(baseline[name] == value for _, baseline in compared)
        and any(own[name] != value for own, _ in compared)
    }
    return ", ".join(f"{name} = {plain(value)}" for name, value in shared.items())


def batches_table(batched: Mapping[str, Mapping[str, Estimate]]) -> TableModel:
    """A row for each class of one run: batch means of its response times."""
    [first, *_] = batched.values()
    table = _start({"class": ""})
    table.add_number("batches")
    _add_metrics(table, first)
    for name, metrics in batched.items():
        count = max(found.count for found in metrics.values())
        table.add_row(name, f"{count}", *_cells(metrics, _format_mean))
    return table


def warm_up_line(numbers: Mapping[str, float | None]) -> str:
    """What the test of the warm-up says about one run."""
    chances = [
        f"{name.split('_')[2]} p = {two_sided(number):.2g}"
        for name, number in numbers.items()
        if number is not None
    ]
    return "warm-up: " + (", ".join(chances) or "not tested: nothing is recorded")


def _start(variables: Mapping[str, Scalar], title: str = "") -> TableModel:
    """A table that begins with the variables."""
    table = TableModel(title)
    for name, value in variables.items():
        table.add_key(name, is_number=not isinstance(value, str))
    return table


def _add_metrics(table: TableModel, metrics: Iterable[str]) -> None:
    """A column for each metric."""
    for name in metrics:
        table.add_number(f"{name} {Quantity.read(name).unit}".rstrip())


def _texts(variables: Mapping[str, Scalar]) -> list[str]:
    """The values of variables as cells."""
    return [plain(value) for value in variables.values()]


def _cells(
    metrics: Mapping[str, Estimate], show: Callable[[Estimate, float], str | Cell]
) -> list[str | Cell]:
    """The estimates as cells."""
    return [
        show(found, Quantity.read(name).scale) if found.count else "-"
        for name, found in metrics.items()
    ]


def _format_mean(found: Estimate, factor: float) -> str:
    """A mean and half of its interval, with the digits that the interval leaves."""
    width = factor * found.half_width
    return format_estimate(found, lambda value: _rounded(factor * value, width))


def _difference_cell(found: Estimate, factor: float) -> Cell:
    """A difference and its interval."""
    width = factor * found.half_width
    text = format_change(found, lambda value: _rounded(factor * value, width, "+"))
    return Cell(text, "clear" if found.clear else "")


def _rounded(value: float, width: float, sign: str = "") -> str:
    """A number to the second digit of the width of its interval; of none, to its fourth."""
    if not width > 0:
        return f"{value:{sign},.4g}"
    digits = min(6, max(0, 1 - _exponent(width)))
    return f"{value:{sign},.{digits}f}"


def _exponent(value: float) -> int:
    """The power of ten of the first digit."""
    return int(f"{value:e}".partition("e")[2])
