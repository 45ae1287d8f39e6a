"""Runs of one scenario: what may share a table, a chart and a baseline.

Two runs are of one scenario if their networks have the same shape (kind of topology, names of the
links) and their traffic has (names and kinds of the classes), and if they have the same title or
the same users. Users are the same if their classes (TCP aside), the hosts and the measured
time are equal; the seed may differ. What is varied between runs of one scenario is a value,
such as a discipline, a rate or a load; another network or other traffic is another scenario.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab._util.words import several

if TYPE_CHECKING:
    from aqmlab.results.run import Run

__all__ = ["families", "family_titles", "users_of"]


def families(runs: Sequence[Run]) -> list[list[int]]:
    """Numbers of the runs of each scenario, in the order in which scenarios first appear."""
    members: list[list[int]] = []
    marks: list[set[str]] = []
    for number, run in enumerate(runs):
        own = _marks_of(run)
        joined = [place for place, other in enumerate(marks) if other & own]
        if not joined:
            members.append([number])
            marks.append(own)
            continue
        first, *others = joined
        members[first].append(number)
        marks[first] |= own
        for place in reversed(others):  # this run links what looked like two scenarios
            members[first] = sorted([*members[first], *members.pop(place)])
            marks[first] |= marks.pop(place)
    return members


def family_titles(groups: Sequence[Sequence[Run]]) -> list[str]:
    """A name for the runs of each scenario: their title, and the first run if titles agree."""
    titles = [_title_of(runs) for runs in groups]
    return [
        f"{title} ({runs[0].path.name})" if titles.count(title) > 1 else title
        for title, runs in zip(titles, groups, strict=True)
    ]


def users_of(scenario: Mapping[str, Any]) -> tuple[Any, ...]:
    """Everything in a scenario that decides what users do, except the seed and their TCP."""
    classes = [
        {key: value for key, value in entry.items() if key != "tcp"}
        for entry in scenario.get("traffic", [])
    ]
    measure, hosts = scenario.get("measure", {}), scenario.get("topology", {}).get("hosts", {})
    times = [measure.get(key) for key in ("warm_up", "duration")]
    return classes, times, hosts.get("clients"), hosts.get("servers")


def _marks_of(run: Run) -> set[str]:
    """What a run shares with every other run of its scenario: at least one of these."""
    scenario = run.scenario
    shape = [
        scenario.get("topology", {}).get("kind"),
        sorted(run.summary.get("links", {})),
        [(entry.get("name"), entry.get("kind")) for entry in scenario.get("traffic", [])],
    ]
    titled, alike = [shape, scenario.get("title")], [shape, users_of(scenario)]
    return {f"title {json.dumps(titled)}", f"users {json.dumps(alike)}"}


def _title_of(runs: Sequence[Run]) -> str:
    """The titles of some runs, at most two of them."""
    titles = list(dict.fromkeys(str(run.scenario.get("title") or run.label) for run in runs))
    return several(titles, 2, " / ")
