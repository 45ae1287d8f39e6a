"""The predicted effect of another queue on the link of a capture, with a band.

The applications are replayed behind the present queue and behind each other queue. The ratio of the
two replays is the prediction; how far the first is from the capture is the self-test.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aqmlab._util.lazy import np
from aqmlab.engine.parallel import execute_all
from aqmlab.errors import AqmlabError, RunError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario
from aqmlab.traffic.inferred import Inferred, VectorFile, write_vectors
from aqmlab.traffic.played import Present, played_scenario, replayed

__all__ = ["METRICS", "Foreseen", "Ratio", "foresee"]


METRICS = {
    "t50": "response time, median",
    "t90": "response time, 90 %",
    "delay_down": "queueing delay down, 95 %",
    "delay_up": "queueing delay up, 95 %",
}
"""What is predicted, and what it is called."""
_TESTED = ("t50", "t90", "delay")
"""What is compared with the capture."""
_WORST = math.log(1.5)
"""A self-test that is worse refuses a prediction."""
_NEAR_BEST = math.log(1.25)
"""Assumptions whose self-tests are as near to the best stay in the band."""
_FLOORS = {"t50": math.log(1.05), "t90": math.log(1.05)}
_FLOOR_OF_DELAY = math.log(1.25)
_FEWEST = {"t50": 30, "t90": 100}
"""Responses that a quantile needs."""
_SURE = 1.64
_DRAWS = 200
_IDLE = 0.10
"""A link above half of its rate for a smaller share of the time has no queue to speak of."""
_GROWN_S = 0.02
_UNREAD = 0.2
"""A larger share of bytes that are not replayed as connections decides too much."""
_WARM_UP_S = 30.0
_LONGEST_S = 7200.0
"""Longer captures are replayed many times for too long."""
_CONTROLS = ("cubic", "reno", "bbr1")
_PRESENT = ("droptail", "codel", "pie")
"""Queues that the self-test chooses among."""


@dataclass(frozen=True)
class Ratio:
    """The new value over the old one, with its band."""

    new: float
    old: float
    ratio: float
    factor: float
    """The band reaches from the ratio over this factor to the ratio times it."""

    @property
    def low(self) -> float:
        """Of the band."""
        return self.ratio / self.factor

    @property
    def high(self) -> float:
        """Of the band."""
        return self.ratio * self.factor

    @property
    def verdict(self) -> str:
        """One word."""
        if self.high < 1:
            return "better"
        return "worse" if self.low > 1 else "cannot tell"

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "old": self.old,
            "new": self.new,
            "ratio": self.ratio,
            "band": [self.low, self.high],
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Foreseen:
    """What is predicted, and on which grounds."""

    inferred: Inferred
    present: Present
    captured: Mapping[str, float]
    """Of the capture: t50, t90, delay."""
    replayed: Mapping[str, float]
    """Of the replay behind the present queue: t50, t90, delay, load_down, load_up."""
    ratios: Mapping[str, Mapping[str, Ratio]]
    """By queue and metric. Empty: nothing to gain."""
    assumed: tuple[str, ...]
    widest: str
    """What widened the band most."""
    left_out: tuple[str, ...]
    nothing_to_gain: str = ""
    """Why no queue helps, if so."""
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Guess:
    """Assumptions of one replay."""

    present: Present
    lowered_s: float = 0.0
    control: str = "cubic"
    """Of long transfers."""
    others: str = "cubic"
    seed: int = 1
    slower: float = 1.0

    @property
    def words(self) -> str:
        """What differs from the first guess."""
        found = [self.present.kind, f"long transfers {self.control}"]
        if self.lowered_s:
            found.append("standing queue")
        return ", ".join(found)


@dataclass
class _Lab:
    """Replays of one capture, each made once."""

    inferred: Inferred
    folder: Path
    warm_up_s: float
    jobs: int | None
    files: dict[float, list[VectorFile]] = field(default_factory=dict)
    done: dict[tuple[_Guess, str], dict[str, float]] = field(default_factory=dict)
    report: Callable[[str], object] = print

    def place(self, lowered_s: float) -> Path:
        """Where the vectors lie whose round trips are shorter by so much."""
        place = self.folder / f"vectors-{round(1e6 * lowered_s)}"
        if lowered_s not in self.files:
            place.mkdir(parents=True)
            self.files[lowered_s] = write_vectors(self.inferred, place, lowered_s)
        return place

    def scenario(self, guess: _Guess, queue: str) -> Scenario:
        """One replay; an empty queue is the present one."""
        place = self.place(guess.lowered_s)
        text = played_scenario(
            self.inferred,
            self.files[guess.lowered_s],
            queue or guess.present,
            warm_up_s=self.warm_up_s,
            controls=(guess.others, guess.control),
            slower=guess.slower,
            seed=guess.seed,
        )
        return Scenario.from_toml(text, folder=place)

    def measure(self, wanted: Sequence[tuple[_Guess, str]]) -> None:
        """Makes the replays that are not made yet."""
        todo = [one for one in dict.fromkeys(wanted) if one not in self.done]
        if not todo:
            return
        self.report(f"{len(todo)} replays")
        with tempfile.TemporaryDirectory(prefix="aqmlab-", dir=self.folder) as name:
            named = [(f"replay-{at}", self.scenario(*one)) for at, one in enumerate(todo)]
            runs = execute_all(named, Path(name), self.jobs)
            for (at, _), one in zip(named, todo, strict=True):
                run = runs[at]
                if not isinstance(run, Run):
                    raise RunError(f"a replay behind {one[1] or one[0].present.kind}: {run}")
                rates, slower = self.inferred.rates, one[0].slower
                self.done[one] = replayed(run, rates, self.warm_up_s, slower)

    def __getitem__(self, one: tuple[_Guess, str]) -> dict[str, float]:
        return self.done[one]


def foresee(
    capture: Path,
    queues: Sequence[str],
    *,
    rates_bps: tuple[float, float] | None = None,
    present: str | None = None,
    buffers_s: tuple[float, float] | None = None,
    jobs: int | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> Foreseen:
    """Predicts what each queue does to response times and delays of a captured link.

    Args:
        capture: pcap or pcapng.
        queues: presets or tables.
        rates_bps: of the link, down and up; None: what the capture proves.
        present: the queue that was there; None: the one that explains the capture best.
        buffers_s: the longest wait in the present drop-tail queue, down and up.
        jobs: replays at a time.
        report: called with what begins.

    Raises:
        AqmlabError: the capture allows no prediction; the message says why.
    """
    found = Inferred.read(capture, rates_bps)
    warm_up_s = min(_WARM_UP_S, 0.1 * found.seconds)
    times = found.responses(warm_up_s)
    idle = _check(found, times)
    delay = found.delay(warm_up_s)
    captured = {"t50": _quantile(times, 0.5), "t90": _quantile(times, 0.9), "delay": delay}
    if idle:
        nothing = Present(present or "droptail", (0.1, 0.1))
        return Foreseen(found, nothing, captured, {}, {}, (), "", (), nothing_to_gain=idle)
    sized, assumed = _buffers(found, buffers_s, present)
    with tempfile.TemporaryDirectory(prefix="aqmlab-predict-") as name:
        lab = _Lab(found, Path(name), warm_up_s, jobs, report=report)
        kept, tested = _guesses(lab, captured, present, sized, is_stated=buffers_s is not None)
        best = kept[0]
        away = _away(lab[best, ""], captured, best)
        if max(away.values()) > _WORST:
            raise AqmlabError(_failed(found, best, lab[best, ""], captured, away))
        varied = [
            *kept,
            replace(best, seed=2),
            replace(best, control="reno", others="reno"),
            replace(best, slower=0.95),
        ]
        lab.measure([(guess, queue) for guess in varied for queue in ("", *queues)])
        boot = {key: _bootstrap(times, share) for key, share in (("t50", 0.5), ("t90", 0.9))}
        ratios, parts = _ratios(lab, varied, queues, away, boot, found, len(times))
        replays = lab[best, ""]
    widest = max(parts, key=lambda part: parts[part])
    assumed += [tested]
    left_out = [
        f"{label}: needs {_FEWEST[key]} responses, found {len(times)}"
        for key, label in METRICS.items()
        if key in _FEWEST and len(times) < _FEWEST[key]
    ]
    left_out += [
        f"{METRICS[f'delay_{way}']}: the rate is not in the capture ({rate.why})"
        for way, rate in zip(("down", "up"), found.rates, strict=True)
        if not rate.is_proven
    ]
    return Foreseen(
        found,
        best.present,
        captured,
        {key: replays[key] for key in (*_TESTED, "load_down", "load_up")},
        ratios,
        tuple(assumed),
        widest,
        tuple(left_out),
        parts=parts,
    )


def _check(found: Inferred, times: np.ndarray) -> str:
    """Raises an error for what cannot be predicted; otherwise why no queue helps, or nothing."""
    name, down, up = found.capture, *found.rates
    if found.seconds > _LONGEST_S:
        raise AqmlabError(
            f"{name}: its packets span {found.seconds / 3600:,.1f} hours; at most "
            f"{_LONGEST_S / 3600:.0f} can be predicted: take the busy hour (editcap -A START "
            "-B END)"
        )
    if not all((found.found.is_home == side).any() for side in (False, True)):
        raise AqmlabError(
            f"{name}: data of one direction only are acknowledged: capture both directions"
        )
    if not (down.is_proven or up.is_proven):
        raise AqmlabError(
            f"{name}: the rate of neither direction is in the capture; state it: --rate DOWN/UP"
        )
    grown = max(
        float(np.quantile(way.found.excess_s[way.found.is_home == way.is_home], 0.95))
        for way in found.ways
    )
    full = max(found.is_full(0), found.is_full(1))
    if full < _IDLE:
        if grown > _GROWN_S:
            raise AqmlabError(
                f"{name}: round trips grow by {1e3 * grown:.0f} ms and the link is above half of "
                f"its rate for {100 * full:.0f} % of the time: the queue is elsewhere, or a rate "
                "is lower; state it: --rate DOWN/UP"
            )
        return (
            f"the link is above half of its rate for {100 * full:.0f} % of the time: its queue "
            "does little, and no other queue helps"
        )
    if 1 - found.passed.judged > _UNREAD:
        raise AqmlabError(
            f"{name}: {100 * (1 - found.passed.judged):.0f} % of the bytes are neither TCP nor "
            "whole QUIC connections; a prediction "
            f"needs less than {100 * _UNREAD:.0f} %"
        )
    if len(times) < _FEWEST["t50"]:
        raise AqmlabError(
            f"{name}: found {len(times)} whole responses of connections shorter than 25 s; a "
            f"prediction needs {_FEWEST['t50']}: capture longer"
        )
    far = found.ways[1]
    excess = far.found.excess_s[far.found.is_home]
    if not found.behind[0] and not found.is_full(1):
        beyond = float(np.quantile(excess, 0.95))
        if beyond > _GROWN_S:
            raise AqmlabError(
                f"{name}: the way beyond the tap grows by {1e3 * beyond:.0f} ms while the upload "
                "is never half full: another bottleneck stands there, which no queue here helps"
            )
    return ""


def _buffers(
    found: Inferred, stated: tuple[float, float] | None, present: str | None
) -> tuple[tuple[float, float], list[str]]:
    """How long the present queue grows, if it is drop-tail."""
    if stated:
        return stated, []
    sizes, said = [], []
    for side, way in enumerate(("down", "up")):
        size = found.buffer_s(side) if found.rates[side].is_proven else None
        if size is not None:
            size += found.standing_s if not side else 0.0
            if present in (None, "droptail"):
                said.append(f"the buffer {way} holds {1e3 * size:.0f} ms: loops grow by as much")
        elif found.rates[side].is_proven and present in (None, "droptail"):
            said.append(f"the buffer {way} holds 100 ms: the other direction is never quiet")
        sizes.append(max(size or 0.1, 0.01))
    return (sizes[0], sizes[1]), said


def _guesses(
    lab: _Lab,
    captured: Mapping[str, float],
    present: str | None,
    sized: tuple[float, float],
    *,
    is_stated: bool,
) -> tuple[list[_Guess], str]:
    """The guesses that explain the capture, the best one first, and what was chosen."""
    kinds = (present,) if present else _PRESENT
    standing = lab.inferred.standing_s
    lowered = (0.0, standing) if standing else (0.0,)
    sizes = {kind: [sized] for kind in kinds}
    if not is_stated and "droptail" in sizes and (both := lab.inferred.both_s()):
        down, up = sized
        sizes["droptail"] += [(down, one) for one in (both - down, both) if one > up]
    guesses = [
        _Guess(Present(kind, size), low)
        for kind in kinds
        for size in sizes[kind]
        for low in lowered
    ]

    def score(guess: _Guess) -> float:
        return max(_away(lab[guess, ""], captured, guess).values())

    lab.measure([(guess, "") for guess in guesses])
    best = min(guesses, key=score)
    kept = list(guesses)
    has_long = any(file.is_long for file in lab.files[0.0])
    if has_long:
        others = [replace(best, control=name) for name in _CONTROLS[1:]]
        lab.measure([(guess, "") for guess in others])
        kept += others
    kept.sort(key=score)
    kept = [one for one in kept if score(one) <= score(kept[0]) + _NEAR_BEST]
    said = f"the present queue is {best.present.kind}"
    if best.present.kind == "droptail":
        said += " of {} ms down, {} ms up".format(
            *(round(1e3 * one) for one in kept[0].present.buffers_s)
        )
    if not present:
        said += ", which explains the capture best"
        rivals = {
            one.present.kind
            for one in guesses
            if one.present.kind != best.present.kind and score(one) <= score(best) + _NEAR_BEST
        }
        if rivals:
            said += (
                f" (nearly as well: {', '.join(sorted(rivals))}, which stay in the band; "
                "say it by --present)"
            )
    if standing:
        said += (
            f"; round trips are shorter by {1e3 * kept[0].lowered_s:.0f} ms: the queue never "
            "empties"
        )
    return kept, said


def _away(
    replays: Mapping[str, float], captured: Mapping[str, float], guess: _Guess
) -> dict[str, float]:
    """How far a replay is from the capture: logarithms."""
    found = {}
    for key in _TESTED:
        value, right = replays[key], captured[key]
        if key == "delay":
            if guess.present.kind.startswith(("fq", "cake", "sfq", "drr")):
                continue  # each flow has its own queue
            right += guess.lowered_s
            value, right = max(value, _LEAST_DELAY_S), max(right, _LEAST_DELAY_S)
        found[key] = abs(math.log(value / right)) if value > 0 and right > 0 else math.inf
    return found


_LEAST_DELAY_S = 0.001
"""Shorter delays are equal."""


def _failed(
    found: Inferred,
    guess: _Guess,
    replays: Mapping[str, float],
    captured: Mapping[str, float],
    away: Mapping[str, float],
) -> str:
    """Why there is no prediction, and which assumption to state."""
    key = max(away, key=lambda one: away[one])
    label = {"delay": "queueing delay, 95 %", **METRICS}[key]
    names = ["--present QUEUE", "--buffer DOWN/UP"]
    if not all(rate.why == "stated" for rate in found.rates):
        names.insert(0, "--rate DOWN/UP")
    right = captured[key] + (guess.lowered_s if key == "delay" else 0.0)
    return (
        f"{found.capture}: no prediction: behind {guess.present.kind} the {label} is "
        f"{1e3 * replays[key]:.0f} ms, in the capture {1e3 * right:.0f} ms; an assumption is "
        f"wrong, state it: {', '.join(names)}"
    )


def _ratios(
    lab: _Lab,
    guesses: Sequence[_Guess],
    queues: Sequence[str],
    away: Mapping[str, float],
    boot: Mapping[str, float],
    found: Inferred,
    responses: int,
) -> tuple[dict[str, dict[str, Ratio]], dict[str, float]]:
    """Ratios with bands, and the largest of each part of a band."""
    best, *rest = guesses
    parts: dict[str, float] = {"the self-test": 0.0, "the number of responses": 0.0}
    ratios: dict[str, dict[str, Ratio]] = {queue: {} for queue in queues}
    for queue in queues:
        for key in _predicted(found, responses):
            center = _ratio(lab[best, queue], lab[best, ""], key)
            spread = 0.0
            for guess in rest:
                far = abs(math.log(_ratio(lab[guess, queue], lab[guess, ""], key) / center))
                name = _difference(best, guess)
                parts[name] = max(parts.get(name, 0.0), far)
                spread = max(spread, far)
            own = away.get(key, away.get("delay", 0.0))
            sampled = _SURE * boot.get(key, 0.0)
            parts["the self-test"] = max(parts["the self-test"], own)
            sampling = "the number of responses"
            parts[sampling] = max(parts[sampling], math.sqrt(2) * sampled)
            floor = _FLOORS.get(key, _FLOOR_OF_DELAY)
            half = math.sqrt(own**2 + spread**2 + 2 * sampled**2 + floor**2)
            old = lab[best, ""][key]
            ratios[queue][key] = Ratio(center * old, old, center, math.exp(half))
    return ratios, parts


def _ratio(new: Mapping[str, float], old: Mapping[str, float], key: str) -> float:
    least = _LEAST_DELAY_S if key.startswith("delay") else 1e-6
    return max(new[key], least) / max(old[key], least)


def _difference(best: _Guess, other: _Guess) -> str:
    """What another guess assumes, in words."""
    if other.seed != best.seed:
        return "chance"
    if other.slower != best.slower:
        return "the rate"
    if other.present.kind != best.present.kind:
        return "the present queue"
    if other.lowered_s != best.lowered_s:
        return "the standing queue"
    if other.present != best.present:
        return "the present buffer"
    return "the congestion control"


def _predicted(found: Inferred, responses: int) -> Iterator[str]:
    for key in METRICS:
        if key in _FEWEST:
            if responses >= _FEWEST[key]:
                yield key
        elif found.rates[key == "delay_up"].is_proven:
            yield key


def _quantile(values: np.ndarray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else 0.0


def _bootstrap(times: np.ndarray, share: float) -> float:
    """The standard deviation of a quantile's logarithm."""
    draw = np.random.default_rng(1).integers(0, len(times), (_DRAWS, len(times)))
    return float(np.log(np.quantile(times[draw], share, axis=1)).std())
