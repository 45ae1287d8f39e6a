"""Does RPM, or anything else that can be measured from outside, predict what users feel?

``make responsiveness`` (``python -m lab.responsiveness``) runs the suite ``access``:
every shipped queue on ten access links, once with a responsiveness test in both directions, once
with a household. It writes ``docs/responsiveness.csv``, the tables of ``docs/responsiveness.md``
and its figure. With ``--data`` the runs are those of the file, and the page alone is written.

RPM is that of draft-ietf-ippm-responsiveness without TLS: docs/evaluate.md says how.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from aqmlab._util.console import Progress
from aqmlab._util.files import write_text
from aqmlab.cards.campaign import Role, batch_of, jobs_in, make
from aqmlab.cards.candidates import named
from aqmlab.cards.generator import SuiteCell, cells
from aqmlab.cards.leaderboard import entries
from aqmlab.cards.measures import overview
from aqmlab.cards.suites import rows
from aqmlab.engine import schedulers
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError
from aqmlab.figures.grammar import Channel, Chart, inline
from aqmlab.results.metrics import look_up
from aqmlab.results.run import Run
from aqmlab.results.statistics import Floats
from aqmlab.scenario.quantities import parsed_time

from lab import study

__all__ = ["FELT", "SEEN", "correlation", "main", "shown"]


_DATA, _PAGE = Path("docs/responsiveness.csv"), Path("docs/responsiveness.md")
_FIGURE = Path("docs/images/responsiveness.svg")
SEEN: Mapping[str, tuple[str, int]] = {
    "rpm": ("RPM", 1),
    "probe_p50_s": ("probe p50", -1),
    "probe_p99_s": ("probe p99", -1),
    "down_bps": ("goodput down", 1),
    "up_bps": ("goodput up", 1),
    "loss": ("loss of the load", -1),
}
"""What a test from outside sees: its name, and 1 where more is better."""
FELT: Mapping[str, tuple[str, int]] = {
    "page_p95_s": ("page time p95", -1),
    "mos": ("MOS of calls", 1),
    "stalls": ("stalls of video", -1),
}
"""What a household feels."""
_FULL = 0.9
"""The share of the best goodput down from which a queue counts as one that uses the link."""
_RESAMPLED = 1000
"""Resamples of the bootstrap."""


@study.program
def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 2 for wrong input."""
    parser = study.parser(__doc__)
    parser.add_argument("--data", action="store_true", help="take the numbers of the file")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each run; default: 1")
    parser.add_argument("--jobs", type=int, help="runs at a time; default: number of processors")
    parser.add_argument("--store", type=Path, default=Path("out/responsiveness/store"))
    given = parser.parse_args(arguments)
    if not given.data:
        found = _measured(range(1, given.seeds + 1), Store(given.store), given.jobs)
        write_text(_DATA, _text(found))
    found = read(_DATA)
    write_text(_PAGE, shown(_PAGE.read_text(encoding="utf-8"), found))
    _draw(found, _FIGURE)
    return 0


def _measured(seeds: Sequence[int], store: Store, jobs: int | None) -> list[dict[str, Any]]:
    """The numbers of each link and queue: means over the seeds."""
    both = [of_row[-1] for row in rows("access") if (of_row := cells(row))]
    queues = [Role(entry.kind, named(entry.text)) for entry in entries()]
    planned = jobs_in(both, lambda _: queues, seeds)
    with Progress("responsiveness") as progress, schedulers.scheduler(None, jobs) as pool:
        runs = progress.task("runs")
        made = make(planned, batch_of(planned, store), store, pool, _taken, runs)
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in made:
        if isinstance(one.outcome, AqmlabError):
            raise one.outcome
        place = found.setdefault((one.job.cell.row.section, one.job.queue), {})
        for name, value in one.outcome.items():
            place.setdefault(name, []).append(value)
    return [
        {"link": link, "queue": queue, **{name: math.fsum(v) / len(v) for name, v in own.items()}}
        for (link, queue), own in found.items()
    ]


def _taken(run: Run, cell: SuiteCell) -> dict[str, float]:
    """What is taken of a run: of a responsiveness test what it sees, else what users feel."""
    if "probes" in run.summary["flows"]:
        link = run.summary["links"]["bottleneck"]
        numbers = overview(run, cell)
        places: dict[str, Any] = {
            "rpm": numbers["rpm"],
            "probe_p50_s": look_up(run.summary, ["responses", "probes", "p50_s"]),
            "probe_p99_s": look_up(run.summary, ["responses", "probes", "p99_s"]),
            "down_bps": run.summary["flows"]["down"]["goodput_bps"],
            "up_bps": run.summary["flows"]["up"]["goodput_bps"],
            "loss": max(link[way]["loss_rate"] for way in ("forward", "reverse")),
        }
    else:
        # What never came to an end counts as long as the run; a film that never began stood still.
        whole = parsed_time(run.scenario["measure"]["duration"])
        places = {
            "page_p95_s": look_up(run.summary, ["quality", "web", "page_load_p95_s"]) or whole,
            "mos": look_up(run.summary, ["quality", "calls", "mos_mean"]),
            "stalls": _or(look_up(run.summary, ["quality", "video", "stall_ratio"]), 1.0),
        }
    return {name: float(value) for name, value in places.items()}


def _or(value: float | None, other: float) -> float:
    """A number, or another where there is none."""
    return other if value is None else value


