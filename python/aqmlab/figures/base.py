"""Figures of runs: response-time distributions and queue length over time.

One Altair definition gives SVG, PNG, PDF and a self-contained HTML page. Colours are those of
M. Okabe and K. Ito (Color Universal Design, 2008), which readers with any colour vision can tell
apart; beyond eight runs the line pattern tells them apart too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import vl_convert

from aqmlab._util.files import write_bytes
from aqmlab.errors import AqmlabError
from aqmlab.results.distributions import Distribution, Of
from aqmlab.results.labels import distinguish
from aqmlab.results.links import main_link

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from aqmlab.results.run import Run

__all__ = [
    "COLOURS",
    "CURVE_POINTS",
    "HEIGHT",
    "MOST_RUNS",
    "PATTERNS",
    "QUEUE_BINS",
    "WIDTH",
    "WORDS",
    "WRITERS",
    "Chart",
    "Data",
    "ccdf_axes",
    "ccdf_points",
    "cdf_axes",
    "cdf_points",
    "colour",
    "comparison",
    "finish",
    "nothing_recorded",
    "pattern",
    "queue_bins",
    "queue_length",
    "queue_view",
    "response_ccdf",
    "response_cdf",
    "save",
    "sorted_times",
    "svg",
]


class Data(alt.InlineData):
    """Rows inside a chart, as dictionaries.

    Altair checks and copies whatever a chart is made of, again at every step of its making; of a
    figure's thousands of rows that took ten times as long as drawing them. These pass untouched.
    """

    _class_is_valid_at_instantiation = False  # Altair's word for "do not check what is given"

    def __deepcopy__(self, _memo: object) -> Data:
        """The rows themselves: nothing changes them."""
        return self


_Named: TypeAlias = tuple[str, Distribution]
"""A curve's name, and what it shows."""
Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart

CURVE_POINTS = 1000
"""Most points of a distribution's curve."""
QUEUE_BINS = 300
"""Bins of the queue's time axis."""
WIDTH = 380
"""Width of a distribution's plot in pixels."""
HEIGHT = 260
"""Height of a distribution's plot in pixels."""

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#B8A800",
)
"""Okabe and Ito's colours, dark ones first; the yellow is darkened to show on white."""
PATTERNS = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Dash patterns: the first for the first eight runs, the next for the next eight, ..."""
MOST_RUNS = len(COLOURS) * len(PATTERNS)
"""Runs that a figure can tell apart."""


def response_cdf(runs: Sequence[Run], limit_s: float = 2.0) -> Chart:
    """Share of responses that ended within a time, from 0 to `limit_s` seconds.

    The curve is the exact distribution of all recorded responses, slower ones included in the
    total, drawn as steps through at most :data:`CURVE_POINTS` of its points (see
    :func:`cdf_points`).
    """
    return finish(_cdf_view(distinguish(runs), limit_s))


def response_ccdf(runs: Sequence[Run]) -> Chart:
    """Share of responses that took a time or longer, on logarithmic axes.

    Steps through at most :data:`CURVE_POINTS` points of the exact distribution (see
    :func:`ccdf_points`), from the fastest response to the slowest.
    """
    return finish(_ccdf_view(distinguish(runs)))


def queue_length(runs: Sequence[Run], link: str = "", direction: str = "") -> Chart:
    """Packets in a link's queue over simulated time, one plot per run.

    Samples are gathered in at most :data:`QUEUE_BINS` bins of equal length: the line is the mean
    of a bin's samples, the band reaches from their smallest to their largest.
    """
    return finish(queue_view(distinguish(runs), link, direction))


def comparison(runs: Sequence[Run], limit_s: float = 2.0) -> Chart:
    """Everything that the runs recorded, together: both distributions above the queues."""
    runs = distinguish(runs)
    views: list[alt.HConcatChart | alt.FacetChart] = []
    if any(Distribution.known_of(run, "response").total for run in runs):
        distributions = alt.hconcat(_cdf_view(runs, limit_s), _ccdf_view(runs), spacing=36)
        views.append(distributions)
    if any(run.queue is not None for run in runs):
        views.append(queue_view(runs, width=2 * WIDTH + 84))
    if not views:
        raise nothing_recorded("responses or queue samples")
    return finish(alt.vconcat(*views, spacing=28).resolve_scale(color="shared"))


def save(chart: Chart, path: str | os.PathLike[str]) -> Path:
    """Writes a figure; the name's suffix says how: .svg, .png, .pdf or .html (needs no network)."""
    target = Path(path)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise AqmlabError(
            f"{target}: a figure is written as {', '.join(WRITERS)}, not as "
            f"{target.suffix or 'a file without suffix'}"
        )
    write_bytes(target, writer(chart.to_dict()))
    return target


def svg(spec: dict[str, Any]) -> str:
    """A chart's definition as SVG."""
    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


WRITERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    ".svg": lambda spec: svg(spec).encode(),
    ".png": lambda spec: vl_convert.vegalite_to_png(spec, scale=2.0, allowed_base_urls=[]),
    ".pdf": lambda spec: vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[]),
    ".html": lambda spec: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
}


