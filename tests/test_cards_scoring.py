"""Scores of report cards, on made frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pytest
from aqmlab.cards.gates import CONTROL_GATES, GATES, gates
from aqmlab.cards.numbers import CardNumber, Numbers
from aqmlab.cards.scoring import SOLO, Test, areas, grade, overall, scored_controls, scored_tests
from aqmlab.cards.suites import Measure
from aqmlab.results.statistics import estimate

BASELINES = ("one", "two", "three")
Values = Mapping[str, Sequence[float]]


def made(measure: Measure, numbers: Values, cell: str = "t") -> Numbers:
    """The numbers of a measure: values by queue, one for each seed."""
    found = [
        CardNumber(measure.test, cell, queue, seed, measure.measure, float(value))
        for queue, values in numbers.items()
        for seed, value in enumerate(values, 1)
    ]
    return dict(zip(CardNumber._fields, zip(*found, strict=True), strict=True))


def together(parts: Iterable[Numbers]) -> Numbers:
    """All rows of some tables."""
    tables = [*parts]
    return {name: [one for part in tables for one in part[name]] for name in CardNumber._fields}


def of(letter: str, unit: str = "ms", name: str = "wait") -> Measure:
    return Measure("t", name, letter, unit, "")


def scored(numbers: Values, letter: str = "D", candidate: str = "x", unit: str = "ms") -> Test:
    measure = of(letter, unit)
    frame = made(measure, numbers)
    [test] = scored_tests(
        frame, [measure], {"t": "delay"}, candidate=candidate, droptail="dt", baselines=BASELINES
    )
    return test


WAITS: Numbers = {
    "x": [0.010, 0.012, 0.011],
    "dt": [0.100, 0.110, 0.105],
    "one": [0.005, 0.006, 0.005],
    "two": [0.020, 0.022, 0.021],
    "three": [0.050, 0.055, 0.052],
}


def test_droptail_scores_zero() -> None:
    assert scored({**WAITS, "x": WAITS["dt"]}).by_seed == [0.0, 0.0, 0.0]


def test_the_median_baseline_scores_one() -> None:
    assert scored(WAITS, candidate="two").score == pytest.approx(1.0)


def test_less_delay_scores_more() -> None:
    half = {**WAITS, "x": [value / 2 for value in WAITS["x"]]}
    quick = scored(WAITS, candidate="one").score
    assert (scored(half).score or 0) >= (scored(WAITS).score or 9) > 1
    assert quick == 1.25  # no test counts for more
    worse = scored({**WAITS, "x": [0.2, 0.2, 0.2]}).score
    assert worse is not None
    assert -1 <= worse < 0


def test_the_unit_does_not_matter() -> None:
    scaled = {queue: [3 * value for value in values] for queue, values in WAITS.items()}
    assert scored(scaled).score == pytest.approx(scored(WAITS).score)


def test_swapping_candidate_and_baseline_changes_signs() -> None:
    measure = of("D")
    frame = made(measure, {queue: WAITS[queue] for queue in ("x", "dt", "two")})

    def difference(candidate: str, baseline: str) -> float:
        [test] = scored_tests(
            frame,
            [measure],
            {"t": "delay"},
            candidate=candidate,
            droptail="dt",
            baselines=[baseline],
        )
        return test.measures[0].difference.mean

    assert difference("x", "two") == pytest.approx(-difference("two", "x"))
    assert difference("x", "two") < 0


def test_a_test_without_difference_is_a_dash() -> None:
    test = scored(dict.fromkeys(WAITS, WAITS["dt"]))
    assert test.score is None
    assert test.measures[0].why


def test_baselines_worse_than_droptail_are_no_yardstick() -> None:
    turned = {**WAITS, "dt": [0.001, 0.001, 0.001]}
    assert scored(turned).score is None


def test_the_order_of_baselines_does_not_matter() -> None:
    measure = of("D")
    frame = made(measure, WAITS)

    def found(order: Sequence[str]) -> list[Test]:
        return scored_tests(
            frame, [measure], {"t": "delay"}, candidate="x", droptail="dt", baselines=order
        )

    assert repr(found(BASELINES)) == repr(found(BASELINES[::-1]))


def test_lost_goodput_takes_points_off_and_more_earns_none() -> None:
    waits = of("D")
    rates = of("G", "Mbit/s", "goodput")

    def score(factor: float) -> float | None:
        good = {queue: [9e6] * 3 for queue in WAITS}
        frame = together(
            [
                made(waits, {**WAITS, "x": WAITS["two"]}),
                made(rates, {**good, "x": [9e6 * factor] * 3}),
            ]
        )
        [test] = scored_tests(
            frame,
            [waits, rates],
            {"t": "delay"},
            candidate="x",
            droptail="dt",
            baselines=BASELINES,
        )
        return test.score

    assert score(1.0) == pytest.approx(1.0)
    assert score(1.1) == pytest.approx(1.0)
    assert score(0.9) == pytest.approx(0.0)
    assert score(0.95) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("candidate", "mbps", "lost"),
    [("dt", 8.0, 0.0), ("x", 8.0, 0.0), ("x", 8.4, 0.0), ("x", 7.2, 1.0), ("two", 9.0, 0.0)],
)
def test_no_queue_loses_points_for_the_goodput_of_droptail(
    candidate: str, mbps: float, lost: float
) -> None:
    waits, rates = of("D"), of("G", "Mbit/s", "goodput")
    good = {**{queue: [9e6] * 3 for queue in WAITS}, "dt": [8e6] * 3, candidate: [mbps * 1e6] * 3}
    [test] = scored_tests(
        together([made(waits, WAITS), made(rates, good)]),
        [waits, rates],
        {"t": "delay"},
        candidate=candidate,
        droptail="dt",
        baselines=BASELINES,
    )
    assert test.measures[1].reference == pytest.approx(9e6)
    assert test.measures[1].lost == pytest.approx(lost)
    if candidate == "dt":
        assert test.by_seed == [0.0] * 3


@pytest.mark.parametrize(("kept", "scores"), [(0.49, False), (0.51, True)])
def test_baselines_that_give_up_the_link_are_no_yardstick(kept: float, scores: bool) -> None:
    waits, rates = of("D"), of("G", "Mbit/s", "goodput")
    good = {queue: [9e6] * 3 for queue in WAITS}
    for queue in ("one", "two"):  # the median of three keeps this share
        good[queue] = [9e6 * kept] * 3
    frame = together([made(waits, WAITS), made(rates, good)])
    [test] = scored_tests(
        frame,
        [waits, rates],
        {"t": "delay"},
        candidate="x",
        droptail="dt",
        baselines=BASELINES,
    )
    assert (test.score is not None) is scores
    assert test.measures[1].lost == 0
    if not scores:
        assert "keeps 49 % of drop-tail's goodput" in test.why
        assert test.measures[0].score is None
        assert {one.why for one in test.measures} == {test.why}
        assert test.measures[0].difference.mean < 0, "the numbers are shown"


def test_the_reason_says_whether_the_baselines_lose() -> None:
    turned = {**WAITS, "dt": [0.001, 0.001, 0.001]}
    assert scored(turned).measures[0].why == "the median of the baselines does worse than drop-tail"
    same = scored(dict.fromkeys(WAITS, WAITS["dt"])).measures[0]
    assert same.why == "the median of the baselines does hardly better than drop-tail"


def test_fairness_is_measured_against_the_fairest_baseline() -> None:
    shares = {
        "x": [0.9] * 3,
        "dt": [0.7] * 3,
        "one": [0.9] * 3,
        "two": [0.6] * 3,
        "three": [0.5] * 3,
    }
    assert scored(shares, "F", unit="").score == pytest.approx(1.0)
    assert scored(shares, "F", "three", unit="").score == pytest.approx(-1.0)


def test_opinions_and_rpm() -> None:
    opinions: Numbers = {
        "x": [4, 4],
        "dt": [3, 3],
        "one": [4, 4],
        "two": [4, 4],
        "three": [4.2, 4.2],
    }
    assert scored(opinions, "U", unit="").score == pytest.approx(1.0)
    near: Numbers = {**opinions, "one": [3.05, 3.05], "two": [3.05, 3.05]}
    assert scored(near, "U", unit="").score is None
    rpm = {"x": [400, 400], "dt": [100, 100], "one": [200, 200], "two": [400, 400]}
    rpm["three"] = [800, 800]
    assert scored(rpm, "R", unit="/min").score == pytest.approx(1.0)


def test_a_number_that_is_shown_only_has_no_score() -> None:
    test = scored(WAITS, "-")
    assert test.score is None
    assert test.measures[0].better is None


def test_one_seed_has_no_interval_and_no_grade() -> None:
    test = scored({queue: values[:1] for queue, values in WAITS.items()})
    [area] = areas([test], ["delay"])
    assert area.score is not None
    assert math.isnan(area.score.low)
    assert area.grade == "?"
    assert test.measures[0].better is None


def test_a_missing_run_is_the_worst_of_a_candidate() -> None:
    measure = of("D")
    frame = made(measure, {**WAITS, "x": WAITS["x"][:2]})
    [found] = scored_tests(
        frame, [measure], {"t": "delay"}, candidate="x", droptail="dt", baselines=BASELINES
    )
    assert found.measures[0].is_missing
    assert found.score == -1


def test_a_missing_run_of_a_baseline_leaves_the_measure_out() -> None:
    measure = of("D")
    frame = made(measure, {**WAITS, "dt": WAITS["dt"][:2]})
    found = scored_tests(
        frame, [measure], {"t": "delay"}, candidate="x", droptail="dt", baselines=BASELINES
    )
    assert found == []


def test_small_differences_do_not_matter() -> None:
    near = {**WAITS, "x": [1.01 * value for value in WAITS["two"]]}
    noisy = {**near, "x": [near["x"][0] * 1.0001, *near["x"][1:]]}
    one = scored(noisy).measures[0]
    assert one.difference.clear
    assert one.better is None
    assert scored(WAITS).measures[0].better is True


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.95, 0.96, 0.97], "A"),
        ([0.6, 0.61, 0.62], "B"),
        ([0.2, 0.21, 0.22], "C"),
        ([-0.3, -0.31, -0.32], "D"),
        ([0.3, 0.5, 0.7], "A-C"),
        ([0.45, 0.5, 0.55], "B-C"),
        ([0.0, 0.0, 0.0], "C"),
        ([0.7], "?"),
    ],
)
def test_grades_follow_the_interval(values: list[float], expected: str) -> None:
    assert grade(estimate(values)) == expected


LIMITS = {
    "repeats": (0.0, 1.0),
    "age": (59.0, 61.0),
    "memory": (1.0, 1.01),
    "marks": (0.0, 1.0),
    "overload": (0.004, 0.05),
    "starvation": (0.6, 0.05),
    "outage": (0.9, 0.1),
}


@pytest.mark.parametrize("broken", [None, "runs", *LIMITS])
def test_each_gate_fails_alone(broken: str | None) -> None:
    frame = together(
        [
            made(of("-", name=f"gate:{name}"), {"x": [good, bad if name == broken else good]})
            for name, (good, bad) in LIMITS.items()
        ]
    )
    failures = [("t", 2, "the queue raised an error")] if broken == "runs" else []
    found = gates(frame, "x", failures)
    assert [gate.rule.name for gate in found] == [rule.name for rule in GATES]
    assert [gate.rule.name for gate in found if not gate.passed] == ([broken] if broken else [])
    for gate in found:
        if gate.rule.name == broken:
            assert gate.seed == 2


def test_a_gate_without_its_test_is_not_passed() -> None:
    frame = made(of("-", name="gate:age"), {"x": [1.0]})
    [outage] = [gate for gate in gates(frame, "x", []) if gate.rule.name == "outage"]
    assert outage.passed is None


CONTROL_LIMITS = {
    "repeats": (0.0, 1.0),
    "backoff": (0.1, 5.0),
    "collapse": (0.9, 0.3),
    "loss": (0.01, 0.08),
    "starvation": (0.6, 0.05),
    "harm": (0.7, 0.02),
    "calls": (3.8, 1.2),
    "ecn": (0.01, 0.95),
    "return": (0.9, 0.1),
}
BESIDE = {"harm": 0.8, "calls": 4.0}
"""What CUBIC leaves in the same place; of other gates the good value."""


@pytest.mark.parametrize("broken", [None, *CONTROL_LIMITS])
def test_each_gate_of_controls_fails_alone(broken: str | None) -> None:
    frame = together(
        [
            made(
                of("-", name=f"gate:{name}"),
                {
                    "x": [good, bad if name == broken else good],
                    "cubic": [BESIDE.get(name, good)] * 2,
                },
            )
            for name, (good, bad) in CONTROL_LIMITS.items()
        ]
    )
    found = gates(frame, "x", [], CONTROL_GATES)
    assert [gate.rule.name for gate in found] == [rule.name for rule in CONTROL_GATES]
    assert [gate.rule.name for gate in found if not gate.passed] == ([broken] if broken else [])


@pytest.mark.parametrize(
    ("name", "value", "cubic"),
    [("loss", 0.09, 0.02), ("harm", 0.05, 0.2), ("calls", 1.2, 2.5)],
)
def test_gates_excuse_what_cubic_does_too(name: str, value: float, cubic: float) -> None:
    frame = made(of("-", name=f"gate:{name}"), {"x": [value], "cubic": [cubic]})
    [gate] = [gate for gate in gates(frame, "x", [], CONTROL_GATES) if gate.rule.name == name]
    assert gate.passed


def control(numbers: Values, letter: str = "D", unit: str = "ms") -> Test:
    measure = of(letter, unit)
    [test] = scored_controls(
        made(measure, numbers),
        [measure],
        {"t": "delay"},
        candidate="x",
        cubic="cubic",
        baselines=["cubic", "bbr3"],
    )
    return test


@pytest.mark.parametrize(
    ("letter", "unit", "cubic", "candidate"),
    [
        ("D", "ms", 0.02, 0.04),  # twice the delay
        ("D", "%", 0.01, 0.05),  # five times the loss
        ("T", "s", 3.0, 6.0),
        ("R", "Mbit/s", 8e6, 4e6),
        ("F", "", 0.9, 0.65),
        ("U", "", 4.0, 3.0),
    ],
)
def test_cubic_scores_one_and_the_bound_scores_zero(
    letter: str, unit: str, cubic: float, candidate: float
) -> None:
    beside = {"cubic": [cubic] * 3, "bbr3": [cubic] * 3}
    assert control({"x": [cubic] * 3, **beside}, letter, unit).score == pytest.approx(1.0)
    assert control({"x": [candidate] * 3, **beside}, letter, unit).score == pytest.approx(0.0)


def test_harm_is_what_others_lose() -> None:
    """Ware et al.: 10 Mbit/s alone, 5 beside CUBIC, 3 beside the candidate: 0.5 and 0.7."""
    rates: Numbers = {"x": [3e6] * 3, "cubic": [5e6] * 3, "bbr3": [4e6] * 3, SOLO: [10e6] * 3}
    [rate] = control(rates, "H", "Mbit/s").measures
    assert rate.candidate == pytest.approx(0.7)
    assert rate.reference == pytest.approx(0.5)
    assert rate.score == pytest.approx(1 - 0.2 / 0.25)
    assert rate.others["bbr3"] == pytest.approx(0.6)
    waits: Numbers = {"x": [0.1] * 3, "cubic": [0.05] * 3, "bbr3": [0.05] * 3, SOLO: [0.02] * 3}
    [wait] = control(waits, "H").measures
    assert wait.candidate == pytest.approx(0.8)
    assert wait.reference == pytest.approx(0.6)
    without = {name: values for name, values in rates.items() if name != SOLO}
    with pytest.raises(ValueError, match="not enough values"):
        control(without, "H", "Mbit/s")


def test_weights_make_one_grade() -> None:
    tests = [scored(WAITS), scored({**WAITS, "x": WAITS["dt"]})]
    tests[1] = Test("u", "users", tests[1].measures, tests[1].by_seed)
    first, second = (test.score or 0.0 for test in tests)
    area = overall(tests, {"users": 3, "delay": 1, "ecn": 5})
    assert area.score is not None
    assert area.score.mean == pytest.approx((first + 3 * second) / 4)
    assert overall(tests, {"ecn": 1}).score is None
