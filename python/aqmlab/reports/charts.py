"""The charts of a report, each as one definition.

A *live* chart stands in the web page: its colours are the page's, so that they follow its theme,
its width is that of its place, and the page's controls set its parameters. A *still* one is a
picture with a legend of its own.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from aqmlab.figures.axes import linear, logarithmic
from aqmlab.figures.files import definition, svg
from aqmlab.figures.grammar import Channel, Chart, layer, named_data
from aqmlab.figures.theme import PATTERNS, Look, configured
from aqmlab.reports.data import PACKETS, Distributions, Trace, Traces, rows

if TYPE_CHECKING:
    from aqmlab.reports.content import Report

__all__ = ["Style", "address", "ccdf", "cdf", "stills", "stroke", "trace", "trace_rows"]


_STILL_WIDTH = 430
"""Width of a picture's plot in pixels: two stand beside each other."""
_TRACE_WIDTH = 920
"""Width of a picture's traces."""
_STILL_POINTS = 200
"""Most points of a curve in a picture."""
_STILL_RUNS = 8
"""Most configurations in a picture: as many as there are colours."""
_LIVE_FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


@dataclass(frozen=True)
class Style:
    """How a chart is drawn."""

    names: Sequence[str]
    """Labels of the configurations that are drawn, in their order."""
    live: bool
    among: Sequence[str] = ()
    """Labels of all configurations of the report, if not all are drawn: colours go by these."""

    @property
    def width(self) -> Any:  # noqa: ANN401 - a number or a word, as Vega-Lite has it
        """Width of the plot."""
        return "container" if self.live else _STILL_WIDTH

    @property
    def look(self) -> Look:
        """The look of its figures."""
        return Look(theme="page" if self.live else "light")

    @property
    def colour(self) -> Channel:
        """A colour per configuration; the page has a legend of its own."""
        return self.look.colour(
            self.names, "run", legend=not self.live, most=None, among=self.among
        )

    @property
    def pattern(self) -> Channel:
        """A line pattern per configuration: solid for as long as the colours last."""
        return self.look.pattern(self.names, "run", legend=not self.live, among=self.among)

    def spec(self, chart: Chart, data: list[dict[str, Any]]) -> dict[str, Any]:
        """The finished definition."""
        spec = definition(configured(chart, self.look))
        if self.live:
            # The page says in words what a chart shows.
            spec["config"] |= {"font": _LIVE_FONT, "aria": False, "padding": dict(_LIVE_PADDING)}
        return {**spec, "datasets": {"rows": data}}


_LIVE_PADDING = {"left": 4, "right": 12, "top": 8, "bottom": 4}


def cdf(found: Distributions, style: Style) -> dict[str, Any]:
    """Share of responses that ended within a time."""
    end = {"name": "limit", "value": found.limit}
    return _distribution(
        found,
        style,
        "cdf",
        steps="step-after",
        x=Channel(
            "time:Q",
            title="response time (s)",
            scale={"domain": [0, {"expr": "limit"}], "nice": False},
            axis={"tickCount": 8},
        ),
        y=Channel(
            "share:Q",
            title="responses that ended within it (%)",
            scale={"domain": [0, 100]},
            axis={"tickCount": 5},
        ),
        parameters=[end],
    )


def ccdf(found: Distributions, style: Style) -> dict[str, Any]:
    """Share of responses that took a time or longer, on logarithmic axes."""
    fastest = min(float(curve.ccdf[0][0]) for curve in found.curves)
    slowest = max(float(curve.ccdf[0][-1]) for curve in found.curves)
    rarest = min(float(curve.ccdf[1][-1]) for curve in found.curves)
    return _distribution(
        found,
        style,
        "ccdf",
        steps="step-before",
        x=logarithmic("response time (s), logarithmic", [fastest, slowest]).x("time"),
        y=logarithmic("responses that took it or longer (%)", [100 * rarest, 100]).y("share"),
        parameters=[],
    )


def _distribution(
    found: Distributions,
    style: Style,
    which: Literal["cdf", "ccdf"],
    *,
    steps: Literal["step-after", "step-before"],
    x: Channel,
    y: Channel,
    parameters: list[dict[str, Any]],
) -> dict[str, Any]:
    """One step-wise curve per configuration."""
    data = rows(found, which) if style.live else rows(found, which, _STILL_POINTS)
    chart: Chart = (
        Chart(named_data("rows"), width=style.width, height=320 if style.live else 270)
        .mark("line", interpolate=steps, strokeWidth=2, clip=True)
        .encode(x=x, y=y, color=style.colour, strokeDash=style.pattern)
        .keep("datum['class'] === traffic && indexof(hidden, datum.run) < 0")
        .flatten("time", "share")
        .properties(
            params=[
                {"name": "traffic", "value": found.traffic},
                {"name": "hidden", "value": []},
                *parameters,
            ]
        )
    )
    if not style.live:
        data = [row for row in data if row["run"] in style.names and row["class"] == found.traffic]
    return style.spec(chart, data)


