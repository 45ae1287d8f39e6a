"""A sweep's results in brief: means over the seeds of each point, and paired differences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aqmlab._util.extras import needed
from aqmlab._util.fields import Scalar
from aqmlab._util.lazy import pa
from aqmlab._util.words import counted, nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.compare import Difference
from aqmlab.results.conditions import conditions, holds
from aqmlab.results.links import LOAD_KEYS, loaded_links
from aqmlab.results.numbers import link_tables
from aqmlab.results.own_metrics import define
from aqmlab.results.quantity import Quantity
from aqmlab.results.statistics import Estimate, combined, estimate, paired_difference, two_sided
from aqmlab.results.warm_up import COLUMNS, LEVEL
from aqmlab.sweeps.file import Point, Sweep, label_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PointSummary", "SweepSummary", "points_where"]


@dataclass(frozen=True)
class PointSummary:
    """What the runs of a point came to."""

    variables: Mapping[str, Scalar]
    runs: int
    """Runs that ended well."""
    failed: int
    estimates: Mapping[str, Estimate]
    """By metric, as it was asked for; of the runs that measured it."""
    warm_up_p: float | None
    """Probability of what the test of the warm-up found if it was long enough; None: untested."""

    @property
    def label(self) -> str:
        """The point in words."""
        return label_of(self.variables)

    def to_json(self) -> dict[str, Any]:
        """For ``aqmlab sweep --json``."""
        return _without_nan(asdict(self))


class SweepSummary:
    """The results of a sweep, point by point; also as polars frames.

    Example:
        >>> import pathlib
        >>> import aqmlab
        >>> short = {"measure.warm_up": "5 s", "measure.duration": "10 s"}
        >>> scenario = aqmlab.Scenario.load("scenarios/vectors.toml").with_overrides(short)
        >>> size = pathlib.Path("base.toml").write_text(scenario.effective)
        >>> size = pathlib.Path("rates.toml").write_text('''
        ... scenario = "base.toml"
        ... seeds = "1..2"
        ... baseline = { rate = "10 Mbit/s" }
        ... [[axes]]
        ... field = "topology.bottleneck.forward.rate"
        ... values = ["10 Mbit/s", "5 Mbit/s"]
        ... ''')
        >>> plan = aqmlab.Sweep.load("rates.toml")
        >>> summary = aqmlab.SweepSummary(plan, aqmlab.sweep(plan), ["p50", "utilization"])
        >>> summary.to_frame().columns[:6]
        ['rate', 'runs', 'failed', 'p50', 'p50_low', 'p50_high']
        >>> summary.differences_frame().get_column("metric").to_list()
        ['p50', 'utilization.forward', 'utilization.reverse']
        >>> summary.runs_frame().height
        4
    """

    def __init__(
        self,
        sweep: Sweep,
        table: pa.Table,
        metrics: Sequence[str] | None = None,
        where: Sequence[str] = (),
    ) -> None:
        """Groups the rows of a sweep's table.

        Args:
            sweep: the sweep.
            table: what :func:`aqmlab.sweeps.campaign` returned.
            metrics: short names, or columns of the table; None: those that the sweep shows. A
                short name that names no link stands for every loaded one; its estimates are under
                the name of each, such as ``queue.reverse``.
            where: conditions on the variables, such as ``load=0.9``; points that they leave out
                are neither shown nor compared, except as a baseline.

        Raises:
            AqmlabError: there is no such metric, variable or value.
        """
        self._sweep = sweep
        self._points = points_where(sweep, where)
        self._table = table
        define(sweep.metrics)
        wanted = list(metrics or sweep.show)
        if metrics is None and sweep.shows_the_usual:
            wanted = _usual(wanted, table)
        if metrics is None:
            wanted += [one.name for one in sweep.metrics]
        loaded = loaded_links(_summaries(table))
        named = (one for name in wanted for one in Quantity.read(name).among(loaded))
        self._metrics = list(dict.fromkeys(named))
        keys = [one.key for one in self._metrics]
        for one, key in zip(self._metrics, keys, strict=True):
            if key not in table.column_names and "done" in table.column("status").to_pylist():
                raise AqmlabError(
                    f"{one.name}: the results have no {key}{nearest(key, table.column_names)}"
                )
        used = [name for name in (*keys, *COLUMNS) if name in table.column_names]
        rows = table.select(
            [*sweep.variables, "seed", "status", "error", *dict.fromkeys(used)]
        ).to_pylist()
        self._rows: dict[tuple[Scalar, ...], list[dict[str, Any]]] = {}
        for row in rows:
            self._rows.setdefault(tuple(row[name] for name in sweep.variables), []).append(row)

    @cached_property
    def points(self) -> list[PointSummary]:
        """Every point of the sweep that is shown."""
        return [self._summarised(point) for point in self._points]

    def _of(self, point: Point) -> list[dict[str, Any]]:
        """The rows of a point that ended well."""
        rows = self._rows.get(tuple(point.variables.values()), [])
        return [row for row in rows if row["status"] == "done"]

    def _summarised(self, point: Point) -> PointSummary:
        done = self._of(point)
        bias = [combined(_column(done, name)) for name in COLUMNS if _column(done, name)]
        return PointSummary(
            point.variables,
            runs=len(done),
            failed=len(self._rows.get(tuple(point.variables.values()), [])) - len(done),
            estimates={
                one.name: estimate(_column(done, one.key), bounds=one.bounds)
                for one in self._metrics
            },
            warm_up_p=min(1.0, len(bias) * min(map(two_sided, bias))) if bias else None,
        )

    @cached_property
    def differences(self) -> list[Difference]:
        """Every point that the sweep compares with a baseline, metric by metric, seed by seed."""
        by_steps = {point.steps: point for point in self._sweep.points}
        found = []
        for point in self._points:
            steps = self._sweep.baseline_of(point)
            if steps is not None and steps in by_steps:
                found += self._compared(by_steps[steps], point)
        return found

    def _compared(self, baseline: Point, point: Point) -> list[Difference]:
        first, second = ({row["seed"]: row for row in self._of(p)} for p in (baseline, point))
        seeds = [seed for seed in second if seed in first]
        found = []
        for one in self._metrics:
            pairs = [(first[seed].get(one.key), second[seed].get(one.key)) for seed in seeds]
            whole = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
            change = paired_difference(
                [a for a, _ in whole], [b for _, b in whole], bounds=one.bounds
            )
            basis = f"{counted(len(whole), 'pair')} of runs"
            found.append(Difference(point.label, baseline.label, "", one.name, change, True, basis))
        return found

    def to_frame(self) -> pl.DataFrame:
        """A row for each point.

        Columns: the variables; ``runs`` that ended well and ``failed`` ones; of each metric the
        mean, under its name, and the ends of its 95 % interval, ``NAME_low`` and ``NAME_high``
        (null if there is none).
        """
        return _frame(
            {
                **point.variables,
                "runs": point.runs,
                "failed": point.failed,
                **_columns(point.estimates),
            }
            for point in self.points
        )

    def differences_frame(self) -> pl.DataFrame:
        """A row for each point that is compared with a baseline, and each metric.

        Columns: the variables, those of the baseline as ``baseline_NAME``, ``metric``,
        ``difference``, ``difference_low`` and ``difference_high`` (null if there is no interval).
        """
        return _frame(
            {
                **self.variables[found.run],
                **{
                    f"baseline_{name}": value
                    for name, value in self.variables[found.baseline].items()
                },
                "metric": found.metric,
                **_columns({"difference": found.estimate}),
            }
            for found in self.differences
        )

    def runs_frame(self) -> pl.DataFrame:
        """A row for each run: the table of ``results.parquet``."""
        found: pl.DataFrame = needed("polars", "frames", "polars>=1.30").DataFrame(self._table)
        return found

    @cached_property
    def variables(self) -> dict[str, Mapping[str, Scalar]]:
        """The variables of every point, by its label."""
        return {point.label: point.variables for point in self._sweep.points}

    @property
    def failures(self) -> list[str]:
        """Points, seeds and errors of the runs that failed."""
        return [
            f"{point.label}, seed {row['seed']}: {row['error']}"
            for point in self._sweep.points
            for row in self._rows.get(tuple(point.variables.values()), [])
            if row["status"] == "failed"
        ]

    def to_json(self) -> dict[str, Any]:
        """For ``aqmlab sweep --json``."""
        return {
            "points": [point.to_json() for point in self.points],
            "differences": [
                {
                    **difference.to_json(),
                    "variables": self.variables[difference.run],
                    "baseline_variables": self.variables[difference.baseline],
                }
                for difference in self.differences
            ],
            "failures": self.failures,
        }

    @property
    def under_warmed(self) -> list[PointSummary]:
        """Points whose warm-up was too short, as far as the test can tell.

        With many points some would fail by chance, so that the level is divided by their number.
        """
        tested = [point for point in self.points if point.warm_up_p is not None]
        return [p for p in tested if p.warm_up_p is not None and p.warm_up_p < LEVEL / len(tested)]


@dataclass(frozen=True)
class _Row:
    """A run as the table has it."""

    summary: Mapping[str, Any]
    """What its columns say of links."""


def points_where(sweep: Sweep, where: Sequence[str]) -> list[Point]:
    """The points of a sweep whose variables have some values.

    Raises:
        AqmlabError: there is no such variable, value or point.
    """
    known = {name: [p.variables.get(name) for p in sweep.points] for name in sweep.variables}
    allowed = conditions(where, known)
    found = [point for point in sweep.points if holds(allowed, point.variables)]
    if not found:
        raise AqmlabError(f"where: no point has {' and '.join(where)}")
    return found


def _summaries(table: pa.Table) -> list[_Row]:
    """What each run measured at its links, as far as it tells which are loaded."""
    names = [
        name
        for name in table.column_names
        if name.startswith("links.") and name.rpartition(".")[2] in LOAD_KEYS
    ]
    return [_Row(link_tables(row)) for row in table.select(names).to_pylist()]


def _usual(names: Sequence[str], table: pa.Table) -> list[str]:
    """What is shown unless the file says otherwise: no response times where there are none.

    Bulk transfers are shown by their goodput and its fairness, datagrams by loss and delay.
    """
    classes = [name.split(".")[1] for name in table.column_names if re.fullmatch(_RESPONSES, name)]
    served = {name for name in classes if any(_values(table, f"responses.{name}.count"))}
    if not classes or "all" not in classes:
        return list(names)
    shown = [name for name in names if Quantity.read(name).is_of_every_link or served]
    others = [name for name in classes if name != "all" and name not in served]
    moving = [name for name in others if any(_values(table, f"flows.{name}.goodput_bps"))]
    for name in moving:
        datagrams = any(_values(table, f"flows.{name}.datagrams_sent"))
        shown += [f"{metric}.{name}" for metric in (_DATAGRAMS if datagrams else _TRANSFERS)]
    return shown


_TRANSFERS = ("goodput", "fairness")
_DATAGRAMS = ("datagram_loss", "datagram_delay_p50", "datagram_delay_p95", "jitter")


_RESPONSES = r"responses\.[^.]+\.count"
"""Columns that count the responses of a class."""


def _values(table: pa.Table, name: str) -> list[Any]:
    """A column, if the table has it."""
    return list(table.column(name).to_pylist()) if name in table.column_names else []


def _frame(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows as a frame."""
    frames = needed("polars", "frames", "polars>=1.30")
    found: pl.DataFrame = frames.DataFrame(list(rows), infer_schema_length=None)
    return found


def _columns(estimates: Mapping[str, Estimate]) -> dict[str, float | None]:
    """Means and the ends of their intervals, by column."""
    found: dict[str, float | None] = {}
    for name, value in estimates.items():
        ends = {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        found |= {key: None if math.isnan(end) else end for key, end in ends.items()}
    return found


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The values of a column, where there are any."""
    return [float(value) for row in rows if (value := row.get(name)) is not None]


def _without_nan(content: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that are none become null: JSON has no other word for them."""

    def clean(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
        if isinstance(value, Mapping):
            return _without_nan(value)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {key: clean(value) for key, value in content.items()}
