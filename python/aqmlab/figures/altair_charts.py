"""Figures as Altair charts, for notebooks and for those who change them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeAlias

import altair as alt

from aqmlab.figures.grammar import Chart as Plain
from aqmlab.figures.kinds.airtime import airtime as _airtime
from aqmlab.figures.kinds.ccdf import ccdf as _ccdf
from aqmlab.figures.kinds.cdf import cdf as _cdf
from aqmlab.figures.kinds.classes import classes as _classes
from aqmlab.figures.kinds.comparison import comparison as _comparison
from aqmlab.figures.kinds.delay import delay as _delay
from aqmlab.figures.kinds.fairness import fairness as _fairness
from aqmlab.figures.kinds.flows import flows as _flows
from aqmlab.figures.kinds.heat_map import heat_map as _heat_map
from aqmlab.figures.kinds.over_time import over_time as _over_time
from aqmlab.figures.kinds.parameter import parameter as _parameter
from aqmlab.figures.kinds.throughput_delay import throughput_delay as _throughput_delay
from aqmlab.figures.kinds.utilization_delay import utilization_delay as _utilization_delay
from aqmlab.figures.kinds.why import why as _why

__all__ = [
    "Chart",
    "airtime",
    "altair_chart",
    "ccdf",
    "cdf",
    "classes",
    "comparison",
    "delay",
    "fairness",
    "flows",
    "heat_map",
    "over_time",
    "parameter",
    "throughput_delay",
    "utilization_delay",
    "why",
]


Chart: TypeAlias = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.VConcatChart
    | alt.HConcatChart
    | alt.ConcatChart
)
"""A figure."""

_Options = ParamSpec("_Options")
_KINDS: dict[str, type[Chart]] = {
    "layer": alt.LayerChart,
    "spec": alt.FacetChart,
    "vconcat": alt.VConcatChart,
    "hconcat": alt.HConcatChart,
    "concat": alt.ConcatChart,
}


def altair_chart(chart: Plain) -> Chart:
    """Converts a figure to a chart of Altair."""
    spec = chart.to_dict()
    kind = next((found for key, found in _KINDS.items() if key in spec), alt.Chart)
    # Rows pass untouched: looking through thousands of them takes seconds.
    datasets = spec.pop("datasets", {})
    found: Chart = kind.from_dict(spec, validate=False)
    found.datasets = datasets
    return found


def _as_altair(draw: Callable[_Options, Plain]) -> Callable[_Options, Chart]:
    """What draws a figure, as what gives an Altair chart."""

    @functools.wraps(draw)
    def drawn(*args: _Options.args, **kwargs: _Options.kwargs) -> Chart:
        return altair_chart(draw(*args, **kwargs))

    return drawn


airtime = _as_altair(_airtime)
ccdf = _as_altair(_ccdf)
cdf = _as_altair(_cdf)
classes = _as_altair(_classes)
comparison = _as_altair(_comparison)
delay = _as_altair(_delay)
fairness = _as_altair(_fairness)
flows = _as_altair(_flows)
heat_map = _as_altair(_heat_map)
over_time = _as_altair(_over_time)
parameter = _as_altair(_parameter)
throughput_delay = _as_altair(_throughput_delay)
utilization_delay = _as_altair(_utilization_delay)
why = _as_altair(_why)
