"""What a queue does to kinds of packets: counts against bounds, each of which names a cause.

Scores say how a queue compares with others. Findings say what it does: it loses small packets, it
delays new connections, it changes the order of packets. docs/evaluate.md lists the bounds. The
tests are the rows ``q-*`` of the card.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from aqmlab.cards.causes import causes, luck
from aqmlab.cards.numbers import Numbers
from aqmlab.cards.sealed import AREA, Sealed
from aqmlab.cards.verdicts import (
    FAIL,
    NOTE,
    PASS,
    PREFIX,
    WARN,
    CardFinding,
    Pooled,
    clearly,
    judged,
    percent,
)

__all__ = ["FAIL", "NOTE", "PASS", "PREFIX", "WARN", "CardFinding", "findings"]


LIGHT = 0.001
"""Largest loss at a fifth of the load."""
TIMES_LARGE, LEAST_LARGE = 10.0, 0.05
"""A kind that loses so many times as much as another, and so much more, fails."""
TIMES, LEAST = 3.0, 0.005
"""A kind that does so is named, if the counts differ clearly."""
SYNS, SYN_TIMES = 0.04, 8.0
"""Largest share of SYNs sent again, and how many times the loss of small packets it may be."""
SLOWER_DROPTAIL, SLOWER_WORST = 1.25, 1.1
"""A new flow may take so many times as long as with drop-tail, and as with the worst baseline."""
REORDERED, FEW = 1.3, 20
"""Retransmissions for each lost segment; at least so many retransmissions show it."""
MARKED, ECT_LOST = 5e-5, 0.005
"""Least share of marks where senders allow them, and largest loss of packets that may be marked."""
ECN_SHARE = 1.6
"""Flows with and without ECN get rates that differ by this factor at most."""
TREND, TREND_S = 1.5, 0.005
"""The mean queue of the last third may be so many times that of the first, and so much longer."""
SWING_S, SWING = 0.025, 0.5
"""A standard deviation of seconds above both, the latter in means, is a swing."""
NO_EFFECT = 0.10
"""Waits that are this near to drop-tail's are no effect."""

ORDER = (
    "light load",
    "small packets",
    "large packets",
    "low rates",
    "new connections",
    "ACKs",
    "first packets",
    "delay by size",
    "new flow delay",
    "delay by flow",
    "starved flows",
    "order",
    "marks",
    "ECN share",
    "new flows",
    "throughput",
    "steady",
    "luck",
    "swing",
    "no effect",
    AREA,
)
"""By harm: those that fail stand in this order, then those that warn."""


def findings(
    numbers: Numbers,
    candidate: str,
    droptail: str,
    baselines: Sequence[str],
    waits: Sequence[tuple[float, float]] = (),
    sealed: Sealed | None = None,
    known: Sequence[float | None] = (),
) -> list[CardFinding]:
    """What a candidate does to kinds of packets, in the order of harm.

    Args:
        numbers: as for :func:`aqmlab.cards.scoring.scored_tests`.
        candidate: its name in the numbers.
        droptail: that of drop-tail.
        baselines: those of the baselines.
        waits: of the candidate and of drop-tail, in each number of the areas delay and stability
            that is a wait.
        sealed: its sealed settings; None: there are none.
        known: its scores in the areas delay and stability.
    """
    own = Pooled(numbers, candidate)
    others = [Pooled(numbers, name) for name in (droptail, *baselines)]
    found = [
        *causes(own),
        *(_kinds(own) if own.has("q-kinds") else ()),
        *(_light(own) if own.has("q-light") else ()),
        *(_new_flows(own, others[0], others[1:]) if own.has("q-kinds") else ()),
        *(_ecn(own) if own.has("q-ecn") else ()),
        *(_steady(own) if own.has("q-steady") else ()),
        *luck(numbers, candidate),
        *_no_effect(waits),
        *_sealed(sealed, known),
    ]
    ranks = {FAIL: 0, WARN: 1, NOTE: 2, PASS: 3}
    by_name: dict[str, CardFinding] = {}
    for one in found:  # of two with one name the worse; packets name the cause, so they stand first
        other = by_name.get(one.name)
        if other is None or ranks[one.outcome] < ranks[other.outcome]:
            by_name[one.name] = one
    return sorted(by_name.values(), key=lambda one: (ranks[one.outcome], ORDER.index(one.name)))


def _light(own: Pooled) -> Iterator[CardFinding]:
    share = own.share("q-light", "dropped", "arrived")
    text = f"drops {percent(share)} of the packets when the link is one fifth full"
    yield judged("light load", text, fails=share > LIGHT)


