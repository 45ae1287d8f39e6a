"""The answer: which queue to take, by a rule that looks at what people need."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aqmlab as library
import pytest
from aqmlab.reports.brief import Bars, Brief, BriefBar, BriefColumn, runs_of_bold
from aqmlab.reports.brief_html import write_html
from aqmlab.results import order
from aqmlab.results.answer import Choice, Number, Outcome, choose, mean
from aqmlab.results.answer_words import Answer, _said, named
from aqmlab.results.groups import Group
from aqmlab.results.needs import FAIR, GOOD, NEEDS, POOR, of_class
from aqmlab.results.run import Run
from aqmlab.results.settings import answers
from aqmlab.results.spoken import spoken_names
from conftest import Cli

QUEUES = {
    "droptail": {"kind": "droptail", "limit": "1000 packets"},
    "fq-codel": {"kind": "fq-codel", "limit": "10240 packets"},
    "cake": {"kind": "cake"},
    "pie": {"kind": "pie", "target": "15 ms"},
}
SPREAD = (0.99, 1.0, 1.01)
"""What seeds make of a value."""


def group(
    queue: str,
    *,
    pages: float | Sequence[float] | None = None,
    mos: float | None = None,
    mos_up: float | None = None,
    upload: float | None = None,
    download: float | None = None,
    wait: float = 0.02,
    limit: str | None = None,
    seeds: int = 3,
    busy: float = 0.99,
    rate: str = "10 Mbit/s",
    classes: Mapping[str, float] | None = None,
) -> Group:
    """Made runs of a queue: load time of pages, opinion score of calls, rate of an upload."""
    runs = []
    for seed in range(1, seeds + 1):
        factor = SPREAD[(seed - 1) % 3]
        quality: dict[str, Any] = {}
        flows: dict[str, Any] = {}
        if pages is not None:
            of_seed = pages if isinstance(pages, float | int) else pages[seed - 1]
            quality["pages"] = {
                "page_load_p75_s": of_seed * (factor if isinstance(pages, float) else 1.0)
            }
        if mos is not None:
            quality["calls"] = {"mos_mean": mos}
        if mos_up is not None:
            quality["calls-up"] = {"mos_mean": mos_up}
        if upload is not None:
            flows["upload"] = {"goodput_bps": 1e6 * upload * factor}
        if download is not None:
            flows["download"] = {"goodput_bps": 1e6 * download * factor}
        link = {
            "utilization": busy,
            "loss_rate": 0.0,
            "mark_rate": 0.0,
            "sojourn_mean_s": 0.01,
            "sojourn_p95_s": wait * factor,
            "classes": {
                name: {"throughput_bps": 1e6 * value} for name, value in (classes or {}).items()
            },
        }
        discipline = QUEUES[queue] if limit is None else {**QUEUES[queue], "limit": limit}
        ends = {"rate": rate, "discipline": discipline}
        scenario = {
            "seed": seed,
            "title": "A made office",
            "topology": {"kind": "dumbbell", "bottleneck": {"forward": ends, "reverse": ends}},
            "traffic": [
                {"name": "pages", "kind": "http2-web", "users": 12},
                {"name": "calls", "kind": "voip", "calls": 1},
                {"name": "calls-up", "kind": "voip", "calls": 1, "direction": "reverse"},
                {"name": "upload", "kind": "bulk", "flows": 1, "direction": "reverse"},
            ],
            "measure": {"warm_up": "10 s", "duration": "60 s"},
        }
        summary = {
            "measured_s": 60.0,
            "quality": quality,
            "responses": {},
            "flows": flows,
            "links": {"bottleneck": {"reverse": link}},
        }
        runs.append(Run.in_memory(scenario, summary, label=f"{queue}, rate {rate}"))
    return Group(f"{queue}, rate {rate}", tuple(runs))


def answered(*groups: Group) -> Answer:
    """The answer; the first of them is what is used today."""
    choice = choose(groups, groups[0])
    assert choice is not None
    return Answer(choice)


def taken(*groups: Group) -> set[str]:
    """Queues of the answer."""
    return {label.split(",")[0] for label in answered(*groups).take}


@pytest.mark.parametrize(
    ("need", "value", "level"),
    [
        ("page_load_p75_s", 2.5, GOOD),
        ("page_load_p75_s", 2.51, FAIR),
        ("page_load_p75_s", 4.0, POOR),
        ("mos_mean", 4.03, GOOD),
        ("mos_mean", 3.6, FAIR),
        ("mos_mean", 3.59, POOR),
        ("late_frame_share", 0.05, POOR),
        ("late_frame_share", 0.049, FAIR),
        ("page_load_p75_s", float("nan"), POOR),
    ],
)
def test_levels_end_where_their_sources_say(need: str, value: float, level: int) -> None:
    """What was not measured is poor."""
    [found] = [one for one in NEEDS if one.key == need]
    assert found.level(value) == level


def test_classes_are_known_by_what_their_users_get() -> None:
    """A class without such figures has no needs of its own."""
    both = {"late_frame_share": 0.1, "bitrate_mean_bps": 1e6}
    assert [one.key for one in of_class(both)] == ["bitrate_mean_bps", "late_frame_share"]
    assert of_class({"bitrate_mean_bps": 1e6}) == of_class({}) == []


def test_the_queue_that_leaves_nobody_poor_is_taken_and_the_payer_is_named() -> None:
    """Whatever the upload loses: it is a price. The classes that gain it are the reason."""
    first = group("droptail", pages=6.0, mos=3.0, upload=8.0, classes={"upload": 8.0, "calls": 0.1})
    second = group(
        "fq-codel", pages=1.2, mos=4.41, upload=6.0, classes={"upload": 6.0, "calls": 1.6}
    )
    found = answered(first, second)
    assert found.headline == "Take FQ-CoDel."
    assert [part for part, bold in runs_of_bold(found.lead[0]) if bold]
    assert found.lines() == [
        "Take FQ-CoDel. Everybody is served well. Pages open in 1.2 s instead of 6.0 s",
        "and calls are perfect (MOS 4.4 instead of 3.0). The upload pays: it runs 25 %",
        "slower (6.0 instead of 8.0 Mbit/s), because calls take 1.5 Mbit/s more and 0.5",
        "Mbit/s more of the line stay idle. If you do nothing (drop-tail): pages and",
        "calls stay poor.",
    ]
    data = found.to_json()
    assert data["take"] == ["fq-codel, rate 10 Mbit/s"]
    assert [one["class"] for one in data["prices"]] == ["upload"]


def test_a_number_of_calls_says_its_direction_if_there_are_calls_in_both() -> None:
    """The two directions of a call have numbers of their own, and one name."""
    droptail, codel = "droptail", "fq-codel"
    one_way = answered(group(droptail, mos=3.6), group(codel, mos=4.41))
    assert "Calls are perfect (MOS 4.4 instead of 3.6)." in one_way.lead
    down = answered(group(droptail, mos=3.2, mos_up=4.4), group(codel, mos=4.41, mos_up=4.4))
    assert "Calls are perfect in the download (MOS 4.4 instead of 3.2)." in down.lead
    up = answered(group(droptail, mos=4.4, mos_up=3.2), group(codel, mos=4.4, mos_up=4.41))
    assert "Calls are perfect in the upload (MOS 4.4 instead of 3.2)." in up.lead


def test_a_swap_of_two_queues_swaps_the_answer() -> None:
    """Names decide nothing."""
    base = group("droptail", pages=9.0, mos=2.0)

    def good(queue: str) -> Group:
        return group(queue, pages=1.0, mos=4.4)

    def bad(queue: str) -> Group:
        return group(queue, pages=5.0, mos=3.0)

    assert taken(base, good("pie"), bad("cake")) == {"pie"}
    assert taken(base, bad("pie"), good("cake")) == {"cake"}


def test_order_of_queues_and_of_runs_does_not_matter() -> None:
    """Every order gives the same words."""
    groups = [
        group("droptail", pages=5.0, upload=8.0),
        group("cake", pages=1.4, upload=5.0),
        group("fq-codel", pages=1.4, upload=6.5),
        group("pie", pages=2.0, upload=7.5),
    ]
    base = groups[0]
    found = set()
    for some in itertools.permutations(groups):
        turned = [Group(one.label, tuple(reversed(one.runs))) for one in some]
        choice = choose(turned, next(one for one in turned if one.label == base.label))
        assert choice is not None
        found.add((tuple(Answer(choice).lines()), tuple(map(str, Answer(choice).boxes))))
    assert len(found) == 1


@pytest.mark.long
def test_a_dominated_queue_never_changes_the_answer() -> None:
    """Made queues at random; one that is worse in everything is added."""
    draw = random.Random(7)
    for _ in range(200):
        some = [
            group(
                name,
                pages=draw.uniform(0.5, 6),
                mos=draw.uniform(2.5, 4.4),
                upload=draw.uniform(2, 9),
            )
            for name in ("droptail", "cake", "fq-codel")
        ]
        choice = Choice(some, some[0])
        worst = group("pie", pages=9.0, mos=2.0, upload=1.5)
        more = Choice([*some, worst], some[0])
        assert [one.label for one in choice.taken] == [one.label for one in more.taken]


def test_more_seeds_of_the_same_values_never_turn_better_into_worse() -> None:
    """The outcome of a number, with three seeds and with nine."""
    draw = random.Random(3)
    for _ in range(100):
        values = [draw.uniform(1, 4), draw.uniform(1, 4)]
        outcomes = []
        for seeds in (3, 9):
            first = group("droptail", pages=values[0], seeds=seeds)
            second = group("pie", pages=values[1], seeds=seeds)
            choice = Choice([first, second], first)
            outcomes.append(choice.outcome(choice.needs[0], first, second))
        assert {*outcomes} != {Outcome.BETTER, Outcome.WORSE}


def test_what_misses_a_level_by_chance_stays_in_the_answer() -> None:
    """A mean just above the limit is no reason to leave a queue out."""
    near = group("cake", pages=[2.3, 2.6, 2.65])
    assert taken(group("droptail", pages=9.0), group("fq-codel", pages=[2.2, 2.5, 2.6]), near) == {
        "fq-codel",
        "cake",
    }
    far = group("cake", pages=[3.0, 3.1, 3.2])
    assert taken(group("droptail", pages=9.0), group("fq-codel", pages=[2.2, 2.4, 2.5]), far) == {
        "fq-codel"
    }


def test_among_equals_the_price_decides() -> None:
    """The queue whose upload keeps more; within ten percent both are named."""
    base = group("droptail", pages=9.0, upload=9.0)
    cheap = group("fq-codel", pages=1.0, upload=6.5)
    assert taken(base, cheap, group("cake", pages=1.0, upload=5.0)) == {"fq-codel"}
    assert taken(base, cheap, group("cake", pages=1.0, upload=6.4)) == {"fq-codel", "cake"}


def test_a_starved_transfer_counts_as_poor() -> None:
    """A queue may not serve the others by giving one nothing."""
    base = group("droptail", pages=3.0, upload=8.0)
    assert taken(base, group("pie", pages=2.0, upload=0.3)) == {"droptail"}


@pytest.mark.parametrize(
    ("groups", "headline"),
    [
        (
            [group("droptail", pages=1.0, busy=0.3), group("pie", pages=1.0, busy=0.3)],
            "It makes no difference that anyone would notice.",
        ),
        (
            [group("droptail", pages=1.0), group("pie", pages=3.0)],
            "Nothing to gain: drop-tail does as well as any.",
        ),
        (
            [group("droptail", pages=2.0), group("pie", pages=1.0)],
            "Could be better: PIE.",
        ),
        (
            [group("droptail", pages=9.0), group("pie", pages=6.0)],
            "No queue is enough. Best: PIE.",
        ),
        (
            [group("droptail", pages=[1.0, 2.0, 3.0]), group("pie", pages=[2.0, 1.0, 2.4])],
            "Not told apart after 3 seeds.",
        ),
        (
            [group("droptail", pages=9.0, seeds=1), group("pie", pages=1.0, seeds=1)],
            "It looks like PIE.",
        ),
        (
            [
                group("droptail", pages=9.0, mos=2.0),
                group("pie", pages=1.0, mos=4.1),
                group("cake", pages=2.0, mos=4.4),
            ],
            "CAKE for calls, PIE for pages.",
        ),
        (
            [group("droptail", pages=9.0), group("pie", pages=1.0), group("cake", pages=1.0),
             group("fq-codel", pages=1.0)],
            "Take CAKE, FQ-CoDel or PIE.",
        ),
    ],
)  # fmt: skip
def test_each_case_has_its_words(groups: list[Group], headline: str) -> None:
    """Nothing is recommended that the runs do not show."""
    assert answered(*groups).headline == headline


def words(*groups: Group) -> str:
    """Everything that the page says in sentences."""
    found = answered(*groups)
    boxes = [f"{title}: {text}" for title, text, _ in found.boxes]
    return " ".join([found.headline, *found.lead, *boxes]).replace("**", "")


def test_a_queue_that_gives_up_the_rate_is_left_out_where_another_gains_nearly_as_much() -> None:
    """Transfers alone: levels would take the one with the shorter wait."""
    base = group("droptail", upload=9.7, wait=0.3)
    dear = group("cake", upload=2.4, wait=0.004)
    near = group("pie", upload=9.4, wait=0.035)
    assert words(base, dear, near).startswith("Take PIE. A newcomer waits 35 ms instead of 300 ms.")
    # Nobody else gains as much: it is taken, and the sentence has the price.
    far = group("pie", upload=9.4, wait=0.2)
    for others in ([], [far]):
        assert answered(base, dear, *others).headline == (
            "Take CAKE, but all transfers together get 2.4 instead of 9.7 Mbit/s."
        )
    assert [one["number"] for one in answered(base, dear).to_json()["dear"]] == ["goodput_bps"]
    # Today's queue is good, too, and nobody notices the gain.
    assert taken(group("droptail", upload=9.7, wait=0.025), dear) == {"droptail"}


def test_a_queue_that_gives_up_the_rate_beside_calls_is_left_out_for_a_near_one() -> None:
    """The calls are a little worse with the other, and its upload has three times the rate."""
    base = group("droptail", mos=3.0, upload=8.0)
    dear, near = group("cake", mos=4.05, upload=2.0), group("pie", mos=3.95, upload=7.0)
    assert taken(base, dear, near) == {"pie"}
    assert answered(base, dear).headline == (
        "Take CAKE, but the upload gets 2.0 instead of 8.0 Mbit/s."
    )
    assert "Everybody" not in words(base, dear)
    # What today's queue does not give counts as well: the upload could get five times as much.
    today = group("droptail", pages=1.5, upload=0.8)
    assert taken(today, group("fq-codel", pages=2.3, upload=4.0)) == {"fq-codel"}


def test_a_price_in_some_settings_is_said_in_the_sentence_about_all() -> None:
    """The upload loses three quarters where the line is slow."""
    groups = []
    for rate, upload in (("5 Mbit/s", 2.0), ("20 Mbit/s", 7.5)):
        groups.append(group("droptail", mos=3.0, upload=8.0, rate=rate))
        groups.append(group("pie", mos=4.2, upload=upload, rate=rate))
    found = answers(groups)
    assert found is not None
    assert found.headline == (
        "Take PIE: it is in the answer in 2 of 2 settings, but the upload loses much in 1 of them."
    )


def made_table(draw: random.Random) -> list[Group]:
    """Two to four queues with made numbers; who is there is drawn, too."""
    ranges = {
        "pages": (0.4, 9.0),
        "upload": (0.5, 9.7),
        "download": (1.0, 20.0),
        "wait": (3e-3, 0.4),
    }
    kinds = (("upload",), ("upload", "download"), ("mos", "upload"), ("pages", "mos", "upload"))
    kind, seeds = draw.choice(kinds), draw.choice([1, 3])

    def value(name: str) -> float:
        if name == "mos":
            return draw.uniform(2.5, 4.41)
        low, high = map(math.log, ranges[name])
        return math.exp(draw.uniform(low, high))

    names = draw.sample(list(QUEUES), draw.choice([2, 3, 4]))
    made = []
    for name in names:
        own: dict[str, Any] = {key: value(key) for key in (*kind, "wait")}
        made.append(group(name, seeds=seeds, **own))
    return made


@pytest.mark.long_cases("True")
@pytest.mark.parametrize("with_baseline", [True, False])
def test_no_answer_is_dominated_and_none_hides_what_it_costs(*, with_baseline: bool) -> None:
    """Made tables at random: half a rate, twice a time that is not good then, or poor."""
    draw = random.Random(57)
    costly = 0
    for _ in range(600):
        some = made_table(draw)
        choice = Choice(some, some[0] if with_baseline else None)
        if not choice.is_told:
            continue
        answer, base = Answer(choice), choice.reference
        fit = [one for one in some if is_dearer(choice, one, base) == []]
        for top in choice.taken:
            for other in some:
                assert not choice.beats(other, top, choice.numbers)
            if answer.keeps:
                continue
            for number in is_dearer(choice, top, base):
                costly += 1
                assert said_before(number, base) in answer.headline
            for other in fit:
                if is_dearer(choice, top, other) and is_nearly_as_good(choice, other, top):
                    assert is_nearly_as_good(choice, top, other)
    assert costly > 50


def is_dearer(choice: Choice, group: Group, base: Group) -> list[Number]:
    """The same by the raw means alone."""
    found = []
    for number in choice.numbers:
        before, after = mean(number, base), mean(number, group)
        levels = number.need.level(before), number.need.level(after)
        less = number.need.less_is_better
        much = after > 2 * before if less else after < before / 2
        falls = levels[1] == POOR != levels[0]
        is_good = number.need.good is not None and levels[1] == GOOD
        worse = choice.outcome(number, base, group) is Outcome.WORSE
        if worse and (falls or (much and not is_good)):
            found.append(number)
    return found


def is_nearly_as_good(choice: Choice, one: Group, other: Group) -> bool:
    """Every number is at least as high, good, or has nine tenths of a gain."""
    for number in choice.numbers:
        sign = -1 if number.need.less_is_better else 1
        mine, best, base = (sign * mean(number, some) for some in (one, other, choice.reference))
        is_good = number.need.good is not None and number.need.level(abs(mine)) == GOOD
        if mine >= best or is_good:
            continue
        falls = number.need.level(abs(mine)) == POOR != number.need.level(abs(best))
        if falls or best <= base or mine - base < 0.9 * (best - base):
            return False
    return True


def said_before(number: Number, base: Group) -> str:
    """What a sentence says that the number is today, without its unit."""
    return f"instead of {_said('', number.need.scale, [0.0], mean(number, base))[1]}"


def test_a_trade_between_transfers_names_two_things() -> None:
    """Both sides of it are transfers: what differs is the wait, and the rate."""
    said = words(
        group("droptail", upload=9.7, wait=0.3),
        group("cake", upload=7.6, wait=0.004),
        group("pie", upload=8.5, wait=0.022),
    )
    assert said.startswith("CAKE for waits of newcomers, PIE for rates of transfers.")
    assert "CAKE against PIE: a newcomer waits 4.0 ms instead of 22 ms." in said
    assert "If you do nothing (drop-tail): Waits of newcomers stay poor." in said


def test_what_is_kept_is_held_against_what_another_queue_would_give() -> None:
    """It does not do as well as any: the upload could get five times as much."""
    first = group("droptail", pages=1.5, upload=0.8)
    second = group("fq-codel", pages=3.0, upload=4.0)
    assert words(first, second) == (
        "Keep drop-tail. FQ-CoDel would help some: the upload gets 4.0 instead of 0.80 Mbit/s, "
        "but pages open in 3.0 s instead of 1.5 s."
    )
    assert answered(first, second).marked == [first]


def test_a_gain_that_is_not_sure_is_not_denied() -> None:
    """The runs do not tell it from chance; "nothing to gain" would be more than they say."""
    said = words(
        group("droptail", pages=[2.0, 2.9, 4.0]),
        group("fq-codel", pages=[1.9, 2.0, 1.6]),
        group("pie", pages=[8.0, 9.0, 9.5]),
    )
    assert said.startswith("Keep drop-tail, or run more seeds. FQ-CoDel looks better, but not sure")
    assert "--seeds 1..12" in said
    # Levels that differ by chance alone decide nothing.
    pair = group("droptail", pages=[2.0, 2.9, 4.0]), group("pie", pages=[1.9, 2.0, 1.6])
    assert words(*pair).startswith("Not told apart after 3 seeds.")


def test_everybody_is_served_well_only_where_every_seed_says_so() -> None:
    """An interval that spans a limit is said; so is a queue of the answer that is only fair."""
    base = group("droptail", pages=9.0)
    assert "Everybody is served well on average. The seeds differ: pages may turn out poor." in (
        words(base, group("pie", pages=[0.5, 3.2, 1.0]))
    )
    said = words(base, group("pie", pages=[2.2, 2.5, 2.3]), group("cake", pages=[2.6, 2.4, 2.7]))
    assert "Everybody" not in said
    assert "Pages are only fair (with CAKE)." in said


def test_a_gain_is_said_of_the_queues_that_have_it() -> None:
    """A queue of the answer that is not told apart from today's is no part of the gain."""
    said = words(
        group("droptail", pages=2.0),
        group("fq-codel", pages=1.0),
        group("pie", pages=[0.5, 2.4, 2.2]),
    )
    assert "FQ-CoDel or PIE" in said
    assert "Pages open in 1.0 s instead of 2.0 s (with FQ-CoDel)." in said
    # Where nobody but a transfer gains, the transfer is said.
    poor = words(group("droptail", pages=9.0, upload=2.0), group("cake", pages=9.0, upload=4.0))
    assert "Pages stay poor with both. The upload gets 4.0 instead of 2.0 Mbit/s." in poor


