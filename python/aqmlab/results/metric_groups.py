"""The short names of metrics by what they measure, for help and for errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["grouped", "listed"]


_GROUPS: Mapping[str, str] = {
    "links": r"links\.",
    "pages": r"quality\..*\.(page_load|object_index)",
    "responses": r"responses\.",
    "calls": r"quality\..*\.mos",
    "video": r"quality\..*\.(stall|frame|freeze|bitrate)",
    "games": r"quality\..*\.input",
    "transfers": r"flows\..*\.(upload_)?goodput|quality\..*\.throughput",
    "fairness": r"flows\..*\.fairness",
    "round trips": r"flows\..*\.(s?rtt|cwnd)",
    "datagrams": r"flows\..*\.datagram",
}
"""What a number is of, by the beginning of its key."""
_OTHERS = "others"


def grouped(names: Mapping[str, str]) -> dict[str, list[str]]:
    """Short names by what they measure, in the order of the groups.

    Args:
        names: keys of ``summary.json`` by short name.
    """
    found: dict[str, list[str]] = {title: [] for title in (*_GROUPS, _OTHERS)}
    for name, key in names.items():
        fitting = (title for title, pattern in _GROUPS.items() if re.match(pattern, key))
        found[next(fitting, _OTHERS)].append(name)
    return {title: some for title, some in found.items() if some}


def listed(groups: Mapping[str, Sequence[str]]) -> str:
    """The groups in one line: "links: loss, delay; calls: mos"."""
    return "; ".join(f"{title}: {', '.join(names)}" for title, names in groups.items())
