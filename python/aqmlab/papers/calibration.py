"""Rates by seed: those with which each direction carries a row's load, without congestion.

A paper that calibrates its runs states the load that the same connections cause on a network
without congestion, in each direction and with the random numbers of the run itself. Here each class
of traffic sends its responses one way. The rate of each is multiplied by what its direction lacks,
until both directions carry what they should; requests and ACKs of other classes are part of that.
Large responses come and go with the rates, so that nothing converges to the last digit: the first
rates that are near enough are taken.
"""

from __future__ import annotations

import csv
import io
import math
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from aqmlab import _native
from aqmlab._util.files import write_text
from aqmlab._util.pool import OnProgress, run_all
from aqmlab.engine.execute import execute
from aqmlab.errors import AqmlabError, RunError
from aqmlab.papers.by_seed import BySeed
from aqmlab.papers.paper import Paper, Table
from aqmlab.papers.paper import PaperRow as TableRow
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from aqmlab.results.run import Run

__all__ = [
    "NEAR",
    "CalibrationCase",
    "CalibrationLine",
    "calibrate",
    "cases_of",
    "solved",
    "to_csv",
]


NEAR = 0.02
"""Largest difference from a load, as a fraction of it."""
_STEPS = 96
"""Runs after which a seed is given up."""
_WHOLE = 24
"""Runs after each of which the rates make up for all that is missing. Later ones make up for half
of it: a long response that comes and goes would lead back to the same rates."""
_PILOT = 100.0
"""Connections per second of each class of which is counted what they ask for."""
_SPARE = 1.008
"""Exchanges that are planned for each that must begin: arrivals vary."""


Row: TypeAlias = Mapping[str, str]
"""A line of the file, by column."""
_Loads: TypeAlias = Mapping[str, float]
"""In per cent of the link's rate, by class."""


@dataclass(frozen=True)
class CalibrationLine:
    """What the file says of a seed."""

    keys: Mapping[str, str]
    seed: int
    rates: Mapping[str, float]
    """Connections per second, by class."""
    loads_pct: Mapping[str, float]
    """What the direction of each class's responses carries on the uncongested network, in per cent
    of the link's rate."""
    measured: Mapping[str, str]
    """Further columns: the measured span, if the exchanges give it; when the first large response
    begins, if there has to be one."""

    def to_row(self) -> dict[str, str]:
        """As the file has it, with the engine that measured it."""
        return {
            **self.keys,
            "seed": str(self.seed),
            **{f"{name}_rate": f"{rate:.6g}" for name, rate in self.rates.items()},
            **{f"{name}_load_pct": f"{load:.2f}" for name, load in self.loads_pct.items()},
            **self.measured,
            "engine": _native.engine(),
        }


@dataclass(frozen=True)
class CalibrationCase:
    """A seed of the rows with the same keys; `row` is one of them."""

    paper: Paper
    spec: BySeed
    table: Table
    row: TableRow
    seed: int

    @property
    def keys(self) -> dict[str, str]:
        """The keys with their values."""
        return {key: self.row.published[key] for key in self.spec.keys}

    @property
    def name(self) -> tuple[str, ...]:
        """The values of the keys, and the seed."""
        return (*self.keys.values(), str(self.seed))

    @property
    def target_pct(self) -> float:
        """The load of each direction."""
        return float(self.row.published[self.spec.load])

    def span(self, rates: Mapping[str, float]) -> dict[str, str]:
        """How long the exchanges take to begin, as a column; none: the scenario says it."""
        if self.spec.exchanges is None:
            return {}
        duration_s = math.ceil(_SPARE * self.spec.exchanges / min(rates.values()))
        return {"duration_s": f"{duration_s:g}"}

    def scenario(self, rates: Mapping[str, float]) -> Scenario:
        """The run on the uncongested network with some rates."""
        line = CalibrationLine(self.keys, self.seed, rates, {}, self.span(rates)).to_row()
        overrides = [*self.paper.common, *self.row.filled(line), *self.spec.uncongested]
        return Scenario.load(self.table.scenario, [*overrides, ("seed", str(self.seed))])

    @cached_property
    def places(self) -> dict[str, tuple[str, str, float]]:
        """By class with a rate by seed: link and direction of its responses, rate in bit/s."""
        own = Scenario.load(self.table.scenario, [*self.paper.common, *self.row.overrides])
        fields = {path for path, _ in self.row.templates}
        rated = {
            one["name"]: _native.loaded_links(own.effective, index)
            for index, one in enumerate(own.data["traffic"])
            if f"traffic.{one['name']}.rate" in fields
        }
        return {name: place for name, [place] in rated.items()}

    def start(self) -> dict[str, float]:
        """Rates to begin with: by what the classes ask for, without packets."""
        scenario = self.scenario(dict.fromkeys(self.places, _PILOT))
        classes = [one["name"] for one in scenario.data["traffic"]]
        return {
            name: _PILOT
            * (self.target_pct / 100 * rate)
            / _native.offered_bps(scenario.effective, classes.index(name))
            for name, (_, _, rate) in self.places.items()
        }

    def line(self, rates: Mapping[str, float]) -> CalibrationLine:
        """What the file says of these rates: a run that records its responses."""
        scenario = self.scenario(rates).with_overrides([("measure.record", '["responses"]')])
        with tempfile.TemporaryDirectory() as folder:
            run = execute(scenario, Path(folder) / "run")
            links = run.summary["links"]
            measured = {**self.span(rates), **self._large(run)}
        loads = {
            name: 100 * links[link][way]["throughput_bps"] / rate
            for name, (link, way, rate) in self.places.items()
        }
        return CalibrationLine(self.keys, self.seed, dict(rates), loads, measured)

    def _large(self, run: Run) -> dict[str, str]:
        """When the first large response of a run begins, as a column; empty: none does in time."""
        if self.spec.large_mb is None:
            return {}
        rows = run.responses
        assert rows is not None
        sizes, starts = (rows[name].to_numpy() for name in ("response_bytes", "start_s"))
        large = starts[sizes >= 1e6 * self.spec.large_mb]
        in_time = large[large < self.spec.large_before_s]
        return {"large_s": f"{in_time.min():.0f}" if len(in_time) else ""}


