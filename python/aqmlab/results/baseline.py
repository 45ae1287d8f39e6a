"""What the others are compared with: what was asked for, else the drop-tail queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aqmlab._util.words import natural, nearest
from aqmlab.errors import AqmlabError
from aqmlab.results.families import families
from aqmlab.results.groups import Group
from aqmlab.results.links import loaded_links
from aqmlab.results.queues import discipline_at

__all__ = ["Baseline", "Comparison", "comparisons", "is_droptail", "scenarios_of"]


Baseline = str | Mapping[str, str] | None
"""A label; or, of a sweep, the label of each one's baseline by its own; or None: drop-tail."""

Comparison = tuple[Group, list[Group]]
"""A baseline, and what is compared with it."""


def scenarios_of(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups of each scenario, see :mod:`aqmlab.results.families`."""
    return [
        [groups[number] for number in family]
        for family in families([group.first for group in groups])
    ]


def comparisons(
    groups: Sequence[Group], baseline: Baseline = None, *, ordered: bool = True
) -> list[Comparison]:
    """What is compared with what; only groups of one scenario are compared.

    The baseline of a scenario is the one that was asked for, or its drop-tail queue. Without one
    it is the first group, unless their order means nothing: then nothing is compared.

    Args:
        groups: of one or several scenarios.
        baseline: what was asked for.
        ordered: whether somebody chose the order of the groups. If not (they come from folders),
            the first of several drop-tail queues is the first by its label.
    """
    wanted = _found(groups, baseline) if isinstance(baseline, str) else None
    found: list[Comparison] = []
    for own in scenarios_of(groups):
        if isinstance(baseline, Mapping) and any(group.label in baseline for group in own):
            found += _as_stated(own, baseline)
            continue
        first = wanted if wanted in own else _default(own, ordered=ordered)
        if first is not None and len(own) > 1:
            found.append((first, [group for group in own if group is not first]))
    return found


def _as_stated(groups: Sequence[Group], baseline: Mapping[str, str]) -> list[Comparison]:
    """Every group with the one that is stated for it."""
    by_label = {group.label: group for group in groups}
    found: dict[str, list[Group]] = {}
    for group in groups:
        if (name := baseline.get(group.label)) in by_label and name != group.label:
            found.setdefault(str(name), []).append(group)
    return [(by_label[name], others) for name, others in found.items()]


def _found(groups: Sequence[Group], wanted: str) -> Group:
    """The group of a label, or the only one whose label begins so."""
    labels = [group.label for group in groups]
    exact = [group for group in groups if group.label == wanted]
    begun = [group for group in groups if group.label.lower().startswith(wanted.lower())]
    fitting = exact or begun
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(f'"{group.label}"' for group in fitting)
        raise AqmlabError(f'--baseline: found "{wanted}", which fits {names}; name one of them')
    names = ", ".join(f'"{label}"' for label in labels[:20])
    raise AqmlabError(
        f'--baseline: found "{wanted}", which no run is called{nearest(wanted, labels)}; '
        f"there are {names}"
    )


def _default(groups: Sequence[Group], *, ordered: bool) -> Group | None:
    """The drop-tail queue of a scenario; else the first group, if that was chosen."""
    in_order = list(groups) if ordered else sorted(groups, key=lambda one: natural(one.label))
    plain = [group for group in in_order if is_droptail(group)]
    return next(iter(plain or (in_order if ordered else [])), None)


def is_droptail(group: Group) -> bool:
    """Whether every loaded queue of a group is drop-tail."""
    queues = [discipline_at(group.first.scenario, at) for at in loaded_links(group.runs)]
    kinds = {queue["kind"] for queue in queues if queue is not None}
    return kinds == {"droptail"}