def test_every_pair_of_the_answer_counts_for_how_far_it_is_apart() -> None:
    """Not the first two alone, and opinion scores, too, which have no unit."""
    said = words(
        group("droptail", pages=9.0, mos=4.3),
        group("cake", pages=1.0, mos=4.3),
        group("fq-codel", pages=1.0, mos=4.3),
        group("pie", pages=[0.5, 1.4, 1.4], mos=4.3),
    )
    assert "CAKE, FQ-CoDel or PIE?: No clear difference: pages within" in said
    calls = group("cake", mos=4.2)
    for run, mos in zip(calls.runs, (4.4, 4.1, 4.2), strict=True):
        run.summary["quality"]["calls"]["mos_mean"] = mos
    assert "calls within 0.41 MOS" in words(
        group("droptail", mos=3.0), calls, group("pie", mos=4.3)
    )


def test_no_class_is_named_twice_and_none_that_gains_nothing() -> None:
    """Two classes of calls have one name; a gain of 0.0 Mbit/s is no reason."""
    pair = [
        group("droptail", mos=2.0, upload=8.0, classes={"upload": 8.0, "calls": 1.0}),
        group("pie", mos=3.0, upload=6.0, classes={"upload": 6.0, "calls": 1.02}),
    ]
    for run in (run for one in pair for run in one.runs):
        run.summary["quality"]["more"] = run.summary["quality"]["calls"]
    said = words(*pair)
    assert "Calls stay poor with both." in said
    assert "0.0" not in said
    first = group("droptail", mos=4.05, upload=8.0)
    wide = group("pie", mos=4.3, upload=8.0)
    for run, mos in zip(wide.runs, (4.4, 3.9, 4.4), strict=True):
        run.summary["quality"]["calls"]["mos_mean"] = mos
    for run in (run for one in (first, wide) for run in one.runs):
        run.summary["quality"]["more"] = run.summary["quality"]["calls"]
    worse = group("cake", mos=2.0, upload=8.0)
    assert words(first, wide, worse).count("calls are") == 1


