"""Addresses of the playground that open a run in it.

The playground is a page that shows some scenarios, not all. What it would simulate for an address
is written here, too, and compared with the run: an address opens the same packets, or there is
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import floor
from typing import Any
from urllib.parse import urlencode

from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.link_files import link_names
from aqmlab.scenario.named_links import NamedLink, named_link
from aqmlab.scenario.quantities import parsed_rate, parsed_time
from aqmlab.scenario.scenario import Scenario

__all__ = ["fragment", "fragment_of_link"]

_GROUPS = ("transfers-1", "transfers-2")
_NEVER_FULL = 1000.0
"""Mbit/s of a way back that is never full."""
_NEVER_FULL_QUEUE = {"kind": "droptail", "limit": "10000 packets"}
_MARKS: Mapping[str, dict[str, object]] = {
    "prague": {"ecn": True, "ect": "ect1", "ect_on": "all-data", "ecn_echo": "accurate"},
    "dctcp": {"ecn": True, "ect_on": "all-data", "ecn_echo": "each-change"},
}
"""Congestion controls that count marks, and what they need of their stack."""
_RANGES: Mapping[str, tuple[float, float]] = {
    "rate": (0.5, 200),
    "up": (0.1, _NEVER_FULL),
    "delay": (0, 300),
    "buffer": (5, 2000),
    "rtt": (1, 400),
    "flows": (0, 50),
    "web": (0, 2000),
    "video": (0, 20),
}
"""What the page's sliders reach."""
_PACKET_BITS = 12_000
_CALL_RTT_MS = 40.0
_OWN = "own"
"""A lane with the queues of its link's profile."""


def fragment(data: Mapping[str, Any]) -> str | None:
    """What follows the ``#`` of the playground's address for an effective scenario, if it fits."""
    tried = (_fragment(data, link) for link in (None, *_links(data)))
    return next((found for found in tried if found is not None), None)


def fragment_of_link(name: str) -> str:
    """What follows the ``#`` for a link by its name, with the page's own users.

    Raises:
        AqmlabError: there is no such link, or the page does not show it.
    """
    link = named_link(name)
    if not _is_slow_enough(link):
        raise AqmlabError(
            f'--link: found "{name}"; the playground shows links of at most '
            f"{_RANGES['rate'][1]:g} Mbit/s"
        )
    return urlencode({"link": name})


def _is_slow_enough(link: NamedLink) -> bool:
    """Whether the page shows a link: a browser is too slow for the fastest."""
    return max(link.rates_bps) <= 1e6 * _RANGES["rate"][1]


def _links(data: Mapping[str, Any]) -> Iterator[NamedLink]:
    """The links whose round trip every class of a scenario has."""
    trips = {str(one.get("rtt", {}).get("rtt")) for one in data.get("traffic", ())}
    for link in map(named_link, link_names()):
        if trips == {link.rtt} and _is_slow_enough(link):
            yield link


def _fragment(data: Mapping[str, Any], link: NamedLink | None) -> str | None:
    """The address over a link that has a name, or over a link by sliders, if the scenario fits."""
    try:
        state = _state(data) if link is None else _linked(data, link)
        same = Scenario.from_dict(_shown(state)).data
    except (KeyError, TypeError, ValueError, ZeroDivisionError, ScenarioError):
        return None
    fits = all(same[part] == data[part] for part in ("topology", "traffic"))
    return _address(state) if fits and _is_in_range(state) else None


def _is_in_range(state: Mapping[str, Any]) -> bool:
    """Whether the page's sliders reach every value: it takes the nearest one else."""
    values = [(name, state[name]) for name in _RANGES if name in state]
    for group in state["transfers"].values():
        values += [("rtt", group["rtt"]), ("flows", group["flows"])]
    values.append(("rtt", state["web_rtt"]))
    return all(_RANGES[name][0] <= value <= _RANGES[name][1] for name, value in values)


