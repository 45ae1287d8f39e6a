"""What one run says about its own certainty: batch means, and whether its warm-up was long enough.

Both look at what was recorded of the measured span: the samples of the forward queue, and the
response times in the order in which the responses began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aqmlab._util.lazy import np, pa
from aqmlab.errors import AqmlabError
from aqmlab.results.links import main_link
from aqmlab.results.statistics import Estimate, Floats, batch_means, initialization_bias

if TYPE_CHECKING:
    from aqmlab.results.run import Run

__all__ = ["COLUMNS", "LEVEL", "batched", "warm_up_columns"]


COLUMNS = ("warm_up_queue_z", "warm_up_responses_z")
"""Columns of the results: a standard normal number each if the warm-up was long enough."""
LEVEL = 0.01
"""A warning is given when such a number had at most this probability."""


def warm_up_columns(run: Run) -> dict[str, float | None]:
    """The test on what a run recorded; without records there is no column."""
    found: dict[str, float | None] = {}
    for name, series in zip(COLUMNS, (_queue_series(run), _response_series(run)), strict=True):
        if series is not None:
            found[name] = initialization_bias(series)
    return found


def _queue_series(run: Run) -> Floats | None:
    """Packets in the main link's queue, sample by sample, in the measured span."""
    # Columns that nobody looks at are not decoded, and nothing is copied but what is wanted.
    table = run.read("queue", ["link", "direction", "time_s", "packets"])
    if table is None:
        return None
    begin = float(run.summary["simulated_s"]) - float(run.summary["measured_s"])
    chosen = table.column("time_s").to_numpy() >= begin
    for name, wanted in zip(("link", "direction"), main_link([run]), strict=True):
        words = table.column(name).dictionary_encode().unify_dictionaries().combine_chunks()
        known = words.dictionary.to_pylist()
        chosen &= words.indices.to_numpy() == (known.index(wanted) if wanted in known else -1)
    series: Floats = table.column("packets").to_numpy()[chosen].astype(float)
    return series


def _response_series(run: Run) -> Floats | None:
    """Response times in the order in which the responses began."""
    table = run.read("responses", ["start_s", "response_s"])
    if table is None:
        return None
    order = np.argsort(table.column("start_s").to_numpy(), kind="stable")
    # Their logarithms: one response of a minute would hide everything else.
    series: Floats = np.log(np.maximum(table.column("response_s").to_numpy()[order], 1e-6))
    return series


_STATISTICS: Mapping[str, Callable[[Floats], float]] = {
    "mean": lambda batch: float(batch.mean()),
    "p50": lambda batch: float(np.quantile(batch, 0.5)),
    "p90": lambda batch: float(np.quantile(batch, 0.9)),
    "le_1s": lambda batch: float(np.mean(batch <= 1.0)),
}
"""What is computed of each batch of response times."""


def batched(run: Run, batches: int) -> dict[str, dict[str, Estimate]]:
    """Batch means of a run's response times by class.

    The mean over batches of a percentile is near that of all responses, not equal to it.
    """
    table = run.responses
    if table is None:
        raise AqmlabError(f"{run.path}: no responses: add them to measure.record and run again")
    order = np.argsort(table.column("start_s").to_numpy(), kind="stable")
    times = table.column("response_s").to_numpy()[order]
    classes = table.column("class").cast(pa.string()).to_numpy(zero_copy_only=False)[order]
    chosen = {name: times[classes == name] for name in run.classes}
    if len(chosen) > 1:
        chosen["all"] = times
    return {
        name: {
            metric: batch_means(
                series,
                batches,
                statistic=statistic,
                bounds=(0.0, 1.0 if metric == "le_1s" else math.inf),
            )
            for metric, statistic in _STATISTICS.items()
        }
        for name, series in chosen.items()
    }
