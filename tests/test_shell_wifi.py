"""Programs behind Wi-Fi. What needs a network namespace is skipped, loudly, where there is none.

Counts and rates are compared with the simulator, where the machine kept up: a run that is busy with
other things says that it is invalid, and then its numbers are not looked at.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import aqmlab as library
import pytest
from aqmlab import Run, Scenario
from aqmlab.errors import AqmlabError
from aqmlab.shell.link import FileLink, Link, Span
from aqmlab.shell.users import users_of
from aqmlab.shell.wifi import ShellWifi
from conftest import ROOT, Cli
from test_live import live

SHELL = [sys.executable, "-m", "aqmlab", "shell", "--out", "run"]
PATIENCE_S = 60.0
FLAT = ROOT / "scenarios/flat.toml"
DOWNLOADS = ROOT / "scenarios/wifi/downloads.toml"


def shell(*words: str, program: str) -> tuple[Run, str]:
    """Runs Python's code behind Wi-Fi: the run, and what was printed."""
    done = subprocess.run(
        [*SHELL, *words, "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Run.open("run"), done.stderr


def wifi(link: Link | FileLink, *beside: str) -> dict[str, Any]:
    """What the scenario of a link says of Wi-Fi."""
    users = users_of(beside, 0.02)
    found: dict[str, Any] = link.scenario("x", 1, Span(5.0), users).data["topology"]["wifi"]
    return found


def stations(link: Link | FileLink, *beside: str) -> list[tuple[int, int, str | None]]:
    """The stations of a link's scenario: how many, their MCS, and their class."""
    found = wifi(link, *beside)["stations"]
    return [(it["count"], it.get("mcs"), it.get("class")) for it in found]


# ---- options ----


def test_a_program_has_a_station_of_its_own() -> None:
    link = Link(1e9, 1e9, wifi=ShellWifi())
    assert stations(link) == [(1, 15, "program")]
    assert stations(link, "bulk:3") == [(1, 15, "program"), (3, 15, None)]
    assert wifi(link)["queue"] == "mac80211"
    assert str(link).endswith("droptail, then Wi-Fi")
    fifo = Link(1e9, 1e9, wifi=ShellWifi(sets=(("wifi.queue", "fifo"), ("wifi.phy", "he80"))))
    assert wifi(fifo)["queue"] == "fifo"
    assert stations(fifo) == [(1, 11, "program")]
    many = ShellWifi(sets=(("topology.wifi.stations", "[{ mcs = 3 }, { count = 40, mcs = 1 }]"),))
    data = Link(1e9, 1e9, wifi=many).scenario("x", 1, Span(5.0)).data["topology"]
    assert data["hosts"]["clients"] == 41
    assert Link(1e9, 1e9).scenario("x", 1, Span(5.0)).data["topology"].get("wifi") is None


def scenario_link(file: Path, *sets: tuple[str, str]) -> FileLink:
    """The link of a scenario, and the Wi-Fi behind it."""
    scenario = Scenario.load(file)
    topology = scenario.data["topology"]
    own = ShellWifi(topology["wifi"], str(file), topology["hosts"]["clients"], sets)
    return FileLink.of(scenario, file, 0.01, 0.0, wifi=own)


def test_a_scenario_gives_its_wifi() -> None:
    link = scenario_link(FLAT)
    # The device far away is that of a class that stays away.
    assert stations(link) == [(3, 15, None)]
    assert (1, 0, "far") in stations(link, str(FLAT))
    assert link.scenario("x", 1, Span(5.0)).data["topology"]["hosts"]["clients"] == 4
    near = scenario_link(DOWNLOADS, ("wifi.airtime_fairness", "false"))
    assert wifi(near)["airtime_fairness"] is False
    with pytest.raises(AqmlabError, match=r"stations: found none for the program; expected"):
        stations(scenario_link(ROOT / "scenarios/wifi/flood.toml"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "wifi.queue=fifo"], '--set: found "wifi.queue" without Wi-Fi; expected --wifi'),
        (["--wifi", "--set", "rate=3"], '--set: found "rate"; expected a key of topology.wifi'),
        (["--wifi", "--set", "wifi.queue=lifo"], "topology.wifi.queue"),
        (["--wifi", "--set", "wifi.stations=3"], "--set wifi.stations: found 3; expected tables"),
        (["--wifi", "--set", "wifi.phy=vht80", "--set", "wifi.stations=[{mcs=11}]"], "MCS 0 to 9"),
        (["--wifi", "--scenario", str(FLAT)], "whose topology.wifi says it"),
        (["--wifi", "--pcap"], "--pcap: found it beside Wi-Fi"),
        (["--wifi", "--record", "packets"], '--record: found "packets", which does not know'),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], message: str, aqmlab: Cli) -> None:
    done = aqmlab("shell", *words, "--", "true")
    assert done.status == 2
    assert message in " ".join(done.err.split())


# ---- real time ----