def test_a_stream_of_datagrams_has_no_share_of_the_line() -> None:
    """It takes what it sends. Beside a transfer its rate is no sign that somebody is starved."""
    pair = [group("droptail", upload=8.0, wait=0.3), group("pie", upload=8.0, wait=0.02)]
    for run in (run for one in pair for run in one.runs):
        run.summary["flows"]["ping"] = {"goodput_bps": 3_000.0, "datagrams_sent": 50}
        run.scenario["traffic"].append({"name": "ping", "kind": "cbr", "direction": "reverse"})
    assert answered(*pair).headline == "Take PIE."
    assert [one.need.key for one in answered(*pair).choice.needs] == [
        "goodput_bps",
        "sojourn_p95_s",
    ]


def test_each_transfer_that_loses_is_said_with_all_its_values() -> None:
    """Two of them pay, and the queues of the answer cost differently much."""
    said = words(
        group("droptail", pages=9.0, upload=8.0, download=20.0),
        group("cake", pages=1.0, upload=5.0, download=17.0),
        group("fq-codel", pages=1.0, upload=6.0, download=15.0),
    )
    assert "The upload pays: it runs 25 to 38 % slower (5.0 to 6.0 instead of 8.0 Mbit/s)." in said
    assert "The download pays, too: it runs 15 to 25 % slower (15.0 to 17.0 instead of" in said
    assert "FQ-CoDel or CAKE?: They differ: the upload within 1.0 Mbit/s and the download" in said


