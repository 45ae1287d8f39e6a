"""Wi-Fi: an access point between the bottleneck and the clients."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aqmlab
import pytest
from aqmlab import AqmlabError, Scenario
from aqmlab.results.breakdown import Band, part
from aqmlab.results.run import Run
from conftest import ROOT, SMALL, Cli
from figure_runs import draw

from lab.disciplines.checks import Validation, expected, validate

FLAT = """
title = "A flat"

[measure]
warm_up = "2 s"
duration = "10 s"
breakdown = true

[topology]
kind = "dumbbell"
hosts = { clients = 4, servers = 4 }

[topology.bottleneck]
rate = "300 Mbit/s"
discipline = { kind = "droptail", limit = "2500 packets" }

[topology.wifi]
stations = [{ count = 3, mcs = 15 }, { count = 1, mcs = 0, class = "far" }]

[[traffic]]
name = "pages"
kind = "http2-web"
users = 3
tcp = "linux"
rtt = { kind = "constant", rtt = "20 ms" }

[[traffic]]
name = "call"
kind = "voip"
calls = 3
rtt = { kind = "constant", rtt = "20 ms" }

[[traffic]]
name = "downloads"
kind = "bulk"
flows = 2
tcp = "linux"
rtt = { kind = "constant", rtt = "20 ms" }