def _kinds(own: Pooled) -> Iterator[CardFinding]:
    test = "q-kinds"
    loss = {
        name: own.share(test, f"{name} lost", f"{name} sent")
        for name in ("small-fast", "large-slow", "large-fast", "small-slow")
    }

    def counts(name: str) -> tuple[float, float]:
        return own.sum(test, f"{name} lost"), own.sum(test, f"{name} sent")

    def exceeds(more: str, less: str, times: float, least: float) -> bool:
        large = loss[more] > times * loss[less] and loss[more] - loss[less] > least
        return large and clearly(counts(more), counts(less))

    small, large, fast = "small-fast", "large-slow", "large-fast"
    yield judged(
        "small packets",
        f"loses {percent(loss[small])} of small packets (ACKs, SYNs, voice), "
        f"{percent(loss[large])} of large ones",
        fails=exceeds(small, large, TIMES_LARGE, LEAST_LARGE),
        warns=exceeds(small, large, TIMES, LEAST),
    )
    yield judged(
        "large packets",
        f"loses {percent(loss[large])} of large packets, {percent(loss[small])} of small ones "
        "at the same rate",
        warns=exceeds(large, small, TIMES, LEAST),
    )
    yield judged(
        "low rates",
        f"loses {percent(loss[large])} of a slow stream, {percent(loss[fast])} of one six times "
        "as fast",
        fails=exceeds(large, fast, TIMES, LEAST),
    )
    begun = own.sum(test, "objects begun") + own.sum(test, "probes begun")
    again = own.sum(test, "objects SYNs") + own.sum(test, "probes SYNs")
    share = again / begun if begun else 0.0
    yield judged(
        "new connections",
        f"{100 * share:.0f} SYNs are sent again for 100 connections; other small packets lose "
        f"{percent(loss[small])}",
        fails=share > SYNS and share > SYN_TIMES * loss[small],
    )
    lost, resent = own.sum(test, "lost"), own.sum(test, "resent")
    yield judged(
        "order",
        f"{resent / max(lost, 1.0):.1f} retransmissions for each lost segment: packets change "
        "their order",
        fails=resent >= FEW and resent > REORDERED * lost,
    )


def _new_flows(own: Pooled, droptail: Pooled, baselines: Sequence[Pooled]) -> Iterator[CardFinding]:
    mine, plain = (one.mean("q-kinds", "object p95") for one in (own, droptail))
    worst = max((one.mean("q-kinds", "object p95") for one in baselines), default=math.nan)
    if math.isnan(mine):
        yield judged("new flows", "no transfer of 30 kB ends", fails=True)
        return
    if math.isnan(plain) or math.isnan(worst):
        return
    text = f"30 kB need {mine:.2g} s (drop-tail {plain:.2g} s, worst baseline {worst:.2g} s)"
    slow = mine > SLOWER_DROPTAIL * plain and mine > SLOWER_WORST * worst
    yield judged("new flows", text, fails=slow)


def _ecn(own: Pooled) -> Iterator[CardFinding]:
    test = "q-ecn"
    marked = own.share(test, "marked", "arrived")
    lost = own.share(test, "ect lost", "ect sent")
    if not own.sum(test, "can mark"):
        yield CardFinding("marks", NOTE, "has no ECN")
    elif marked < MARKED:
        yield CardFinding(
            "marks",
            FAIL,
            f"marks nothing with ECN on, drops {percent(lost)} of ECN-capable packets",
        )
    else:
        text = f"drops {percent(lost)} of ECN-capable packets"
        yield judged("marks", text, warns=lost > ECT_LOST)
    rates = [own.sum(test, f"{name} rate") for name in ("with", "without")]
    ratio = rates[0] / rates[1] if rates[1] else math.inf
    text = f"flows with ECN get {ratio:.2g} times the rate of others"
    # A queue without ECN treats both alike: what differs is chance.
    fails = bool(own.sum(test, "can mark")) and not 1 / ECN_SHARE <= ratio <= ECN_SHARE
    yield judged("ECN share", text, fails=fails)


def _steady(own: Pooled) -> Iterator[CardFinding]:
    test = "q-steady"
    first, last = own.mean(test, "first wait"), own.mean(test, "last wait")
    text = f"the queue grows from {1e3 * first:.0f} to {1e3 * last:.0f} ms under one load"
    yield judged("steady", text, fails=last > TREND * first + TREND_S)
    swing, mean = own.mean(test, "swing"), own.mean(test, "mean wait")
    text = f"the queue swings by {1e3 * swing:.0f} ms around {1e3 * mean:.0f} ms"
    yield judged("swing", text, warns=swing > SWING_S and swing > SWING * mean)


def _no_effect(waits: Sequence[tuple[float, float]]) -> Iterator[CardFinding]:
    pairs = [pair for pair in waits if pair[1] > 0]
    if all(mine == plain for mine, plain in pairs):  # drop-tail itself
        return
    near = sum(abs(mine / plain - 1) <= NO_EFFECT for mine, plain in pairs)
    text = f"waits are drop-tail's in {near} of {len(pairs)} tests"
    yield judged("no effect", text, warns=near > len(pairs) / 2)


def _sealed(sealed: Sealed | None, known: Sequence[float | None]) -> Iterator[CardFinding]:
    if sealed is None or (mean := sealed.mean) is None:
        return
    text = (
        f"scores {mean:.2f} in {len(sealed.settings)} settings that nobody can know, and well in "
        "those that everybody knows"
    )
    yield judged(AREA, text, fails=sealed.fails(known))
