"""From the numbers of runs to a card: a pure function, without files, clocks or processes.

docs/evaluate.md explains the scores. Every constant of this project's choice stands in
:data:`CONSTANTS`; a change of one is a new :data:`VERSION`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from aqmlab.cards.numbers import Numbers, numbers_of
from aqmlab.cards.suites import Measure
from aqmlab.results.statistics import Estimate, Floats, estimate

__all__ = [
    "CONSTANTS",
    "LOGS",
    "OWN",
    "SOLO",
    "UNSCORED",
    "VERSION",
    "Area",
    "MeasureScore",
    "Test",
    "areas",
    "grade",
    "matters",
    "overall",
    "points",
    "scored_controls",
    "scored_tests",
    "size",
    "step",
]


VERSION = 3
"""Of the tests, the scores and their constants; cards of two versions are not compared."""
CONSTANTS: Mapping[str, float] = {
    "goodput_lost_per_point": 0.10,
    "least_log_ratio": 0.05,
    "least_fairness": 0.02,
    "least_opinion": 0.1,
    "least_goodput_kept": 0.5,
    "lowest_score": -1.0,
    "highest_score": 1.25,
    "grade_a": 0.9,
    "grade_b": 0.5,
    "grade_c": 0.0,
    "least_wait_s": 1e-4,
    "least_time_s": 0.1,
    "least_loss": 1e-4,
    "matters_relative": 0.05,
    "matters_wait_s": 0.0005,
    "matters_goodput": 0.01,
    "matters_fairness": 0.02,
    "matters_opinion": 0.1,
    "matters_time_back": 0.20,
    "matters_loss_relative": 0.10,
    "matters_loss": 0.001,
    "matters_harm": 0.05,
    "guard_relative": 0.10,
    "guard_loss": 0.001,
    "control_factor": 2.0,
    "control_loss_factor": 5.0,
    "control_fairness": 0.25,
    "control_opinion": 1.0,
    "control_harm": 0.25,
}
"""This project's choices.

A tenth of the goodput costs a point: with the delay of the baselines and a tenth less goodput, a
queue is worth no more than drop-tail. Below the least gain of the baselines a ratio of two
differences is noise. With less than half of drop-tail's goodput, waits are short only because the
link is idle. A bonus for goodput would grade drop-tail, which often has the most, above 0. A bound
of the time back by each queue's own target would reward long queues. Differences below `matters_*`
are too small to notice.
"""
LOGS = "DTRG"
"""Letters whose scores are of logarithms."""
UNSCORED = "-"
"""The letter of a measure that is shown only."""
OWN = "own"
"""The area of measures of one's own that have a score."""
SOLO = "solo"
"""What the frame calls a run without the candidate, from which harm is measured."""
_STEPS: Mapping[str, float] = {
    **dict.fromkeys("DTR", math.log(CONSTANTS["control_factor"])),
    "F": CONSTANTS["control_fairness"],
    "U": CONSTANTS["control_opinion"],
    "H": CONSTANTS["control_harm"],
}
"""By letter: by how much a control that scores 0 is worse than CUBIC."""
_LEAST: Mapping[str, str] = {
    "D": "least_log_ratio",
    "T": "least_log_ratio",
    "R": "least_log_ratio",
    "F": "least_fairness",
    "U": "least_opinion",
}
"""By letter: the constant that says how much the baselines must gain on drop-tail."""
_FLOORS = {"ms": "least_wait_s", "s": "least_time_s", "%": "least_loss"}
"""By unit: smaller values count as this one, so that a logarithm exists."""