[[traffic]]
name = "far"
kind = "bulk"
flows = 1
tcp = "linux"
rtt = { kind = "constant", rtt = "20 ms" }
"""


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    """The flat with each kind of queue in its access point."""
    scenario = Scenario.from_toml(FLAT)
    settings = {
        "fifo": {"queue": "fifo"},
        "turns": {"airtime_fairness": "false"},
        "fair": {},
    }
    return {
        name: aqmlab.run(
            scenario.with_overrides({f"topology.wifi.{key}": to for key, to in own.items()})
        )
        for name, own in settings.items()
    }


def _delay(run: Run) -> float:
    """The 95th percentile of the delays of calls, in seconds."""
    return float(run.summary["flows"]["call"]["datagram_delay_p95_s"])


def _airtime(run: Run, stations: str) -> float:
    """The share of the time in which something of these stations is on the air."""
    ways = run.summary["wifi"][stations]
    return float(ways["down"]["airtime_share"] + ways["up"]["airtime_share"])


def test_a_queue_for_each_station_cures_the_delay(runs: dict[str, Run]) -> None:
    """The sheet of the model expects 239 to 333 ms for a FIFO and some 20 ms for the others."""
    assert _delay(runs["fifo"]) > 4 * _delay(runs["fair"])
    assert _delay(runs["fifo"]) > 0.1


def test_a_slow_station_takes_the_air_unless_it_is_shared(runs: dict[str, Run]) -> None:
    far = {name: _airtime(run, "far") for name, run in runs.items()}
    assert far["fifo"] > far["fair"]
    assert far["turns"] > far["fair"]
    goodput = {name: run.summary["flows"]["downloads"]["goodput_bps"] for name, run in runs.items()}
    assert goodput["fair"] > goodput["fifo"]


def test_the_air_is_never_busy_for_longer_than_there_is_time(runs: dict[str, Run]) -> None:
    for run in runs.values():
        assert set(run.summary["wifi"]) == {"mcs-15", "far"}
        assert run.summary["wifi"]["mcs-15"]["down"]["stations"] == 3
        shares = [_airtime(run, stations) for stations in run.summary["wifi"]]
        assert 0.5 < sum(shares) < 1.2  # two that collide count twice
        for ways in run.summary["wifi"].values():
            assert ways["down"]["aggregate_mean_packets"] >= 1


def test_results_have_the_air_as_a_link(runs: dict[str, Run]) -> None:
    links = runs["fair"].summary["links"]
    assert set(links["wifi"]) == {"down", "up"}
    down = links["wifi"]["down"]
    assert down["departed_packets"] > 1000
    assert down["arrived_packets"] >= down["departed_packets"] + down["dropped_packets"] - 8192
    # What waits until it is acknowledged waits longer than an empty queue takes.
    assert down["sojourn_p50_s"] > 0.0001


def test_users_are_the_same_behind_every_queue() -> None:
    scenario = Scenario.from_toml(FLAT)
    first = aqmlab.run(scenario.with_overrides({"measure.duration": "3 s"}))
    again = aqmlab.run(scenario.with_overrides({"measure.duration": "3 s"}))
    assert first.summary == again.summary


def test_parts_of_responses_have_the_air_and_add_up(runs: dict[str, Run]) -> None:
    for run in runs.values():
        band = Band.of(run.summary, "pages", "all")
        assert band is not None
        assert sum(band.parts.values()) == pytest.approx(band.response_s, rel=1e-9)
        assert band.parts["ring_wifi_down"] > 0
        assert band.parts["transmission_wifi_down"] > 0
    named = part("ring_wifi_down").named(runs["fair"].scenario)
    assert named == "waiting for the air, Wi-Fi down"
    assert part("transmission_wifi_up").named(runs["fair"].scenario) == "on the air, Wi-Fi up"


def test_a_scenario_without_wifi_has_no_word_of_it() -> None:
    scenario = Scenario.from_toml(SMALL)
    assert "wifi" not in scenario.effective
    assert "wifi" not in json.dumps(aqmlab.run(scenario).summary)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("phy", '"ht160"', r"wifi\.phy: found \"ht160\""),
        ("stations.0.mcs", "16", r"stations\.0\.mcs: found 16; ht20 has MCS 0 to 15"),
        ("phy", '"vht80"', r"stations\.0\.mcs: found 15; vht80 has MCS 0 to 9"),
        ("phy", '"11a"', r"stations\.0\.mcs: found 15; 11a has the rates 6, 9, 12"),
        ("stations.0.streams", "2", r"stations\.0\.streams: found 2; ht20 has those of its MCS"),
        ("stations.0.count", "4", r"wifi\.stations: found 5, but topology\.hosts\.clients is 4"),
        ("stations.1.class", '"tv"', r"stations\.1\.class: found \"tv\"; the classes of traffic"),
        ("stations.0.frame_error", "1.1", r"frame_error: found 1\.1; expected a probability"),
        ("ampdu.time", '"6 ms"', r"ampdu\.time: found 6 ms; expected more than 0 s and at most 5"),
        ("ampdu.time", '"0 s"', r"ampdu\.time: found 0 s; expected more than 0 s and at most 5\.4"),
        ("ampdu.subframes", "65", r"ampdu\.subframes: found 65; expected 0 to 64"),
        ("ampdu.bytes", '"0 bytes"', r"ampdu\.bytes: found 0 bytes; expected 1 to 1048575 bytes"),
        ("stations", "[]", r"wifi\.stations: found none; expected at least one"),
        ("stations.0.count", "0", r"stations\.0\.count: found 0; expected 1 to 2007 stations"),
        ("stations.0.frame_error", "-0.1", r"frame_error: found -0\.1; expected a probability"),
        ("stations", "[{ count = 4 }]", r"stations\.0\.mcs: found nothing; ht20 has MCS 0 to 15"),
        ("stations.0.class", '"call"', r"stations: found none for the class \"pages\"; expected"),
        ("retries", "300", r"wifi\.retries: found 300; expected 0 to 255"),
        ("fifo", '"0 packets"', r"wifi\.fifo: found 0 packets; at least 1 packets"),
        ("trace", '{ file = "air.csv" }', r"wifi\.trace: found one, but .*; leave it out, or"),
        ("stations.0.count", "2008", r"wifi\.stations\.0\.count: found 2008; expected 1 to 2007"),
        ("edca", '"wmm"', r"wifi\.edca: found \"wmm\" \(allowed: off, rfc8325, precedence\)"),
        ("edca", "true", r"wifi\.edca: found true"),
        ("queue", '"aql"', r"wifi\.queue: found \"aql\" \(allowed: mac80211, fifo\)"),
        (
            "discipline",
            '{ kind = "shaper", rate = "10 Mbit/s", leaf = "fq-codel" }',
            r"wifi\.discipline: found a shaper; expected a discipline that has no rate",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(AqmlabError, match=message):
        Scenario.from_toml(FLAT).with_overrides({f"topology.wifi.{key}": value})


def test_802_11a_has_no_access_categories() -> None:
    stations = '[{ count = 4, rate = "54 Mbit/s" }]'
    with pytest.raises(
        AqmlabError, match=r"wifi\.edca: found access categories, which 11a does not"
    ):
        Scenario.from_toml(FLAT).with_overrides(
            {
                "topology.wifi.phy": '"11a"',
                "topology.wifi.stations": stations,
                "topology.wifi.edca": '"rfc8325"',
            }
        )


def test_calls_have_a_category_if_they_are_marked() -> None:
    """Behind a FIFO their own category takes calls past the downloads."""
    scenario = Scenario.from_toml(FLAT).with_overrides({"topology.wifi.queue": "fifo"})
    settings: dict[str, dict[str, Any]] = {
        "off": {"traffic.call.dscp": 46},
        "unmarked": {"topology.wifi.edca": "rfc8325"},
        "video": {"topology.wifi.edca": "precedence", "traffic.call.dscp": 46},
        "voice": {"topology.wifi.edca": "rfc8325", "traffic.call.dscp": 46},
    }
    runs = {
        name: aqmlab.run(scenario.with_overrides(overrides)) for name, overrides in settings.items()
    }
    for name in ("off", "unmarked"):
        assert _delay(runs[name]) > 10 * _delay(runs["voice"]), name
    assert _delay(runs["video"]) < 0.1 * _delay(runs["off"])
    counts = {
        name: [
            ways[way].get("internal_collisions")
            for ways in run.summary["wifi"].values()
            for way in ("down", "up")
        ]
        for name, run in runs.items()
    }
    assert set(counts["off"]) == {None}
    assert set(counts["unmarked"]) == {0}
    assert sum(counts["voice"]) > 0
    assert sum(counts["video"]) > 0


def test_users_are_stated_and_packets_are_not_recorded() -> None:
    with pytest.raises(AqmlabError, match=r"measure\.record: found \"packets\", which does not"):
        Scenario.from_toml(FLAT.replace("breakdown = true", 'record = ["packets"]'))
    loaded = FLAT.replace("users = 3\n", "").replace("[measure]", "load = 0.5\n\n[measure]")
    with pytest.raises(AqmlabError, match=r"traffic\.pages: found no users beside topology\.wifi"):
        Scenario.from_toml(loaded)


def test_wifi_lies_in_a_dumbbell() -> None:
    text = FLAT.replace(
        'kind = "dumbbell"', 'kind = "network"\npaths = { home = { links = ["line"] } }'
    ).replace("[topology.bottleneck]", "[topology.links.line]")
    for kind in ("network", "parking-lot"):
        message = rf"topology\.wifi: found it beside kind = \"{kind}\"; expected kind = \"dumb"
        with pytest.raises(AqmlabError, match=message):
            Scenario.from_toml(text.replace('"network"', f'"{kind}"'))


def test_stations_that_understand_nothing_are_warned_of() -> None:
    scenario = Scenario.from_toml(FLAT)
    assert scenario.notes == []
    for number, classes in enumerate(("pages, call, downloads", "far")):
        key = f"topology.wifi.stations.{number}.frame_error"
        assert scenario.with_overrides({key: 1.0}).notes == [
            f"{key}: 1 spoils every packet, so nothing of {classes} gets through"
        ]


def test_an_access_point_has_up_to_2007_stations() -> None:
    def of(count: int) -> Scenario:
        text = FLAT.replace("clients = 4", f"clients = {count}")
        return Scenario.from_toml(text.replace("count = 3", f"count = {count - 1}"))

    assert of(399).notes == []
    [note] = of(400).notes
    assert note.startswith("topology.wifi.stations: 400 stations that always send take about 0.02")
    assert len(of(2007).notes) == 1
    with pytest.raises(AqmlabError, match=r"stations: found 2008; an access point has at most"):
        of(2008)


def test_every_phy_carries_packets() -> None:
    """Each with a station that is slow in it, and packets that are spoilt now and then."""
    stations: dict[str, str] = {
        "11a": '{ count = 4, rate = "54 Mbit/s", frame_error = 0.1 }',
        "ht20": "{ count = 4, mcs = 15, frame_error = 0.1 }",
        "ht40": "{ count = 4, mcs = 7, frame_error = 0.1 }",
        "vht80": "{ count = 4, mcs = 9, streams = 2, frame_error = 0.1 }",
        "he80": "{ count = 4, mcs = 11, streams = 2, frame_error = 0.1 }",
    }
    goodput: dict[str, Any] = {}
    for phy, one in stations.items():
        run = aqmlab.run(
            Scenario.from_toml(FLAT).with_overrides(
                {
                    "measure.duration": "3 s",
                    "topology.wifi.phy": f'"{phy}"',
                    "topology.wifi.stations": f"[{one}]",
                }
            )
        )
        (down,) = (ways["down"] for ways in run.summary["wifi"].values())
        assert down["retried_packets"] > 0
        assert 0 <= down["collision_rate"] < 0.5
        goodput[phy] = run.summary["flows"]["downloads"]["goodput_bps"]
    assert goodput["11a"] < goodput["ht20"] < goodput["vht80"]


def test_init_writes_a_flat(aqmlab: Cli) -> None:
    answer = aqmlab("init", "flat.toml", "--kind", "home", "--rate", "300/50", "--wifi", "4")
    assert (answer.status, answer.err) == (0, "")
    assert "--vary 'wifi.queue=fifo,mac80211'" in answer.out
    scenario = Scenario.load("flat.toml")
    assert scenario.data["topology"]["hosts"]["clients"] == 4
    assert [it["count"] for it in scenario.data["topology"]["wifi"]["stations"]] == [3, 1]
    assert "far" in {it["name"] for it in scenario.data["traffic"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kind", "home", "--wifi", "1"), "--wifi: found 1; expected 2 to 2,007 devices"),
        (("--kind", "lab", "--wifi", "4"), "--wifi: is for --kind home and --kind office"),
    ],
)
def test_init_refuses_wifi_without_devices(
    aqmlab: Cli, options: tuple[str, ...], message: str
) -> None:
    answer = aqmlab("init", "flat.toml", *options)
    assert answer.status == 2
    assert message in answer.err


def test_the_live_bed_refuses_wifi(aqmlab: Cli) -> None:
    Path("flat.toml").write_text(FLAT.replace("breakdown = true\n", ""))
    answer = aqmlab("run", "flat.toml", "--on", "live")
    assert answer.status != 0
    assert "topology.wifi: found one, but the live bed has no Wi-Fi" in answer.err


def test_a_figure_shows_who_has_the_air(runs: dict[str, Run]) -> None:
    chart = draw.airtime([runs["fifo"], runs["fair"]]).to_dict()
    [bars] = [rows for rows in chart["datasets"].values() if rows and "stations" in rows[0]]
    far = [row["share"] for row in bars if row["stations"] == "far"]
    assert far == pytest.approx([100 * _airtime(runs[name], "far") for name in ("fifo", "fair")])
    assert [row["high"] - row["low"] for row in bars] == pytest.approx(
        [row["share"] for row in bars]
    )
    assert "cuts the time of far on the air from" in str(chart["title"])
    down = draw.airtime(runs["fair"], way="down").to_dict()
    [only] = [rows for rows in down["datasets"].values() if rows and "stations" in rows[0]]
    wifi = runs["fair"].summary["wifi"]
    shares = {name: 100 * wifi[name]["down"]["airtime_share"] for name in wifi}
    assert {row["stations"]: row["share"] for row in only} == pytest.approx(shares)


def test_a_figure_of_the_air_needs_one(aqmlab: Cli) -> None:
    Path("small.toml").write_text(SMALL)
    assert aqmlab("run", "small.toml", "--out", "small").status == 0
    answer = aqmlab("plot", "airtime", "small")
    assert answer.status == 2
    assert "small: found no Wi-Fi; the scenario needs topology.wifi" in answer.err


@pytest.mark.parametrize("name", ["wifi", "wifi-senders"])
def test_the_rows_beside_references_come_as_the_file_says(name: str, tmp_path: Path) -> None:
    """One seed of what `make validate ARGS="wifi wifi-senders"` runs."""
    rows = replace(Validation.load(ROOT / f"lab/disciplines/{name}.toml"), seeds=(1,))
    verdicts, _ = validate(rows, tmp_path, jobs=2)
    assert len(verdicts) == len(rows.checks)
    wrong = [f"{it.statement}: {it.measured}" for it in verdicts if not expected(it)]
    assert not wrong
