"""What a kernel sent and showed beside what a script says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aqmlab.validation.script import ACTIONS, Script, Segment, Step

__all__ = ["Seen", "coarseness", "difference", "differences", "is_answer", "tolerance"]

TICK = 0.004
"""Seconds between two ticks of a kernel with 250 a second."""
LEVEL = 63
"""Ticks of the finest level of the kernel's wheel of timers; each next one is 8 times coarser."""
ROUNDING = TICK / 0.2
"""A time-out is at least 200 ms and rounded up to a tick; each back-off doubles what that adds."""
LEAST = 2 * TICK + 0.001
"""Seconds: a timer is rounded up to a tick, and fires at the next; the rest is the machine's."""
SHARE = 1 / 8
"""How much smoothed numbers may differ."""
ENDLESS = 1e6
"""A threshold of as many segments is none."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a kernel."""

    sent: tuple[tuple[float, Segment], ...]
    """Time and segment."""
    times: Mapping[int, float]
    """When a step was done, by its place in the script."""
    shown: Mapping[int, float]
    """What was shown, by the place of the step."""


def restarts(steps: Sequence[Step], place: int) -> bool:
    """Whether a step starts timers again.

    That is an ACK of something new, an action while nothing is out, or a timer's end.
    """
    step = steps[place]
    if step.word in ACTIONS:
        return not is_out(steps, place)
    if step.segment is None:
        return False
    if step.word == "<":
        before = (
            other.segment.ack for other in steps[:place] if other.word == "<" and other.segment
        )
        return step.segment.length > 0 or step.segment.ack > max(before, default=-1)
    return step.word == ">" and not is_answer(steps, place)


def is_out(steps: Sequence[Step], place: int) -> bool:
    """Whether data is unacknowledged before a step."""
    before = [(step.word, step.segment) for step in steps[:place] if step.segment]
    sent = [segment.seq + segment.length for word, segment in before if word == ">"]
    acknowledged = [segment.ack for word, segment in before if word == "<"]
    return max(sent, default=0) > max(acknowledged, default=0)


def is_arrival(step: Step) -> bool:
    """Whether a segment arrives."""
    return step.word == "<"


def is_answer(steps: Sequence[Step], place: int) -> bool:
    """Whether a segment is sent at the time of an arrival or an action: no timer sends it."""
    now = steps[place].time
    return any(
        step.time == now and (step.word in ACTIONS or is_arrival(step)) for step in steps[:place]
    )


def anchor(steps: Sequence[Step], place: int) -> int | None:
    """The step that the time of a segment counts from."""
    now = steps[place].time
    for other in range(place - 1, -1, -1):
        step = steps[other]
        if is_answer(steps, place):
            if step.word in ACTIONS or is_arrival(step):
                return other
        elif step.time < now and restarts(steps, other):
            return other
    return None


def tolerance(steps: Sequence[Step], place: int) -> float:
    """By how much the time of a segment may differ."""
    start = anchor(steps, place)
    gap = 0.0 if start is None else steps[place].time - steps[start].time
    return LEAST - TICK + coarseness(gap) + (ROUNDING * gap if gap > LEVEL * TICK else 0.0)


def coarseness(seconds: float) -> float:
    """Seconds by which a timer of the kernel that runs so long may be late: a slot of its wheel."""
    slot, reach = TICK, LEVEL * TICK
    while seconds > reach - slot:
        slot, reach = 8 * slot, 8 * reach
    return slot


def alike(wanted: Segment, found: Segment) -> bool:
    """Whether a segment is the one that the script states; time stamps count where it has some."""
    # The kernel's time stamps begin anywhere, so only their presence counts.
    if (wanted.stamps is None) != (found.stamps is None) and wanted.stamps is not None:
        return False
    return replace(wanted, stamps=None) == replace(found, stamps=None)


def bare(segment: Segment) -> Segment:
    """The segment without its time stamps, whose numbers mean nothing to a reader."""
    return replace(segment, stamps=None)


def matches(word: str, wanted: float, found: float) -> bool:
    """Whether what a kernel shows is what the script states: its windows are whole segments."""
    if word == "ssthresh" and wanted >= ENDLESS:
        return found >= ENDLESS
    if word in ("cwnd", "ssthresh"):
        return abs(wanted - found) < 1
    if word in ("srtt", "rto"):
        return math.isclose(wanted, found, rel_tol=SHARE, abs_tol=LEAST)
    return wanted == found


def differences(script: Script, seen: Seen) -> Iterator[str]:
    """The differences, in order of the script's lines, up to the first segment that differs."""
    steps = script.steps
    times = dict(seen.times)
    count = 0
    for place, step in enumerate(steps):
        if place in seen.shown and not matches(step.word, step.value, seen.shown[place]):
            found = f"{seen.shown[place]:.6g}"
            yield f"line {step.line}: {step.word} is {found}, not {step.value:g}"
        if step.word not in (">", "any"):
            continue
        if count >= len(seen.sent):
            if step.segment is None:
                yield f"line {step.line}: nothing is sent"
            else:
                yield f"line {step.line}: {step.time:.3f} {bare(step.segment)} is not sent"
            return
        time, found_segment = seen.sent[count]
        count += 1
        times[place] = time
        if step.segment is None:
            continue
        if not alike(step.segment, found_segment):
            yield (
                f"line {step.line}: {bare(found_segment)} at {time:.3f}, "
                f"not {bare(step.segment)} at {step.time:.3f}"
            )
            return
        start = anchor(steps, place)
        due = step.time
        if start is not None:
            due += times.get(start, steps[start].time) - steps[start].time
        if abs(time - due) > tolerance(steps, place):
            yield f"line {step.line}: {bare(found_segment)} at {time:.3f}, not at {due:.3f}"
            return
    for time, segment in seen.sent[count:]:
        yield f"at the end: {bare(segment)} at {time:.3f} is not in the script"
        return


def difference(script: Script, seen: Seen) -> str | None:
    """The first difference; nothing if the script holds."""
    return next(differences(script, seen), None)
