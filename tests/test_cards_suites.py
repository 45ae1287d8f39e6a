"""Suites of tests as tables, and the scenarios that are made of their rows."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from aqmlab.cards.audit import asked
from aqmlab.cards.candidates import CUBIC, candidate, control
from aqmlab.cards.card import TIERS
from aqmlab.cards.evaluation import SEEDS
from aqmlab.cards.generator import cells, scenario_of, toml_of
from aqmlab.cards.kinds import CONTROL, QUEUE
from aqmlab.cards.overview import suite_cells
from aqmlab.cards.roles import tier_cells
from aqmlab.cards.sealed import COUNT
from aqmlab.cards.suites import SUITES, chosen, measures, rows
from aqmlab.cards.worst import TESTS
from conftest import ROOT, Cli

SUBJECTS = {"bbr-draft": control("bbr3")}
"""The control whose phases the rows of a suite name."""


@pytest.mark.long_cases("rfc9743")
@pytest.mark.parametrize("suite", SUITES)
def test_every_row_is_a_scenario_or_says_why_not(suite: str) -> None:
    queue = candidate("fq-codel")
    for row in rows(suite):
        found = cells(row)
        assert bool(found) != bool(row.not_realised), row.id
        for cell in found:
            scenario = scenario_of(cell, queue, SUBJECTS.get(suite, CUBIC))
            assert scenario.title.startswith(row.id)


@pytest.mark.parametrize("name", ["reno", "bbr1", "bbr3", "ledbat-plus-plus"])
def test_controls_take_the_place_of_the_subject(name: str) -> None:
    queue = candidate("droptail")
    for suite in ("rfc9743", "tcpeval", "rfc8867", "card-controls"):
        for row in rows(suite):
            for cell in cells(row)[:1]:
                scenario = scenario_of(cell, queue, control(name))
                subjects = [one for one in scenario.data["traffic"] if one["kind"] == "bulk"]
                kinds = {one["tcp"]["congestion_control"]["kind"] for one in subjects}
                assert name in kinds or not subjects


def test_ids_are_unique_and_name_files() -> None:
    ids = [cell.file for suite in SUITES for row in rows(suite) for cell in cells(row)]
    assert len(set(ids)) == len(ids)


def test_measures_belong_to_tests() -> None:
    tests = {row.id: row for suite in ("card", "card-controls") for row in rows(suite)}
    for measure in measures():
        is_search = measure.test in TESTS.values()
        assert is_search or not tests[measure.test].not_realised


def test_the_page_counts_tests_as_they_are() -> None:
    text = (ROOT / "docs/evaluate.md").read_text()
    for kind, tier in itertools.product((QUEUE, CONTROL), TIERS):
        cells, seeds = tier_cells(tier, (), kind), len(SEEDS[tier])
        runs = sum(int(cell.row.seeds or seeds) for cell in cells)
        further = COUNT + len(asked()) if kind is QUEUE else 0
        line = f"| {kind.name} | {tier} | {len(cells) + further} | {seeds} | {runs + further:,} |"
        assert line in text, line
    for suite in SUITES:
        found = rows(suite)
        realised = sum(not row.not_realised for row in found)
        assert re.search(rf"\| `{suite}` \| .* \| {len(found)} \| {realised} \|", text), suite


def test_the_rfc_has_all_its_tests() -> None:
    sections = {row.section for row in rows("rfc7928")}
    for must in ("5.1.1", "5.1.2", "5.2", "5.3", "6.2", "7.2 figure 2", "8.2.5", "8.2.6"):
        assert must in sections


def test_flows_follow_from_the_pipe_and_the_buffer() -> None:
    """RFC 7928, 8.2: 6, 14 and 19 flows at 10 Mbit/s and 100 ms."""
    found = {}
    for row in rows("rfc7928"):
        if row.id in ("r7928-8.2.2", "r7928-8.2.3", "r7928-8.2.4"):
            for cell in cells(row):
                scenario = scenario_of(cell, candidate("pie"))
                found[row.id[-1], cell.label] = scenario.data["traffic"][0]["flows"]
    assert found == {
        ("2", "10 Mbit/s"): 6,
        ("3", "10 Mbit/s"): 14,
        ("4", "10 Mbit/s"): 19,
        ("2", "100 Mbit/s"): 60,
        ("3", "100 Mbit/s"): 135,
        ("4", "100 Mbit/s"): 190,
    }


@pytest.mark.parametrize("queue", ["droptail", "pie", "fq-codel", "cake", "sfq", "codel"])
def test_every_queue_gets_the_same_buffer_in_bytes(queue: str) -> None:
    [row] = chosen(rows("card"), ["a-base"])
    [cell] = cells(row)
    link = scenario_of(cell, candidate(queue)).data["topology"]["bottleneck"]["forward"]
    sizes = {link["discipline"].get("limit"), link["discipline"].get("memory")}
    assert "125000 bytes" in sizes


@pytest.mark.parametrize("queue", ["droptail", "pie", "cake", "sfq"])
def test_over_wifi_the_queue_is_the_access_points(queue: str) -> None:
    found = [cell for cell in tier_cells("quick") if cell.row.wifi]
    assert [cell.id for cell in found] == ["w-home", "w-stations"]
    for cell in found:
        topology = scenario_of(cell, candidate(queue)).data["topology"]
        own = topology["wifi"]["discipline"]
        assert own["kind"] == queue
        assert "1500000 bytes" in (own.get("limit"), own.get("memory"))
        assert topology["wifi"]["queue"] == "mac80211"
        assert topology["wifi"]["station_queue"]["kind"] == "fq-codel"
        assert topology["bottleneck"]["forward"]["discipline"]["kind"] == "droptail"
        stations = topology["wifi"]["stations"]
        assert sum(one["count"] for one in stations) == topology["hosts"]["clients"] == 4
        assert [one.get("class") for one in stations] == [None, "far"]


def test_the_buffer_is_that_of_the_longest_round_trip() -> None:
    """RFC 7928, 3.2."""
    [row] = chosen(rows("card"), ["a-rtt-fair"])
    sizes = [
        scenario_of(cell, candidate("droptail")).data["topology"]["bottleneck"]["forward"]
        for cell in cells(row)
    ]
    limits = [link["discipline"]["limit"] for link in sizes]
    assert limits == ["125000 bytes", "125000 bytes", "125000 bytes", "375000 bytes"]


def test_capacity_changes_go_on_to_the_end() -> None:
    [row] = chosen(rows("rfc7928"), ["8.2.6-II"])
    [cell] = cells(row)
    link = scenario_of(cell, candidate("pie")).data["topology"]["bottleneck"]["forward"]
    assert len(link["rate_changes"]) == 599
    assert link["rate_changes"][0] == {"at": "100 ms", "rate": "10 Mbit/s"}


def test_sections_name_rows() -> None:
    def named(word: str) -> list[str]:
        return [row.id for row in chosen(rows("rfc7928"), [word])]

    assert named("5.1") == ["r7928-5.1.1", "r7928-5.1.2"]
    assert named("6.2") == ["r7928-6a", "r7928-6b"]
    assert named("r7928-4.4") == named("4.4") == ["r7928-4.4"]
    assert [row.id for row in chosen(rows("card"), ["a-capacity"])] == ["a-capacity"]
    assert [row.id for row in chosen(rows("card"), ["capacity"])] == [
        "a-capacity",
        "a-capacity-fast",
    ]


def test_labels_tell_cells_apart() -> None:
    for suite in SUITES:
        for row in rows(suite):
            labels = [cell.label for cell in cells(row)]
            assert len(set(labels)) == len(labels), row.id
    [row] = chosen(rows("responsiveness"), ["rpm-test-dsl"])
    assert [cell.label for cell in cells(row)][2] == "8 cubic (down) + 8 cubic (up) + probes"


def test_a_row_that_prescribes_its_queue_is_for_controls() -> None:
    found = chosen(rows("rfc9743"), ["7.1"])
    assert suite_cells(found, is_control=False) == ([], found)
    assert len(suite_cells(found, is_control=True)[0]) == 32


def test_toml_runs_by_itself(aqmlab: Cli) -> None:
    answer = aqmlab("evaluate", "pie", "--suite", "rfc7928", "--only", "5.3.1", "--write", "rows")
    assert answer.status == 0
    files = sorted(path.name for path in Path("rows").glob("*.toml"))
    assert files == [f"r7928-5.3.1-{k}.toml" for k in (1, 2, 3)]
    short = ("--set", "measure.duration=2 s", "--set", "measure.warm_up=0 s")
    assert aqmlab("run", "rows/r7928-5.3.1-2.toml", *short).status == 0


def test_files_that_a_row_names_are_written_too(aqmlab: Cli) -> None:
    aqmlab("evaluate", "pie", "--suite", "rfc7928", "--only", "r7928-8.2.6-real", "--write", "rows")
    assert Path("rows/traces/lte.trace").is_file()


def test_lists(aqmlab: Cli) -> None:
    answer = aqmlab("evaluate", "--list", "--suite", "rfc7928")
    assert "r7928-5.4" in answer.out
    assert "there is no LEDBAT of RFC 6817" in answer.out
    assert "107 together" in answer.out
    assert "a-web" in aqmlab("evaluate", "--list").out


def test_a_suite_runs(aqmlab: Cli) -> None:
    answer = aqmlab("evaluate", "pie", "--suite", "rfc7928", "--only", "4.6,5.3.1", "--json")
    assert answer.status == 0
    assert '"cell": "r7928-5.3.1/2"' in answer.out
    assert "not run: r7928-4.6 (scheduling)" in answer.err


def test_a_suite_leaves_out_where_the_queue_cannot_stand(aqmlab: Cli) -> None:
    words = ("evaluate", "cake: bandwidth 9 Mbit/s", "--suite", "card", "--only", "w-home,a-outage")
    answer = aqmlab(*words, "--write", "rows")
    assert answer.status == 0
    assert [path.name for path in Path("rows").glob("*.toml")] == ["a-outage.toml"]
    assert "not run: w-home: cake (bandwidth 9 Mbit/s) cannot be the access" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate",), "QUEUE: found none; expected a plug-in file"),
        (("evaluate", "fq_codel"), 'did you mean "fq-codel"?'),
        (("evaluate", "pie: target 5 ms"), "pie has no parameter target; it has alpha, beta"),
        (("evaluate", "pie: target"), 'found "target"; expected NAME VALUE'),
        (("evaluate", "pie: limit 50 packets"), "every queue gets the same buffer from the test"),
        (("evaluate", "pie: qdelay_ref soon"), "discipline.qdelay_ref"),
        (("evaluate", "none.py"), "none.py"),
        (("evaluate", "shaper-10"), "which has no buffer of its own, but every queue gets the"),
        (("evaluate", "pie", "--baseline", "htb"), "found htb, which has no buffer of its own"),
        (
            ("evaluate", "cake: bandwidth 9 Mbit/s", "--only", "w-home"),
            "cake (bandwidth 9 Mbit/s) cannot be the access point's queue: topology.wifi.",
        ),
        (
            ("evaluate", "cake: bandwidth 9 Mbit/s", "--suite", "card", "--only", "w-home"),
            "cake (bandwidth 9 Mbit/s) cannot be the access point's queue: topology.wifi.",
        ),
        (("evaluate", "pie", "--suite", "rfc7982"), 'did you mean "rfc7928"?'),
        (("evaluate", "pie", "--only", "a-bas"), 'did you mean "a-base"?'),
        (("evaluate", "pie", "--tier", "fast"), "expected one of quick, standard, full"),
        (("evaluate", "pie", "--baseline", "fq"), 'found "fq"'),
        (("evaluate", "pie", "--seeds", "x"), "--seeds"),
        (("evaluate", "--control", "bbr9", "--suite", "rfc9743"), 'did you mean "bbr'),
        (("evaluate", "--control", "prague"), "cannot run with --ecn none; expected --ecn l4s"),
        (("evaluate", "--control", "bbr1", "--ecn", "yes"), "expected one of none, classic, l4s"),
        (("evaluate", "pie", "--control", "bbr1"), "a card is about one of the two"),
        (("evaluate", "pie", "--ecn", "l4s"), "found it without --control"),
        (("evaluate", "--control", "cubic: gamma 1"), "cubic has no parameter gamma"),
        (("evaluate", "--control", "bbr1", "--only", "a-web"), "which names no test"),
        (("evaluate", "pie", "--weights", "speed=1"), 'found "speed", which is no area'),
        (("evaluate", "pie", "--weights", "delay=0"), "expected a weight above 0, as in delay=2"),
    ],
)
def test_bad_input(aqmlab: Cli, arguments: tuple[str, ...], message: str) -> None:
    answer = aqmlab(*arguments)
    assert answer.status == 2
    assert message in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert not Path("runs").exists()


def test_tomls_say_what_differs() -> None:
    [row] = chosen(rows("rfc7928"), ["7-I"])
    assert "differs: objects of a page share one" in toml_of(cells(row)[0], candidate("pie"))


@pytest.mark.long
def test_a_scenario_does_not_depend_on_those_made_first() -> None:
    queue = candidate("droptail")
    first = [toml_of(cell, queue) for cell in tier_cells("standard")]
    for suite in SUITES:
        for row in rows(suite):
            for cell in cells(row):
                scenario_of(cell, queue, SUBJECTS.get(suite, CUBIC))
    assert [toml_of(cell, queue) for cell in tier_cells("standard")] == first


def test_a_test_of_a_larger_tier_is_named_with_it(aqmlab: Cli) -> None:
    answer = aqmlab("evaluate", "codel", "--only", "a-ecn")
    assert answer.status == 2
    assert '"a-ecn" is a test of the' in answer.err
    assert "add --tier" in answer.err
