"""The live bed. What needs a network namespace is skipped, loudly, where there can be none.

The default selection takes a minute. ``make test-live`` sets ``AQMLAB_LIVE=full`` and adds the long
comparisons: every discipline under load, and the simulator against the kernel.

A machine that is busy with other things does not keep the bed's bounds. Then a run says so, and
what it measured is not compared; that it says so is checked instead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aqmlab import Run, Scenario, _native
from aqmlab.engine.execute import World, execute
from aqmlab.results.manifest import seal
from conftest import ROOT, SMALL, Cli

LACKING = _native.live_missing()
FULL = os.environ.get("AQMLAB_LIVE") == "full"

live = pytest.mark.skipif(LACKING is not None, reason=f"NO LIVE TEST WAS RUN: {LACKING}")
full = pytest.mark.skipif(not FULL, reason="long live tests: make test-live")

BULK = """
title = "Transfers on the live bed"

[measure]
warm_up = "{warm_up}"
duration = "{duration}"
queue_sample = "20 ms"

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "10 Mbit/s"
framing = "ethernet"
discipline = {discipline}

[topology.bottleneck.reverse]
discipline = {{ kind = "droptail", limit = "200 packets" }}

[[traffic]]
name = "transfers"
kind = "bulk"
flows = 4
{size}
tcp = {{ profile = "linux", congestion_control = "reno", ecn = {ecn} }}
rtt = {{ kind = "constant", rtt = "50 ms" }}
"""
DROPTAIL = '{ kind = "droptail", limit = "60 packets" }'
RED = '{ kind = "red", min_th = "20 packets", max_th = "60 packets", limit = "200 packets" }'
MARKING = RED.replace(" }", ", ecn = true }")


def bulk(
    warm_up: str = "1 s",
    duration: str = "4 s",
    discipline: str = DROPTAIL,
    size: str = "",
    ecn: str = "false",
) -> str:
    """A scenario of a few transfers."""
    return BULK.format(
        warm_up=warm_up, duration=duration, discipline=discipline, size=size, ecn=ecn
    )


def namespaces(process: int | str = "self") -> set[str]:
    """The network namespaces that files of a process hold."""
    found = set()
    for link in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):
            target = str(link.readlink())
            if target.startswith("net:["):
                found.add(target)
    return found


def holders(wanted: set[str]) -> set[int]:
    """The processes of this machine that are in one of some namespaces, or hold one."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        inside = set()
        for link in process.glob("task/*/ns/net"):
            with suppress(OSError):
                inside.add(str(link.readlink()))
        if (namespaces(process.name) | inside) & wanted:
            found.add(int(process.name))
    return found


def entering(process: int, side: str) -> list[str]:
    """A command's beginning that has it run in the namespace of a side of a live run."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for task in Path(f"/proc/{process}/task").glob("*"):
            with suppress(OSError):
                if (task / "comm").read_text() == f"load {side}\n":
                    return ["nsenter", f"--net={task}/ns/net"]
        time.sleep(0.05)
    raise AssertionError(f"process {process} has no thread of the {side}")


def forward(run: Run) -> dict[str, Any]:
    """The forward direction of the bottleneck."""
    link: dict[str, Any] = run.summary["links"]["bottleneck"]["forward"]
    return link


def keys(value: object, path: str = "") -> Iterator[str]:
    """Every key inside nested dictionaries."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from keys(inner, f"{path}.{key}")


# ---- what needs no namespace ----


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios/live").glob("*.toml")), ids=str)
def test_the_live_scenarios_load(file: Path) -> None:
    scenario = Scenario.load(file)
    assert not scenario.uncalibrated
    assert scenario.data["traffic"][0]["tcp"]["profile"] == "linux"


def test_every_live_scenario_is_there() -> None:
    names = {file.stem for file in (ROOT / "scenarios/live").glob("*.toml")}
    assert {"quick", "bulk", "christiansen-fifo", "christiansen-red"} <= names


def test_live_runs_go_one_at_a_time(aqmlab: Cli, small: Path) -> None:
    answer = aqmlab("run", small, "--on", "live", "--seeds", "1..3")
    assert answer.status == 2
    assert "--seeds" in answer.err