def test_many_names_and_three_levels() -> None:
    """Four names are all said, of more three and the number; a level is never left out."""
    assert named(["A", "B", "C", "D"], "or") == "A, B, C or D"
    assert named(["A", "B", "C", "D", "E"], "or") == "any of 5 alike, such as A, B or C"
    found = answered(group("droptail", pages=[2.6, 3.0, 3.9]), group("pie", pages=1.0))
    number = found.choice.needs[0]
    assert found.levels_in_words(number, found.choice.groups[0])[0] == "fair, good or poor"
    far = group("pie", pages=[1.0, 5.0, 7.0])
    assert found.levels_in_words(number, far)[0] == "poor, fair or good"


def test_a_queue_keeps_its_name_where_its_limit_follows_the_setting() -> None:
    """A buffer in bytes grows with the rate: it is the same queue in both settings."""
    groups = []
    for rate, packets in (("5 Mbit/s", 50), ("20 Mbit/s", 200)):
        for queue, pages in (("droptail", 5.0), ("fq-codel", 0.8)):
            groups.append(group(queue, pages=pages, rate=rate, limit=f"{packets} packets"))
    found = answers(groups)
    assert found is not None
    assert found.headline == "Take FQ-CoDel: it is in the answer in 2 of 2 settings."
    assert found.sentences[-1] == "In the answer less often: drop-tail in none of 2 settings."


