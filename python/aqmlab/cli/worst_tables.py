"""What ``aqmlab evaluate --worst`` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from aqmlab import _native
from aqmlab._util.table import TableModel, strong
from aqmlab._util.words import counted, wrapped
from aqmlab.cards.worst import Worst, WorstChange, bounds
from aqmlab.results.statistics import Estimate

__all__ = ["found_json", "page"]


def page(found: Worst) -> Iterator[str | TableModel]:
    """What was found: a sentence, every number, the scenario."""
    yield strong(f"{found.name}: the worst that a search found")
    failed = f", {counted(found.failed, 'scenario')} with a failed run" if found.failed else ""
    yield (
        f"{counted(found.tried, 'scenario')} tried{failed}; seeds {found.seeds[0]} to "
        f"{found.seeds[-1]}, engine {_native.engine()}"
    )
    yield ""
    yield from wrapped(found.sentence)
    yield ""
    table = TableModel("", ["number"], ["candidate", found.other, "change", "95 %"])
    for one in found.changes:
        values = map(one.measure.shown, (one.mine, one.theirs))
        table.add_row(one.measure.titled, *values, _shown(one), _ends(one.difference))
    yield table
    yield from wrapped(
        "Change: a factor, or a difference (+ or -); its interval is over seeds that the search "
        "did not see."
    )
    yield ""
    table = TableModel("", ["scenario"], texts=["here", "searched"])
    for bound in bounds(found.kind):
        variable = bound.variable
        value = found.values[variable.name]
        table.add_row(bound.meaning, variable.shown(value), bound.searched)
    yield table


def _shown(one: WorstChange) -> str:
    mean = one.difference.mean
    return f"{mean:.2f} x" if one.is_ratio else f"{mean:+.2f}"


def _ends(found: Estimate) -> str:
    return found.note if math.isnan(found.low) else f"{found.low:.2f} to {found.high:.2f}"


def found_json(found: Worst) -> dict[str, Any]:
    """The worst scenario that was found, as JSON."""
    return {
        "kind": found.kind,
        "name": found.name,
        "other": found.other,
        "clear": found.clear,
        "sentence": found.sentence,
        "scenario": dict(found.values),
        "regret": found.regret,
        "tried": found.tried,
        "failed": found.failed,
        "seeds": list(found.seeds),
        "numbers": [_change_json(one) for one in found.changes],
    }


def _change_json(one: WorstChange) -> dict[str, Any]:
    change = one.difference
    return {
        "measure": one.measure.measure,
        "letter": one.measure.letter,
        "candidate": one.mine,
        "other": one.theirs,
        "relative": one.is_ratio,
        "change": change.mean,
        "low": None if math.isnan(change.low) else change.low,
        "high": None if math.isnan(change.high) else change.high,
    }
