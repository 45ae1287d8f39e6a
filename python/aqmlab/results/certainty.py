"""What differences do not show, in sentences: less than from seed to seed, one seed only."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.results.compare import Difference
from aqmlab.results.groups import Group
from aqmlab.results.metrics import compared

__all__ = ["doubts"]


def doubts(changes: Sequence[Difference], groups: Sequence[Group]) -> list[str]:
    """Sentences about the differences that may be chance; none if all of them are clear.

    Args:
        changes: the differences of the groups.
        groups: what was compared.
    """
    if not changes:
        return []
    seeds = {group.label: len(group.runs) for group in groups}
    found = []
    for run, baseline in dict.fromkeys((entry.run, entry.baseline) for entry in changes):
        own = [entry for entry in changes if (entry.run, entry.baseline) == (run, baseline)]
        # What is the same in every pair does not differ, and needs no excuse.
        unclear = [one for one in own if one.interval not in (None, (0, 0)) and not one.clear]
        if unclear:
            alone = min(seeds.get(run, 1), seeds.get(baseline, 1)) == 1
            by = "within the one run" if alone else "from seed to seed"
            found.append(
                f"{run} against {baseline}: no clear difference of {_named(unclear)} "
                f"(smaller than what varies {by})."
            )
    if min(seeds.values(), default=2) == 1:
        found.append(
            "One run is one seed: how results differ from seed to seed is not seen here; "
            "--seeds 1..10 shows it."
        )
    return found


def _named(entries: Sequence[Difference]) -> str:
    """Some numbers by class."""
    by_class: dict[str, list[str]] = {}
    for entry in entries:
        by_class.setdefault(entry.traffic, []).append(_name(entry.metric))
    return "; ".join(
        ", ".join(names) + ("" if traffic == "all" else f" of {traffic}")
        for traffic, names in by_class.items()
    )


def _name(key: str) -> str:
    """A number as a sentence has it."""
    label = compared(key).label
    return label if label.startswith("Jain") else label[:1].lower() + label[1:]