@live
def test_a_stack_that_no_kernel_has_is_refused(aqmlab: Cli, small: Path) -> None:
    # The small scenario has the default profile, which is not that of a kernel.
    answer = aqmlab("run", small, "--on", "live")
    assert answer.status == 2
    assert answer.err.startswith("aqmlab: traffic.fetches.tcp: the live bed has the kernel's own")
    assert answer.err.count("\n") == 1
    assert namespaces() == set()


def without(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a live scenario behind a command that takes something away."""
    file = Path("bulk.toml")
    file.write_text(bulk())
    run = [sys.executable, "-m", "aqmlab", "run", str(file), "--on", "live"]
    return subprocess.run([*command, *run], capture_output=True, text=True, timeout=60, check=False)


@live
def test_a_missing_device_is_named() -> None:
    hide = 'mount -t tmpfs none /dev/net && exec "$@"'
    answer = without("unshare", "--mount", "sh", "-c", hide, "sh")
    assert answer.returncode == 2
    assert "needs /dev/net/tun" in answer.stderr
    assert answer.stderr.count("\n") == 1


# ---- runs ----


@live
def test_a_live_run_has_what_a_simulated_one_has(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(bulk())
    simulated = execute(scenario, tmp_path / "sim")
    shares: list[float] = []
    run = execute(scenario, tmp_path / "live", world=World.LIVE, progress=shares.append)
    assert namespaces() == set()
    assert shares == sorted(shares)
    assert 0 < shares[-1] <= 1
    files = [sorted(file.name for file in each.path.iterdir()) for each in (simulated, run)]
    assert files[0] == files[1]
    assert set(keys(simulated.summary)) == {
        key for key in keys(run.summary) if not key.startswith(".live")
    }
    assert run.responses is not None
    assert run.queue is not None
    assert run.flows is not None
    for name in ("responses", "queue", "flows"):
        assert getattr(run, name).schema == getattr(simulated, name).schema
    assert run.queue.column("direction").to_pylist().count("forward") == 200
    assert run.label.startswith("droptail 60, live")
    assert run.metadata["key"] != simulated.metadata["key"]
    link = forward(run)
    # Four transfers fill the link whatever else goes on, and nothing appears from nowhere.
    assert link["utilization"] > 0.5
    waiting = link["arrived_packets"] - link["dropped_packets"] - link["departed_packets"]
    assert abs(waiting) <= 61
    health = run.summary["live"]
    assert health["valid"] == (health["reasons"] == [])
    assert health["device_drops"] == 0
    assert health["load"]["local_failures"] == 0
    assert health["router"]["forward"]["stray_packets"] == 0
    assert abs(health["router"]["forward"]["departures"] - link["departed_packets"]) <= 2


@live
def test_users_and_sizes_are_those_of_the_simulator(tmp_path: Path) -> None:
    overrides = {"measure.warm_up": "0 s", "measure.duration": "8 s", "traffic.browsers.users": 600}
    scenario = Scenario.load(ROOT / "scenarios/live/quick.toml").with_overrides(overrides)
    simulated = execute(scenario, tmp_path / "sim").responses
    played = execute(scenario, tmp_path / "live", world=World.LIVE).responses
    assert simulated is not None
    assert played is not None
    # Numbers of connections depend on the order of events; a user's wishes do not.
    columns = ["client", "server", "request_bytes", "response_bytes"]
    wishes = [
        sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
        for table in (simulated, played)
    ]
    both = set(wishes[0]) & set(wishes[1])
    # What was under way at the end is missing from the one or the other.
    assert len(both) > 0.9 * max(len(wish) for wish in map(set, wishes)) > 50


@live
def test_an_invalid_run_says_why_everywhere(aqmlab: Cli, tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SMALL).with_overrides(
        {"traffic.fetches.tcp": '"linux"', "measure.duration": "3 s"}
    )
    run = execute(scenario, tmp_path / "run", world=World.LIVE)
    file = run.path / "summary.json"
    summary = json.loads(file.read_text())
    reason = "devices: 7 packets dropped before the router"
    summary["live"] |= {"valid": False, "reasons": [reason]}
    file.write_text(json.dumps(summary))
    seal(run.path, run.metadata["key"])
    assert Run.open(run.path).label == "droptail 20, live (invalid)"
    assert reason in aqmlab("show", run.path).out
    assert aqmlab("report", run.path, "-o", tmp_path / "page.html").status == 0
    assert reason in (tmp_path / "page.html").read_text()


CAPTURE = """
import socket, struct, sys, time
side, seconds = sys.argv[1:]
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
packets.bind(("aqmlab0", 3))
packets.settimeout(0.2)
packets.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
marked, opened, reductions, early, acknowledged, reduced = 0, set(), 0, 0, {}, {}
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    try:
        packet, (_, _, direction, *_) = packets.recvfrom(1 << 16)
    except TimeoutError:
        continue
    except OSError:
        break
    flags, (seq, ack) = packet[33], struct.unpack("!II", packet[24:32])
    outgoing = direction == socket.PACKET_OUTGOING
    if outgoing == (side == "servers"):
        marked += packet[1] & 3 == 3
    if not outgoing:
        flow = packet[12:16] + packet[20:22]
        acknowledged[flow] = ack
        if flags & 0x12 == 2:
            opened.add(flow)
    elif flags & 0x80 and not flags & 2:
        flow = packet[16:20] + packet[22:24]
        reductions += 1
        if flow in reduced:
            early += acknowledged[flow] - reduced[flow] & 0xffffffff >= 1 << 31
        reduced[flow] = seq
_, lost = struct.unpack("II", packets.getsockopt(263, 6, 8))
print(marked, len(opened), reductions, early, lost)
"""
"""Watches the device of a side: packets with CE, connections that came, segments with CWR, those of
them that came before all data in front of the last one was acknowledged, packets that were missed.

A sender says CWR in the first new data after its reaction, so what it had sent before lies in front
of that segment: once that is acknowledged, a round trip has passed. When the segment leaves says
less: it may wait for a program that writes late. 33 is SO_RCVBUFFORCE; 263 and 6 are
PACKET_STATISTICS.
"""


def watch(process: int, side: str, seconds: float) -> subprocess.Popen[str]:
    """Captures inside the namespace of a side."""
    command = [*entering(process, side), sys.executable, "-c", CAPTURE, side, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


class Watched(NamedTuple):
    """What :data:`CAPTURE` prints."""

    marked: int
    opened: int
    reductions: int
    early: int
    lost: int


def marks_of(folder: Path) -> tuple[Run, dict[str, Watched]]:
    """A live run of four transfers through a queue that marks, and what both sides saw of it."""
    # The transfers begin when the captures run, and end before the run does: no packet is on its
    # way when it is counted.
    folder.mkdir()
    file = folder / "marks.toml"
    file.write_text(bulk("0 s", "9 s", MARKING, 'size = "1 MB"\nstart = "3 s"', "true"))
    with started(file, folder / "run") as (process, _):
        captures = {side: watch(process.pid, side, 9.5) for side in ("servers", "clients")}
        said = {side: capture.communicate(timeout=60)[0] for side, capture in captures.items()}
        process.wait(60)
    found = {side: Watched(*map(int, text.split())) for side, text in said.items()}
    return Run.open(folder / "run"), found


@live
def test_marks_arrive_and_senders_react_once_per_round_trip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, found = marks_of(tmp_path / "first")
    missed = [side for side, seen in found.items() if seen.lost]
    if run.invalid or missed or found["servers"].opened < 4:
        # The machine was busy with other things: the bed or a capture says so. Once it may.
        with capsys.disabled():
            sys.stderr.write(f"\nagain: {run.invalid}, packets missed: {missed}, {found}\n")
        run, found = marks_of(tmp_path / "second")
    assert run.summary["flows"]["all"]["count"] == 4
    assert forward(run)["marked_packets"] == found["clients"].marked > 10
    assert 4 <= found["servers"].reductions <= forward(run)["marked_packets"]
    assert found["servers"].early == 0


DATAGRAMS = """
title = "Datagrams on the live bed"

[measure]
warm_up = "1 s"
duration = "5 s"

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "10 Mbit/s"
framing = "ethernet"
discipline = { kind = "droptail", limit = "60 packets" }

[[traffic]]
name = "datagrams"
kind = "cbr"
flows = 3
rate = "4 Mbit/s"
gaps = "exponential"
tcp = "linux"
rtt = { kind = "constant", rtt = "50 ms" }
"""
"""Of each 538 bytes on the wire 500 are a datagram's: 12 Mbit/s meet room for 9.3."""


@live
def test_datagrams_overload_a_link_as_in_the_simulator(tmp_path: Path) -> None:
    worlds = comparable(Scenario.from_toml(DATAGRAMS), tmp_path)
    simulated, played = (world["flows"]["datagrams"] for world in worlds)
    assert played["datagrams_sent"] == pytest.approx(simulated["datagrams_sent"], rel=0.01)
    assert played["datagrams_lost"] == pytest.approx(simulated["datagrams_lost"], rel=0.03)
    link = worlds[1]["links"]["bottleneck"]["forward"]
    assert link["throughput_bps"] == pytest.approx(10e6 * 500 / 538, rel=0.005)
    # A datagram that is lost at the edge of the measured time may count on one side only.
    assert played["datagrams_lost"] == pytest.approx(link["dropped_packets"], abs=2)


@live
def test_a_slow_processor_is_before_the_queue_as_in_the_simulator(tmp_path: Path) -> None:
    # 3,000 datagrams a second meet a processor for 2,000, and a link for 2,300.
    processor = {"packet_time": "500 us", "limit": "20 packets"}
    scenario = Scenario.from_toml(DATAGRAMS).with_overrides(
        {"topology.bottleneck.forward.input": processor}
    )
    worlds = comparable(scenario, tmp_path)
    links = [world["links"] for world in worlds]
    assert set(keys(links[0])) == set(keys(links[1]))
    simulated, played = (link["bottleneck-input"]["forward"] for link in links)
    assert simulated["utilization"] > 0.99
    assert played["utilization"] == pytest.approx(simulated["utilization"], rel=0.005)
    assert played["dropped_packets"] == pytest.approx(simulated["dropped_packets"], rel=0.03)
    # The queue behind it has nothing to drop, and nothing came the other way.
    assert links[1]["bottleneck"]["forward"]["dropped_packets"] == 0
    assert links[1]["bottleneck-input"]["reverse"]["arrived_packets"] == 0
    lost = worlds[1]["flows"]["datagrams"]["datagrams_lost"]
    assert lost == pytest.approx(played["dropped_packets"], abs=2)


# ---- endings ----


class started:  # noqa: N801 - used as a context manager
    """A live run in a process of its own, from the moment at which its namespaces exist."""

    def __init__(self, file: Path, out: Path, *more: str, behind: Sequence[str] = ()) -> None:
        command = [*behind, sys.executable, "-m", "aqmlab", "run", str(file), "--on", "live", *more]
        self.process = subprocess.Popen(
            [*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def __enter__(self) -> tuple[subprocess.Popen[bytes], set[str]]:
        end = time.monotonic() + 60
        while len(names := namespaces(self.process.pid)) < 2:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)
        return self.process, names

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@live
@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGQUIT, 128 + signal.SIGQUIT),
    ],
    ids=["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"],
)
@pytest.mark.parametrize("delay", [0.0, 2.0], ids=["while it is made", "while it runs"])
def test_nothing_is_left_after_a_signal(
    tmp_path: Path, number: int, status: int, delay: float
) -> None:
    file = tmp_path / "bulk.toml"
    file.write_text(bulk(duration="50 s"))
    # The tests may run with hangups ignored, as under nohup.
    default = ["env", "--default-signal=HUP,QUIT"]
    with started(file, tmp_path / "run", behind=default) as (process, _):
        time.sleep(delay)
        process.send_signal(number)
        assert process.wait(20) == status
    assert [path.name for path in tmp_path.iterdir()] == ["bulk.toml"]


