"""Whom a queue drops and delays, in words: findings from the packets of :mod:`aqmlab.cards.audit`.

The bounds hold for every shipped queue; docs/evaluate.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aqmlab.cards.numbers import Numbers, numbers_of
from aqmlab.cards.packet_kinds import GROUPS, LIGHT, LOAD, LONG
from aqmlab.cards.verdicts import CardFinding, Pooled, clearly, judged, percent

__all__ = ["causes", "luck"]


LIGHT_LOSS = 0.001
"""Largest loss where nothing needs to be dropped."""
ONE_KIND, MOST_OF_ALL = 5.0, 0.8
"""A kind is the cause if it loses so many times as much as others, and most of all that is lost."""
UNLIKE = 3.0
"""Losses of flows, or of times, that are spread so much more than chance does are those of some."""
TIMES, LEAST = 3.0, 0.03
"""A kind that loses so many times as much as the others on a full link, and so much more."""
LONGER, LONGER_S = 3.0, 0.020
"""A kind that waits so many times as long as another, and so much longer."""
HELD_BACK = 0.10
"""Share of new connections' packets that wait far longer than their like."""
OUT_OF_ORDER = 0.01
"""Share of packets that leave after a later one of their flow. SFQ hashes anew: it has 0.7 %."""
MARKED_LIGHT = 0.05
"""Share of marks where nothing waits."""
LEAST_USED = 0.85
"""Share of the link that twelve transfers use at least."""
STARVED = 0.4
"""The flow with the smallest share of twelve equal ones gets so much of the mean."""
STILL = 0.05
"""Share of the time in which next to nothing passes, though twelve transfers send."""
LESS_USED, MORE_LOST, MORE_LOST_BY = 0.9, 2.0, 0.01
"""In the last third a queue may use so much less of the link, or lose so much more."""
SPREAD, SPREAD_OTHERS, CELLS = 3.0, 1.5, 0.25
"""Waits of seeds that differ by the first factor, where those of no other queue differ by the
second, in that share of the settings, depend on the seed."""


def causes(own: Pooled) -> Iterator[CardFinding]:
    """What the packets of a candidate show; nothing if they were not recorded."""
    if any(own.has(test) for test in LIGHT):
        yield _light(own)
        yield _early_marks(own)
    if own.has(LOAD):
        yield from _lost(own)
        yield from _held(own)
        yield _order(own)
    if own.has(LONG):
        yield from _long(own)


def _pair(own: Pooled, test: str, name: str) -> tuple[float, float]:
    """Packets of a kind that were lost, and that were sent."""
    return own.sum(test, f"{name} lost"), own.sum(test, f"{name} sent")


def _share(pair: tuple[float, float]) -> float:
    return pair[0] / pair[1] if pair[1] else 0.0


def _light(own: Pooled) -> CardFinding:
    losses = {test: own.share(test, "lost", "sent") for test in LIGHT if own.has(test)}
    failing = [test for test, loss in losses.items() if loss > LIGHT_LOSS]
    if not failing:
        return judged("light load", "")
    failing.sort(key=lambda test: own.sum(test, "lost"), reverse=True)
    known = ((test, because) for test in failing if (because := _cause(own, test)))
    worst, because = next(known, (failing[0], "at random, kinds and flows lose alike"))
    where = "" if len(failing) == len(LIGHT) else f" on a link of {LIGHT[worst]}"
    text = f"drops {percent(losses[worst])} of the packets with a light load{where}"
    return judged("light load", f"{text}: {because}", fails=True)


def _cause(own: Pooled, test: str) -> str:
    """The narrowest kind that has most of the losses; empty: all kinds lose alike."""
    lost, sent = own.sum(test, "lost"), own.sum(test, "sent")
    best, highest = "", 0.0
    for name, words in GROUPS.items():
        inside = _pair(own, test, name)
        outside = lost - inside[0], sent - inside[1]
        share, others = _share(inside), _share(outside)
        is_cause = inside[0] >= MOST_OF_ALL * lost and share > ONE_KIND * others
        if is_cause and outside[1] and share > highest and clearly(inside, outside):
            best, highest = f"{percent(share)} of {words}, {percent(others)} of others", share
    unlike = {
        name: own.mean(test, f"unlike {name}")
        for name in ("flows", "times")
        if own.mean(test, f"unlike {name}") > UNLIKE
    }
    if best or not unlike:
        return best
    if max(unlike, key=unlike.__getitem__) == "times":
        return "far more at some times than at others, flows and kinds alike"
    return "some flows lose far more than others of their kind"


def _early_marks(own: Pooled) -> CardFinding:
    marked = max(own.share(test, "ect marked", "ect arrived") for test in LIGHT if own.has(test))
    text = f"marks {percent(marked)} of ECN-capable packets with a light load"
    return judged("marks", text, fails=marked > MARKED_LIGHT)