@dataclass(frozen=True)
class MeasureScore:
    """One measure of a test: the numbers, and the score if it can tell."""

    measure: Measure
    settings: int
    """Settings of the test that the numbers are means of."""
    candidate: float
    """The mean over seeds, geometric where scores are of logarithms; over cells too."""
    droptail: float
    """Not a number on cards of controls."""
    reference: float
    """The median of the baselines; on cards of controls CUBIC."""
    others: Mapping[str, float]
    """Each baseline."""
    best: str
    """The baseline that does best."""
    best_value: float
    difference: Estimate
    """Candidate and reference, seed by seed: of logarithms, or of values."""
    score: float | None
    """None: it cannot tell, or only takes points off (goodput)."""
    lost: float
    """Points that it takes off: lost goodput, or the harm of a guard."""
    why: str
    """Why there is no score; empty if there is one."""

    @property
    def is_missing(self) -> bool:
        """Whether the baselines have the number and the candidate has none: the worst there is."""
        return math.isnan(self.candidate)

    @property
    def is_relative(self) -> bool:
        """Whether the difference is one of logarithms."""
        return self.measure.letter in LOGS

    @property
    def gain(self) -> float:
        """The difference as a share of the reference, or in the measure's own unit."""
        return math.expm1(self.difference.mean) if self.is_relative else self.difference.mean

    @property
    def better(self) -> bool | None:
        """Whether the candidate is clearly better than the reference, by enough to matter.

        None: the interval of the difference holds zero, or the difference is too small.
        """
        if self.measure.letter == UNSCORED:
            return None
        if self.is_missing:
            return False
        if not self.difference.clear:
            return None
        if self.measure.letter == "H":
            if abs(self.difference.mean) <= CONSTANTS["matters_harm"]:
                return None
        elif not matters(self.measure, self.difference.mean, self.reference):
            return None
        return (self.difference.mean < 0) == (self.measure.letter in "DTH")

    @property
    def worse_than_all(self) -> bool:
        """Whether the candidate is worse than each baseline, by enough to matter.

        What some baseline does as badly is often the nature of a kind of queue.
        """
        if self.is_missing:
            return True
        if self.better is not False or not self.others:
            return False
        less = self.measure.letter in "DTH"
        worst = (max if less else min)(self.others.values())
        if (self.candidate > worst) != less:
            return False
        if self.measure.letter == "H":
            return True
        own, other = _scaled(np.array([self.candidate, worst]), self.measure)
        return matters(self.measure, float(own - other), worst)


@dataclass(frozen=True)
class Test:
    """A test of the card."""

    __test__ = False  # pytest takes classes of this name for its own

    id: str
    area: str
    measures: Sequence[MeasureScore]
    by_seed: Sequence[float]
    """The score of each seed; empty if the test cannot tell."""
    why: str = ""
    """Why its baselines are no yardstick; empty if they are."""

    @property
    def settings(self) -> int:
        """Settings that it was run with."""
        return max(measure.settings for measure in self.measures)

    @property
    def score(self) -> float | None:
        """The mean over seeds; None: the test cannot tell."""
        return math.fsum(self.by_seed) / len(self.by_seed) if self.by_seed else None


@dataclass(frozen=True)
class Area:
    """Tests of one kind together."""

    name: str
    score: Estimate | None
    """None: no test can tell."""
    tests: int
    """Tests that were scored."""
    worst: str
    """Name and score of the test that scores least; empty: there is none."""
    settings: int
    """Settings of these tests together."""
    grade: str


def matters(measure: Measure, difference: float, reference: float) -> bool:
    """Whether a difference is large enough to speak of.

    Args:
        measure: what differs.
        difference: of logarithms, or of values: see :attr:`MeasureScore.is_relative`.
        reference: the value that it is a difference from.
    """
    if measure.letter in "FU":
        least = "matters_fairness" if measure.letter == "F" else "matters_opinion"
        return abs(difference) > CONSTANTS[least]
    share = abs(math.expm1(difference))
    if measure.letter == "G":
        return share > CONSTANTS["matters_goodput"]
    if measure.letter == "T":
        return share > CONSTANTS["matters_time_back"]
    if measure.unit == "%":
        large = share * reference > CONSTANTS["matters_loss"]
        return large and share > CONSTANTS["matters_loss_relative"]
    if measure.letter == "D" and share * reference <= CONSTANTS["matters_wait_s"]:
        return False
    return share > CONSTANTS["matters_relative"]


class _Values:
    """The numbers of runs, by test, cell, measure and queue."""

    def __init__(self, numbers: Numbers, seeds: Sequence[int]) -> None:
        self._seeds = {seed: place for place, seed in enumerate(seeds)}
        self._found: dict[tuple[str, str, str, str], Floats] = {}
        self.cells: dict[str, list[str]] = {}
        for row in numbers_of(numbers):
            key = row.test, row.cell, row.measure, row.queue
            if key not in self._found:
                self._found[key] = np.full(len(seeds), np.nan)
            self._found[key][self._seeds[row.seed]] = row.value
            known = self.cells.setdefault(row.test, [])
            if row.cell not in known:
                known.append(row.cell)

    def of(self, test: str, cell: str, measure: str, queue: str) -> Floats | None:
        """One for each seed; None if one of them is missing."""
        found = self._found.get((test, cell, measure, queue))
        return None if found is None or np.isnan(found).any() else found