def test_sentences_fit_a_terminal_and_nothing_is_cut() -> None:
    """At most seven lines of 80 characters."""
    draw = random.Random(11)
    for _ in range(100):
        some = [
            group(
                name,
                pages=draw.uniform(0.5, 9),
                mos=draw.uniform(2, 4.4),
                upload=draw.uniform(0.1, 9),
                seeds=draw.choice([1, 3]),
            )
            for name in QUEUES
        ]
        lines = answered(*some).lines()
        assert len(lines) <= 7
        assert all(len(line) <= 80 and "…" not in line for line in lines)
        assert lines[-1].endswith(".")


def test_a_missing_number_is_worse_than_any() -> None:
    """A queue behind which nobody's page ends does not win by having no load time."""
    base = group("droptail", pages=9.0)
    none = group("pie", pages=None)
    for run in none.runs:
        run.summary["quality"]["pages"] = {"page_load_p75_s": None}
    assert taken(base, group("cake", pages=3.0), none) == {"cake"}


def test_each_setting_has_an_answer_and_all_have_one() -> None:
    """What is decided is the queue: a higher rate is no answer."""
    groups = []
    for rate, factor in (("5 Mbit/s", 3.0), ("20 Mbit/s", 1.0)):
        for queue, pages in (("droptail", 5.0), ("fq-codel", 0.8), ("pie", 1.6)):
            groups.append(group(queue, pages=factor * pages, rate=rate))
    found = answers(groups)
    assert found is not None
    assert len(found.settings) == 2
    assert found.headline == "Take FQ-CoDel: it is in the answer in 2 of 2 settings."
    assert found.tally == {"drop-tail": 0, "FQ-CoDel": 2, "PIE": 0}
    data = found.to_json()
    assert data is not None
    assert data["take"] == ["FQ-CoDel"]


