"""A report as one web page that needs no network."""

from __future__ import annotations

import base64
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2
import vl_convert

from aqmlab.figures.base import PATTERNS
from aqmlab.reports import charts
from aqmlab.reports.charts import STILL_RUNS, Style, dash
from aqmlab.reports.data import PACKETS, Trace, Traces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aqmlab.reports.content import Report

__all__ = ["PALETTE", "SECTIONS", "address", "page", "stills", "stroke"]


PALETTE: Mapping[str, Mapping[str, str]] = {
    "light": {
        "--text": "#1a1c20",
        "--soft": "#545962",
        "--line": "#d9dce1",
        "--paper": "#f6f7f9",
        "--card": "#ffffff",
        "--shade": "#eef0f3",
        "--grid": "#e6e8ec",
        "--axis": "#7a7f88",
        "--link": "#0b57a4",
        "--better": "#00664a",
        "--worse": "#a33c00",
        "--run-1": "#0072b2",
        "--run-2": "#d55e00",
        "--run-3": "#009e73",
        "--run-4": "#cc79a7",
        "--run-5": "#c98500",
        "--run-6": "#3a9fd8",
        "--run-7": "#000000",
        "--run-8": "#8f8400",
    },
    "dark": {
        "--text": "#e8e8ea",
        "--soft": "#b0b3ba",
        "--line": "#3a3d44",
        "--paper": "#15161a",
        "--card": "#1d1f24",
        "--shade": "#26292f",
        "--grid": "#31343b",
        "--axis": "#7d818a",
        "--link": "#8cc4ff",
        "--better": "#5fd0a5",
        "--worse": "#ffab66",
        "--run-1": "#56a8e8",
        "--run-2": "#f0803c",
        "--run-3": "#2fbf95",
        "--run-4": "#e39cc6",
        "--run-5": "#e6b429",
        "--run-6": "#9bd4f7",
        "--run-7": "#e8e8ea",
        "--run-8": "#d8d04a",
    },
}
"""Colours of the page by theme. Those of the curves are Okabe and Ito's, made lighter or darker
until each stands out from its background."""
_TIP_LINES = 12
"""Most curves that a tooltip lists."""
SECTIONS = {
    "summary": "Summary",
    "differences": "Differences",
    "responses": "Response times",
    "queues": "Queues",
    "reasons": "Drops",
    "fidelity": "Fidelity",
    "details": "All numbers",
    "method": "Runs",
}
"""Sections of the page, as far as there is something to show."""


def page(report: Report) -> str:
    """The report as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("aqmlab.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tojson"] = _compact
    source = {
        name: environment.get_template(f"report.{name}").render(palette=PALETTE)
        for name in ("css", "js")
    }
    live = _live_charts(report)
    return environment.get_template("report.html").render(
        report=report,
        sections=[entry for entry in SECTIONS.items() if _present(report, entry[0])],
        strokes={name: stroke(k) for k, name in enumerate(report.drawn)},
        pictures=_pictures(report),
        charts=live,
        style=source["css"],
        script=_bundle(source["js"]) if live else "",
        licences=environment.get_template("vega-licences.txt").render(),
    )


@cache
def _bundle(script: str) -> str:
    """A script together with the libraries that it needs."""
    return vl_convert.javascript_bundle(script)


def _compact(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
    """JSON without spaces that a script element may hold."""
    return jinja2.utils.htmlsafe_json_dumps(value, separators=(",", ":"))


def _present(report: Report, section: str) -> bool:
    """Whether a section has something to show."""
    shown = {
        "differences": report.differences,
        "responses": report.distributions,
        "queues": report.traces,
        "reasons": report.reasons,
        "fidelity": report.fidelity,
    }
    return section not in shown or shown[section] is not None


def stroke(number: int) -> dict[str, str]:
    """The style of a configuration's curves: the page's colour, and their line pattern."""
    pattern = dash(number)
    return {
        "colour": f"var(--run-{number % 8 + 1})",
        "dash": "" if pattern == PATTERNS[0] else " ".join(map(str, pattern)),
    }


def _live_charts(report: Report) -> dict[str, Any]:
    """The charts that the page's script draws, with their data; empty without any."""
    style = Style(report.drawn, live=True)
    content: dict[str, Any] = {}
    if found := report.distributions:
        content["limit"] = found.limit
        for spec, name, steps in (
            (charts.cdf(found, style), "cdf", "after"),
            (charts.ccdf(found, style), "ccdf", "before"),
        ):
            data = spec["datasets"]["rows"]
            content[name] = {"spec": _without_data(spec), "rows": data, "steps": steps, "unit": "%"}
    if traced := report.traces:
        kinds = {"queue": PACKETS, "inner": None}
        content["traces"] = {
            "rows": charts.trace_rows(traced.traces),
            "probability": {trace.group: trace.variable for trace in traced.probabilities},
        } | {
            kind: {"spec": _without_data(charts.trace(traced, style, name)), "steps": "near"}
            for kind, name in kinds.items()
        }
    if not content:
        return {}
    return {**content, "names": report.drawn, "lines": _TIP_LINES, "light": PALETTE["light"]}


def _without_data(spec: dict[str, Any]) -> dict[str, Any]:
    """A definition whose data stand elsewhere in the page."""
    return {key: value for key, value in spec.items() if key != "datasets"}


def _pictures(report: Report) -> dict[str, str]:
    """The charts as pictures, for readers without scripts, as data addresses."""
    nothing = dict.fromkeys(("cdf", "ccdf", "queue", "probability"), "")
    return nothing | {name: address(still) for name, still in stills(report).items()}


def stills(report: Report) -> dict[str, str]:
    """The charts as SVG: the first configurations, all classes of traffic together."""
    style = Style(report.drawn[:STILL_RUNS], live=False)
    found: dict[str, str] = {}
    if report.distributions:
        found["cdf"] = charts.still(charts.cdf(report.distributions, style))
        found["ccdf"] = charts.still(charts.ccdf(report.distributions, style))
    if traced := report.traces:
        queues, inner = _chosen_traces(traced, style)
        for name, chosen, title in (
            ("queue", queues, "Packets in the queue"),
            ("probability", inner, "Signal probability"),
        ):
            if chosen:
                found[name] = charts.still(charts.still_traces(traced, style, chosen, title))
    return found


def _chosen_traces(found: Traces, style: Style) -> tuple[list[Trace], list[Trace]]:
    """The forward queue, and the first probability, of each configuration in a picture."""
    forward = [
        trace
        for trace in found.traces
        if trace.direction == found.directions[0] and trace.group in style.names
    ]
    queues = [trace for trace in forward if trace.variable == PACKETS]
    return queues, [trace for trace in found.probabilities if trace in forward]


def address(picture: str) -> str:
    """An SVG as a data address."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"