def scored_tests(
    numbers: Numbers,
    measures: Sequence[Measure],
    area_of: Mapping[str, str],
    *,
    candidate: str,
    droptail: str,
    baselines: Sequence[str],
) -> list[Test]:
    """The scores of a candidate.

    Args:
        numbers: the columns of a table with a row for each number: those of
            :class:`aqmlab.cards.numbers.CardNumber`.
        measures: what the tests measure, in the order of the card.
        area_of: the area of each test.
        candidate: the queue that is scored.
        droptail: the queue that scores 0.
        baselines: the queues whose median scores 1.
    """
    others = sorted(baselines)  # their order never matters
    return _tests(
        numbers,
        measures,
        area_of,
        lambda values, measure: _scored(values, measure, candidate, droptail, others),
    )


def scored_controls(
    numbers: Numbers,
    measures: Sequence[Measure],
    area_of: Mapping[str, str],
    *,
    candidate: str,
    cubic: str,
    baselines: Sequence[str],
) -> list[Test]:
    """The scores of a congestion control: 1 is CUBIC in the same place.

    Args:
        numbers: as for :func:`scored_tests`; harm is measured from the values of :data:`SOLO`.
        measures: what the tests measure, in the order of the card.
        area_of: the area of each test.
        candidate: the control that is scored.
        cubic: the control that scores 1.
        baselines: further controls, which are shown beside it.
    """
    others = [cubic, *sorted({*baselines} - {cubic})]
    return _tests(
        numbers,
        measures,
        area_of,
        lambda values, measure: _scored_control(values, measure, candidate, others),
    )


_Scored = tuple["MeasureScore", tuple["Floats | None", "Floats", "Floats"]]
"""A measure's score, with the gain of each seed, what lost goodput takes off, and what a guard
does."""


def _tests(
    numbers: Numbers,
    measures: Sequence[Measure],
    area_of: Mapping[str, str],
    score: Callable[[_Values, Measure], _Scored | None],
) -> list[Test]:
    """The tests of some numbers, each measure scored by a function."""
    values = _Values(numbers, sorted(set(numbers["seed"])))
    found = []
    for name, area in _test_areas(area_of, measures):
        own = [one for one in measures if one.test == name and (one.area or area_of[name]) == area]
        present = [entry for entry in (score(values, one) for one in own) if entry is not None]
        if present:
            shown = [entry for entry, _ in present]
            by_seed = _together([arrays for _, arrays in present])
            if any(entry.is_missing for entry in shown):
                # What the candidate ruins counts as its worst, whatever else it does well.
                by_seed = [CONSTANTS["lowest_score"]] * len(present[0][1][1])
            if why := _no_yardstick(shown):
                shown, by_seed = [_unscored(entry, why) for entry in shown], []
            found.append(Test(name, area, shown, by_seed, why))
    return found


def _test_areas(
    area_of: Mapping[str, str], measures: Sequence[Measure]
) -> Iterator[tuple[str, str]]:
    """Each test with its area, then with the areas of measures that count for another area."""
    for name, area in area_of.items():
        others = [one.area for one in measures if one.test == name and one.area]
        for one in dict.fromkeys([area, *others]):
            yield name, one


def _no_yardstick(shown: Sequence[MeasureScore]) -> str:
    """Why the baselines are no yardstick in a test: they give up the link. Empty: they are.

    A queue that hardly lets anything through has short waits, which nobody should aim at.
    """
    for one in shown:
        kept = one.reference / one.droptail if one.droptail else math.nan
        if one.measure.letter == "G" and kept < CONSTANTS["least_goodput_kept"]:
            return f"the median of the baselines keeps {kept:.0%} of drop-tail's goodput".replace(
                "%", " %"
            )
    return ""


def _unscored(entry: MeasureScore, why: str) -> MeasureScore:
    """A measure of a test that has no score."""
    if entry.measure.letter == UNSCORED:
        return entry
    return replace(entry, score=None, lost=0.0, why=why)


