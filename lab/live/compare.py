"""The simulator against the kernel: the same scenarios in both worlds, side by side.

``python -m lab.live.compare`` (as root) reads ``lab/live/compare.toml``, makes the
live runs that are missing, one at a time, simulates the same scenarios with the same seeds, and
writes ``records/live-comparison.md`` and, beside the runs,
``scoreboard.json``.

A live run costs its length in real time. A valid one is kept and counts again as long as its file
has the same scenario; an invalid one is set aside and repeated. Numbers are means over the seeds.
The distance between the response times is Kolmogorov's, between all of the one world and all of
the other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from aqmlab._util.console import out, say
from aqmlab._util.fields import toml_table
from aqmlab._util.files import write_text
from aqmlab.engine.execute import World, execute
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.compare import kolmogorov_distance
from aqmlab.results.links import LinkDirection
from aqmlab.results.quantity import Quantity
from aqmlab.results.run import Run
from aqmlab.results.terms import Tolerance, number_at
from aqmlab.scenario.catalog import Catalog
from aqmlab.scenario.scenario import Scenario

from lab import study

__all__ = [
    "CASES",
    "SHOWN",
    "TRIES",
    "Case",
    "Score",
    "judge",
    "live_run",
    "load",
    "main",
    "page",
    "record",
    "row",
    "same",
    "simulated_run",
]

CASES = Path("lab/live/compare.toml")
"""What is compared."""
_TITLE = "The simulator against the kernel"
_RECORD = Path("records/live-comparison.md")
_OTHER = (
    "[Queues of today](live-queues.md) are a comparison of their own: six queues under CUBIC and "
    "BBRv1, and ten transfers behind FQ-PIE.\n"
)
"""A line for each case, and the table of each."""
TRIES = 4
"""Live runs of a case and seed before the machine is called too busy."""
_DISTANCE = "distance"
"""The metric that is no number of a run."""
_SHARE = "share"
"""The metric of each class."""
SHOWN = {
    "utilization": ("utilization", 1, 3),
    "loss": ("loss %", 100, 2),
    "marked": ("marked %", 100, 2),
    "queue": ("mean queue, packets", 1, 1),
    "delay_p95": ("queueing delay p95 ms", 1000, 1),
    "share": ("share of the goodput %", 100, 1),
    "p50": ("p50 s", 1, 3),
    "p90": ("p90 s", 1, 3),
    "p99": ("p99 s", 1, 2),
    _DISTANCE: ("Kolmogorov distance", 1, 3),
}
"""Rows of a case: title, factor, decimals."""
_WHERE_JUDGED = {"marked", "delay_p95", "share"}
"""Rows that only the cases with a bound for them have."""


@dataclass(frozen=True)
class Case:
    """A scenario that both worlds run."""

    name: str
    title: str
    scenario: Scenario
    seeds: tuple[int, ...]
    within: Mapping[str, float]
    """Bounds by metric: of the relative difference, of the distance itself."""
    simulated: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the simulation alone: rules that every kernel has."""
    live: str = ""
    """The case that has the live runs; empty: this one."""
    points: Mapping[str, float] = field(default_factory=dict)
    """Bounds by metric of the difference itself: a metric keeps its bound by either."""

    def seeded(self, seed: int) -> Scenario:
        """The scenario with a seed."""
        return self.scenario.with_overrides({"seed": seed})


@dataclass(frozen=True)
class Score:
    """A metric of a case in both worlds, a value for each seed; the distance has one alone."""

    metric: str
    simulated: tuple[float, ...]
    live: tuple[float, ...]
    bound: float | None
    """None: shown, not judged."""
    of_class: str = ""
    """The class of traffic; empty: all together."""
    points: float | None = None
    """A bound of the difference itself; None: there is none."""

    @property
    def deviation(self) -> float:
        """The relative difference of the means, or the distance."""
        if self.metric == _DISTANCE:
            return self.live[0]
        simulated, live = fmean(self.simulated), fmean(self.live)
        if not simulated:
            return float("inf") if live else 0.0
        return live / simulated - 1

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        if self.bound is None:
            return None
        if self.points is not None:
            means = fmean(self.live), fmean(self.simulated)
            if Tolerance(absolute=self.points).admits(*means):
                return True
        return Tolerance(absolute=self.bound).admits(abs(self.deviation), 0.0)