RECEIVE = """
import socket
with socket.create_connection(("host.aqmlab", 8000)) as near:
    near.sendall(b"GET /1GB HTTP/1.0\\r\\n\\r\\n")
    while near.recv(1 << 20):
        pass
"""
IDLE = "import time; time.sleep(60)"
FLOOD = """{
    kind = "cbr", flows = 2, rate = "30 Mbit/s", packet = "1500 bytes", direction = "reverse"
}""".replace("\n", " ")


def simulated(run: Run) -> dict[str, Any]:
    """The summary of a run's scenario in simulated time, where the program asks for nothing."""
    data = Scenario.load(run.path / "scenario.toml").data
    program, *users = data["traffic"]
    quiet = {"kind": "cbr", "flows": 1, "rate": "1 bit/s", "packet": "60 bytes"}
    quiet |= {key: program[key] for key in ("name", "rtt")}
    content = {**data, "traffic": [quiet, *users]}
    return dict(library.run(Scenario.from_dict(content), progress=False).summary)


@live
def test_a_download_crosses_the_air() -> None:
    # A station with 29 Mbit/s on the air.
    run, text = shell(
        *("--wifi", "--set", "wifi.stations=[{ mcs = 3 }]", "--for", "3 s"), program=RECEIVE
    )
    links, air = run.summary["links"], run.summary["wifi"]["mcs-3"]
    assert set(links) == {"bottleneck", "wifi"}
    down, up = air["down"], air["up"]
    for way, link in (("down", "forward"), ("up", "reverse")):
        sent, on_air = links["bottleneck"][link], links["wifi"][way]
        assert on_air["arrived_packets"] > 100, way
        # What one of them hands over the other takes, except what is under way at the end.
        assert sent["arrived_packets"] == pytest.approx(on_air["arrived_packets"], rel=0.05)
    # Many packets share a transmission down; acknowledgements come up.
    assert down["aggregate_mean_packets"] > 4.0
    assert down["airtime_share"] > 5 * up["airtime_share"] > 0.0
    assert down["airtime_share"] + up["airtime_share"] < 1.0
    assert "Wi-Fi" in text
    assert f"{down['transmissions']} transmissions" in text
    if not run.invalid:
        # The air takes 28.9 Mbit/s while a transmission lasts.
        assert 15e6 < links["wifi"]["down"]["throughput_bps"] < 28.9e6


@live
def test_a_flood_makes_as_many_transmissions_as_simulated() -> None:
    run, _ = shell(
        *("--wifi", "--net", "none", "--beside", FLOOD, "--warm-up", "2 s", "--for", "3 s"),
        *("--set", "wifi.stations=[{ mcs = 3, class = 'program' }, { count = 2, mcs = 3 }]"),
        program=IDLE,
    )
    # Senders always have something to send, however late a busy machine lets them.
    found, expected = (it["wifi"]["mcs-3"]["up"] for it in (run.summary, simulated(run)))
    assert expected["transmissions"] > 600
    for key in ("transmissions", "aggregate_mean_packets", "airtime_share"):
        assert found[key] == pytest.approx(expected[key], rel=0.04), key
    assert found["collision_rate"] == pytest.approx(expected["collision_rate"], abs=0.06)


@live
def test_users_beside_a_program_have_other_stations() -> None:
    run, text = shell(
        *("--wifi", "--beside", "bulk:2", "--warm-up", "1 s", "--for", "2 s"),
        *("--set", "wifi.stations=[{ mcs = 3, class = 'program' }, { count = 2, mcs = 2 }]"),
        program=IDLE,
    )
    air = run.summary["wifi"]
    assert air["program"]["down"]["transmissions"] == 0
    assert air["mcs-2"]["down"]["stations"] == 2
    assert air["mcs-2"]["down"]["transmissions"] > 50
    assert run.summary["flows"]["bulk"]["goodput_bps"] > 1e6
    assert "bulk: goodput" in text


PING = """
import socket, time
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.connect(("100.64.0.1", 7))
near.settimeout(3)
times = []
for number in range(8):
    begin = time.monotonic()
    near.send(bytes([number]))
    while near.recv(10) != bytes([number]):
        pass
    times.append(time.monotonic() - begin)
    time.sleep(0.05)
print("median", sorted(times)[4])
"""


@live
def test_a_queue_for_each_station_keeps_a_ping_out_of_downloads() -> None:
    medians = []
    for queue in ("fifo", "mac80211"):
        own = [*SHELL[:-1], queue, "--wifi", "--set", f"wifi.queue={queue}"]
        own += ["--set", "wifi.stations=[{ mcs = 3, class = 'program' }, { count = 3, mcs = 3 }]"]
        own += ["--beside", "bulk:3", "--warm-up", "2 s", "--", sys.executable, "-c", PING]
        done = subprocess.run(own, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stderr
        medians.append(float(done.stdout.split()[-1]))
    # The round trip of the empty link is 20 ms.
    assert medians[1] > 0.02
    assert medians[0] > 2.5 * medians[1], medians
