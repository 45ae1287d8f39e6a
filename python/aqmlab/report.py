"""A report: one self-contained HTML page about some runs, readable offline and for years."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import vl_convert

from aqmlab import figures
from aqmlab.errors import AqmlabError
from aqmlab.files import write_text
from aqmlab.runs import Run, distinguish

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Figure:
    """A chart in the report: a picture at once, interactive where JavaScript runs."""

    name: str
    text: str
    """What it shows, for readers who do not see it."""
    picture: str
    """The SVG as a data address."""
    spec: dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """A column of a summary table."""

    title: str
    key: str
    scale: float = 1.0
    decimals: int = 0

    def text(self, row: Mapping[str, Any]) -> str:
        """The cell, or a dash where the run has no such number."""
        value = row.get(self.key)
        return "-" if value is None else f"{self.scale * value:,.{self.decimals}f}"


LINK = (
    Quantity("arrived (packets)", "arrived_packets"),
    Quantity("loss (%)", "loss_rate", 100, 2),
    Quantity("marked (%)", "mark_rate", 100, 2),
    Quantity("throughput (Mbit/s)", "throughput_bps", 1e-6, 3),
    Quantity("utilization (%)", "utilization", 100, 1),
    Quantity("mean queue (packets)", "queue_mean_packets", 1, 1),
    Quantity("95 % queue (packets)", "queue_p95_packets"),
    Quantity("largest queue (packets)", "queue_max_packets"),
    Quantity("mean queue (ms)", "queue_mean_s", 1000, 1),
)
RESPONSES = (
    Quantity("responses", "count"),
    Quantity("mean (s)", "mean_s", 1, 3),
    *(Quantity(f"{p} % (s)", f"p{p}_s", 1, 3) for p in (10, 25, 50, 75, 90, 95, 99)),
    Quantity("≤ 1 s (%)", "le_1s", 100, 1),
    Quantity("≤ 2 s (%)", "le_2s", 100, 1),
    Quantity("≤ 3 s (%)", "le_3s", 100, 1),
    Quantity("> 3 s (%)", "gt_3s", 100, 1),
)
FLOWS = (
    Quantity("connections", "count"),
    Quantity("goodput (Mbit/s)", "goodput_bps", 1e-6, 3),
    Quantity("Jain's index", "fairness_jain", 1, 3),
    Quantity("SYN retransmitted", "retransmitted_syn"),
    Quantity("FIN retransmitted", "retransmitted_fin"),
    Quantity("data retransmitted", "retransmitted_data"),
    Quantity("timeouts", "timeouts"),
)
LIVE = (
    Quantity("packets out", "departures"),
    Quantity("within 1 ms (%)", "on_time_share", 100, 2),
    Quantity("late, median (ms)", "late_p50_s", 1000, 3),
    Quantity("late, 99 % (ms)", "late_p99_s", 1000, 3),
    Quantity("latest (ms)", "late_max_s", 1000, 1),
    Quantity("rate error (%)", "rate_error", 100, 3),
)


def write(runs: Sequence[Run], path: str | os.PathLike[str]) -> Path:
    """Writes a report about some runs and returns where it is.

    The page holds what ran, the summaries as tables, the figures, the scenarios and the metadata.
    It fetches nothing; without JavaScript the figures are still pictures.
    """
    if not runs:
        raise AqmlabError("a report needs at least one run")
    target = Path(path)
    if target.suffix.lower() not in {".html", ".htm"}:
        raise AqmlabError(f"{target}: a report is a web page; its name ends in .html")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("aqmlab"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    runs = distinguish(runs)
    titles = list(dict.fromkeys(str(run.scenario.get("title") or run.label) for run in runs))
    page = environment.get_template("report.html").render(
        title=titles[0] if len(titles) == 1 else "Comparison of runs",
        runs=runs,
        tables=tables(runs),
        figures=drawn(runs),
        reasons=reasons(runs),
        script=vl_convert.javascript_bundle(environment.get_template("report.js").render()),
    )
    write_text(target, page)
    return target


def tables(runs: Sequence[Run]) -> list[tuple[str, str, list[str], list[list[str]]]]:
    """The summary tables: caption, what a row is, column titles, rows of cells."""
    links: list[tuple[str, Mapping[str, Any]]] = []
    responses: list[tuple[str, Mapping[str, Any]]] = []
    flows: list[tuple[str, Mapping[str, Any]]] = []
    live: list[tuple[str, Mapping[str, Any]]] = []
    for run in runs:
        router = run.summary.get("live", {}).get("router", {})
        live += [(f"{run.label}: {side}", row) for side, row in router.items()]
        for link, sides in run.summary.get("links", {}).items():
            links += [(f"{run.label}: {link} {side}", row) for side, row in sides.items()]
        for part, rows in (("responses", responses), ("flows", flows)):
            classes = run.summary.get(part, {})
            rows += [(f"{run.label}: {name}", row) for name, row in shown_classes(classes)]
    return [
        table("Links", "run and direction", LINK, links),
        table("Response times", "run and class", RESPONSES, responses),
        table("Connections", "run and class", FLOWS, flows),
        table("The router of live runs", "run and direction", LIVE, live),
    ]


def shown_classes(classes: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The classes of a summary; a single class hides the equal row of all classes."""
    return [(name, row) for name, row in classes.items() if name != "all" or len(classes) != 2]


def table(
    caption: str,
    of: str,
    quantities: Sequence[Quantity],
    rows: Sequence[tuple[str, Mapping[str, Any]]],
) -> tuple[str, str, list[str], list[list[str]]]:
    """One summary table."""
    cells = [[name, *(quantity.text(row) for quantity in quantities)] for name, row in rows]
    return caption, of, [quantity.title for quantity in quantities], cells


def reasons(runs: Sequence[Run]) -> list[tuple[str, str, str, int]]:
    """Run and direction, dropped or marked, why, and how many packets."""
    return [
        (f"{run.label}: {link} {side}", deed, reason, count)
        for run in runs
        for link, sides in run.summary.get("links", {}).items()
        for side, row in sides.items()
        for deed, key in (("dropped", "drops"), ("marked", "marks"))
        for reason, count in row.get(key, {}).items()
        if count
    ]


def drawn(runs: Sequence[Run]) -> list[Figure]:
    """The figures for what the runs recorded."""
    makers: list[tuple[str, str, str, Callable[[Sequence[Run]], figures.Chart]]] = [
        ("cdf", "responses", "Share of responses within 0 to 2 seconds", figures.response_cdf),
        ("ccdf", "responses", "Share of slower responses, log axes", figures.response_ccdf),
        ("queue", "queue", "Packets in the forward queue over time", figures.queue_length),
    ]
    return [
        figure(name, text, maker(runs).to_dict())
        for name, part, text, maker in makers
        if any(getattr(run, part) is not None for run in runs)
    ]


def figure(name: str, text: str, spec: dict[str, Any]) -> Figure:
    """A chart as the report holds it."""
    encoded = base64.b64encode(figures.svg(spec).encode()).decode()
    return Figure(name, text, f"data:image/svg+xml;base64,{encoded}", spec)