@study.program
def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0 if every bound is kept, 1 if not, 2 for wrong input."""
    parser = study.parser(__doc__, out="out/live-compare")
    parser.add_argument("names", nargs="*", help="cases; default: all, and the page of them")
    parser.add_argument("--cases", type=Path, default=CASES, help="file of cases")
    options = parser.parse_args(arguments)
    return _compare_all(options.cases, options.names, options.out)


def _compare_all(file: Path, names: Sequence[str], folder: Path) -> int:
    """Compares some cases, or all; prints their tables and writes the page."""
    chosen = study.chosen(load(file), names, f"{file}: has no case {{}}")
    # Seed by seed, so that a machine that is busy for a while does not spoil a single case.
    live: dict[tuple[str, int], Run] = {}
    for seed in sorted({seed for case in chosen for seed in case.seeds}):
        for case in chosen:
            if seed in case.seeds:
                live[case.name, seed] = live_run(case, seed, folder)
    results, sections, brief, kernel = [], [], [], ""
    for case in chosen:
        played = [live[case.name, seed] for seed in case.seeds]
        simulated = [simulated_run(case, seed, folder) for seed in case.seeds]
        scores = judge(case, simulated, played)
        kernel = played[0].summary["live"]["kernel"]
        results.append(_to_json(case, scores, played))
        sections.append(_lines(case, scores))
        brief.append(_brief(case, scores))
        out(sections[-1])
    content = json.dumps({"kernel": kernel, "cases": results}, indent=2)
    write_text(folder / "scoreboard.json", content + "\n")
    judged = [score for result in results for score in result["scores"] if score["bound"]]
    if not names:
        runs = [*{run.path: run for run in live.values()}.values()] if file != CASES else []
        written = page(brief, judged, kernel, file) + _circumstances(runs)
        write_text(_record_of(file), f"{written}\n{record(sections)}")
    return 0 if all(score["holds"] for score in judged) else 1


def load(file: Path) -> dict[str, Case]:
    """The cases of a file, by name."""
    content = toml_table(file, "settings")
    return {
        name: Case(
            name,
            entry["title"],
            Scenario.load(file.parent / entry["scenario"]).with_overrides(entry.get("set", {})),
            tuple(entry.get("seeds", content["seeds"])),
            entry["within"],
            entry.get("simulated", {}),
            entry.get("live", ""),
            entry.get("points", {}),
        )
        for name, entry in content["cases"].items()
    }


# ---- runs ----


def live_run(case: Case, seed: int, folder: Path) -> Run:
    """The valid live run of a case, made if it is missing; invalid ones are set aside."""
    target = folder / f"{case.live or case.name}-s{seed}-live"
    scenario = case.seeded(seed)
    if target.exists():
        return same(Run.open(target), scenario)
    for _ in range(TRIES):
        run = execute(scenario, target, world=World.LIVE)
        say(f"{target.name}: {'; '.join(run.invalid) or 'valid'}")
        if not run.invalid:
            return run
        number = len(list(folder.glob(f"{target.name}-invalid-*")))
        run.path.rename(folder / f"{target.name}-invalid-{number + 1}")
    raise RunError(f"{target}: this machine did not keep the bounds in {TRIES} runs")


def same(run: Run, scenario: Scenario) -> Run:
    """The run, if its scenario is this one; the model of TCP is none of the kernel's affair."""
    if _comparable(run.scenario) != _comparable(scenario.data):
        raise AqmlabError(f"{run.path}: holds a run of another scenario; remove it")
    return run