def cdf_points(of: Distribution, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (time, share up to it) of a distribution up to `limit`.

    Every point lies on the distribution. At most :data:`CURVE_POINTS` are kept, at evenly
    spaced ranks, so that no step between neighbours hides more than a thousandth of the share
    shown.
    """
    up_to = np.cumsum(of.count)
    bins = int(np.searchsorted(of.below_s, limit, side="right"))
    shown = int(up_to[bins - 1]) if bins else 0
    ranks = np.linspace(0, shown - 1, min(shown, CURVE_POINTS - 2)).astype(int)
    kept = np.unique(np.searchsorted(up_to, ranks, side="right"))
    share = up_to[kept] / of.total
    return np.r_[0.0, of.below_s[kept], limit], np.r_[0.0, share, shown / of.total]


def ccdf_points(of: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """Points (time, share at or beyond it) of a distribution.

    Every point lies on the distribution. The number of slower responses falls from point to
    point in at most :data:`CURVE_POINTS` equal ratios, so that the tail keeps its single
    responses.
    """
    up_to = np.cumsum(of.count)
    slowest = np.unique(np.geomspace(of.total, 1, CURVE_POINTS).astype(int))
    kept = np.unique(np.searchsorted(up_to, of.total - slowest, side="right"))
    return of.below_s[kept], 1 - (up_to[kept] - of.count[kept]) / of.total


def queue_bins(time: np.ndarray, packets: np.ndarray) -> list[dict[str, float]]:
    """Smallest, mean and largest of the samples in each bin of the time axis, in packets."""
    order = np.argsort(time, kind="stable")
    time, packets = time[order], packets[order]
    span = time[-1] - time[0]
    bins = min(QUEUE_BINS, len(time))
    index = ((time - time[0]) / span * bins).astype(int).clip(0, bins - 1) if span else time * 0
    starts = np.flatnonzero(np.r_[True, np.diff(index) > 0])
    counts = np.diff(np.r_[starts, len(time)])
    columns = {
        "time": np.add.reduceat(time, starts) / counts,
        "min": np.minimum.reduceat(packets, starts),
        "mean": np.add.reduceat(packets.astype(float), starts) / counts,
        "max": np.maximum.reduceat(packets, starts),
    }
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, map(float, row), strict=True)) for row in rows]


WORDS: Mapping[Of, tuple[str, str]] = {
    "response": ("response time", "responses"),
    "flow": ("duration of a connection", "connections"),
}
"""What the times are called, and whose they are."""
_CDF_TITLE = "Responses that end within a time"
_CCDF_TITLE = "Responses that take that long or longer"


def _cdf_view(runs: Sequence[Run], limit_s: float) -> alt.Chart:
    """The distribution from 0 to a limit."""
    return _curves(
        _response_times(runs),
        _CDF_TITLE,
        steps="step-after",
        points=lambda times: cdf_points(times, limit_s),
        axes=cdf_axes(limit_s),
    )


def cdf_axes(limit_s: float, of: Of = "response") -> tuple[alt.X, alt.Y]:
    """Axes of a distribution from 0 to a limit."""
    time, counted = WORDS[of]
    x = alt.X(
        "time:Q",
        title=f"{time} (s)",
        scale=alt.Scale(domain=[0, limit_s], nice=False),
    )
    return x, alt.Y(
        "share:Q",
        title=f"share of {counted} (%)",
        scale=alt.Scale(domain=[0, 100]),
    )


def _ccdf_view(runs: Sequence[Run]) -> alt.Chart:
    """The tail of the distribution."""
    drawn = _response_times(runs)
    return _curves(drawn, _CCDF_TITLE, steps="step-before", points=ccdf_points, axes=ccdf_axes())


def ccdf_axes(of: Of = "response") -> tuple[alt.X, alt.Y]:
    """Axes of the tail of a distribution."""
    time, counted = WORDS[of]
    x = alt.X(
        "time:Q",
        title=f"{time} (s), logarithmic",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 100, 1000, 10000], format="~r"),
    )
    return x, alt.Y(
        "share:Q",
        title=f"share of {counted} (%), logarithmic",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=[10.0**k for k in range(-6, 3)], format="~r"),
    )


def _curves(
    drawn: Sequence[_Named],
    title: str,
    *,
    steps: Literal["step-after", "step-before"],
    points: Callable[[Distribution], tuple[np.ndarray, np.ndarray]],
    axes: tuple[alt.X, alt.Y],
) -> alt.Chart:
    """One step-wise curve per distribution; one without anything in it has only its name."""
    names = [name for name, _ in drawn]
    values = [
        {"run": name, "time": float(f"{time:.6g}"), "share": float(f"{100 * share:.6g}")}
        for name, distribution in drawn
        if distribution.total
        for time, share in zip(*points(distribution), strict=True)
    ]
    x, y = axes
    chart: alt.Chart = (
        alt.Chart(Data(values=values), title=title, width=WIDTH, height=HEIGHT)
        .mark_line(interpolate=steps, strokeWidth=1.8, clip=True)
        .encode(
            x=x,
            y=y,
            color=colour(names),
            strokeDash=pattern(names),
            tooltip=[
                alt.Tooltip("run:N", title="run"),
                alt.Tooltip("time:Q", title="response time (s)", format=".3f"),
                alt.Tooltip("share:Q", title="share (%)", format=".3~f"),
            ],
        )
    )
    return chart


def queue_view(
    runs: Sequence[Run], link: str = "", direction: str = "", width: int = 2 * WIDTH
) -> alt.FacetChart:
    """One plot per run of the queue over time, on the same axes; default: of the main link."""
    drawn = _recorded(runs, "queue")
    main = main_link(runs)
    at = (link or main[0], direction or main[1])
    values = [
        {"run": run.label, **bin_} for run, table in drawn for bin_ in _binned(run, table, *at)
    ]
    base = alt.Chart(width=width, height=90).encode(
        x=alt.X(
            "time:Q",
            title="simulated time (s)",
            scale=alt.Scale(zero=False, nice=False),
            axis=alt.Axis(tickCount=10),
        ),
        color=colour(_labels(runs)),
        tooltip=[
            alt.Tooltip("run:N", title="run"),
            alt.Tooltip("time:Q", title="simulated time (s)", format=".1f"),
            alt.Tooltip("min:Q", title="smallest (packets)"),
            alt.Tooltip("mean:Q", title="mean (packets)", format=".1f"),
            alt.Tooltip("max:Q", title="largest (packets)"),
        ],
    )
    packets = alt.Y("min:Q", title="packets")
    band = base.mark_area(opacity=0.3).encode(y=packets, y2="max:Q")
    line = base.mark_line(strokeWidth=1.4).encode(y=alt.Y("mean:Q", title="packets"))
    return alt.layer(band, line, data=Data(values=values)).facet(
        row=alt.Row(
            "run:N",
            title=None,
            sort=_labels(runs),
            header=alt.Header(labelOrient="top", labelAnchor="start", labelFontSize=12),
        ),
        title="Queue length: mean, smallest and largest of each interval",
        spacing=10,
    )


def finish(chart: Chart) -> Chart:
    """The look that all figures share."""
    finished: Chart = chart.configure(  # at once: every call copies the whole chart
        background="white",
        font="sans-serif",
        padding=12,
        axis=alt.AxisConfig(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            gridColor="#e4e4e4",
            domainColor="#666",
            tickColor="#666",
        ),
        title=alt.TitleConfig(fontSize=14, anchor="start", fontWeight="bold", offset=8),
        legend=alt.LegendConfig(
            labelFontSize=13,
            title=None,
            orient="top",
            symbolType="stroke",
            symbolStrokeWidth=3,
            symbolOpacity=1,
            labelLimit=400,
            columns=4,
        ),
        view=alt.ViewConfig(stroke=None),
    )
    return finished


def _labels(runs: Sequence[Run]) -> list[str]:
    """The runs' labels."""
    return [run.label for run in runs]


def colour(names: Sequence[str]) -> alt.Color:
    """A colour per curve, in their order; an error if there are more than can be told apart."""
    if len(names) > MOST_RUNS:
        raise AqmlabError(f"a figure shows at most {MOST_RUNS} runs, not {len(names)}")
    palette = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    return alt.Color("run:N", title=None, sort=names, scale=alt.Scale(domain=names, range=palette))


def pattern(names: Sequence[str]) -> alt.StrokeDash:
    """A line pattern per curve: solid for as long as the colours last."""
    dashes = [PATTERNS[k // len(COLOURS)] for k in range(len(names))]
    return alt.StrokeDash(
        "run:N", title=None, sort=names, scale=alt.Scale(domain=names, range=dashes)
    )


def _response_times(runs: Sequence[Run]) -> list[_Named]:
    """The runs' distributions: of their recorded responses exactly, else to a thousandth."""
    found = [(run.label, Distribution.known_of(run, "response")) for run in runs]
    if not any(distribution.total for _, distribution in found):
        raise nothing_recorded("responses")
    return found


def _recorded(runs: Sequence[Run], what: str) -> list[tuple[Run, pa.Table]]:
    """The runs that recorded something, with its table."""
    tables = [(run, getattr(run, what)) for run in runs]
    found = [(run, table) for run, table in tables if table is not None and table.num_rows]
    if not found:
        raise nothing_recorded(what)
    return found


def nothing_recorded(what: str) -> AqmlabError:
    """None of the runs holds what a figure needs."""
    return AqmlabError(f"no run recorded {what}: add them to measure.record and run again")


def sorted_times(responses: pa.Table) -> np.ndarray:
    """Response times in seconds, ascending."""
    return np.sort(responses.column("response_s").to_numpy())


def _binned(run: Run, queue: pa.Table, link: str, direction: str) -> list[dict[str, float]]:
    """A run's queue samples of one direction of a link in bins."""
    chosen = queue
    for name, wanted in (("link", link), ("direction", direction)):
        chosen = chosen.filter(pc.equal(chosen.column(name).cast(pa.string()), wanted))
    if not chosen.num_rows:
        raise AqmlabError(f"{run.path}: no queue samples of {link} {direction}")
    return queue_bins(chosen.column("time_s").to_numpy(), chosen.column("packets").to_numpy())