def _together(arrays: Sequence[tuple[Floats | None, Floats, Floats]]) -> list[float]:
    """The score of a test for each seed: the mean of its gains, less what goodput and guards take.

    Guards alone earn nothing: a test without gains has a score only where a guard takes points off.
    """
    gains = [gain for gain, _, _ in arrays if gain is not None]
    harm = np.sum([guard for _, _, guard in arrays], axis=0)
    if not gains:
        return [*_clipped(-harm).tolist()] if np.any(harm > 0) else []
    lost = np.sum([loss for _, loss, _ in arrays], axis=0)
    return [*_clipped(np.mean(gains, axis=0) - lost - harm).tolist()]


def _clipped(scores: Floats) -> Floats:
    found: Floats = np.clip(scores, CONSTANTS["lowest_score"], CONSTANTS["highest_score"])
    return found


def _scored(
    values: _Values, measure: Measure, candidate: str, droptail: str, baselines: Sequence[str]
) -> _Scored | None:
    """A measure's score on the scale from drop-tail to the baselines.

    The settings of a test are averaged before they are scored, seed by seed.
    """
    averaged = _averaged(values, measure, (droptail, *baselines), candidate)
    if averaged is None:
        return None
    settings, (x, nothing, *others) = averaged
    reference: Floats = np.median(others, axis=0)
    means = [float(one.mean()) for one in others]
    # The yardstick is the median of the means, so that one lucky seed does not shorten it.
    # Half of the usual baselines are single queues: between them and the fair ones lies no queue.
    yardstick = max(means) if measure.letter == "F" else median(means)
    step = yardstick - float(nothing.mean())
    gain = _gain(x - nothing, step, measure, _back(measure)(float(nothing.mean())))
    shown = _measured(measure, settings, x, reference, baselines, means)
    # Drop-tail scores 0 even where the baselines let more through.
    most = min(reference, nothing, key=np.mean)
    lost, harm = _lost(x, most, measure), np.zeros(len(x))
    if shown.is_missing:
        gain, lost = np.full(len(x), CONSTANTS["lowest_score"]), harm
    elif gain is None:
        harm = _guard(measure, x, [nothing, *others])
    return replace(
        shown,
        droptail=_back(measure)(float(nothing.mean())),
        score=None if gain is None else float(gain.mean()),
        lost=float((lost + harm).mean()),
        why=_why(measure, gain, step),
    ), (gain, lost, harm)


def _guard(measure: Measure, x: Floats, others: Sequence[Floats]) -> Floats:
    """What a number that nothing can score takes off: the candidate is worse than everybody.

    A point for twice the wait or time, half the rate, five times the loss, Jain's index less by a
    quarter, an opinion score less by one; at most a point.
    """
    if measure.letter in (UNSCORED, "G", "H"):
        return np.zeros(len(x))
    sign = 1 if measure.letter in "DTH" else -1
    worst = max(others, key=lambda one: sign * float(one.mean()))
    far = sign * (float(x.mean()) - float(worst.mean()))
    size = math.expm1(far) if measure.letter in LOGS else far
    if size <= CONSTANTS["guard_relative"]:
        return np.zeros(len(x))
    if measure.unit == "%" and size * math.exp(float(worst.mean())) <= CONSTANTS["guard_loss"]:
        return np.zeros(len(x))
    found: Floats = np.clip(sign * (x - worst) / step(measure), 0.0, 1.0)
    return found


def _scored_control(
    values: _Values, measure: Measure, candidate: str, baselines: Sequence[str]
) -> _Scored | None:
    """A measure's score of a control: 1 is the first of the baselines."""
    averaged = _averaged(values, measure, baselines, candidate)
    if averaged is None:
        return None
    settings, (x, *others) = averaged
    reference = others[0]
    gain: Floats | None = None
    if measure.letter in _STEPS:
        sign = -1 if measure.letter in "DTH" else 1
        gain = _clipped(1 + sign * (x - reference) / step(measure))
    means = [float(one.mean()) for one in others]
    shown = _measured(measure, settings, x, reference, baselines, means)
    lost = _lost(x, reference, measure)
    if shown.is_missing:
        gain, lost = np.full(len(x), CONSTANTS["lowest_score"]), np.zeros(len(x))
    return replace(
        shown,
        score=None if gain is None else float(gain.mean()),
        lost=float(lost.mean()),
        why=_why(measure, gain),
    ), (gain, lost, np.zeros(len(x)))


