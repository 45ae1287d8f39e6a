"""Words of results and of this project that no catalog of the engine has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["WORDS", "Word"]


class Word(NamedTuple):
    """A word, what it means, and the page that says more."""

    meaning: str
    page: str
    others: Sequence[str] = ()
    """Other spellings, and other words for the same."""


_DIRECTIONS = "docs/metrics.md#download-and-forward"
WORDS: Mapping[str, Word] = {
    "forward": Word(
        "The direction of a link from the servers to the clients. Tables and figures call it "
        "download where clients ask and servers answer over it; files, keys and --set say forward.",
        _DIRECTIONS,
    ),
    "reverse": Word(
        "The direction of a link from the clients to the servers. Tables and figures call it "
        "upload where clients ask and servers answer; files, keys and --set say reverse.",
        _DIRECTIONS,
    ),
    "download": Word(
        "What servers send to clients, and the direction of the link that carries it: forward in "
        "files, keys and --set.",
        _DIRECTIONS,
        ("downlink", "downstream"),
    ),
    "upload": Word(
        "What clients send to servers, and the direction of the link that carries it: reverse in "
        "files, keys and --set.",
        _DIRECTIONS,
        ("uplink", "upstream"),
    ),
    "direction": Word(
        "Of a link: forward or reverse, which tables and figures call download and upload where "
        "the topology says which is which. Each has a queue of its own.",
        _DIRECTIONS,
        ("directions",),
    ),
    "wi-fi": Word(
        "topology.wifi puts an access point behind the bottleneck, whose stations are the clients: "
        "they share the air, one sends at a time. `aqmlab init --wifi 4` writes a scenario.",
        "docs/how-to/wifi.md",
        ("wifi", "wlan", "wireless"),
    ),
    "edca": Word(
        "The access categories of Wi-Fi: voice, video, best effort and background. "
        'topology.wifi.edca = "rfc8325" gives packets the category of their code point: with '
        "dscp = 46 a class is voice.",
        "docs/topologies.md#access-categories",
        ("wmm", "access category", "access categories"),
    ),
    "control": Word(
        "Congestion control: the rule that sets a sender's window or rate, such as cubic "
        "(congestion_control in [traffic.tcp]). `aqmlab list transports` lists them.",
        "docs/congestion-controls/index.md",
        ("controls", "congestion-control", "congestion control"),
    ),
    "metric": Word(
        "A number of summary.json, by its key or its short name: p90, loss.forward, mos.calls.",
        "docs/metrics.md",
        ("metrics", "numbers"),
    ),
    "upgrade": Word(
        'What changed since an earlier version, and what to do: "Upgrade from 0.2", "Upgrade from '
        '0.3".',
        "docs/versioning.md",
        ("upgrading", "update", "migrate", "migration"),
    ),
}
