"""Queueing delay over time, estimated from samples of the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aqmlab.errors import AqmlabError
from aqmlab.figures.findings import Finding, Values, finding, shown
from aqmlab.figures.grammar import Chart
from aqmlab.figures.theme import Figure, Heading, Look
from aqmlab.figures.timelines import Panel, band_words, grouped, stacked
from aqmlab.results.configurations import Configuration, chosen_links, seeds_in_words
from aqmlab.results.directions import in_words, placed
from aqmlab.results.distributions import rows_with
from aqmlab.results.links import LinkDirection
from aqmlab.results.metrics import look_up
from aqmlab.results.run import Run
from aqmlab.scenario.quantities import parsed_rate, parsed_time

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_PANELS", "delays", "view"]


MOST_PANELS = 8
"""Most plots above each other."""
Samples: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Times in seconds, and estimated queueing delays in ms."""
_COLUMNS = ["link", "direction", "time_s", "bytes"]
_EXACT = "sojourn_mean_s"
_FEW = 4
"""Of so many configurations the subtitle has the exact means."""


def view(
    found: Sequence[Configuration],
    look: Look,
    link: str | None = None,
    direction: str | None = None,
) -> Figure:
    """The queueing delay of the loaded directions over time."""
    places = chosen_links(found, link, direction)
    names = [entry.label for entry in found]
    panels: list[Panel] = []
    drawn: list[LinkDirection] = []
    scenario = found[0].runs[0].scenario
    said: list[Finding] = []
    read = {entry.label: _by_seed(entry, places) for entry in found}
    for at in places:  # the main one first, of which the title speaks
        by_seed = {label: one for label, known in read.items() if (one := known[at])}
        series = {label: list(one.values()) for label, one in by_seed.items()}
        if series:
            said = said or [Finding(label, _means(one)) for label, one in by_seed.items()]
            drawn.append(at)
            title = in_words(at, scenario) if len(places) > 1 else ""
            panels += grouped(title, "Queueing delay (ms)", series)
    if not panels:
        raise AqmlabError(
            'no run recorded queue samples: add "queue" to measure.record and run again'
        )
    left_out = (
        f"; the first {MOST_PANELS} of {len(panels)} plots" if len(panels) > MOST_PANELS else ""
    )
    panels = panels[:MOST_PANELS]
    where = ", ".join(in_words(at, scenario) for at in drawn)
    who = f", {found[0].label}" if len(found) == 1 else ""
    heading = Heading(
        finding(said, f"mean queueing delay {placed(drawn[0], scenario)}", "ms"),
        (
            f"{where}{who}; {seeds_in_words(found)}{left_out}",
            "title and curves: an estimate, queued bytes / rate" + _of_packets(found, drawn[0]),
            band_words(panels),
        ),
    )

    def build(room: float) -> Chart:
        return stacked(panels, names, look, room)

    return Figure(heading, build, margin=6.3)


def _means(by_seed: Mapping[int, Samples]) -> Values:
    """The mean of what is drawn in ms, by seed."""
    return {seed: float(values.mean()) for seed, (_, values) in by_seed.items()}


def _of_packets(found: Sequence[Configuration], at: LinkDirection) -> str:
    """The exact mean of the packets' queueing delays, in words.

    It differs from the mean of the curve: busy times have more packets, and a scheduler lets
    packets of short queues go first.
    """
    known = {entry.label: entry.group.values(".".join((*at.path, _EXACT))) for entry in found}
    means = {label: 1e3 * float(np.mean(list(one.values()))) for label, one in known.items() if one}
    if not means or len(means) > _FEW:
        return ""
    if len(found) == 1:
        return f"; mean over the packets: {shown(next(iter(means.values())))} ms"
    parts = ", ".join(f"{label} {shown(mean)}" for label, mean in means.items())
    return f"; mean over the packets (ms): {parts}"


def _by_seed(
    entry: Configuration, places: Sequence[LinkDirection]
) -> dict[LinkDirection, dict[int, Samples]]:
    """The delays of a configuration's runs that recorded them; each run is read once."""
    found: dict[LinkDirection, dict[int, Samples]] = {at: {} for at in places}
    for run in entry.runs:
        reading = run.without_tables()
        table = reading.read("queue", _COLUMNS)
        for at in places if table is not None else ():
            if (one := _delays(reading, table, at)) is not None:
                found[at][run.seed] = one
    return found


def delays(run: Run, at: LinkDirection) -> Samples | None:
    """Times in seconds, and estimated queueing delays in ms; None if the run recorded no samples.

    The estimate is what is queued over the rate at which the link sends IP bytes (throughput over
    utilization, in which framing is counted; with a changing rate the rate of the moment, unless a
    congestion control decides when it changes). For a
    scheduler with several queues it is the time to empty all of them.
    """
    table = run.read("queue", _COLUMNS)
    return None if table is None else _delays(run, table, at)


def _delays(run: Run, table: pa.Table, at: LinkDirection) -> Samples | None:
    """Delays from the samples of a run."""
    chosen = rows_with(table["link"], at[0]) & rows_with(table["direction"], at[1])
    if not chosen.any():
        return None
    time = table["time_s"].to_numpy()[chosen]
    return time, 8e3 * table["bytes"].to_numpy()[chosen] / _rate_bps(run, at, time)


def _rate_bps(run: Run, at: LinkDirection, time: np.ndarray) -> np.ndarray:
    """The rate of a direction in IP bits per second at some times."""
    values = run.summary["links"][at[0]][at[1]]
    busy = float(values["utilization"] or 0.0)
    described = _described(run, at)
    stated = _bps(str(described.get("rate", "")))
    mean = float(values["throughput_bps"]) / busy if busy > 0 else stated
    if not mean:
        raise AqmlabError(f"{run.path}: {at!s}: its rate is unknown; nothing was sent")
    changes = [*(described.get("rate_changes") or []), *_changed_rates(run, at)]
    if not changes or not stated or any("when" in change for change in changes):
        return np.full(len(time), mean)
    moments = [parsed_time(str(change["at"])) for change in changes]
    rates = np.array([stated, *(_bps(str(change["rate"])) for change in changes)])
    return np.asarray(rates[np.searchsorted(moments, time, side="right")])


def _changed_rates(run: Run, at: LinkDirection) -> list[dict[str, object]]:
    """The rates among the changes of a run, as ``rate_changes`` of the link would have them.

    A link has one or the other.
    """
    key = f"{at[0]}.{at[1]}.rate"
    changes = run.scenario.get("changes", [])
    return [{**it, "rate": it["value"]} for it in changes if it["key"] == key]


def _described(run: Run, at: LinkDirection) -> Mapping[str, Any]:
    """What the scenario says of a direction of a link."""
    topology = run.scenario.get("topology", {})
    found = look_up(topology, at) or look_up(topology.get("links", {}), at) or {}
    return found if isinstance(found, Mapping) else {}


def _bps(text: str) -> float:
    """A rate such as "10 Mbit/s"; 0 of nothing."""
    return parsed_rate(text) if text else 0.0