def test_between_rates_it_is_said_which_serves_people_best() -> None:
    """Nobody takes a rate for its queue; a sweep has no answer, and a comparison has."""
    groups = [
        group("pie", pages=5.0, upload=8.0, rate="5 Mbit/s"),
        group("pie", pages=1.0, upload=3.0),
    ]
    assert answers(groups) is None
    found = answers(groups, always=True)
    assert found is not None
    assert found.lines() == [
        "Best served: rate 10 Mbit/s, but the upload gets 3.0 instead of 8.0 Mbit/s.",
        "Pages open in 1.0 s instead of 5.0 s. The upload pays: it runs 62 % slower (3.0",
        "instead of 8.0 Mbit/s). With rate 5 Mbit/s: pages stay poor.",
    ]
    assert found.only is not None
    assert "settings serves people best?" in found.only.question


def test_runs_of_several_scenarios_have_an_answer_each() -> None:
    """Nothing is decided between them: whom does each queue serve?"""
    first, second = group("pie", pages=5.0), group("cake", pages=1.0)
    runs = [
        Run.in_memory(
            {**run.scenario, "traffic": run.scenario["traffic"][:1], "title": "Another office"},
            run.summary,
            label=run.label,
        )
        for run in second.runs
    ]
    second = Group(second.label, tuple(runs))
    found = answers([first, second], always=True)
    assert found is not None
    assert found.lines() == [
        "Nothing is decided between 2 scenarios.",
        "A made office: Pages are poor behind PIE.",
        "Another office: Everybody is served well behind CAKE.",
    ]


