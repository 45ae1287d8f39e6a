"""What people need of a link: the limits from which a number is good or poor, and their sources.

One table. ``aqmlab explain needs`` prints it, and :mod:`aqmlab.results.answer` decides by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.results.metrics import look_up

__all__ = [
    "FAIR",
    "GOOD",
    "LEVELS",
    "NEEDS",
    "POOR",
    "VERSION",
    "Need",
    "limited",
    "of_class",
    "rate_of",
]


VERSION = 1
"""Counts changes of the table."""
LEVELS = ("good", "fair", "poor")
"""Names of levels, by their number."""
GOOD, FAIR, POOR = range(3)


@dataclass(frozen=True)
class Need:
    """A number that people notice, and where it is good and poor."""

    group: str
    """Whose it is: ``pages``, ``calls``, ``meetings``, ``films``, ``games``, ``answers``, ..."""
    key: str
    """Last part of its key in ``summary.json``."""
    what: str
    """What the number is, as the head of a row says it."""
    unit: str
    scale: float
    digits: int
    less_is_better: bool
    room_share: float
    """The least difference that somebody notices, as a share of the value."""
    room: float
    """The least difference in the summary's unit. The larger of both counts."""
    source: str
    said: str
    """A clause about its change, with ``{after}`` and ``{before}``."""
    good: float | None = None
    """Good up to here, or from here on where more is better; None: it has no levels."""
    poor: float | None = None
    """Poor from here on."""

    @property
    def is_picture_of_meetings(self) -> bool:
        """Whether its limits depend on the highest rate of a class."""
        return (self.group, self.key) == ("meetings", "bitrate_mean_bps")

    @property
    def has_levels(self) -> bool:
        """Whether the number is good, fair or poor by itself."""
        return self.good is not None

    def level(self, value: float | None) -> int:
        """The level of a value: :data:`GOOD`, :data:`FAIR` or :data:`POOR`."""
        if value is None or math.isnan(value):
            return POOR
        if self.good is None or self.poor is None:
            return GOOD
        sign = 1 if self.less_is_better else -1
        if sign * value <= sign * self.good:
            return GOOD
        beyond = value >= self.poor if self.less_is_better else value < self.poor
        return POOR if beyond else FAIR

    def least(self, value: float) -> float:
        """The least difference from a value that somebody notices."""
        return max(self.room_share * abs(value), self.room)

    def shown(self, value: float | None) -> str:
        """A value with its unit, as a table has it."""
        if value is None or math.isnan(value):
            return "-"
        text = f"{value * self.scale:.{self.digits}f}"
        if not text.strip("-0."):
            text = text.lstrip("-")
        return f"{text} {self.unit}".strip()


_CORE = "Core Web Vitals: 2.5 and 4 s at the 75th percentile (there of the largest picture)"
_G107 = "ITU-T G.107, annex B: R 80 and R 70"
_G114 = "150 ms: ITU-T G.114; the shares are our choice"
_ZOOM = "Zoom: 1.2 Mbit/s for 720p, 0.6 for standard; at most 3/4 and 1/3 of the highest rate"
_DOBRIAN = "Dobrian et al. 2011: 1 % of stalls costs viewers; 0.5 % is our choice"
_CLAYPOOL = "Claypool 2006: 100 ms; 150 ms is our choice"
_NIELSEN = "Miller 1968, Nielsen 1993: 1 and 10 s"
_SHARES = "0.8 and 0.5 of the fair share: our choice"
_WAITS = "waits of 30 and 100 ms: our choice"

NEEDS: tuple[Need, ...] = (
    Need("pages", "page_load_p75_s", "three of four pages open within", "s", 1, 2, True, 0.10, 0.1,
         _CORE, "pages open in {after} s instead of {before} s", 2.5, 4.0),
    Need("calls", "mos_mean", "MOS; 4.41 is the best possible", "", 1, 2, False, 0.0, 0.1,
         _G107, "calls are {level} (MOS {after} instead of {before})", 4.03, 3.60),
    Need("meetings", "bitrate_mean_bps", "picture of a stream", "Mbit/s", 1e-6, 2, False, 0.10,
         0.0, _ZOOM, "the picture of meetings gets {after} instead of {before} Mbit/s",
         1.2e6, 0.6e6),
    Need("meetings", "late_frame_share", "frames later than 150 ms", "%", 100, 1, True, 0.0,
         0.005, _G114, "{after} instead of {before} of the meetings' frames come late",
         0.01, 0.05),
    Need("films", "stall_ratio", "time spent stalled", "%", 100, 1, True, 0.0, 0.0025,
         _DOBRIAN, "films stall {after} instead of {before} of the time", 0.005, 0.01),
    Need("films", "bitrate_mean_bps", "picture of a film", "Mbit/s", 1e-6, 2, False, 0.10, 0.0,
         "it has no limits", "films come at {after} instead of {before} Mbit/s"),
    Need("games", "input_delay_p95_s", "19 of 20 inputs are seen within", "ms", 1e3, 0, True, 0.10,
         0.005, _CLAYPOOL, "the game answers in {after} ms instead of {before} ms", 0.100, 0.150),
    Need("answers", "p90_s", "nine of ten end within", "s", 1, 2, True, 0.10, 0.05,
         _NIELSEN, "nine of ten responses of {noun} end within {after} s instead of {before} s",
         1.0, 10.0),
    Need("program", "time_s", "its own time", "s", 1, 2, True, 0.10, 0.0, "it has no limits",
         "{noun} takes {after} s instead of {before} s"),
    Need("transfers", "goodput_bps", "takes what is left", "Mbit/s", 1e-6, 1, False, 0.10, 0.0,
         "a price and no need, unless it gets less than a tenth of its best",
         "{noun} gets {after} instead of {before} Mbit/s"),
    Need("flows", "smallest_share", "smallest share of the fair rate", "", 1, 2, False, 0.0, 0.05,
         _SHARES, "the smallest share is {after} of the fair one instead of {before}",
         0.80, 0.50),
    Need("flows", "goodput_bps", "together", "Mbit/s", 1e-6, 1, False, 0.05, 0.0,
         "it has no limits", "all transfers together get {after} instead of {before} Mbit/s"),
    Need("flows", "sojourn_p95_s", "a newcomer waits up to", "ms", 1e3, 0, True, 0.25, 0.005,
         _WAITS, "a newcomer waits {after} ms instead of {before} ms", 0.030, 0.100),
)  # fmt: skip
"""Everything that people notice. The needs of ``flows`` count where nobody but transfers is there;
``program`` is a program on a live link."""

_APPLICATIONS = ("pages", "calls", "meetings", "films", "games")


def of_class(quality: Mapping[str, Any]) -> list[Need]:
    """The needs of a class of traffic by the figures of its applications; empty: it has none."""
    for group in _APPLICATIONS:
        own = [need for need in NEEDS if need.group == group]
        if all(need.key in quality for need in own):
            return own
    return []


_RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}


def rate_of(text: str) -> float:
    """A rate of an effective scenario, such as "2.5 Mbit/s", in bits per second."""
    number, unit = text.split()
    return float(number) * _RATES[unit]


def limited(need: Need, entry: Mapping[str, Any]) -> Need:
    """A need with the limits of a class: a picture cannot be better than its highest rate.

    Args:
        need: the need.
        entry: the class in an effective scenario.
    """
    highest = look_up(entry, ("max_rate",))
    if not need.is_picture_of_meetings or highest is None:
        return need
    rate = rate_of(str(highest))
    good, poor = need.good or math.inf, need.poor or math.inf
    return replace(need, good=min(good, 0.75 * rate), poor=min(poor, rate / 3))
