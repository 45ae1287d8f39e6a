"""Short paths of fields: ``discipline.target`` stands for one of the only bottleneck.

A path that begins with a key of a link, and not with one at the top of a scenario, is sought in the
link: ``topology.bottleneck`` of a dumbbell or a parking lot, or the only link of a network. A path
that begins with ``wifi`` is sought in ``topology``. Every override of a scenario may be short,
wherever it comes from.
"""

from __future__ import annotations

import json
from functools import lru_cache

from aqmlab import _native
from aqmlab._util.words import nearest
from aqmlab.errors import ScenarioError
from aqmlab.scenario.content import content

__all__ = ["TOP", "full_path", "is_short"]


TOP = ("title", "seed", "load", "measure", "topology", "traffic", "changes")
"""Keys at the top of a scenario."""


def is_short(path: str) -> bool:
    """Whether a path begins with a key of a link."""
    head = _head(path)
    return head not in TOP and (head == "wifi" or head in _link_keys())


def full_path(source: str, path: str) -> str:
    """The path that a short one stands for in a scenario, given as TOML; others stay.

    Raises:
        ScenarioError: the scenario has several such links, or it is nearly such a path.
    """
    head = _head(path)
    if head in TOP:
        return path
    if head == "wifi":
        return f"topology.{path}"
    if head not in _link_keys():
        hint = nearest(head, _link_keys())
        if hint and not nearest(head, TOP):
            raise ScenarioError(f"{path}: there is no such field{hint}")
        return path
    places = _links(source)
    if len(places) > 1:
        full = ", ".join(f"{place}.{path}" for place in places)
        raise ScenarioError(f"{path}: is short for a field of several links; expected {full}")
    return f"{places[0]}.{path}" if places else path


def _head(path: str) -> str:
    """The first key of a path."""
    return path.partition(".")[0].strip()


def _links(source: str) -> tuple[str, ...]:
    """Where a scenario has links that a short path may mean; nowhere if it has no topology."""
    topology = content(source).get("topology")
    if not isinstance(topology, dict):
        return ()
    links = topology.get("links")
    if not isinstance(links, dict):
        return ("topology.bottleneck",)
    return tuple(f"topology.links.{name}" for name in links)


@lru_cache(maxsize=1)
def _link_keys() -> tuple[str, ...]:
    """Keys of a link, for both directions or for each."""
    return tuple(json.loads(_native.schema())["$defs"]["Bottleneck"]["properties"])
