"""Figures of runs, as Altair charts.

Each kind is a function of runs (or of the folders that hold them) and a :class:`Look`; what it
returns can be shown in a notebook, changed, or saved with :func:`save`::

    from aqmlab import figures

    chart = figures.cdf(["runs/a", "runs/b"], look=figures.Look("column", "dark"))
    figures.save(chart, "responses.pdf")

`aqmlab plot` draws the same on the command line; see docs/figures.md.
"""

from __future__ import annotations

import importlib

from aqmlab._util import drawing as _drawing  # noqa: F401 - says what is not installed
from aqmlab._util.deprecated import old_names
from aqmlab._util.extras import needed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aqmlab.figures.altair_charts import (
        Chart,
        airtime,
        ccdf,
        cdf,
        classes,
        comparison,
        delay,
        fairness,
        flows,
        heat_map,
        over_time,
        parameter,
        throughput_delay,
        utilization_delay,
        why,
    )
    from aqmlab.figures.files import save
    from aqmlab.figures.theme import Look
    from aqmlab.results.configurations import select

__all__ = [
    "Chart",
    "Look",
    "airtime",
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
    "save",
    "select",
    "throughput_delay",
    "utilization_delay",
    "why",
]

# Commands draw without Altair, whose import takes as long as most of them: a name is looked up when
# it is first used.
_PLACES = {
    "Look": "aqmlab.figures.theme",
    "save": "aqmlab.figures.files",
    "select": "aqmlab.results.configurations",
}
# What 0.2 called them.
_old = old_names(
    __name__,
    {"queue_length": "delay", "response_ccdf": "ccdf", "response_cdf": "cdf"},
    last="0.4",
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        return _old(name)
    place = _PLACES.get(name, "aqmlab.figures.altair_charts")
    if name not in _PLACES:
        needed("altair", "figures in Python", "altair>=6.0")
    found: object = getattr(importlib.import_module(place), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
