"""Figures of runs, as Altair charts.

Each kind is a function of runs (or of the folders that hold them) and a :class:`Look`; what it
returns can be shown in a notebook, changed, or saved with :func:`save`::

    from aqmlab import figures

    chart = figures.cdf(["runs/a", "runs/b"], look=figures.Look("column", "dark"))
    figures.save(chart, "responses.pdf")

`aqmlab plot` draws the same on the command line; see docs/figures.md.
"""

from aqmlab._util import drawing as _drawing  # noqa: F401 - says what is not installed
from aqmlab._util.deprecated import old_names
from aqmlab.figures.files import Chart, save
from aqmlab.figures.kinds.ccdf import ccdf
from aqmlab.figures.kinds.cdf import cdf
from aqmlab.figures.kinds.classes import classes
from aqmlab.figures.kinds.comparison import comparison
from aqmlab.figures.kinds.delay import delay
from aqmlab.figures.kinds.fairness import fairness
from aqmlab.figures.kinds.flows import flows
from aqmlab.figures.kinds.heat_map import heat_map
from aqmlab.figures.kinds.parameter import parameter
from aqmlab.figures.kinds.throughput_delay import throughput_delay
from aqmlab.figures.kinds.utilization_delay import utilization_delay
from aqmlab.figures.kinds.why import why
from aqmlab.figures.theme import Look
from aqmlab.results.configurations import select

__all__ = [
    "Chart",
    "Look",
    "ccdf",
    "cdf",
    "classes",
    "comparison",
    "delay",
    "fairness",
    "flows",
    "heat_map",
    "parameter",
    "save",
    "select",
    "throughput_delay",
    "utilization_delay",
    "why",
]

# What 0.2 called them.
__getattr__ = old_names(
    __name__,
    {"queue_length": "delay", "response_ccdf": "ccdf", "response_cdf": "cdf"},
    last="0.4",
)
