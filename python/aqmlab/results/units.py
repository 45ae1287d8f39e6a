"""Units of numbers that people ask for, and what turns one into the other."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from aqmlab.errors import AqmlabError

__all__ = ["SHARE", "Factor", "alike", "converted", "factor"]


Factor = tuple[int, int]
"""By what a number is multiplied, then divided: whole numbers lose no digit."""

SHARE = "share"
"""The unit of a share: 0.5 is 50 %."""

_KINDS: Mapping[str, Mapping[str, Factor]] = {
    "time": {
        "ns": (1, 10**9),
        "us": (1, 10**6),
        "µs": (1, 10**6),
        "ms": (1, 1000),
        "s": (1, 1),
        "min": (60, 1),
        "h": (3600, 1),
    },
    "rate": {
        "bit/s": (1, 1),
        "kbit/s": (10**3, 1),
        "Mbit/s": (10**6, 1),
        "Gbit/s": (10**9, 1),
        "bytes/s": (8, 1),
        "kB/s": (8 * 10**3, 1),
        "MB/s": (8 * 10**6, 1),
    },
    "size": {
        "bytes": (1, 1),
        "kB": (10**3, 1),
        "MB": (10**6, 1),
        "GB": (10**9, 1),
    },
    "share": {SHARE: (1, 1), "%": (1, 100)},
}
"""How much of its kind's own unit each is, as a ratio."""
_KIND = {unit: kind for kind, units in _KINDS.items() for unit in units}

_COUNTED = ("packets", "segments", "datagrams")
"""Units of counts, which nothing else becomes."""


def alike(first: str, second: str) -> bool:
    """Whether numbers in these units can be added."""
    return first == second or (first in _KIND and _KIND[first] == _KIND.get(second))


def factor(unit: str, wanted: str) -> Factor:
    """What turns a number from one unit into the other; an error if nothing does.

    A number without a unit takes every one; of a per cent it is the share.
    """
    if unit == wanted:
        return 1, 1
    if wanted not in _KIND and wanted not in _COUNTED:
        known = ", ".join(one for one in _KIND if one not in (SHARE, "µs"))
        raise AqmlabError(f'there is no unit "{wanted}" (there are {known})')
    if not unit:
        return (100, 1) if wanted == "%" else (1, 1)
    if not alike(unit, wanted):
        fits = [one for one in _KINDS.get(_KIND.get(unit, ""), ()) if one not in (SHARE, "µs")]
        raise AqmlabError(
            f'found "in {wanted}", but the number is '
            + (f"in {unit}" if unit != SHARE else "a share")
            + (f"; possible are {', '.join(fits)}" if fits else "")
        )
    (above, below), (of, by) = _KINDS[_KIND[unit]][unit], _KINDS[_KIND[wanted]][wanted]
    common = gcd(above * by, below * of)
    return above * by // common, below * of // common


def converted(value: float, by: Factor) -> float:
    """A number in the other unit."""
    return value * by[0] / by[1]
