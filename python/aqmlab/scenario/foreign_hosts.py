"""A dump of Linux's ``sysctl`` as a stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aqmlab.errors import AqmlabError

__all__ = ["stack"]


_CONTROLS = {"cubic": "cubic", "reno": "reno", "bbr": "bbr1", "vegas": "vegas", "dctcp": "dctcp",
             "scalable": "scalable", "prague": "prague"}  # fmt: skip
"""Congestion controls that have a counterpart."""
_IPV4, _CORE = "net.ipv4.tcp_", "net.core."
_BUFFERS = {"rmem": "receive_buffer", "wmem": "send_buffer"}
_CLASSIC = ("tail_loss_probe", "frto", "dsack", "pacing", "sack_compression")
"""Keys that need loss detection by time."""


def stack(values: Mapping[str, str]) -> tuple[dict[str, object], list[str], list[str]]:
    """The stack of a host: its table, settings without a counterpart, and notes."""
    own = {
        name.removeprefix(_IPV4): value for name, value in values.items() if name.startswith(_IPV4)
    }
    table: dict[str, object] = {"profile": "linux"}
    notes: list[str] = []
    used = {"window_scaling"}
    for key, value in own.items():
        if key == "congestion_control" and value in _CONTROLS:
            used.add(key)
            table[key] = _CONTROLS[value]
        elif key in _SWITCHES:
            used.add(key)
            number = _whole(key, value)
            table.update(_SWITCHES[key](number))
        elif key in _BUFFERS:
            used.add(key)
            table[_BUFFERS[key]] = _largest(key, value)
            notes.append(
                f"{_BUFFERS[key]} is the largest that {_IPV4}{key} allows; ours does not grow"
            )
    if own.get("window_scaling") == "0":
        table["receive_buffer"] = "65535 bytes"
    queue = values.get(f"{_CORE}default_qdisc")
    if queue == "fq":
        table["pacing"] = "linux"
    elif queue:
        notes.append(f"{queue} is the queue of the host's own interfaces, not of its stack")
    if own.get("recovery") == "0" or own.get("sack") == "0":
        table["profile"] = "linux-classic"
        if own.get("sack") == "0":
            table["recovery"] = "new-reno"
        for key in _CLASSIC:
            table.pop(key, None)
    if own.get("timestamps") == "0":
        table.update(mss="1460 bytes", header="40 bytes", syn_header="48 bytes", sack_blocks=4)
    without = [f"{_IPV4}{key} = {value}" for key, value in own.items() if key not in used]
    without += [
        f"{name} = {value}"
        for name, value in values.items()
        if not name.startswith(_IPV4) and name != f"{_CORE}default_qdisc"
    ]
    return table, without, notes


def _largest(key: str, value: str) -> str:
    """The last of three sizes."""
    sizes = value.split()
    if len(sizes) != 3 or not all(one.isdigit() for one in sizes):
        raise AqmlabError(
            f'sysctl: {_IPV4}{key}: found "{value[:40]}"; expected three numbers of bytes'
        )
    return f"{sizes[2]} bytes"


def _whole(key: str, value: str) -> int:
    """A setting that is a whole number."""
    try:
        return int(value)
    except ValueError:
        raise AqmlabError(
            f'sysctl: {_IPV4}{key}: found "{value[:40]}"; expected a whole number'
        ) from None


def _ecn(number: int) -> dict[str, object]:
    """0: never, 1: asks for it, 2: accepts it; from 3 on accurate feedback."""
    if number >= 3:
        return {"ecn": number in (3, 4), "ecn_echo": "accurate"}
    return {"ecn": number == 1}


_SWITCHES: Mapping[str, Callable[[int], dict[str, object]]] = {
    "ecn": _ecn,
    "sack": lambda _: {},
    "recovery": lambda _: {},
    "timestamps": lambda _: {},
    "dsack": lambda number: {"dsack": bool(number)},
    "frto": lambda number: {"frto": "linux" if number else "off"},
    "early_retrans": lambda number: {} if number >= 3 else {"tail_loss_probe": "off"},
    "slow_start_after_idle": lambda number: {"restart_after_idle": bool(number)},
    "retries2": lambda number: {"max_retransmissions": number},
    "rto_min_us": lambda number: {"rto_min": f"{number} us"},
    "rto_max_ms": lambda number: {"rto_max": f"{number} ms"},
    "comp_sack_delay_ns": lambda number: {"sack_compression": f"{number} ns"} if number else {},
}
"""What settings with a whole number become."""