def _comparable(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario without its title and without what only the simulator's end points obey."""
    traffic = [{**entry, "tcp": _for_kernel(entry["tcp"])} for entry in scenario["traffic"]]
    return {**scenario, "title": "", "traffic": traffic}


def _for_kernel(stack: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a kernel for a stack, or for those of client and server."""
    if "client" in stack:
        return {end: _for_kernel(stack[end]) for end in ("client", "server")}
    return {key: stack.get(key) for key in ("profile", *_kernel_keys())}


@cache
def _kernel_keys() -> list[str]:
    """The keys of a stack profile that the live bed carries out."""
    [linux] = [entry for entry in Catalog.load().find("linux") if entry.kind == "profiles"]
    return [parameter["name"] for parameter in linux.parameters if parameter.get("live")]


def simulated_run(case: Case, seed: int, folder: Path) -> Run:
    """The simulated run of a case."""
    scenario = case.seeded(seed).with_overrides(case.simulated)
    target = folder / f"{case.name}-s{seed}-sim-{scenario.key[:8]}"
    return execute(scenario, target, reuse=True)


# ---- scores ----


def judge(case: Case, simulated: Sequence[Run], live: Sequence[Run]) -> list[Score]:
    """All metrics of a case; response times if it has some."""
    times = [_response_times(runs) for runs in (simulated, live)]
    scores = []
    for metric in SHOWN:
        bound = case.within.get(metric)
        if metric == _DISTANCE:
            if min(map(len, times)) > 0:
                distance = kolmogorov_distance(times[0], times[1])
                scores.append(Score(metric, (), (distance,), bound))
            continue
        if metric.startswith("p") and min(map(len, times)) == 0:
            continue
        if metric in _WHERE_JUDGED and bound is None:
            continue
        if metric == _SHARE:
            for name in (entry["name"] for entry in case.scenario.data["traffic"]):
                shares = [tuple(_share(run, name) for run in runs) for runs in (simulated, live)]
                scores.append(Score(metric, shares[0], shares[1], bound, name))
            continue
        [one] = Quantity.read(metric).among([LinkDirection("bottleneck", "forward")])
        both = [
            tuple(number_at(run.summary, one.key) for run in runs) for runs in (simulated, live)
        ]
        scores.append(Score(metric, both[0], both[1], bound, points=case.points.get(metric)))
    return scores


def _share(run: Run, name: str) -> float:
    """What a class gets of the goodput of all classes."""
    goodput, whole = (
        number_at(run.summary, Quantity.read(f"goodput{of}").key) for of in (f".{name}", "")
    )
    return goodput / whole


def _response_times(runs: Sequence[Run]) -> np.ndarray:
    """The response times of all runs together, in seconds."""
    tables = [run.responses for run in runs]
    columns = [table.column("response_s").to_numpy() for table in tables if table is not None]
    return np.concatenate(columns) if columns else np.empty(0)


# ---- what is written ----


def _to_json(case: Case, scores: Sequence[Score], live: Sequence[Run]) -> dict[str, Any]:
    """A case for the scoreboard."""
    return {
        "case": case.name,
        "title": case.title,
        "seeds": list(case.seeds),
        "on_time_share": [
            run.summary["live"]["router"]["forward"]["on_time_share"] for run in live
        ],
        "scores": [
            {
                "metric": score.metric,
                "class": score.of_class,
                "simulated": list(score.simulated),
                "live": list(score.live),
                "deviation": score.deviation,
                "bound": score.bound,
                "holds": score.holds,
            }
            for score in scores
        ],
    }


def _lines(case: Case, scores: Sequence[Score]) -> str:
    """A case as a section of the page."""
    columns = ("", "simulated", "live", "difference", "bound", "holds")
    head = f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"
    rows = "\n".join(row(score) for score in scores)
    seeds = ", ".join(map(str, case.seeds))
    return f"### {case.title}\n\nSeeds {seeds}.\n\n{head}\n{rows}\n"


def row(score: Score) -> str:
    """A metric as a row: means, in parentheses the smallest and the largest of the seeds."""
    title, factor, digits = SHOWN[score.metric]
    if score.of_class:
        title = f"{title}, {score.of_class}"

    def shown(values: Sequence[float]) -> str:
        mean, low, high = (
            f"{factor * value:.{digits}f}" for value in (fmean(values), min(values), max(values))
        )
        return mean if len(values) == 1 else f"{mean} ({low} to {high})"

    verdict = {None: "", True: "yes", False: "**no**"}[score.holds]
    if score.metric == _DISTANCE:
        bound = "" if score.bound is None else f"{score.bound:g}"
        return f"| {title} | | | {shown(score.live)} | {bound} | {verdict} |"
    bound = "" if score.bound is None else f"{100 * score.bound:g} %"
    if score.points is not None:
        bound += f" or {factor * score.points:g} points"
    deviation = f"{100 * score.deviation:+.1f} %"
    return (
        f"| {title} | {shown(score.simulated)} | {shown(score.live)} | {deviation} | "
        f"{bound} | {verdict} |"
    )


def _brief(case: Case, scores: Sequence[Score]) -> str:
    """A case as a row of the page: the differences that are judged."""
    judged = [score for score in scores if score.bound is not None]
    shown = []
    for score in judged:
        title = SHOWN[score.metric][0].partition(",")[0].removesuffix(" s").removesuffix(" %")
        if score.of_class:
            title = f"{title}, {score.of_class}"
        number = score.deviation
        text = f"{number:.3f}" if score.metric == _DISTANCE else f"{100 * number:+.1f} %"
        shown.append(f"{title} {text}" if score.holds else f"**{title} {text}**")
    held = sum(bool(score.holds) for score in judged)
    return f"| {case.title} | {held} of {len(judged)} | {'; '.join(shown)} |"


def _record_of(file: Path) -> Path:
    """The page that the cases of a file make; without a name that of the main comparison."""
    return Path(toml_table(file, "settings").get("record", _RECORD))


def _circumstances(runs: Sequence[Run]) -> str:
    """When the live runs were made, and how busy the machine was; empty without runs."""
    if not runs:
        return ""
    days = sorted({run.metadata["started"][:10] for run in runs})
    cpus = runs[0].metadata["machine"]["cpus"]
    busy = [100 * run.summary["live"]["machine_busy_share"] for run in runs]
    late = min(
        run.summary["live"]["router"][way]["on_time_share"]
        for run in runs
        for way in ("forward", "reverse")
    )
    return (
        f"\nThe {len(runs)} live runs are of {' and '.join(days)}, on a machine with {cpus} cores "
        f"that were {min(busy):.0f} to {max(busy):.0f} % busy. In the worst run {100 * late:.2f} % "
        "of the packets left within 1 ms of their time.\n"
    )


def page(
    rows: Sequence[str], judged: Sequence[Mapping[str, Any]], kernel: str, file: Path = CASES
) -> str:
    """The head of the record: a row for each case."""
    held = sum(score["holds"] for score in judged)
    options = "" if file == CASES else f' ARGS="--cases {file}"'
    other = _OTHER if file == CASES else ""
    content = {} if file == CASES else toml_table(file, "settings")
    bounds = content.get("bounds", "The bounds were set before the runs.")
    head = (
        f"# {content.get('title', _TITLE)}\n\n"
        f"{held} of {len(judged)} bounds are kept. The same scenarios run in the simulator and on "
        f"the [live bed](../docs/live.md) (Linux {kernel}), with the same users by seed. "
        f"{bounds} All live runs kept the bed's own bounds.\n\n"
        "A difference is that of the means over the seeds, as a share of the simulated "
        "value; Kolmogorov's distance is absolute. A difference outside its bound is bold. "
        "[Live bed](../docs/live.md#what-is-known-of-the-differences) says what is known of it.\n\n"
        "| case | bounds kept | live beside simulated |\n| --- | --- | --- |\n"
    )
    return (
        head
        + "\n".join(rows)
        + f"\n\n`make live-compare{options}` (as root) runs `{file}`, and writes this page.\n"
        + other
    )


def record(sections: Sequence[str]) -> str:
    """The table of each case."""
    head = "## Every value\n\nMeans over the seeds, in parentheses the smallest and the largest.\n"
    return "\n".join([head, *sections])


if __name__ == "__main__":
    sys.exit(main())