def trace_rows(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """Traces as a chart's data."""
    return [
        {"run": trace.group, "direction": trace.direction, "variable": trace.variable,
         **trace.columns}
        for trace in traces
    ]  # fmt: skip


def trace(found: Traces, style: Style, variable: str | None) -> dict[str, Any]:
    """A queue, or an inner variable, of one configuration over time; the page gives the data.

    Queues share their axes over all configurations; each inner variable has its own.
    """
    scale: dict[str, Any] = {"nice": True}
    if variable == PACKETS:
        peak = max(
            (max(trace.columns["max"]) for trace in found.traces if trace.variable == PACKETS),
            default=1,
        )
        scale = {"domain": [0, max(peak, 1)], "nice": True}
    base = (
        Chart(named_data("rows"), width=style.width, height=110)
        .keep("datum.direction === direction && datum.variable === variable")
        .flatten("time", "min", "mean", "max")
        .encode(
            x=_time_axis(found),
            color=style.colour,
        )
    )
    name = variable or "value"
    low = Channel("min:Q", title=name, scale=scale, axis={"tickCount": 3, "minExtent": 38})
    mean = Channel("mean:Q", title=name, scale=scale)
    chart = layer(
        base.mark("area", opacity=0.25).encode(y=low, y2="max:Q"),
        base.mark("line", strokeWidth=1.5).encode(y=mean),
        params=[
            {"name": "direction", "value": found.directions[0]},
            {"name": "variable", "value": variable or ""},
        ],
    )
    return style.spec(chart, [])


def _time_axis(found: Traces) -> Channel:
    """The axis of simulated time that all traces share."""
    times = [value for trace in found.traces for value in trace.columns["time"]]
    return linear("simulated time (s)", [min(times), max(times)], count=8, tight=True).x("time")


def _still_traces(
    found: Traces, style: Style, chosen: Sequence[Trace], title: str
) -> dict[str, Any]:
    """Some traces above each other as a picture."""
    queue = all(trace.variable == PACKETS for trace in chosen)
    data = [
        {**row, "head": row["run"] if queue else f"{row['run']}: {row['variable']}"}
        for row in trace_rows(chosen)
    ]
    base = Chart(width=_TRACE_WIDTH, height=80).encode(
        x=_time_axis(found),
        color=Style(style.names, live=False, among=style.among).colour.but(legend=None),
    )
    band = base.mark("area", opacity=0.25).encode(
        y=Channel("min:Q", title=PACKETS if queue else "value"), y2="max:Q"
    )
    line = base.mark("line", strokeWidth=1.4).encode(y=Channel("mean:Q"))
    chart = (
        layer(band, line, data=named_data("rows"))
        .flatten("time", "min", "mean", "max")
        .facet(
            row=Channel(
                "head:N",
                title=None,
                sort=[row["head"] for row in data],
                header={"labelOrient": "top", "labelAnchor": "start", "labelFontSize": 12},
            ),
            title=title,
            spacing=8,
        )
        .scales(y="shared" if queue else "independent")
    )
    return style.spec(chart, data)


def stroke(number: int) -> dict[str, str]:
    """The style of a configuration's curves: the page's colour, and their line pattern."""
    pattern = Look.dash(number)
    return {
        "colour": f"var(--run-{number % 8 + 1})",
        "dash": "" if pattern == PATTERNS[0] else " ".join(map(str, pattern)),
    }


def stills(report: Report) -> dict[str, str]:
    """The charts as SVG: the first configurations, all classes of traffic together."""
    style = Style(report.drawn[:_STILL_RUNS], live=False, among=[*report.places])
    found: dict[str, str] = {}
    if report.distributions:
        found["cdf"] = svg(cdf(report.distributions, style))
        found["ccdf"] = svg(ccdf(report.distributions, style))
    if traced := report.traces:
        queues, inner = _chosen_traces(traced, style)
        for name, chosen, title in (
            ("queue", queues, f"Packets in the queue, {traced.directions[0]}"),
            ("probability", inner, f"Signal probability, {traced.directions[0]}"),
        ):
            if chosen:
                found[name] = svg(_still_traces(traced, style, chosen, title))
    return found


def _chosen_traces(found: Traces, style: Style) -> tuple[list[Trace], list[Trace]]:
    """The most loaded queue, and the first probability, of each configuration in a picture."""
    loaded = [
        trace
        for trace in found.traces
        if trace.direction == found.directions[0] and trace.group in style.names
    ]
    queues = [trace for trace in loaded if trace.variable == PACKETS]
    return queues, [trace for trace in found.probabilities if trace in loaded]


def address(picture: str) -> str:
    """An SVG as a data address."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"