def step(measure: Measure) -> float:
    """By how much a control that scores 0 is worse than CUBIC."""
    if measure.letter == "D" and measure.unit == "%":
        return math.log(CONSTANTS["control_loss_factor"])
    return _STEPS[measure.letter]


def size(one: MeasureScore) -> float:
    """How large a difference is, in steps of a control's card; of goodput, in points."""
    if one.is_missing:
        return math.inf
    if one.measure.letter == "G":
        return abs(math.expm1(one.difference.mean)) / CONSTANTS["goodput_lost_per_point"]
    return abs(one.difference.mean) / step(one.measure)


def points(measure: Measure, mine: float, theirs: float) -> float:
    """By how many steps of a control's card one value is worse than another.

    One step is twice the time, half the rate, five times the loss, an opinion score less by one, or
    Jain's index less by a quarter.

    Args:
        measure: with a letter that has a step.
        mine: the value that is judged.
        theirs: the value that it is compared with.
    """
    one, other = _scaled(np.array([mine, theirs]), measure)
    sign = 1 if measure.letter in "DTH" else -1
    return float(sign * (one - other) / step(measure))


def _averaged(
    values: _Values, measure: Measure, others: Sequence[str], candidate: str
) -> tuple[int, list[Floats]] | None:
    """How many settings a test has, and the mean over them, seed by seed: the candidate's first.

    The candidate's are no numbers if it lacks one that the others have. None: the others have none.
    """
    found: list[list[Floats]] = []
    for cell in values.cells.get(measure.test, []):
        own = [values.of(measure.test, cell, measure.measure, queue) for queue in others]
        present = [one for one in own if one is not None]
        if len(present) < len(others):
            continue
        mine = values.of(measure.test, cell, measure.measure, candidate)
        every = [np.full(len(present[0]), np.nan) if mine is None else mine, *present]
        if measure.letter == "H":
            solo = values.of(measure.test, cell, measure.measure, SOLO)
            if solo is None:
                continue
            every = [_harm(one, solo, measure) for one in every]
        found.append([_scaled(one, measure) for one in every])
    if not found:
        return None
    return len(found), [np.mean([cell[k] for cell in found], axis=0) for k in range(len(found[0]))]


def _harm(beside: Floats, solo: Floats, measure: Measure) -> Floats:
    """What others lose beside a control, as a share: Ware et al., HotNets 2019."""
    with_it, alone = _floored(beside, measure), _floored(solo, measure)
    found: Floats = (with_it - alone) / with_it if measure.less_is_better else 1 - with_it / alone
    return found


def _measured(
    measure: Measure,
    settings: int,
    x: Floats,
    reference: Floats,
    baselines: Sequence[str],
    means: Sequence[float],
) -> MeasureScore:
    """The numbers of a measure, without a score."""
    back = _back(measure)
    good = min if measure.letter in "DTH" else max
    return MeasureScore(
        measure=measure,
        settings=settings,
        candidate=back(float(x.mean())),
        droptail=math.nan,
        reference=back(float(reference.mean())),
        others={name: back(mean) for name, mean in zip(baselines, means, strict=True)},
        best=baselines[means.index(good(means))],
        best_value=back(good(means)),
        difference=_difference(x, reference),
        score=None,
        lost=0.0,
        why="",
    )


def _back(measure: Measure) -> Callable[[float], float]:
    """From a mean to the measure's own unit."""
    return math.exp if measure.letter in LOGS else float


def _lost(x: Floats, reference: Floats, measure: Measure) -> Floats:
    """Points that lost goodput takes off, seed by seed; more earns nothing."""
    if measure.letter != "G" or float((x - reference).mean()) >= 0:
        return np.zeros(len(x))
    lost: Floats = (1 - np.exp(x - reference)) / CONSTANTS["goodput_lost_per_point"]
    return lost


def _why(measure: Measure, gain: Floats | None, step: float = 0.0) -> str:
    """Why a measure has no score.

    Args:
        measure: the measure.
        gain: its scores, if it has some.
        step: by how much the baselines lie above drop-tail.
    """
    if gain is not None:
        return ""
    if measure.letter == UNSCORED:
        return "shown only"
    if measure.letter == "G":
        return "goodput only takes points off"
    who = "the best baseline" if measure.letter == "F" else "the median of the baselines"
    loses = (step > 0) == (measure.letter in "DT") and step != 0
    return f"{who} does {'worse' if loses else 'hardly better'} than drop-tail"


