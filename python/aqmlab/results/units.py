"""Units of numbers that people ask for, and what turns one into the other."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from aqmlab.errors import AqmlabError

__all__ = ["SHARE", "Factor", "alike", "converted", "factor"]


SHARE = "share"
"""The unit of a share: 0.5 is 50 %."""

_KINDS: Mapping[str, Mapping[str, Fraction]] = {
    "time": {
        "ns": Fraction(1, 10**9),
        "us": Fraction(1, 10**6),
        "µs": Fraction(1, 10**6),
        "ms": Fraction(1, 1000),
        "s": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
    },
    "rate": {
        "bit/s": Fraction(1),
        "kbit/s": Fraction(10**3),
        "Mbit/s": Fraction(10**6),
        "Gbit/s": Fraction(10**9),
        "bytes/s": Fraction(8),
        "kB/s": Fraction(8 * 10**3),
        "MB/s": Fraction(8 * 10**6),
    },
    "size": {
        "bytes": Fraction(1),
        "kB": Fraction(10**3),
        "MB": Fraction(10**6),
        "GB": Fraction(10**9),
    },
    "share": {SHARE: Fraction(1), "%": Fraction(1, 100)},
}
"""How much of its kind's own unit each is."""
_KIND = {unit: kind for kind, units in _KINDS.items() for unit in units}

_COUNTED = ("packets", "segments", "datagrams")
"""Units of counts, which nothing else becomes."""

Factor = tuple[int, int]
"""By what a number is multiplied, then divided: whole numbers lose no digit."""


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
    found = _KINDS[_KIND[unit]][unit] / _KINDS[_KIND[wanted]][wanted]
    return found.numerator, found.denominator


def converted(value: float, by: Factor) -> float:
    """A number in the other unit."""
    return value * by[0] / by[1]
