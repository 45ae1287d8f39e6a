"""From load to users: the number of users (or connections per second) that causes a load.

Load is defined as in M. Christiansen, K. Jeffay, D. Ott, F. D. Smith, "Tuning RED for Web Traffic",
SIGCOMM 2000, section 4: the average throughput that the same users cause on a network without
congestion, as a fraction of the link's rate. A few short runs on such a network, with different
numbers of users and several seeds, give throughput over users; a straight line through them gives
the users for a load. The line does not depend on the load or on the queue, so one answer, kept in
a cache, serves every queue and every load of a network.

Sizes and pauses have heavy tails: minutes say little about the average. What users ask for can be
counted without a packet, a hundred times as fast, and over a short run it errs the way that the
throughput does. So each run's throughput is multiplied by what its users ask for in a long time
over what they asked for during the run (a ratio estimate: W. Cochran, "Sampling Techniques", 1977,
chapter 6). The packets say what TCP adds, the counting what the average is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from aqmlab import _native
from aqmlab._util.effective import key_of
from aqmlab._util.files import write_text
from aqmlab._util.lazy import np
from aqmlab._util.places import cache_folder
from aqmlab._util.pool import OnProgress, Shares, run_all
from aqmlab.engine.memory import bound, limited
from aqmlab.errors import AqmlabError, RunError
from aqmlab.scenario.scenario import Override, Scenario

__all__ = [
    "LOADS",
    "LONG_TIMES",
    "SEEDS",
    "TIMES",
    "Calibration",
    "Line",
    "UncongestedClass",
    "calibrate",
]


_Progress = Callable[[float], None]

LOADS = (0.5, 0.75, 1.0, 1.25)
"""Loads at which the line's points are measured."""
SEEDS = (1, 2, 3)
"""Seeds of each point, whatever the scenario's: all seeds of a scenario have the same users."""
TIMES: tuple[Override, ...] = (
    ("measure.warm_up", "1 min"),
    ("measure.duration", "4 min"),
    ("measure.record", "[]"),
)
"""When the packets of a point are counted."""
LONG_TIMES: tuple[Override, ...] = (
    ("measure.warm_up", "10 min"),
    ("measure.duration", "60 min"),
)
"""When what the users ask for is counted."""
_PILOT_START = 30.0
"""Users (or connections per second) of the first pilot."""
_PILOT_COPIES = 1.0
"""Copies of each recorded connection in the first pilot."""
_PILOT_LOADS = (0.1, 1.5)
"""A pilot in this range of loads says well enough where to measure."""
_PILOT_ROUNDS = 12
"""More pilots than this have never been needed: a factor of ten each."""


@dataclass(frozen=True)
class Line:
    """Throughput over users on the uncongested network, measured."""

    rate_bps: float
    """Nominal rate of the link: load 1."""
    populations: Sequence[float]
    """Users (or connections per second) of each run."""
    throughputs_bps: Sequence[float]
    """IP bits per second of each run."""
    seeds: Sequence[int]
    """Seed of each run."""

    @cached_property
    def _coefficients(self) -> tuple[float, float]:
        slope, intercept = np.polyfit(self.populations, self.throughputs_bps, 1)
        return float(slope), float(intercept)

    @property
    def slope_bps(self) -> float:
        """IP bits per second that one more user (or connection per second) adds."""
        return self._coefficients[0]

    @property
    def intercept_bps(self) -> float:
        """Where the line meets zero users."""
        return self._coefficients[1]

    @property
    def r2(self) -> float:
        """Share of the variance that the line explains."""
        return float(np.corrcoef(self.populations, self.throughputs_bps)[0, 1] ** 2)

    @property
    def standard_error(self) -> float:
        """Relative standard error of the throughput, from the spread between the seeds."""
        seeds = np.array(self.seeds)
        per_seed = [
            np.sum(np.array(self.throughputs_bps)[seeds == seed])
            / np.sum(np.array(self.populations)[seeds == seed])
            for seed in sorted(set(self.seeds))
        ]
        spread = np.std(per_seed, ddof=1) / np.sqrt(len(per_seed))
        return float(spread / np.mean(per_seed))

    def population(self, load: float) -> float:
        """Users (or connections per second) that cause a load."""
        return (load * self.rate_bps - self.intercept_bps) / self.slope_bps