def test_behind_equal_queues_the_senders_are_decided() -> None:
    """Nobody reads of a queue where only the TCP differs."""
    first, second = (group("pie", pages=pages) for pages in (9.0, 6.0))
    for run in second.runs:
        run.scenario["traffic"][0]["tcp"] = "linux"
    found = answers([first, Group("pie, linux", second.runs)])
    assert found is not None
    assert found.only is not None
    assert found.headline.startswith("No sender is enough.")
    assert "senders" in found.only.question


def test_queues_are_called_as_people_call_them() -> None:
    """A kind alone; two of a kind keep what tells them apart."""
    groups = [group("droptail", pages=1.0), group("fq-codel", pages=1.0)]
    assert list(spoken_names(groups).values()) == ["drop-tail", "FQ-CoDel"]
    twice = [group("pie", pages=1.0), group("pie", pages=1.0, rate="5 Mbit/s")]
    assert list(spoken_names(twice).values()) == ["PIE, rate 10 Mbit/s", "PIE, rate 5 Mbit/s"]


SHORT = ("--set", "measure.warm_up=5 s", "--set", "measure.duration=20 s")


@pytest.fixture(scope="module")
def office() -> Path:
    """An office, short."""
    return Path("scenarios/office.toml").resolve()


def test_compare_ends_with_the_answer_and_report_makes_the_page(aqmlab: Cli, office: Path) -> None:
    """The page names every queue, is never cut, and says how to repeat it."""
    queues = "discipline=droptail-240,fq-codel,pie"
    made = aqmlab("compare", office, "--vary", queues, "--seeds", "1..3", *SHORT, "--no-figure")
    assert made.status == 0, made.err
    words = made.out.partition("\nanswer\n")[2]
    assert words.startswith(("Take ", "No queue", "Not told", "Could be", "Nothing", "Keep "))
    assert "verdict" not in made.out
    assert "aqmlab report runs --brief -o answer.html" in words
    again = aqmlab("compare", "runs", "--json")
    data = json.loads(again.out)["answer"]
    assert words.replace("\n", " ").startswith(data["headline"])
    for name in ("answer.html", "answer.pdf"):
        page = aqmlab("report", "runs", "--brief", "-o", name)
        assert page.status == 0, page.err
    text = Path("answer.html").read_text(encoding="utf-8")
    for name in ("FQ-CoDel", "PIE", "drop-tail", "How sure is this?", "--seeds 1..3"):
        assert name in text
    assert "aqmlab compare" in text
    assert "…" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_the_page_of_one_queue_says_whom_it_serves(aqmlab: Cli, office: Path) -> None:
    """There is nothing to decide; between two rates the page says which serves people best."""
    assert aqmlab("run", office, *SHORT).status == 0
    assert aqmlab("report", "runs", "--brief").status == 0
    assert "behind drop-tail." in Path("report.html").read_text(encoding="utf-8")
    Path("report.html").unlink()
    rates = ("--vary", "topology.bottleneck.forward.rate=5 Mbit/s,9 Mbit/s", "--out", "rates")
    assert aqmlab("compare", office, *rates, *SHORT, "--no-figure").status == 0
    made = aqmlab("compare", "rates", "--no-figure")
    said = " ".join(made.out.partition("\nanswer\n")[2].split())
    assert made.status == aqmlab("report", "rates", "--brief").status == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert said.startswith(re.findall("<title>(.*)</title>", page)[0])
    assert "which of 2 settings" in page.lower()
    with pytest.raises(library.AqmlabError, match="different queues"):
        library.answer([next(Path("runs").glob("office-*"))])