def cases_of(paper: Paper, seeds: Sequence[int]) -> list[CalibrationCase]:
    """What is to be found for some seeds.

    Raises:
        AqmlabError: the paper has no rates by seed.
    """
    if paper.by_seed is None:
        raise AqmlabError(f"{paper.name}: found no rates by seed; its rows state all of them")
    first: dict[tuple[str, ...], tuple[Table, TableRow]] = {}
    for table in paper.tables:
        for row in table.rows:
            if row.templates:
                first.setdefault(paper.by_seed.key(row.published), (table, row))
    return [
        CalibrationCase(paper, paper.by_seed, *where, seed)
        for where in first.values()
        for seed in seeds
    ]


def calibrate(
    paper: Paper,
    seeds: Sequence[int],
    out: Path,
    *,
    jobs: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[list[Row], dict[str, str]]:
    """Finds the rates of some seeds for every row of a paper that has rates by seed.

    Args:
        paper: The paper.
        seeds: The seeds.
        out: The file. Lines of this engine that it holds are not found again, and stay.
        jobs: Runs at a time; None: as many as there are processors.
        progress: Called, from several threads, with a name and the share of it that is done.

    Returns:
        The lines of the file; and why others were not found, by what they are of.

    Raises:
        AqmlabError: the paper has no rates by seed.
    """
    chains: dict[tuple[str, ...], list[CalibrationCase]] = {}
    for case in cases_of(paper, seeds):
        same = (value for key, value in case.keys.items() if key != case.spec.load)
        chains.setdefault((*same, f"seed {case.seed}"), []).append(case)
    names = [" ".join(chain) for chain in chains]
    rows = _read(out)
    writing = threading.Lock()

    def work(chain: Sequence[CalibrationCase], report: OnProgress) -> None:
        before: CalibrationLine | None = None
        for done, case in enumerate(chain):
            report(done / len(chain))
            if case.name not in rows:
                before = _found(case, before)
                with writing:
                    rows[case.name] = before.to_row()
                    write_text(out, to_csv(list(rows.values())))

    def on_progress(index: int, done: float) -> None:
        if progress is not None:
            progress(names[index], done)

    results = run_all(work, list(chains.values()), jobs=jobs, progress=on_progress)
    pairs = zip(names, results, strict=True)
    failed = {name: str(one) for name, one in pairs if isinstance(one, AqmlabError)}
    return list(rows.values()), failed


def _read(file: Path) -> dict[tuple[str, ...], Row]:
    """The lines of this engine in a file, by the values of their keys and the seed."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as text:
        lines = [line for line in csv.DictReader(text) if line["engine"] == _native.engine()]
    return {tuple(line.values())[: list(line).index("seed") + 1]: line for line in lines}


def _found(case: CalibrationCase, before: CalibrationLine | None) -> CalibrationLine:
    """The line of a case; `before`: that of another load, from which it is not far."""
    tried: list[CalibrationLine] = []

    def loads(rates: Mapping[str, float]) -> _Loads:
        tried.append(case.line(rates))
        return tried[-1].loads_pct

    if before is None:
        start = case.start()
    else:
        loads_before = before.loads_pct
        start = {
            name: rate * case.target_pct / loads_before[name] for name, rate in before.rates.items()
        }
    solved(loads, start, case.target_pct)
    return tried[-1]


def solved(
    loads_pct: Callable[[Mapping[str, float]], _Loads],
    rates: Mapping[str, float],
    target_pct: float,
) -> dict[str, float]:
    """Rates with which every class's direction carries a load.

    Args:
        loads_pct: What some rates cause, by class.
        rates: Where to begin.
        target_pct: The load.

    Raises:
        RunError: none of the rates that were tried do, to within :data:`NEAR`.
    """
    chosen, found = dict(rates), {}
    for step in range(_STEPS):
        found = dict(loads_pct(chosen))
        if all(abs(load / target_pct - 1) <= NEAR for load in found.values()):
            return chosen
        better = {name: rate * target_pct / found[name] for name, rate in chosen.items()}
        if step >= _WHOLE:
            better = {name: math.sqrt(rate * chosen[name]) for name, rate in better.items()}
        chosen = better
    last = " and ".join(f"{load:.1f}" for load in found.values())
    raise RunError(
        f"found loads of {last} % after {_STEPS} runs; expected {target_pct:g} % within "
        f"{100 * NEAR:g} % of it"
    )


def to_csv(rows: Sequence[Row]) -> str:
    """The file: a line for each seed, by the keys."""
    longest_first = sorted(rows, key=len, reverse=True)
    names = list(dict.fromkeys(name for row in longest_first for name in row))
    by_keys = names[: names.index("seed") + 1]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda row: [_sortable(row[key]) for key in by_keys]))
    return text.getvalue()


def _sortable(value: str) -> tuple[float, str]:
    """Numbers by their size, words behind them."""
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value