def _state(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the page would have to show; an error if it has no place for it."""
    link = data["topology"]["bottleneck"]
    forward, reverse = link["forward"], link["reverse"]
    classes = {one["name"]: one for one in data.get("traffic", ())}
    delay = 1000 * parsed_time(forward["delay"])
    rtt = {name: 1000 * parsed_time(one["rtt"]["rtt"]) - delay for name, one in classes.items()}
    rate = parsed_rate(forward["rate"]) / 1e6
    limit = float(forward["discipline"]["limit"].removesuffix(" packets"))
    return {
        "rate": rate,
        "up": parsed_rate(reverse["rate"]) / 1e6,
        "buffer": limit * _PACKET_BITS / (1000 * rate),
        "delay": delay,
        "discipline": forward["discipline"],
        **_users(data, rtt),
    }


def _linked(data: Mapping[str, Any], link: NamedLink) -> dict[str, Any]:
    """What the page would have to show over a link that has a name."""
    found = data["topology"]["bottleneck"]
    discipline = found["forward"]["discipline"]
    state: dict[str, Any] = {"link": link, **_users(data, {})}
    if found == link.scenario().data["topology"]["bottleneck"]:
        return {**state, "discipline": {"kind": _OWN}}
    limit = float(discipline["limit"].removesuffix(" packets"))
    buffer = limit * _PACKET_BITS / (link.rates_bps[0] / 1000)
    return {**state, "discipline": discipline, "buffer": buffer}


def _users(data: Mapping[str, Any], rtt: Mapping[str, float]) -> dict[str, Any]:
    """The users, what is measured and what changes; round trips by class, where they have some."""
    classes = {one["name"]: one for one in data.get("traffic", ())}
    return {
        "transfers": {
            name: {**classes[name], "rtt": rtt.get(name, _CALL_RTT_MS)}
            for name in _GROUPS
            if name in classes
        },
        "web": classes.get("web", {"users": 0})["users"],
        "web_rtt": rtt.get("web", _CALL_RTT_MS),
        "call": "call" in classes,
        "video": classes.get("video", {"viewers": 0})["viewers"],
        "why": bool(data.get("measure", {}).get("breakdown")),
        "changes": data.get("changes", []),
        "seed": data["seed"],
    }


def _shown(state: Mapping[str, Any]) -> dict[str, object]:
    """The scenario of a state, as the page has it."""
    link: NamedLink | None = state.get("link")

    def rtt(ms: float) -> dict[str, str]:
        trip = f"{ms + state['delay']:.12g} ms" if link is None else link.rtt
        return {"kind": "constant", "rtt": trip}

    traffic: list[dict[str, object]] = []
    for name, group in state["transfers"].items():
        traffic.append(
            {
                "name": name,
                "kind": "bulk",
                "flows": group["flows"],
                "start_within": "2 s",
                "direction": group["direction"],
                **_transport(group),
                "rtt": rtt(group["rtt"]),
            }
        )
    if state["web"]:
        web = {"kind": "unc-web", "users": state["web"], "rtt": rtt(state["web_rtt"])}
        traffic.append({"name": "web", "tcp": "linux", **web})
    if state["call"]:
        traffic.append({"name": "call", "kind": "voip", "calls": 1, "rtt": rtt(_CALL_RTT_MS)})
    if state["video"]:
        video = {"kind": "abr-video", "viewers": state["video"], "rtt": rtt(_CALL_RTT_MS)}
        traffic.append({"name": "video", "tcp": "linux", **video})
    bottleneck = _sliders(state) if link is None else _profile(state, link)
    return {"topology": {"kind": "dumbbell", "bottleneck": bottleneck}, "traffic": traffic}


def _sliders(state: Mapping[str, Any]) -> dict[str, object]:
    """The bottleneck as the page's sliders have it."""
    limited = state["up"] < _NEVER_FULL
    return {
        "rate": f"{state['rate']:.12g} Mbit/s",
        "discipline": state["discipline"],
        "forward": {"delay": f"{state['delay']:.12g} ms"},
        "reverse": {
            "rate": f"{state['up']:.12g} Mbit/s",
            "discipline": _holding(state, state["up"]) if limited else _NEVER_FULL_QUEUE,
        },
    }


def _holding(state: Mapping[str, Any], rate: float) -> dict[str, object]:
    """A lane's discipline with the buffer of a direction, whose rate is in Mbit/s."""
    packets = _rounded(rate * 1000 * state["buffer"] / _PACKET_BITS)
    return {**state["discipline"], "limit": f"{max(2, packets)} packets"}


def _rounded(value: float) -> int:
    """The nearest whole number as the page has it: a half goes up."""
    return floor(value + 0.5)


def _profile(state: Mapping[str, Any], link: NamedLink) -> dict[str, Any]:
    """The bottleneck of a link that has a name, with the queues of a lane."""
    bottleneck = link.table()
    if state["discipline"]["kind"] == _OWN:
        return bottleneck
    for way, bps in zip(("forward", "reverse"), link.rates_bps, strict=True):
        queue = bottleneck[way]["discipline"]
        limit = queue.get("limit", queue.get("leaf", {}).get("limit"))
        if limit is None:
            bottleneck[way]["discipline"] = _holding(state, bps / 1e6)
        else:
            number, unit = limit.split(" ")
            packets = _rounded(float(number) / (_PACKET_BITS / 8 if unit == "bytes" else 1))
            bottleneck[way]["discipline"] = {**state["discipline"], "limit": f"{packets} packets"}
    return bottleneck


def _stack(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a group's transport has of congestion control and marks."""
    stack: Mapping[str, Any] = group["quic" if group.get("transport") == "quic" else "tcp"]
    return stack


def _transport(group: Mapping[str, Any]) -> dict[str, object]:
    """The transport of a group of transfers, as the page writes it."""
    stack = _stack(group)
    control, ecn = stack["congestion_control"]["kind"], {"ecn": stack["ecn"]}
    if group.get("transport") == "quic":
        return {"transport": "quic", "quic": {"congestion_control": control, **ecn}}
    return {"tcp": {"profile": "linux", "congestion_control": control, **_MARKS.get(control, ecn)}}


def _address(state: Mapping[str, Any]) -> str:
    """The fields of the address, as the page reads them."""
    link: NamedLink | None = state.get("link")
    fields: list[tuple[str, object]] = [] if link is None else [("link", link.name)]
    fields += [
        (name, f"{state[name]:.12g}") for name in ("rate", "up", "buffer", "delay") if name in state
    ]
    fields += [("transfers", _transfers(state["transfers"].get(name))) for name in _GROUPS]
    fields += [("web", state["web"]), ("web-rtt", f"{state['web_rtt']:.12g}")]
    fields += [("call", int(state["call"])), ("video", state["video"])]
    fields += [("why", 1)] if state["why"] else []
    fields.append(("lane", ";".join(_lane(state["discipline"]))))
    fields += [
        ("change", f"0;{parsed_time(one['at']):.12g};{one['key']};{one['value']}")
        for one in state["changes"]
    ]
    return urlencode([*fields, ("seed", state["seed"])])


def _transfers(group: Mapping[str, Any] | None) -> str:
    """A group of transfers; without one none."""
    if group is None:
        return "0,reno,40"
    stack = _stack(group)
    has = {
        "ecn": stack["ecn"],
        "up": group["direction"] == "reverse",
        "quic": group.get("transport") == "quic",
    }
    flags = [flag for flag, on in has.items() if on]
    values = (group["flows"], stack["congestion_control"]["kind"], f"{group['rtt']:.12g}", *flags)
    return ",".join(map(str, values))


def _lane(discipline: Mapping[str, Any]) -> Iterable[str]:
    """A discipline and its parameters; those that are no single values are an error."""
    yield discipline["kind"]
    for name, value in discipline.items():
        if isinstance(value, dict | list):
            raise TypeError(name)
        if name not in ("kind", "limit"):
            yield f"{name}={str(value).lower() if isinstance(value, bool) else value}"
