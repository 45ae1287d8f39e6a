"""Traced connections of runs."""

from __future__ import annotations

import polars as pl

from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run

__all__ = ["trace"]


def trace(run: Run, flow: int | None = None) -> list[tuple[str, pl.DataFrame]]:
    """A run's traced connections, each with its name; one of them if its number is given."""
    table = run.read("flow_trace")
    if table is None:
        return []
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col("class").cast(pl.String))
    parts = frame.sort("time_s").partition_by("flow", as_dict=True, maintain_order=True)
    numbered = {int(str(number)): part for (number,), part in sorted(parts.items())}
    if flow is not None and flow not in numbered:
        raise AqmlabError(
            f"{run.path}: flow: found {flow}; the trace has {', '.join(map(str, numbered))}"
        )
    return [
        (f"{number} ({part['class'][0]})", part)
        for number, part in numbered.items()
        if flow in (None, number) and part["rtt_s"].null_count() < len(part)
    ]
