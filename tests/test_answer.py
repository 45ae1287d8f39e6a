"""The answer: which queue to take, by a rule that looks at what people need."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aqmlab as library
import pytest
from aqmlab.reports.brief import runs_of_bold
from aqmlab.results import order
from aqmlab.results.answer import Choice, Outcome, choose
from aqmlab.results.answer_words import Answer
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
    upload: float | None = None,
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
        if upload is not None:
            flows["upload"] = {"goodput_bps": 1e6 * upload * factor}
        link = {
            "utilization": busy,
            "loss_rate": 0.0,
            "mark_rate": 0.0,
            "sojourn_mean_s": 0.01,
            "sojourn_p95_s": 0.02,
            "classes": {
                name: {"throughput_bps": 1e6 * value} for name, value in (classes or {}).items()
            },
        }
        ends = {"rate": rate, "discipline": QUEUES[queue]}
        scenario = {
            "seed": seed,
            "title": "A made office",
            "topology": {"kind": "dumbbell", "bottleneck": {"forward": ends, "reverse": ends}},
            "traffic": [
                {"name": "pages", "kind": "http2-web", "users": 12},
                {"name": "calls", "kind": "voip", "calls": 1},
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
        "slower (6.0 instead of 8.0 Mbit/s), because calls take 1.5 Mbit/s of it, and 0.5",
        "Mbit/s of the line stays idle. If you do nothing (drop-tail): pages and calls",
        "stay poor.",
    ]
    data = found.to_json()
    assert data["take"] == ["fq-codel, rate 10 Mbit/s"]
    assert [one["class"] for one in data["prices"]] == ["upload"]


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


def test_nothing_is_decided_between_rates() -> None:
    """Runs that differ in something that nobody chooses a queue by."""
    assert answers([group("pie", pages=1.0), group("pie", pages=2.0, rate="5 Mbit/s")]) is None


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
    assert words.startswith(("Take ", "No queue", "Not told", "Could be", "Nothing"))
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
    """There is nothing to decide; between two rates neither, and that is an error."""
    assert aqmlab("run", office, *SHORT).status == 0
    assert aqmlab("report", "runs", "--brief").status == 0
    assert "behind drop-tail." in Path("report.html").read_text(encoding="utf-8")
    Path("report.html").unlink()
    rates = ("--vary", "topology.bottleneck.forward.rate=5 Mbit/s,9 Mbit/s", "--out", "rates")
    assert aqmlab("compare", office, *rates, *SHORT, "--no-figure").status == 0
    refused = aqmlab("report", "rates", "--brief")
    assert refused.status == 2
    assert "nothing to decide" in refused.err
    assert not Path("report.html").exists()
    with pytest.raises(library.AqmlabError, match="different queues"):
        library.answer([next(Path("runs").glob("office-*"))])


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
