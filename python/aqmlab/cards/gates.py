"""Gates: what must hold whatever a candidate is good at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aqmlab._util.words import several
from aqmlab.cards.numbers import Numbers, numbers_of

__all__ = ["CONTROL_GATES", "GATES", "Gate", "GateRule", "gates"]


_NAMED = 3
"""Missing numbers that a reason names."""


@dataclass(frozen=True)
class GateRule:
    """What must hold."""

    name: str
    meaning: str
    bound: float
    is_least: bool = False
    """Whether the value must be at least the bound, instead of at most."""
    section: str = ""
    """The criterion that it stands for."""
    times_cubic: float = 0.0
    """A value also passes that is at most so many times CUBIC's in the same place."""
    where_cubic: float = 0.0
    """The gate counts only where CUBIC's value is at least this."""

    def passes(self, value: float, cubic: float | None) -> bool:
        """Whether a run passes.

        Args:
            value: of the candidate.
            cubic: of CUBIC with the same seed; None: it was not measured.
        """
        if value >= self.bound if self.is_least else value <= self.bound:
            return True
        if cubic is None:
            return False
        return cubic < self.where_cubic or value <= self.times_cubic * cubic


_ANSWERS = GateRule("answers", "the candidate has every number that the baselines have", 0.0)
_REPEATS = GateRule("repeats", "a plug-in's run gives the same numbers when it is made again", 0.0)
GATES: Sequence[GateRule] = (
    GateRule("runs", "every run ends, and its packets balance", 0.0),
    _ANSWERS,
    _REPEATS,
    GateRule("age", "no packet leaves after 60 s in the queue", 60.0),
    GateRule("memory", "the queue stays within its limit", 1.0 + 1e-9),
    GateRule("marks", "no packet is marked where no sender allows it", 0.0),
    GateRule("overload", "loss is 1 - C / offered under datagrams at twice the rate", 0.01),
    GateRule("starvation", "each of equal flows gets a tenth of its share", 0.1, is_least=True),
    GateRule("outage", "half of the link is used 8 s after an outage", 0.5, is_least=True),
)
"""Of queue disciplines, in the order of the page."""
CONTROL_GATES: Sequence[GateRule] = (
    GateRule("runs", "every run ends, and its packets balance", 0.0),
    _ANSWERS,
    _REPEATS,
    GateRule(
        "backoff",
        "at most 2 packets per round trip from 5 s after a total loss on",
        2.0,
        section="r9743-5.1.1",
    ),
    GateRule(
        "collapse", "100 flows use half of 1 Mbit/s", 0.5, is_least=True, section="r9743-5.1.1"
    ),
    GateRule(
        "loss",
        "loss is at most 2 %, or 5 times CUBIC's, with a buffer of half a BDP or more",
        0.02,
        section="r9743-5.1.3",
        times_cubic=5.0,
    ),
    GateRule(
        "starvation",
        "each of equal flows gets a tenth of its share",
        0.1,
        is_least=True,
        section="r9743-5.1.4",
    ),
    GateRule(
        "harm",
        "other controls keep a tenth of their share where CUBIC leaves them 30 %",
        0.1,
        is_least=True,
        section="r9743-5.2",
        where_cubic=0.3,
    ),
    GateRule(
        "calls",
        "calls keep a MOS of 1.5 where CUBIC leaves them more than 3",
        1.5,
        is_least=True,
        section="r9743-5.2.2",
        where_cubic=3.0,
    ),
    GateRule("ecn", "a queue with ECN marks at most nine of ten packets", 0.9, section="r9743-7.1"),
    GateRule(
        "return",
        "a fifth of the link is used in the minute after an outage or a change of the path",
        0.2,
        is_least=True,
        section="r9743-7.8",
    ),
)
"""Of congestion controls: RFC 9743. docs/evaluate.md says which bounds are this project's."""


@dataclass(frozen=True)
class Gate:
    """A gate, and how the candidate did."""

    rule: GateRule
    worst: float | None
    """The value that is nearest to failing, or failed most; None: nothing was measured."""
    test: str
    """The cell of that value."""
    seed: int | None
    passed: bool | None
    """Whether every run passed; None: nothing was measured."""
    reason: str = ""
    """Why a run failed."""


def gates(
    numbers: Numbers,
    candidate: str,
    failures: Sequence[tuple[str, int, str]],
    rules: Sequence[GateRule] = GATES,
    lacking: Sequence[tuple[str, str]] = (),
) -> list[Gate]:
    """How a candidate passes the gates.

    Args:
        numbers: as for :func:`aqmlab.cards.scoring.scored_tests`; the values of gates have measures
            such as ``gate:age``.
        candidate: its name in the numbers.
        failures: cells, seeds and reasons of its runs that failed.
        rules: the gates.
        lacking: tests and numbers that the candidate lacks and the baselines have.
    """
    values: dict[str, dict[tuple[str, int], float]] = {}
    cubic: dict[str, dict[tuple[str, int], float]] = {}
    for row in numbers_of(numbers):
        _, is_gate, name = row.measure.rpartition("gate:")
        for queue, found in ((candidate, values), ("cubic", cubic)):
            if is_gate and row.queue == queue:
                found.setdefault(name, {})[row.cell, row.seed] = row.value
    return [_gate(rule, values, cubic, failures, lacking) for rule in rules]


def _gate(
    rule: GateRule,
    values: Mapping[str, Mapping[tuple[str, int], float]],
    cubic: Mapping[str, Mapping[tuple[str, int], float]],
    failures: Sequence[tuple[str, int, str]],
    lacking: Sequence[tuple[str, str]],
) -> Gate:
    """How a candidate passes one."""
    if rule.name == "runs":
        cell, seed, reason = failures[0] if failures else ("", None, "")
        return Gate(rule, float(len(failures)), cell, seed, not failures, reason)
    if rule is _ANSWERS:
        test = lacking[0][0] if lacking else ""
        names = several([f"{name} of {test}" for test, name in lacking], _NAMED)
        reason = f"none ended: {names}" if lacking else ""
        return Gate(rule, float(len(lacking)), test, None, not lacking, reason)
    own, beside = values.get(rule.name, {}), cubic.get(rule.name, {})
    if not own:
        return Gate(rule, None, "", None, None)
    failed = {key: value for key, value in own.items() if not rule.passes(value, beside.get(key))}
    shown = failed or own
    worst = (min if rule.is_least else max)(shown, key=lambda key: shown[key])
    return Gate(rule, shown[worst], *worst, not failed)