@live
def test_a_run_that_ignores_hangups_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "bulk.toml"
    file.write_text(bulk(duration="3 s"))
    with started(file, tmp_path / "run", behind=["nohup"]) as (process, _):
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) == 0
    assert Run.open(tmp_path / "run").world == "live"


@live
def test_nothing_is_left_after_an_exception(tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def give_up(done: float) -> None:
        if done > 0.2:
            raise EnoughError

    with pytest.raises(EnoughError):
        execute(Scenario.from_toml(bulk()), tmp_path / "run", world=World.LIVE, progress=give_up)
    assert namespaces() == set()
    assert list(tmp_path.glob("run*")) == []


@live
def test_what_a_killed_run_leaves_is_removed(aqmlab: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bulk.toml"
    file.write_text(bulk(duration="2 s"))
    long = 'measure.duration="50 s"'
    with started(file, tmp_path / "alive", "--set", long) as (alive, others):
        with started(file, tmp_path / "killed", "--set", long) as (process, names):
            # Nobody else is in the namespaces or holds them: the kernel removes them with it.
            assert not names & others
            assert holders(names) == {process.pid}
            process.kill()
            assert process.wait(20) == -signal.SIGKILL
        [left] = tmp_path.glob(".killed.*")
        [kept] = tmp_path.glob(".alive.*")
        answer = aqmlab("run", file, "--on", "live", "--out", tmp_path / "next")
        assert answer.status == 0
        assert f"removed {left}, which a killed run left behind\n" in answer.err
        # A run that goes on is not touched.
        assert str(kept) not in answer.err
        assert kept.is_dir()
        assert not left.exists()
        assert namespaces(alive.pid) == others


# ---- what happens to a bed ----


@live
@pytest.mark.parametrize(
    ("harm", "words"), [("set aqmlab0 down", "was taken down"), ("delete aqmlab0", "was removed")]
)
@pytest.mark.parametrize("side", ["servers", "clients"])
def test_a_harmed_bed_makes_the_run_invalid(
    tmp_path: Path, side: str, harm: str, words: str
) -> None:
    file = tmp_path / "bulk.toml"
    file.write_text(bulk(duration="3 s"))
    with started(file, tmp_path / "run") as (process, _):
        inside = entering(process.pid, side)
        time.sleep(1)
        subprocess.run([*inside, "ip", "link", *harm.split()], check=True)
        assert process.wait(30) == 0
    reasons = Run.open(tmp_path / "run").invalid
    assert reasons[0].startswith(f"bed: the device of the {side} {words} ")
    assert reasons[0].endswith(" s into the run")


@live
def test_a_full_disk_ends_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    # The samples of the queue, one every microsecond, are more than the file system has room for.
    file, disk = tmp_path / "bulk.toml", tmp_path / "disk"
    file.write_text(bulk(duration="3 s").replace('"20 ms"', '"1 us"'))
    disk.mkdir()
    small = f'mount -t tmpfs -o size=128k none {disk} && exec "$@"'
    look = f'"$@"; status=$?; ls -A {disk} >&2; exit $status'
    behind = ["unshare", "--mount", "sh", "-c", small, "sh", "sh", "-c", look, "sh"]
    command = [sys.executable, "-m", "aqmlab", "run", str(file), "--on", "live"]
    answer = subprocess.run(
        [*behind, *command, "--out", str(disk / "run")],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.endswith(
        f"{disk / 'run'}: cannot be written: queue.parquet: No space left on device (os error 28)\n"
    )


# ---- without root ----

WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
ORDINARY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--net"]


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder of the user nobody, with a scenario."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bulk.toml").write_text(bulk())
        os.chown(folder, 65534, 65534)
        yield folder


def being_nobody(held: Path, mode: str) -> list[str]:
    """A command's beginning that has it run as the user nobody; `mode` is that of /dev/net/tun.

    Both are seen in a mount namespace of the test's own, in which others can also reach the
    interpreter if it is in a home folder.
    """
    if os.getuid() != 0:
        pytest.skip("NOT TESTED WITHOUT ROOT: only root can become another user")
    steps = ["mount -t tmpfs none /dev/net", f"mknod -m {mode} /dev/net/tun c 10 200"]
    folders = list(Path(sys.executable).resolve().parents)
    closed = [place for place, folder in enumerate(folders) if not folder.stat().st_mode & 1]
    if closed:
        inner = folders[closed[-1] - 1]
        held.mkdir()
        steps += [
            f"mount --bind {inner} {held}",
            f"mount -t tmpfs -o mode=755 none {inner.parent}",
            f"mkdir {inner}",
            f"mount --bind {held} {inner}",
        ]
    script = " && ".join([*steps, 'exec "$@"'])
    behind = ["unshare", "--mount", "sh", "-c", script, "sh", *ORDINARY]
    look = [*behind, *IN_NAMESPACE, sys.executable, "-c", "import aqmlab"]
    refused = subprocess.run(look, cwd="/", capture_output=True, text=True, check=False)
    if refused.returncode != 0:
        pytest.skip(f"NOT TESTED WITHOUT ROOT: {refused.stderr.strip().splitlines()[-1]}")
    return behind


def as_nobody(
    folder: Path, held: Path, mode: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command of aqmlab as the user nobody; `mode` is that of /dev/net/tun."""
    return subprocess.run(
        [*being_nobody(held, mode), sys.executable, "-m", "aqmlab", *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


LIVE_RUN = ("run", "bulk.toml", "--on", "live", "--out", "run")


@live
def test_live_runs_need_no_root(own_folder: Path, tmp_path: Path) -> None:
    answer = as_nobody(own_folder, tmp_path / "held", "666", *LIVE_RUN)
    assert answer.returncode == 0, answer.stderr
    run = Run.open(own_folder / "run")
    assert run.path.stat().st_uid == 65534
    assert run.world == "live"
    assert forward(run)["utilization"] > 0.5
    assert run.summary["live"]["load"]["local_failures"] == 0
    assert {path.name for path in own_folder.iterdir()} == {"bulk.toml", "run"}


@live
def test_a_device_that_only_root_may_open_is_named(own_folder: Path, tmp_path: Path) -> None:
    answer = as_nobody(own_folder, tmp_path / "held", "600", *LIVE_RUN)
    assert answer.returncode == 2
    assert "needs the capability CAP_NET_ADMIN to make TUN devices (sudo, or " in answer.stderr
    assert "in a user namespace: the live bed needs /dev/net/tun: Permission den" in answer.stderr
    assert answer.stderr.count("\n") == 1


@live
def test_a_kernel_without_user_namespaces_is_named() -> None:
    # In a user namespace of its own a test may forbid further ones.
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    command = [*IN_NAMESPACE, "sh", "-c", forbid, "sh", *WITHOUT_RIGHTS]
    answer = without(*command)
    assert answer.returncode == 2
    assert (
        "(sudo, or unshare --user --map-root-user); in a user namespace: unshare" in answer.stderr
    )
    assert answer.stderr.endswith(" (user.max_user_namespaces is 0)\n")
    assert answer.stderr.count("\n") == 1


# ---- long ones ----


def comparable(scenario: Scenario, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summaries of a simulated and of a valid live run; skips what this machine cannot hold."""
    simulated = execute(scenario, folder / "sim")
    run = execute(scenario, folder / "live", world=World.LIVE)
    if run.invalid:
        pytest.skip(f"THE MACHINE DID NOT KEEP THE BOUNDS: {'; '.join(run.invalid)}")
    return dict(simulated.summary), dict(run.summary)


DISCIPLINES = [
    "droptail-24",
    "red-12-36",
    "ared-feng",
    "ared-auto",
    "pi-24",
    "rem-24",
    "avq-240",
    "lqd-24",
    "sred-240",
    "blue-240",
    "dcn-24",
    "afd-24",
    "rio-ps",
    "rio",
    "fred",
    "sfb",
    "red-pd",
    "choke",
    "codel",
    "pie",
    "sfq",
    "drr",
    "fq-codel",
    "fq-pie",
    "step-65",
    "dualpi2",
    "cobalt",
    "cake",
    "l4s-step",
    "bernoulli-1",
    "policer-10",
    "shaper-10",
]
"""A preset of each discipline."""


def test_every_discipline_is_in_the_list() -> None:
    catalog = json.loads(_native.catalog())
    parameters = [catalog["presets"][name]["parameters"] for name in DISCIPLINES]
    kinds = {entry["value"] for preset in parameters for entry in preset if entry["name"] == "kind"}
    # A plug-in is none before somebody writes it; trees and devices with queues are a network's.
    assert kinds == set(catalog["disciplines"]) - {"plugin", "htb", "cake-mq"}


@live
@full
@pytest.mark.parametrize("preset", DISCIPLINES)
def test_every_discipline_runs_under_load(tmp_path: Path, preset: str) -> None:
    scenario = Scenario.load(ROOT / "scenarios/live/quick.toml").with_overrides(
        {
            "measure.warm_up": "2 s",
            "measure.duration": "28 s",
            "traffic.browsers.users": 3300,
            "traffic.browsers.tcp.ecn": True,
            "topology.bottleneck.forward.discipline": f'"{preset}"',
        }
    )
    run = execute(scenario, tmp_path / "run", world=World.LIVE)
    link, health = forward(run), run.summary["live"]
    assert link["dropped_packets"] + link["marked_packets"] > 0
    assert run.summary["responses"]["all"]["count"] > 500
    assert health["load"]["local_failures"] == 0
    assert health["router"]["forward"]["write_failures"] == 0


COUNT = """
import sys, time
def look():
    with open("/proc/net/dev") as table:
        line = next(line for line in table if "aqmlab0" in line)
    size, packets = map(int, line.partition(":")[2].split()[:2])
    return time.monotonic(), 8 * (size + 38 * packets)
start, before = look()
time.sleep(float(sys.argv[1]))
end, after = look()
print((after - before) / (end - start))
"""
"""The rate at which packets reach a side's device, in bits per second, with Ethernet's framing."""


@live
@full
@pytest.mark.parametrize(("mbit", "way"), [(10, "forward"), (100, "both")])
def test_packets_reach_the_receivers_at_the_links_rate(tmp_path: Path, mbit: int, way: str) -> None:
    # The buffer holds more than a round trip of packets, and transfers are many: the link never
    # idles.
    text = bulk("5 s", "20 s")
    for old, new in [
        ("10 Mbit/s", f"{mbit} Mbit/s"),
        ("50 ms", "10 ms"),
        ("flows = 4", "flows = 24"),
        ('kind = "bulk"', f'kind = "bulk"\ndirection = "{way}"'),
    ]:
        text = text.replace(old, new)
    file = tmp_path / "pace.toml"
    file.write_text(text)
    limit = 'topology.bottleneck.discipline.limit="250 packets"'
    with started(file, tmp_path / "run", "--set", limit) as (process, _):
        time.sleep(6)
        command = [*entering(process.pid, "clients"), sys.executable, "-c", COUNT, "15"]
        rate = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        process.wait(60)
    run = Run.open(tmp_path / "run")
    shares = {key: value["on_time_share"] for key, value in run.summary["live"]["router"].items()}
    print(f"{mbit} Mbit/s {way}: {rate / 1e6:.3f} Mbit/s, on time {shares}")  # noqa: T201
    if run.invalid:
        pytest.skip(f"THE MACHINE DID NOT KEEP THE BOUNDS: {'; '.join(run.invalid)}")
    assert rate == pytest.approx(mbit * 1e6, rel=0.005)


@live
@full
@pytest.mark.parametrize("discipline", [DROPTAIL, RED], ids=["droptail", "red"])
def test_the_kernel_against_the_simulator(tmp_path: Path, discipline: str) -> None:
    scenario = Scenario.from_toml(bulk("10 s", "40 s", discipline))
    simulated, played = comparable(scenario, tmp_path)
    links = [summary["links"]["bottleneck"]["forward"] for summary in (simulated, played)]
    for key, tolerance in TOLERANCES.items():
        assert links[1][key] == pytest.approx(links[0][key], rel=tolerance), key


TOLERANCES = {"utilization": 0.02, "queue_mean_packets": 0.15}
"""How close one run of the kernel is to one of the simulator; losses take several seeds, which
``make live-compare`` makes."""