@dataclass(frozen=True)
class Calibration:
    """The answer for one class of traffic."""

    traffic: str
    """Name of the class."""
    load: float
    """The class's part of the scenario's load."""
    population: float
    """Users (or connections per second)."""
    unit: str
    """What the population counts."""
    line: Line
    """What it was read from."""

    def __str__(self) -> str:
        """One line for people."""
        count = f"{self.population:.0f}" if self.unit == "users" else f"{self.population:.4g}"
        line = self.line
        return (
            f"calibrated: {self.traffic}: {count} {self.unit} for {100 * self.load:.4g} % "
            f"(R2 {line.r2:.4f}, standard error {100 * line.standard_error:.1f} %)"
        )

    def to_json(self) -> dict[str, Any]:
        """For ``aqmlab calibrate --json``."""
        line = self.line
        return {
            "class": self.traffic,
            "load": self.load,
            "population": self.population,
            "unit": self.unit,
            "slope_bps": line.slope_bps,
            "intercept_bps": line.intercept_bps,
            "r2": line.r2,
            "standard_error": line.standard_error,
            "runs": asdict(line),
        }


def calibrate(
    scenario: Scenario,
    *,
    jobs: int | None = None,
    progress: _Progress | None = None,
    memory: str | int | None = None,
) -> tuple[Scenario, list[Calibration]]:
    """Finds the population of every class that leaves it to ``load``.

    Args:
        scenario: the scenario.
        jobs: number of runs at a time; default: the number of processors.
        progress: called with the share of the work that is done, from several threads.
        memory: memory limit of this process, in bytes or as text such as "4 GiB"; default: nine
            tenths of what is free.

    Returns:
        The scenario with its populations but without ``load``, and how each population was found.

    Raises:
        AqmlabError: a class cannot be calibrated, such as one behind a link with a trace.

    Example:
        >>> import aqmlab
        >>> scenario = aqmlab.Scenario.load("scenarios/open-loop.toml")
        >>> slow = scenario.with_overrides({"topology.bottleneck.rate": "1 Mbit/s"})
        >>> ready, [found] = aqmlab.calibrate(slow)
        >>> ready.uncalibrated, found.unit
        ([], 'connections/s')
    """
    classes = scenario.uncalibrated
    traffic = scenario.data["traffic"]
    answers = []
    for number, index in enumerate(classes):

        def on_progress(done: float, number: int = number) -> None:
            if progress is not None:
                progress((number + done) / len(classes))

        with limited(memory):
            line = _cached_line(UncongestedClass(scenario, index), jobs, on_progress)
        load = scenario.data["load"] * _native.load_share(scenario.effective, index)
        unit = _UNITS[_native.population_key(scenario.effective, index)]
        population = line.population(load)
        answers.append(Calibration(traffic[index]["name"], load, population, unit, line))
    found = dict(zip(classes, (answer.population for answer in answers), strict=True))
    return scenario.with_populations(found), answers


_UNITS = {
    "users": "users",
    "rate": "connections/s",
    "sessions": "sessions",
    "copies": "copies",
}
"""What the fields that hold a population count."""


