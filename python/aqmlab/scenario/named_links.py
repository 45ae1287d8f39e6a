"""Links by name: what ``--link NAME`` stands for, each number with its source.

A link is a file in ``links``: ``title``, the round trip of the idle path, ``bottleneck`` as a
scenario has it, and ``sources`` of its keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab._util.lazy import tomllib
from aqmlab._util.shipped import SHIPPED
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.scenario.link_files import link_file, link_names
from aqmlab.scenario.quantities import parsed_rate, parsed_time
from aqmlab.scenario.scenario import Override, Scenario, inline

__all__ = ["NamedLink", "named_link"]


_TRACES = SHIPPED / "scenarios"
"""Where the traces are that links name."""
_WAYS = ("forward", "reverse")


@dataclass(frozen=True)
class NamedLink:
    """A link that has a name."""

    name: str
    title: str
    rtt: str
    """The round trip of the idle path."""
    bottleneck: Mapping[str, Any]
    """As a scenario has it."""
    sources: Mapping[str, str]
    """Where the numbers come from, by key of the bottleneck; ``rtt`` is that of the path."""
    names: tuple[str, ...] = ()
    """What other testers call such a link."""
    leaves_out: str = ""
    """What such links have in the world and this one has not."""

    @property
    def rtt_s(self) -> float:
        """The round trip in seconds."""
        return parsed_time(self.rtt)

    @property
    def traces(self) -> list[Path]:
        """The files of its traces, relative to a scenario."""
        files = [self.bottleneck[way].get("trace", {}).get("file") for way in _WAYS]
        return [Path(file) for file in dict.fromkeys(files) if file]

    @property
    def numbers(self) -> Iterator[tuple[str, str, str]]:
        """Its keys with their values and sources."""
        yield "rtt", self.rtt, self.sources["rtt"]
        for key, value in _leaves(self.bottleneck):
            if key in self.sources:
                yield key, _said(value), self.sources[key]

    @property
    def rates_bps(self) -> tuple[float, float]:
        """The rates of both directions, those of a trace on average."""
        bottleneck = self.scenario().data["topology"]["bottleneck"]
        forward, reverse = (parsed_rate(bottleneck[way]["rate"]) for way in _WAYS)
        return forward, reverse

    @property
    def text(self) -> str:
        """The bottleneck as its file has it, for a scenario."""
        source = link_file(self.name).read_text(encoding="utf-8")
        start, end = source.index("[bottleneck]"), source.index("[sources]")
        return source[start:end].replace("[bottleneck", "[topology.bottleneck").strip() + "\n"

    def table(self) -> dict[str, Any]:
        """The bottleneck, with the places of its traces in this installation."""
        found = deepcopy(dict(self.bottleneck))
        for way in _WAYS:
            if "trace" in found[way]:
                file = _TRACES / found[way]["trace"]["file"]
                found[way]["trace"]["file"] = os.fspath(file)
        return found

    def overrides(self, scenario: Scenario) -> list[Override]:
        """What gives a scenario this link, and its classes this round trip.

        Raises:
            AqmlabError: the scenario has several links.
        """
        kind = scenario.data["topology"]["kind"]
        if kind != "dumbbell":
            raise AqmlabError(
                f'--link: found "{self.name}" for a topology of the kind "{kind}"; only a scenario '
                'with one link, of the kind "dumbbell", takes it'
            )
        rtt = inline({"kind": "constant", "rtt": self.rtt})
        classes = [traffic["name"] for traffic in scenario.data["traffic"]]
        return [
            ("topology.bottleneck", inline(self.table())),
            *((f"traffic.{name}.rtt", rtt) for name in classes),
        ]

    def scenario(self) -> Scenario:
        """A scenario with this link and one transfer over it."""
        traffic = {
            "kind": "bulk",
            "flows": 1,
            "rtt": {"kind": "constant", "rtt": self.rtt},
        }
        topology = {"kind": "dumbbell", "bottleneck": self.table()}
        return Scenario.from_dict({"title": self.title, "topology": topology, "traffic": [traffic]})


def _said(value: object) -> str:
    """A value in a line; of a long list the first entry."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) > 1:
        return f"{_said(value[0])} and {len(value) - 1} more"
    return re.sub(r'"(\w+)" =', r"\1 =", inline(value))


def _leaves(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a bottleneck, where tables other than directions are values."""
    for key, value in table.items():
        if key in _WAYS:
            yield from _leaves(value, f"{key}.")
        else:
            yield before + key, value


def named_link(name: str) -> NamedLink:
    """A link by its name.

    Raises:
        AqmlabError: there is none of that name.
    """
    known = link_names()
    if name not in known:
        raise AqmlabError(
            f'--link: found "{name[:40]}"; expected one of {", ".join(known)}{nearest(name, known)}'
        )
    content = tomllib.loads(link_file(name).read_text(encoding="utf-8"))
    content["names"] = tuple(content.get("names", ()))
    return NamedLink(name=name, **content)
