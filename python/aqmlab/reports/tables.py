"""The tables that only reports have."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab._util.table import Cell, TableModel
from aqmlab.reports.data import TAIL, Distributions, Traces
from aqmlab.reports.fidelity import PublishedNumber

__all__ = ["fidelity_table", "tail_table", "trace_table", "within_table"]


def fidelity_table(published: Sequence[PublishedNumber]) -> TableModel:
    """Published numbers beside ours."""
    papers = "; ".join(dict.fromkeys(number.paper for number in published))
    words, numbers = ("published row", "table", "column"), ("published", "ours", "verdict")
    table = TableModel(papers, words, numbers, name="fidelity")
    tones = {"within": "better", "outside": "worse", "missing": "worse"}
    for one in published:
        verdict = Cell(one.verdict, tones.get(one.verdict, ""))
        table.add_row(one.row, one.table, one.column, one.published, one.ours, verdict)
    return table


def within_table(found: Distributions) -> TableModel:
    """Shares of the responses within some times: the numbers behind the distribution."""
    heads = [f"≤ {time:g} s (%)" for time in found.marks]
    title = "Responses that ended within a time"
    table = TableModel(title, ("configuration", "class"), heads, name="within")
    for curve in found.curves:
        table.add_row(curve.group, curve.traffic, *(f"{100 * s:,.2f}" for s in curve.within))
    return table


def tail_table(found: Distributions) -> TableModel:
    """Percentiles: the numbers behind the tail."""
    heads = ["slowest (s)" if share == 1 else f"{100 * share:g} % (s)" for share in TAIL]
    title = "Percentiles of the response times"
    table = TableModel(title, ("configuration", "class"), ["responses", *heads], name="tail")
    for curve in found.curves:
        times = (f"{time:,.3f}" for time in curve.tail)
        table.add_row(curve.group, curve.traffic, f"{curve.count:,.0f}", *times)
    return table


def trace_table(found: Traces) -> TableModel:
    """Smallest, mean and largest values: the numbers behind the traces."""
    words, numbers = ("configuration", "link", "variable"), ("smallest", "mean", "largest")
    table = TableModel("Queues and inner variables", words, numbers, name="traced")
    for trace in found.traces:
        columns = trace.columns
        mean = sum(columns["mean"]) / len(columns["mean"])
        values = (min(columns["min"]), mean, max(columns["max"]))
        cells = (f"{value:.4g}" for value in values)
        table.add_row(trace.group, trace.direction, trace.variable, *cells)
    return table