@dataclass(frozen=True)
class UncongestedClass:
    """One class of a scenario, to be measured on the uncongested network."""

    scenario: Scenario
    index: int

    @cached_property
    def _links(self) -> list[tuple[str, str, float]]:
        """The links that its responses load most, the direction, and the nominal rate."""
        return _native.loaded_links(self.scenario.effective, self.index)

    @cached_property
    def rate_bps(self) -> float:
        """Nominal rate of the link, the mean of both directions if both are loaded."""
        return sum(rate for _, _, rate in self._links) / len(self._links)

    @cached_property
    def is_recorded(self) -> bool:
        """Whether connections are recorded ones, at their own times."""
        return _native.population_key(self.scenario.effective, self.index) == "copies"

    def times(self, times: tuple[Override, ...]) -> tuple[Override, ...]:
        """When to measure; recorded connections are what they are only in the scenario's time."""
        return (("measure.record", "[]"),) if self.is_recorded else times

    def text(self, population: float, seed: int, times: tuple[Override, ...]) -> str:
        """Effective scenario of one measurement."""
        alone = _native.uncongested(self.scenario.effective, self.index, population)
        return _native.parse(alone, "", [("seed", str(seed)), *self.times(times)])

    def asked_bps(self, population: float, seed: int, times: tuple[Override, ...]) -> float:
        """About the IP bits per second that the class asks for: no packets are simulated."""
        return _native.offered_bps(self.text(population, seed, times), 0)

    def measure(
        self, population: float, seed: int, report: OnProgress | None = None
    ) -> tuple[float, float]:
        """The population that ran (users are whole) and its throughput in IP bits per second."""
        text = self.text(population, seed, TIMES)
        ran = _native.population(text, 0)
        summary = json.loads(_native.run(text, None, report, bound()))
        links = summary["links"]
        throughputs = [links[link][way]["throughput_bps"] for link, way, _ in self._links]
        throughput = sum(throughputs) / len(throughputs)
        asked = self.asked_bps(population, seed, TIMES)
        if asked > 0.0:
            throughput *= self.asked_bps(population, seed, LONG_TIMES) / asked
        return (population if ran is None else ran), throughput


def _cached_line(alone: UncongestedClass, jobs: int | None, progress: _Progress) -> Line:
    """The line of a class, from the cache or measured now."""
    # The population and the seed are placeholders: what matters is everything else.
    text = alone.text(1.0, 1, TIMES) + repr((LONG_TIMES, LOADS, SEEDS, alone.rate_bps))
    file = cache_folder() / f"{key_of(text)[:32]}.json"
    with suppress(OSError, ValueError, TypeError):
        return Line(**json.loads(file.read_text(encoding="utf-8")))
    line = _measured_line(alone, jobs, progress)
    write_text(file, json.dumps(asdict(line), indent=2) + "\n")
    return line


def _measured_line(alone: UncongestedClass, jobs: int | None, progress: _Progress) -> Line:
    """Measures the line: every load with every seed."""
    full = _pilot(alone)
    points = [(load * full, seed) for load in LOADS for seed in SEEDS]

    def work(point: tuple[float, int], report: OnProgress) -> tuple[float, float]:
        return alone.measure(*point, report)

    measured = []
    for result in run_all(work, points, jobs=jobs, progress=Shares(len(points), progress)):
        if isinstance(result, AqmlabError):
            raise result
        measured.append(result)
    populations, throughputs = zip(*measured, strict=True)
    return Line(alone.rate_bps, populations, throughputs, [seed for _, seed in points])


def _pilot(alone: UncongestedClass) -> float:
    """About the population of load 1, by what it asks for."""
    population = _PILOT_COPIES if alone.is_recorded else _PILOT_START
    for _ in range(_PILOT_ROUNDS):
        load = alone.asked_bps(population, SEEDS[0], TIMES) / alone.rate_bps
        if _PILOT_LOADS[0] <= load <= _PILOT_LOADS[1]:
            return population / load
        # Towards load 1/2, by at most a factor of ten: few users tell little.
        population *= min(10.0, 0.5 / load) if load > 0.0 else 10.0
    name = alone.scenario.data["traffic"][alone.index]["name"]
    raise RunError(f"traffic.{name}: no number of users or connections causes the wanted load")