def _difference(mine: Floats, reference: Floats) -> Estimate:
    """By how much the candidate's values lie above the reference's, seed by seed."""
    pairs = mine - reference
    size = np.maximum(np.abs(mine), np.abs(reference))
    pairs[np.abs(pairs) <= 1e-11 * size] = 0.0  # rounding of equal values is no difference
    return estimate(pairs)


def _scaled(values: Floats, measure: Measure) -> Floats:
    """Values as scores take them: their logarithms, or unchanged."""
    if measure.letter not in LOGS:
        return values
    found: Floats = np.log(_floored(values, measure))
    return found


def _floored(values: Floats, measure: Measure) -> Floats:
    """Values, of which none is smaller than the least that counts."""
    found: Floats = np.maximum(values, CONSTANTS.get(_FLOORS.get(measure.unit, ""), 1e-9))
    return found


def _gain(gained: Floats, step: float, measure: Measure, droptail: float) -> Floats | None:
    """Scores on the scale from drop-tail (0) to the median of the baselines (1).

    Args:
        gained: by how much the candidate lies above drop-tail, seed by seed.
        step: by how much the median of the baselines does.
        measure: what is scored; None comes back where the baselines gain too little to matter.
        droptail: what drop-tail has, in the measure's own unit.
    """
    if measure.letter not in _LEAST:
        return None
    sign = -1 if measure.letter in "DT" else 1
    if sign * step < CONSTANTS[_LEAST[measure.letter]] or not matters(measure, step, droptail):
        return None
    return _clipped(gained / step)


def areas(found: Sequence[Test], names: Sequence[str]) -> list[Area]:
    """The areas of a card, in the order of their names."""
    made = []
    for name in names:
        own = [test for test in found if test.area == name and test.by_seed]
        if not own:
            made.append(Area(name, None, 0, "", 0, "?"))
            continue
        bounds = (CONSTANTS["lowest_score"], CONSTANTS["highest_score"])
        score = estimate(np.mean([test.by_seed for test in own], axis=0), bounds=bounds)
        settings = sum(test.settings for test in own)
        lowest = min(own, key=lambda test: test.score or 0.0)
        worst = f"{lowest.id} {lowest.score:.2f}".replace("-0.00", "0.00")
        letter = grade(score) if _can_tell(found, name) else "?"
        made.append(Area(name, score, len(own), worst, settings, letter))
    return made


def _can_tell(found: Sequence[Test], area: str) -> bool:
    """Whether half of an area's numbers can be scored, or several, or one loses something."""
    own = [one for test in found if test.area == area for one in test.measures]
    graded = [one for one in own if one.measure.letter not in (UNSCORED, "G")]
    scored = sum(one.score is not None for one in graded)
    lost = any(one.lost > 0 or one.is_missing for one in own)
    return lost or scored > 1 or 2 * scored >= len(graded)


def grade(score: Estimate) -> str:
    """The grade of an area, by the ends of its interval.

    Two letters where the interval spans both. A question mark with one seed, which has no interval.
    Scores that are equal in every seed stand for themselves.
    """
    if score.method == "equal":
        return _letter(score.mean)
    if math.isnan(score.low):
        return "?"
    high, low = _letter(score.high), _letter(score.low)
    return high if high == low else f"{high}-{low}"


def _letter(value: float) -> str:
    """The grade of a number."""
    for letter in "abc":
        if value >= CONSTANTS[f"grade_{letter}"]:
            return letter.upper()
    return "D"


def overall(found: Sequence[Test], weights: Mapping[str, float]) -> Area:
    """One score of some areas together, each with its weight.

    Args:
        found: the tests.
        weights: by area. An area without a test that can tell is left out.
    """
    by_seed = {
        name: np.mean(own, axis=0)
        for name in weights
        if (own := [test.by_seed for test in found if test.area == name and test.by_seed])
    }
    if not by_seed:
        return Area("overall", None, 0, "", 0, "?")
    counted = [test for test in found if test.area in by_seed and test.by_seed]
    bounds = (CONSTANTS["lowest_score"], CONSTANTS["highest_score"])
    shares = [weights[name] for name in by_seed]
    score = estimate(np.average([*by_seed.values()], axis=0, weights=shares), bounds=bounds)
    settings = sum(test.settings for test in counted)
    return Area("overall", score, len(counted), "", settings, grade(score))
