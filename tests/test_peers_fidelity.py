"""Ours beside ns-2 and ns-3, without them: their input, what is read, what is judged."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from aqmlab import Scenario
from aqmlab.errors import AqmlabError, RunError
from conftest import ROOT

from lab.peers import fidelity as peers
from lab.peers import ns2, ns3
from lab.peers.fidelity import METRICS, PEERS, PeerCell, Setting, judge, load, page
from lab.peers.simulators import called, parsed

NS2, NS3 = PEERS
PRINTED = """version 2.35
goodput_bps 1414211.7333333334
arrived_packets 116495
dropped_packets 1077
queue_mean_packets 27.046268511846222
"""


@pytest.fixture(scope="module")
def settings() -> dict[str, Setting]:
    return load(replace(NS2, settings=ROOT / NS2.settings))


@pytest.fixture(scope="module")
def settings3() -> dict[str, Setting]:
    return load(replace(NS3, settings=ROOT / NS3.settings))


def test_settings_and_tolerances_are_as_stated(settings: dict[str, Setting]) -> None:
    assert len(settings) >= 10
    flows, kinds, words = set(), set(), set()
    for setting in settings.values():
        assert len(setting.seeds) == 5
        assert setting.within == {"goodput": 0.05, "loss": 0.15, "queue": 0.1}
        data = setting.scenario.data
        discipline, [traffic] = (
            data["topology"]["bottleneck"]["forward"]["discipline"],
            data["traffic"],
        )
        flows.add(traffic["flows"])
        kinds.add((discipline["kind"], discipline.get("ecn", False)))
        words |= {traffic["tcp"]["recovery"], traffic["direction"]}
        # Senders offer ECN where the queue marks, and only there.
        assert traffic["tcp"]["ecn"] == discipline.get("ecn", False)
    assert {min(flows), max(flows)} == {4, 50}
    assert {("droptail", False), ("red", False), ("red", True), ("pi", False)} < kinds
    assert "rem" in {kind for kind, _ in kinds}
    assert words == {"reno", "sack-pipe", "forward", "both"}


def test_ns2_gets_the_values_of_the_scenario(settings: dict[str, Setting]) -> None:
    options = ns2.options(settings["reno-4-droptail"].scenario.data)
    assert (options["discipline"], options["settings"]) == ("DropTail", "")
    assert options["queue"] == 39  # one of them on the wire
    assert (options["rate"], options["seconds"], options["warm_up"]) == ("1544000", 600, 50)
    assert (options["segment"], options["window"]) == (460, 92_000)
    assert (options["sack"], options["ecn"], options["two_way"]) == (0, 0, 0)
    assert options["rto_min"] == pytest.approx(0.2)
    assert options["tick"] == pytest.approx(0.01)


def test_round_trip_times_are_those_of_our_flows(settings: dict[str, Setting]) -> None:
    options = ns2.options(settings["reno-4-droptail"].scenario.data)
    low, high = options["shortest"], options["longest"]
    assert isinstance(low, float)
    assert isinstance(high, float)
    # The dumbbell's own rule: host i of n in the middle of the i-th part.
    theirs = [low + (high - low) * (i + 0.5) / 4 for i in range(4)]
    assert theirs == pytest.approx([0.084 + 0.04 * i / 3 for i in range(4)])


@pytest.mark.parametrize(
    ("name", "kind", "some", "limit"),
    [
        ("sack-4-red-ecn", "RED", "thresh_ 5.0 maxthresh_ 15.0 linterm_ 10.0", 39),
        ("reno-10-red", "RED", "wait_ true setbit_ false mean_pktsize_ 500", 39),
        ("sack-50-pi", "PI", "a_ 1.822e-05 b_ 1.816e-05 w_ 160.0 qref_ 100.0", 400),
        ("reno-50-rem-ecn", "REM", "gamma_ 0.001 phi_ 1.001 inw_ 1 pupdtime_ 0.002", 401),
    ],
)
def test_disciplines_in_the_words_of_ns2(
    settings: dict[str, Setting], name: str, kind: str, some: str, limit: int
) -> None:
    options = ns2.options(settings[name].scenario.data)
    assert options["discipline"] == kind
    assert some in str(options["settings"])
    assert options["queue"] == limit


def test_every_option_is_known_to_the_program(settings: dict[str, Setting]) -> None:
    program = (ROOT / ns2.PROGRAM).read_text()
    known = program.partition("[options {")[2].partition("}]")[0].split()
    options = ns2.options(settings["sack-10-red-two-way"].scenario.data)
    # The last one's default is an empty list, whose braces end the text that is searched.
    assert set(options) <= set(known)
    assert options["two_way"] == 1
    assert options["sack"] == 1


def test_another_discipline_is_refused(settings: dict[str, Setting]) -> None:
    codel = settings["reno-10-red"].scenario.with_overrides(
        {"topology.bottleneck.discipline": '{ kind = "codel", limit = "100 packets" }'}
    )
    with pytest.raises(AqmlabError, match=r"discipline\.kind: found codel"):
        ns2.options(codel.data)
    pi = codel.with_overrides({"topology.bottleneck.discipline": '{ preset = "pi-24" }'})
    with pytest.raises(AqmlabError, match=r"discipline\.kind: found pi"):
        ns3.options(pi.data)


def test_what_ns2_prints_is_read() -> None:
    numbers, version = parsed("ns-2", PRINTED)
    assert version == "2.35"
    assert numbers["goodput"] == pytest.approx(1414211.733)
    assert numbers["loss"] == pytest.approx(1077 / 116495)
    assert numbers["queue"] == pytest.approx(27.04627)


@pytest.mark.parametrize(
    "printed", ["", "hello\n", PRINTED.replace("goodput_bps 1", "goodput_bps x")]
)
def test_anything_else_is_an_error(printed: str) -> None:
    with pytest.raises(RunError, match="must print arrived_packets"):
        parsed("ns-2", printed)


def test_an_idle_queue_is_an_error() -> None:
    with pytest.raises(RunError, match="no packet came"):
        parsed("ns-2", PRINTED.replace("116495", "0").replace("1077", "0"))


@pytest.mark.parametrize(
    ("ours", "theirs", "within"),
    [
        ((1.10, 1.20), (1.0, 1.0), True),
        ((1.10, 1.21), (1.0, 1.0), False),
        ((0.85, 0.85), (1.0, 1.0), True),
        ((0.84, 0.84), (1.0, 1.0), False),
        ((0.0, 0.0), (0.0, 0.0), True),
        ((0.001, 0.0), (0.0, 0.0), False),
    ],
)
def test_means_are_judged_by_a_share_of_theirs(
    ours: tuple[float, ...], theirs: tuple[float, ...], within: bool
) -> None:
    assert PeerCell("one", "loss", ours, theirs, 0.15).within is within


def test_the_page_shows_every_cell_with_its_verdict(settings: dict[str, Setting]) -> None:
    setting = replace(settings["reno-10-red"], seeds=(1, 2))
    ours = [
        {"goodput": 1.0e6, "loss": 0.01, "queue": 8.0},
        {"goodput": 1.2e6, "loss": 0.01, "queue": 8.0},
    ]
    theirs = [{"goodput": 1.1e6, "loss": 0.01, "queue": 10.0}] * 2
    cells = judge(setting, ours, theirs)
    assert [cell.metric for cell in cells] == list(METRICS)
    text = page([setting], cells, {"ns-2": "2.35"})
    assert "**2 of 3 cells are within their tolerance.**" in text
    assert "Versions: ns-2 2.35." in text
    assert "| 10 Reno, RED | +0.0 % | +0.0 % | **-20.0 %** |" in text
    assert "## ns-3" not in text
    text = peers.record([setting], cells)
    for row in (
        "| 10 Reno, RED | 1,100 (1,000 to 1,200) | 1,100 (1,100 to 1,100) | +0.0 % | within |",
        "| 10 Reno, RED | 1.00 (1.00 to 1.00) | 1.00 (1.00 to 1.00) | +0.0 % | within |",
        "| 10 Reno, RED | 8.0 (8.0 to 8.0) | 10.0 (10.0 to 10.0) | -20.0 % | **outside** |",
    ):
        assert row in text
    assert "Tolerance 5 %." in text
    assert "### ns-2: goodput of all transfers, kbit/s" in text
    assert "### ns-3" not in text


def test_without_ns2_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(scenario: Scenario, *_: object, **__: object) -> None:
        raise AssertionError(scenario.name)

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(peers, "execute", run)
    assert peers.main([]) == 2
    assert "ns-2 is not installed" in capsys.readouterr().err


def test_without_ns3_nothing_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(scenario: Scenario, *_: object, **__: object) -> None:
        raise AssertionError(scenario.name)

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(peers, "execute", run)
    assert peers.main(["ns3-red", "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert "ns-3 is not installed" in printed
    assert "apt-get install libns3-dev" in printed


def test_settings_and_tolerances_of_ns3_are_those_of_ns2(
    settings: dict[str, Setting], settings3: dict[str, Setting]
) -> None:
    kinds = set()
    for setting in settings3.values():
        assert setting.seeds == settings["reno-10-red"].seeds
        assert setting.within == settings["reno-10-red"].within
        data = setting.scenario.data
        link, [traffic] = data["topology"]["bottleneck"]["forward"], data["traffic"]
        kinds.add(link["discipline"]["kind"])
        assert link["device_ring"] == "1 packets"
        assert traffic["tcp"]["ecn"] == link["discipline"].get("ecn", False)
    assert kinds == {"droptail", "red", "codel", "fq-codel", "pie"}


@pytest.mark.parametrize(
    ("name", "kind", "some"),
    [
        ("ns3-droptail", "ns3::FifoQueueDisc", "MaxSize=100p"),
        ("ns3-red-ecn", "ns3::RedQueueDisc", "UseEcn=true,MinTh=10.0,MaxTh=30.0,LInterm=10.0"),
        ("ns3-codel", "ns3::CoDelQueueDisc", "UseEcn=false,Target=5ms,Interval=100ms"),
        ("ns3-fq-codel", "ns3::FqCoDelQueueDisc", "ns3::CoDelQueueDisc::MinBytes=1501,Flows=1024"),
        ("ns3-pie", "ns3::PieQueueDisc", "QueueDelayReference=15ms,Tupdate=15ms"),
    ],
)
def test_disciplines_in_the_words_of_ns3(
    settings3: dict[str, Setting], name: str, kind: str, some: str
) -> None:
    options = ns3.options(settings3[name].scenario.data)
    assert options["discipline"] == kind
    assert some in str(options["settings"])
    assert (options["rate"], options["segment"], options["window"]) == ("10000000bps", 1460, 65535)
    program = (ROOT / ns3.PROGRAM).read_text()
    for option in options:
        assert f'options.AddValue("{option}"' in program


def test_a_program_that_fails_is_named() -> None:
    with pytest.raises(RunError, match="ns-3: one ended with status 1: no message"):
        called("ns-3", ["false"], "one")


def test_an_unknown_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert peers.main(["reno-5"]) == 2
    assert "there is no setting reno-5; known: reno-4-droptail" in capsys.readouterr().err
