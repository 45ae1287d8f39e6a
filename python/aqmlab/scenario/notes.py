"""What a scenario may say, and hardly anybody wants: each in a line, with what would be right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from aqmlab import _native
from aqmlab.scenario.quantities import parsed_rate, parsed_time

__all__ = ["notes"]

Table = Mapping[str, Any]

_HALVE = {"reno", "cubic", "vegas", "fast", "sync-tcp", "santa-cruz"}
"""Congestion controls that take a mark for a loss."""
_BY_MARKS = {"dctcp", "prague"}
"""Those that go by the share of marks."""
_LENGTHS = {
    "avq": "virtual_buffer",
    "choke": "max_th",
    "drr": "limit",
    "pi": "q_ref",
    "rem": "q_ref",
    "rio": "max_out",
    "rio-ps": "long_max_th",
    "sfq": "limit",
}
"""Defaults that are lengths, for the links of their time, by discipline."""
_SHORT_S, _LONG_S = 1e-3, 0.5
"""A queue below the one leaves a link idle, one above the other is no queue for anybody."""
_MANY_STATIONS = 400
"""From so many stations on their cost is worth a line."""
_STATION_S = 5e-5
"""About how much processor time a station that always sends takes for each simulated second."""
_MEAN_PACKET = 1500
_UNITS = {"packet": _MEAN_PACKET, "packets": _MEAN_PACKET, "byte": 1, "bytes": 1}
_UNITS |= {f"{prefix}B": 1000**power for power, prefix in enumerate("kMG", 1)}
_UNITS |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMG", 1)}


def notes(data: Table) -> list[str]:
    """The lines about a scenario with every default spelled out; none: nothing is unusual."""
    links = list(_links(data["topology"]))
    classes = [(f"traffic.{it['name']}", it) for it in data["traffic"]]
    measured_from = parsed_time(data["measure"]["warm_up"])
    end = measured_from + parsed_time(data["measure"]["duration"])
    stacks = [it for path, traffic in classes for it in _stacks(path, traffic)]
    segment = max((_bytes(it["mss"]) + _bytes(it["header"]) for _, it, _ in stacks), default=0.0)
    found = [line for path, link in links for line in _of_link(path, link, segment, end)]
    for path, traffic in classes:
        if "stop" in traffic and parsed_time(traffic["stop"]) <= measured_from:
            found.append(
                f"{path}.stop: {traffic['stop']} is not after measure.warm_up, "
                f"{data['measure']['warm_up']}: nothing of the class is measured"
            )
        found += _of_application(path, traffic, links)
    found += [line for path, stack, peer in stacks for line in _of_stack(path, stack, peer)]
    found += _of_stations(data["topology"].get("wifi"), data["traffic"])
    found += _of_marks(links, stacks, [traffic for _, traffic in classes])
    return list(dict.fromkeys(found))


def _of_application(path: str, traffic: Table, links: Sequence[tuple[str, Table]]) -> Iterator[str]:
    """An application that is to limit its sender, and writes faster than any link is."""
    if traffic.get("kind") != "bulk" or "limit" not in traffic:
        return
    if any("trace" in link for _, link in links):  # its rate at a time is in a file
        return
    changes = [change for _, link in links for change in link.get("rate_changes", [])]
    texts = [it["rate"] for it in (*(link for _, link in links), *changes) if "rate" in it]
    fastest = max(texts, key=parsed_rate, default=None)
    if fastest is not None and parsed_rate(traffic["limit"]) > parsed_rate(fastest):
        yield (
            f"{path}.limit: {traffic['limit']} is above the rate of every link, {fastest}: the "
            "application never limits the sender"
        )


def _of_stations(wifi: Table | None, classes: Sequence[Table]) -> Iterator[str]:
    """Stations that nothing reaches, and so many that they cost time."""
    stations: Sequence[Table] = wifi["stations"] if wifi is not None else ()
    named = {it["class"] for it in stations if "class" in it}
    others = [one["name"] for one in classes if one["name"] not in named]
    for index, it in enumerate(stations):
        theirs = [it["class"]] if "class" in it else others
        if it["frame_error"] == 1 and theirs:
            yield (
                f"topology.wifi.stations.{index}.frame_error: 1 spoils every packet, so nothing of "
                f"{', '.join(theirs)} gets through"
            )
    count = sum(it["count"] for it in stations)
    if count >= _MANY_STATIONS:
        yield (
            f"topology.wifi.stations: {count:,} stations that always send take about "
            f"{count * _STATION_S:.2g} s of processor time for each simulated second"
        )


def _links(topology: Table) -> Iterator[tuple[str, Table]]:
    """The directions of all links, with their paths."""
    named = {key: it for key, it in topology.items() if isinstance(it, dict) and "forward" in it}
    named |= {f"links.{key}": it for key, it in topology.get("links", {}).items()}
    for key, link in named.items():
        same = link["forward"] == link["reverse"]
        for direction in ("forward",) if same else ("forward", "reverse"):
            yield f"topology.{key}" + ("" if same else f".{direction}"), link[direction]


def _stacks(path: str, traffic: Table) -> Iterator[tuple[str, Table, Table]]:
    """The stacks of a class, each with its path and that of its peer."""
    tcp = traffic.get("tcp")
    if not isinstance(tcp, Mapping):
        return
    if "client" in tcp:
        yield f"{path}.tcp.client", tcp["client"], tcp["server"]
        yield f"{path}.tcp.server", tcp["server"], tcp["client"]
    else:
        yield f"{path}.tcp", tcp, tcp


def _control(stack: Table) -> str:
    control = stack["congestion_control"]
    return str(control if isinstance(control, str) else control["kind"])


def _of_stack(path: str, stack: Table, peer: Table) -> Iterator[str]:
    control = _control(stack)
    if stack["ecn"] and stack.get("ect") == "ect1" and control in _HALVE:
        yield (
            f'{path}.ect: found "ect1", which asks for the L4S service, with {control}, which '
            'halves its window at a mark; expected "ect0", or prague'
        )
    if control in _BY_MARKS and peer.get("ecn_echo", "until-cwr") == "until-cwr":
        does = {
            "dctcp": 'dctcp counts too many; expected "each-change"',
            "prague": 'prague falls back to Reno; expected "accurate"',
        }[control]
        yield f'{path}.ecn_echo: found "until-cwr", which repeats a mark for a round trip: {does}'
    delayed = peer["delayed_ack"]
    if control == "vegas" and delayed["kind"] != "off" and peer["ack_every"] > 1:
        yield (
            f"{path}.congestion_control: vegas takes the wait for a delayed ACK for a queue and "
            "may use little of a link; expected ack_every = 1"
        )


def _of_marks(
    links: Sequence[tuple[str, Table]],
    stacks: Sequence[tuple[str, Table, Table]],
    classes: Sequence[Table],
) -> Iterator[str]:
    """Who goes by marks where no queue marks, and queues set to mark that meet no ECN."""
    capable = [(path, stack) for path, stack, peer in stacks if stack["ecn"] and peer["ecn"]]
    if not any(link["discipline"]["ecn"] for _, link in _able(links)):
        for path, stack in capable:
            if (control := _control(stack)) in _BY_MARKS:
                yield f"{path}.ecn: no queue of the network marks, so {control} is Reno"
    if not capable and not any("ect" in traffic for traffic in classes):
        for path, link in _able(links):
            kind = link["discipline"]["kind"]
            if link["discipline"]["ecn"] and not _default(kind, "ecn"):
                yield f"{path}.discipline.ecn: no traffic is ECN-capable, so {kind} drops"


def _able(links: Sequence[tuple[str, Table]]) -> list[tuple[str, Table]]:
    """The links whose discipline can mark."""
    return [(path, link) for path, link in links if "ecn" in link["discipline"]]


def _of_link(path: str, link: Table, segment: float, end: float) -> Iterator[str]:
    rate, discipline = parsed_rate(link["rate"]), link["discipline"]
    kind = discipline["kind"]
    packet_s = 8 * _MEAN_PACKET / rate
    if packet_s > end:
        yield (
            f"{path}.rate: a packet of {_MEAN_PACKET} bytes takes {packet_s:.3g} s at "
            f"{link['rate']}, longer than the run"
        )
        return
    limit = discipline.get("limit")
    if isinstance(limit, str) and _bytes(limit) < segment:
        yield f"{path}.discipline.limit: {limit} hold no segment of {segment:.0f} bytes"
    for key in ("max_th", "max_out", "long_max_th"):
        if _exceeds(discipline.get(key), limit):
            yield (
                f"{path}.discipline.{key}: {discipline[key]} exceed limit, {limit}: the queue "
                "overflows first"
            )
    if kind == "htb":
        stated = json.dumps(_stated(discipline))
        tree = _native.tree_notes(stated, link["rate"], int(segment))
        yield from (f"{path}.discipline.{field}: {message}" for field, message in tree)
    length = _LENGTHS.get(kind, "")
    if length and discipline.get(length) == _default(kind, length):
        wait = _bytes(discipline[length]) * 8 / rate
        if not _SHORT_S <= wait <= _LONG_S:
            yield (
                f"{path}.discipline.{length}: {discipline[length]}, the default of {kind}, take "
                f"{1e3 * wait:.3g} ms at {link['rate']}; give it for this rate"
            )


def _stated(value: object) -> object:
    """A value without the keys that say nothing."""
    if not isinstance(value, Mapping):
        return value
    return {key: _stated(inner) for key, inner in value.items() if inner is not None}


def _bytes(length: str) -> float:
    """A length in bytes; packets count 1,500 each."""
    number, unit = length.split()
    return float(number) * _UNITS[unit]


def _exceeds(length: object, limit: object) -> bool:
    if not (isinstance(length, str) and isinstance(limit, str)):
        return False
    (one, unit), (other, same) = length.split(), limit.split()
    return unit.rstrip("s") == same.rstrip("s") and float(one) > float(other)


def _default(kind: str, key: str) -> object:
    """What a discipline's parameter is if it is left out."""
    parameters = _disciplines().get(kind, {}).get("parameters", [])
    return next((it.get("default") for it in parameters if it["name"] == key), None)


@cache
def _disciplines() -> Table:
    """What the engine says of its disciplines."""
    catalog: dict[str, Table] = json.loads(_native.catalog("disciplines"))
    return catalog["disciplines"]