def _text(found: Sequence[Mapping[str, Any]]) -> str:
    """The numbers as CSV, six digits each."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [*SEEN, *FELT]
    writer.writerow(["link", "queue", *names])
    for row in found:
        writer.writerow([row["link"], row["queue"], *(f"{row[name]:.6g}" for name in names)])
    return stream.getvalue()


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: text if key in ("link", "queue") else float(text) for key, text in row.items()}
            for row in csv.DictReader(file)
        ]


def correlation(one: Floats, other: Floats) -> Floats:
    """Spearman's rank correlations along the last axis; not a number where one is constant."""
    first, second = _ranks(one), _ranks(other)
    scale = (first**2).sum(axis=-1) * (second**2).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        found: Floats = (first * second).sum(axis=-1) / np.sqrt(scale)
    return found


def _ranks(values: Floats) -> Floats:
    """Ranks less their mean; equal values have the mean of theirs."""
    one, other = values[..., :, None], values[..., None, :]
    found: Floats = ((one > other).sum(axis=-1) - (one < other).sum(axis=-1)) / 2
    return found


def _table(found: Sequence[Mapping[str, Any]], name: str, sign: int) -> tuple[list[str], Floats]:
    """A number by link and queue, turned so that more is better; the names of the links."""
    links = [*dict.fromkeys(row["link"] for row in found)]
    queues = [*dict.fromkeys(row["queue"] for row in found)]
    value = {(row["link"], row["queue"]): row[name] for row in found}
    return links, sign * np.array([[value[link, queue] for queue in queues] for link in links])


def _interval(one: Floats, other: Floats) -> tuple[float, float]:
    """The 95 % interval of the mean correlation, by resampling links and queues."""
    draws = np.random.default_rng(1)
    links, queues = one.shape
    means = []
    for _ in range(_RESAMPLED):
        at = draws.integers(links, size=links)
        of = draws.integers(queues, size=queues)
        means.append(np.nanmean(correlation(one[np.ix_(at, of)], other[np.ix_(at, of)])))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def shown(page: str, found: Sequence[Mapping[str, Any]]) -> str:
    """The page with its tables written anew."""
    parts = {"ranks": _rank_table, "links": _link_table, "choice": _choice_table}
    for name, lines in parts.items():
        page = study.with_section(page, name, "\n".join(lines(found)) + "\n")
    return page


def _rank_table(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Mean rank correlations of all pairs, with intervals."""
    yield f"| seen from outside | {' | '.join(name for name, _ in FELT.values())} |"
    yield f"| --- |{' ---: |' * len(FELT)}"
    for seen, (name, sign) in SEEN.items():
        cells_of = []
        _, one = _table(found, seen, sign)
        for felt, (_, other_sign) in FELT.items():
            _, other = _table(found, felt, other_sign)
            low, high = _interval(one, other)
            mean = float(np.nanmean(correlation(one, other)))
            cells_of.append(f"{_short(mean)} ({_short(low)} to {_short(high)})")
        yield f"| {name} | {' | '.join(cells_of)} |"


def _link_table(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """RPM's rank correlations on each link."""
    yield f"| link | {' | '.join(name for name, _ in FELT.values())} |"
    yield f"| --- |{' ---: |' * len(FELT)}"
    links, one = _table(found, "rpm", 1)
    columns = [correlation(one, _table(found, felt, sign)[1]) for felt, (_, sign) in FELT.items()]
    for link, *values in zip(links, *columns, strict=True):
        yield f"| {link} | {' | '.join(map(_short, values))} |"


def _choice_table(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is lost by choosing the queue that is best by a number from outside."""
    queues = [*dict.fromkeys(row["queue"] for row in found)]
    links, pages = _table(found, "page_p95_s", 1)
    _, opinions = _table(found, "mos", 1)
    seen = {name: _table(found, key, sign)[1] for key, (name, sign) in SEEN.items()}
    down = seen["goodput down"]
    full = down >= _FULL * down.max(axis=1, keepdims=True)  # the best one always is
    name = f"RPM, of queues with {_FULL:.0%} of the best goodput down".replace("%", " %")
    seen[name] = np.where(full, seen["RPM"], -np.inf)
    yield (
        "| chosen by | page time p95 over the best, median link | worst link | "
        "MOS below the best, worst link | most often |"
    )
    yield "| --- | ---: | ---: | ---: | --- |"
    for name, values in seen.items():
        chosen = values.argmax(axis=1)
        at = np.arange(len(links))
        over = pages[at, chosen] / pages.min(axis=1)
        below = opinions.max(axis=1) - opinions[at, chosen]
        often = queues[np.bincount(chosen).argmax()]
        times = f"{np.median(over):.2f} times | {over.max():.2f} times"
        yield f"| {name} | {times} | {below.max():.2f} | {often} |"


def _short(value: float) -> str:
    """Two decimals; a dash where there is none."""
    return "-" if math.isnan(value) else f"{value + 0.0:.2f}".replace("-0.00", "0.00")


def _draw(found: Sequence[Mapping[str, Any]], path: Path) -> None:
    """RPM against page time, each link a colour."""
    from aqmlab.figures.files import svg
    from aqmlab.figures.theme import THEMES

    theme = THEMES["light"]
    data = inline(
        [{"link": row["link"], "rpm": row["rpm"], "page": row["page_p95_s"]} for row in found]
    )
    chart = (
        Chart(data)
        .mark("point", filled=True, size=28, opacity=0.8, color=theme.series[0])
        .encode(
            x=Channel(
                "rpm:Q",
                scale={"type": "log"},
                axis={"values": [10, 100, 1000], "grid": False},
                title="RPM",
            ),
            y=Channel(
                "page:Q",
                scale={"type": "log"},
                axis={"values": [1, 10, 100], "grid": False},
                title="page time p95 (s)",
            ),
        )
        .properties(width=130, height=110)
        .facet(facet=Channel("link:N", title=None), columns=5)
    )
    config = {"font": "Liberation Sans, Arial, Helvetica, sans-serif", "background": "white"}
    write_text(path, svg(chart.properties(config=config).to_dict()))


if __name__ == "__main__":
    sys.exit(main())