def _lost(own: Pooled) -> Iterator[CardFinding]:
    def exceeds(more: str, *less: str) -> bool:
        first = _pair(own, LOAD, more)
        others = [_pair(own, LOAD, name) for name in less]
        return all(
            _share(first) > TIMES * _share(other)
            and _share(first) - _share(other) > LEAST
            and clearly(first, other)
            for other in others
        )

    loss = {
        name: percent(_share(_pair(own, LOAD, name)))
        for name in ("bulk ACKs", "bulk data", "first ten", "next ten")
    }
    text = f"loses {loss['bulk ACKs']} of the ACKs on a full link, {loss['bulk data']} of the data"
    yield judged("ACKs", text, fails=exceeds("bulk ACKs", "bulk data"))
    text = (
        f"loses {loss['first ten']} of the first ten packets of new flows, {loss['next ten']} of "
        "the next ten"
    )
    yield judged("first packets", text, fails=exceeds("first ten", "next ten"))


def _held(own: Pooled) -> Iterator[CardFinding]:
    waits = {
        name: own.mean(LOAD, f"{name} wait")
        for name in ("small stream", "large stream", "new flows", "bulk data")
    }

    def longer(more: str, less: str) -> bool:
        return waits[more] > LONGER * waits[less] and waits[more] - waits[less] > LONGER_S

    def ms(name: str) -> str:
        return f"{1e3 * waits[name]:.0f} ms"

    small, large = "small stream", "large stream"
    text = f"small packets wait {ms(small)}, large ones at the same rate {ms(large)}"
    yield judged("delay by size", text, fails=longer(small, large) or longer(large, small))
    text = f"packets of new flows wait {ms('new flows')}, those of old ones {ms('bulk data')}"
    yield judged("new flow delay", text, fails=longer("new flows", "bulk data"))
    share = own.share(LOAD, "probes held back", "probes left")
    text = f"holds {percent(share)} of the packets of new connections back behind others like them"
    yield judged("delay by flow", text, fails=share > HELD_BACK)


def _order(own: Pooled) -> CardFinding:
    tests = [test for test in (LOAD, *LIGHT) if own.has(test)]
    share = max(own.share(test, "out of order", "left") for test in tests)
    text = f"{percent(share)} of the packets leave after a later one of their flow"
    return judged("order", text, fails=share > OUT_OF_ORDER)


def _long(own: Pooled) -> Iterator[CardFinding]:
    names = ("first", "middle", "last")
    used = {name: own.mean(LONG, f"{name} used") for name in names}
    mean = sum(used.values()) / len(used)
    still = own.mean(LONG, "still")
    text = f"lets {percent(mean)} of the link be used, which 12 transfers could fill"
    if still > STILL:
        text += f": next to nothing passes in {percent(still)} of the tenths of a second"
    yield judged("throughput", text, fails=mean < LEAST_USED or still > STILL)
    share = own.mean(LONG, "smallest share")
    text = f"one of 12 equal flows gets {percent(share)} of what they get on average"
    yield judged("starved flows", text, fails=share < STARVED)
    loss = {name: _share(_pair(own, LONG, name)) for name in names}
    worse = loss["last"] > MORE_LOST * loss["first"] + MORE_LOST_BY
    idle = used["last"] < LESS_USED * used["first"]
    text = (
        f"losses grow from {percent(loss['first'])} to {percent(loss['last'])}, use of the link "
        f"goes from {percent(used['first'])} to {percent(used['last'])} under one load"
    )
    yield judged("steady", text, fails=worse or idle)


def luck(numbers: Numbers, candidate: str) -> Iterator[CardFinding]:
    """Whether the waits of a candidate depend on the seed where those of no other queue do."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in numbers_of(numbers):
        if row.measure.startswith("wait ") and row.value > 0:
            queues = found.setdefault((row.cell, row.measure), {})
            queues.setdefault(row.queue, []).append(row.value)
    cells: dict[str, list[bool]] = {}
    for (cell, _), queues in found.items():
        if len(queues.get(candidate, ())) > 1 and len(queues) > 1:
            cells.setdefault(cell, []).append(_is_luck(queues, candidate))
    if not cells:
        return
    spread = sum(any(one) for one in cells.values())
    where = f"{spread} of {len(cells)} settings"
    text = f"waits of seeds differ by more than {SPREAD:.0f} times in {where}"
    yield judged("luck", text, fails=spread > max(2.0, CELLS * len(cells)))


def _is_luck(queues: Mapping[str, list[float]], candidate: str) -> bool:
    ratios = {name: max(values) / min(values) for name, values in queues.items()}
    others = max(ratio for name, ratio in ratios.items() if name != candidate)
    return ratios[candidate] > SPREAD and others < SPREAD_OTHERS
