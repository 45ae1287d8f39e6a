"""Signatures: effects that a paper describes in words, checked on our own runs.

Three kinds, explained in a paper's ``signatures.toml``: orderings between cells, a step of the
response time at a response size, and bands of response times at multiples of a timer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aqmlab._util.lazy import np
from aqmlab.errors import AqmlabError
from aqmlab.results.terms import SLACK
from aqmlab.results.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from aqmlab.papers.scoreboard import Cell
    from aqmlab.results.run import Run

__all__ = ["bands", "check_orderings", "check_recorded", "rows_to_record", "step", "to_json"]


_RECORDED = ("steps", "bands")
"""Kinds that need a run with responses and flows."""


def to_json(verdict: Verdict) -> dict[str, Any]:
    """What became of a signature, for ``scoreboard.json``."""
    return {
        "id": verdict.id,
        "claim": verdict.statement,
        "holds": verdict.holds,
        "measured": verdict.measured,
    }


def rows_to_record(signatures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Table and row label of every run that has to record responses and flows, each once."""
    specs = (spec for kind in _RECORDED for spec in signatures.get(kind, []))
    return list(dict.fromkeys((table, label) for table, label in (spec["row"] for spec in specs)))


def check_orderings(signatures: Mapping[str, Any], cells: Sequence[Cell]) -> list[Verdict]:
    """The orderings whose tables were reproduced."""
    values = {(cell.table, cell.row, cell.column.name): cell.mean for cell in cells}
    return [
        _ordering(spec, values)
        for spec in signatures.get("orderings", [])
        if all(_cell_key(row, spec) in values for row in (spec["low"], *spec["high"]))
    ]


def _cell_key(row: Sequence[str], spec: Mapping[str, Any]) -> tuple[str, str, str]:
    """Table, row and column of one of an ordering's cells."""
    table, label = row
    return table, label, spec["column"]


def _ordering(
    spec: Mapping[str, Any], values: Mapping[tuple[str, str, str], float | None]
) -> Verdict:
    """Whether one cell lies below others by a margin."""
    low, *high = [values[_cell_key(row, spec)] for row in (spec["low"], *spec["high"])]
    if low is None or any(value is None for value in high):
        return Verdict.of(spec["id"], spec["claim"], None, "a run is missing")
    above = [value for value in high if value is not None]
    labels = [label for _, label in spec["high"]]
    listed = ", ".join(f"{label} {value:.4g}" for label, value in zip(labels, above, strict=True))
    return Verdict.of(
        spec["id"],
        spec["claim"],
        all(value - low > spec["by"] for value in above),
        f"{spec['column']}: {spec['low'][1]} {low:.4g}; {listed}",
    )


def check_recorded(
    signatures: Mapping[str, Any], runs: Mapping[tuple[str, str], Run | AqmlabError]
) -> list[Verdict]:
    """The signatures that need responses and flows and whose runs are there."""
    checks = {"steps": step, "bands": bands}
    verdicts = []
    for kind, check in checks.items():
        for spec in signatures.get(kind, []):
            run = runs.get(tuple(spec["row"]))
            if isinstance(run, AqmlabError):
                verdicts.append(Verdict.of(spec["id"], spec["claim"], None, f"no run: {run}"))
            elif run is not None:
                verdicts.append(
                    Verdict.of(spec["id"], spec["claim"], *check(spec, _exchanges(run)))
                )
    return verdicts


def _exchanges(run: Run) -> dict[str, np.ndarray]:
    """Response time, response size and whether anything was retransmitted, per connection."""
    run = run.afresh()
    if run.responses is None or run.flows is None:
        raise AqmlabError(f"{run.path}: responses and flows were not recorded")
    flows = run.flows.select(
        ["flow", "retransmitted_syn", "retransmitted_fin", "retransmitted_data"]
    )
    joined = run.responses.select(["flow", "response_s", "response_bytes"]).join(
        flows, keys="flow", join_type="inner"
    )
    return {
        "response_s": _column(joined, "response_s"),
        "response_bytes": _column(joined, "response_bytes"),
        "retransmitted": np.any(
            [_column(joined, f"retransmitted_{kind}") > 0 for kind in ("syn", "fin", "data")],
            axis=0,
        ),
    }


def _column(table: pa.Table, name: str) -> np.ndarray:
    """A column as a NumPy array."""
    return np.asarray(table.column(name).to_numpy())


def step(spec: Mapping[str, Any], flows: Mapping[str, np.ndarray]) -> tuple[bool, str]:
    """Whether the response time steps up at a response size, and only there."""
    clean = ~flows["retransmitted"]
    sizes, times = flows["response_bytes"][clean], flows["response_s"][clean]
    at, window = spec["at_bytes"], spec["window_bytes"]
    edges = [at + k * window for k in range(-2, 3)]
    groups = [times[(sizes > low) & (sizes <= high)] for low, high in pairwise(edges)]
    if any(len(group) == 0 for group in groups):
        return False, "no responses of these sizes"
    medians = [float(np.median(group)) for group in groups]
    below, rise, above = np.diff(medians)
    listed = ", ".join(
        f"{low + 1} to {high} B {1000 * median:.0f} ms"
        for (low, high), median in zip(pairwise(edges), medians, strict=True)
    )
    return bool(rise >= spec["by_s"] and max(below, above) < rise / 2), f"medians: {listed}"


def bands(spec: Mapping[str, Any], flows: Mapping[str, np.ndarray]) -> tuple[bool, str]:
    """Whether response times of retransmitting connections fall into bands, and how far apart.

    Long responses are left out: their round trips blur the bands.
    """
    from scipy.signal import find_peaks  # here, because importing it takes a second

    chosen = flows["retransmitted"] & (flows["response_bytes"] <= spec["up_to_bytes"])
    low, high = spec["range_s"]
    edges = np.linspace(low, high, 1 + round((high - low) / spec["bin_s"]))
    counts, _ = np.histogram(flows["response_s"][chosen], bins=edges)
    peaks, found = find_peaks(counts, prominence=0.0, height=max(1.0, 0.01 * counts.sum()))
    peaks = peaks[found["prominences"] >= counts[peaks] / 2]
    times = (edges[peaks] + edges[peaks + 1]) / 2
    holds = len(times) >= spec["at_least"]
    if "spacing_s" in spec:
        periods = np.diff(times) / spec["spacing_s"]
        away = spec["spacing_s"] * np.abs(periods - np.round(periods))
        holds = holds and bool(np.all(away <= spec["bin_s"] + SLACK))
    listed = ", ".join(f"{time:.2f}" for time in times)
    return holds, f"bands at {listed} s" if listed else "no bands"