def test_pictures_have_room_for_the_words_of_their_limits(tmp_path: Path) -> None:
    """The limit may lie at the end of the longest bar, and a name may be long."""
    bars = [BriefBar("a-queue-with-a-long-name", 100.0, 99.0, 100.0, "100", is_taken=True)]
    picture = Bars("Waits, ms", bars, [(30.0, "good ≤ 30 ms"), (100.0, "poor ≥ 100 ms")])
    page = Brief("Which?", "Take A.", [], [], [BriefColumn("A", "take")] * 8, [], [], [picture])
    write_html(page, tmp_path / "answer.html")
    text = (tmp_path / "answer.html").read_text(encoding="utf-8")
    width = float(re.findall(r'viewBox="0 0 (\d+)', text)[0])
    [(x, words)] = re.findall(r'<text x="([\d.]+)"[^>]*anchor="start"[^>]*>(poor[^<]*)', text)
    assert float(x) + 5.8 * len(words) <= width
    assert "a-queue-with-a-long-name</text>" in text
    assert '<table class="many"' in text


def test_the_command_of_a_page_names_its_plug_ins(aqmlab: Cli, office: Path) -> None:
    """Without the file nobody can repeat it."""
    own = Path(__file__).parent / "plugins" / "codel.py"
    queues = 'discipline={kind="plugin",name="py-codel"},fq-codel'
    made = aqmlab("compare", office, "--plugin", own, "--vary", queues, *SHORT, "--no-figure")
    assert made.status == 0, made.err
    assert aqmlab("report", "runs", "--brief", "-o", "answer.html").status == 0
    assert f"--plugin {own}" in Path("answer.html").read_text(encoding="utf-8")


def test_a_folder_notes_the_command_behind_its_runs(tmp_path: Path) -> None:
    """It is repeated only if it asked for just those runs; earlier files have no command."""
    order.note(tmp_path, ["a", "b"], "aqmlab compare x.toml")
    assert order.command_of(tmp_path, ["b", "a"]) == "aqmlab compare x.toml"
    assert order.command_of(tmp_path, ["a"]) == ""
    assert order.noted(tmp_path) == {"a": 0, "b": 1}
    order.note(tmp_path, ["c"])
    assert order.command_of(tmp_path, ["c"]) == ""
    assert order.noted(tmp_path) == {"a": 0, "b": 1, "c": 2}


def test_the_limits_can_be_read(aqmlab: Cli) -> None:
    """A table, and as data."""
    shown = aqmlab("explain", "needs")
    assert shown.status == 0
    assert "Core Web Vitals" in shown.out
    rows = json.loads(aqmlab("explain", "needs", "--json").out)["needs"]
    assert {row["group"] for row in rows} >= {"pages", "calls", "meetings", "films", "games"}
