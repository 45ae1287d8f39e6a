"""Quantities on the command line and in files that the program writes."""

from __future__ import annotations

import math
import re

from aqmlab.errors import AqmlabError

__all__ = [
    "FRAME_BITS",
    "loads_text",
    "parsed_buffers",
    "parsed_rate",
    "parsed_rates",
    "parsed_rtt",
    "parsed_time",
    "rate_text",
    "rounded",
    "time_text",
]


FRAME_BITS = 1538 * 8
"""A full-size packet on Ethernet: 1500 bytes of IP, and 38 of framing."""
_RATE_UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LONG_UNITS = {"ns": 1e-9, **_TIME_UNITS, "min": 60.0, "h": 3600.0}


def parsed_rates(text: str, what: str = "--rate") -> tuple[float, float]:
    """Rates to and from the clients in bits per second: "100/20" (Mbit/s), "1 Gbit/s", "100".

    `what` says where they stand.
    """
    wanted = 'a rate such as 100/20 (download/upload, Mbit/s) or "1 Gbit/s"'
    parts = re.split(r"/(?!s)", text)
    if len(parts) > 2:
        raise AqmlabError(f'{what}: found "{text[:40]}"; expected {wanted}')
    rates = [_quantity(part, _RATE_UNITS, "Mbit/s", what, wanted, text) for part in parts]
    if not all(1e3 <= rate <= 1e12 for rate in rates):
        raise AqmlabError(f'{what}: found "{text[:40]}"; expected 1 kbit/s to 1000 Gbit/s')
    return rates[0], rates[-1]


def parsed_buffers(text: str) -> tuple[float, float]:
    """The longest waits in two queues in seconds: "150/600" (ms), down and up, or one for both."""
    wanted = "waits such as 150/600 (down/up, ms)"
    parts = text.split("/")
    if len(parts) > 2:
        raise AqmlabError(f'--buffer: found "{text[:40]}"; expected {wanted}')
    waits = [_quantity(part, _TIME_UNITS, "ms", "--buffer", wanted, text) for part in parts]
    if not all(1e-4 <= wait <= 60.0 for wait in waits):
        raise AqmlabError(f'--buffer: found "{text[:40]}"; expected 0.1 ms to 60 s')
    return waits[0], waits[-1]


def parsed_rtt(text: str) -> float:
    """A round-trip time in seconds: "30" (ms) or "100 us"."""
    wanted = 'a round-trip time such as 30 (ms) or "100 us"'
    found = _quantity(text, _TIME_UNITS, "ms", "--rtt", wanted, text)
    if not 1e-6 <= found <= 10.0:
        raise AqmlabError(f'--rtt: found "{text[:40]}"; expected 1 us to 10 s')
    return found


def parsed_time(text: str, what: str = "time", unit: str = "") -> float:
    """A time in seconds: "250 ms" or "1.5 min"; `what` says where it stands.

    With a `unit` a bare number has that one.
    """
    return _quantity(text, _LONG_UNITS, unit, what, 'a time such as "250 ms"', text)


def parsed_rate(text: str) -> float:
    """A rate in bits per second: "10 Mbit/s"."""
    return _quantity(text, _RATE_UNITS, "", "rate", 'a rate such as "10 Mbit/s"', text)


def _quantity(
    text: str, units: dict[str, float], unit: str, option: str, wanted: str, whole: str
) -> float:
    """A number with one of some units, or with none for the usual one."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(\S*)\s*", text)
    if match is None or (match[2] or unit) not in units:
        raise AqmlabError(f'{option}: found "{whole[:40]}"; expected {wanted}')
    return float(match[1]) * units[match[2] or unit]


def rounded(number: float) -> float:
    """To the nearest of 1, 2, 3, 5 and 6 in its decade."""
    decade = 10.0 ** math.floor(math.log10(number))
    return decade * min((1, 2, 3, 5, 6, 10), key=lambda step: abs(step - number / decade))


def rate_text(bps: float) -> str:
    """A rate as a scenario writes it."""
    return _with_unit(bps, {"Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1.0})


def loads_text(down_bps: float, up_bps: float) -> str:
    """The loads of both directions, with three digits."""
    down, up = (rate_text(float(f"{bps:.3g}")) for bps in (down_bps, up_bps))
    return f"{down} down and {up} up"


def time_text(seconds: float) -> str:
    """A time as a scenario writes it."""
    return _with_unit(seconds, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9})


def _with_unit(number: float, units: dict[str, float]) -> str:
    """A number in the largest unit of which it has at least one."""
    fitting = [unit for unit, size in units.items() if number >= size * (1 - 1e-9)]
    unit = fitting[0] if fitting else list(units)[-1]
    return f"{float(f'{number / units[unit]:.6g}'):g} {unit}"
