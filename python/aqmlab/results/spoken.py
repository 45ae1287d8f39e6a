"""Queues as people speak of them: FQ-CoDel, PIE, drop-tail."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aqmlab.results.groups import Group
from aqmlab.results.links import loaded_links
from aqmlab.results.queues import discipline_at, first_link

__all__ = ["kind_of", "spoken", "spoken_names"]


_SPOKEN = {
    "droptail": "drop-tail",
    "codel": "CoDel",
    "fq-codel": "FQ-CoDel",
    "dualpi2": "DualPI2",
    "choke": "CHOKe",
    "ared-feng": "ARED (Feng)",
    "l4s-marking": "L4S marking",
    "step": "step marking",
    "bernoulli": "Bernoulli",
}
"""Disciplines whose usual name is not their key in capitals."""


def spoken(kind: str) -> str:
    """The usual name of a kind of discipline: FQ-CoDel, PIE, drop-tail."""
    return _SPOKEN.get(kind, kind.upper())


def spoken_names(groups: Sequence[Group]) -> dict[str, str]:
    """What people call the queues of some groups, by the groups' labels.

    A kind that only one of them has is called by its usual name; others keep what tells them apart.
    """
    kinds = {one.label: _kinds(one) for one in groups}
    worlds = {one.first.world for one in groups}
    found = {}
    for one in groups:
        label = one.label
        label = label.removeprefix("queue = ")
        if len(worlds) == 1:
            label = label.removesuffix(one.first.world_mark)
        own = kinds[one.label]
        if len(own) != 1:
            found[one.label] = label
            continue
        [kind] = own
        alone = sum(kinds[other.label] == own for other in groups) == 1
        if kind == "plugin":
            found[one.label] = label
        elif alone:
            found[one.label] = spoken(kind)
        else:
            found[one.label] = re.sub(rf"\b{re.escape(kind)}(?![\w])", spoken(kind), label, count=1)
    return (
        found
        if len(set(found.values())) == len(found)
        else {one.label: one.label for one in groups}
    )


def kind_of(group: Group) -> str:
    """The kind of the disciplines at the loaded links of a group; empty: there are several."""
    found = _kinds(group)
    return found.pop() if len(found) == 1 else ""


def _kinds(group: Group) -> set[str]:
    """The kinds of the disciplines at the loaded links of a group."""
    scenario, places = group.first.scenario, loaded_links(group.runs)
    found = [discipline_at(scenario, at) for at in places or first_link(scenario)]
    return {str(one["kind"]) for one in found if one is not None}
