"""Programs behind a queue. What needs a network namespace is skipped, loudly, where there is none.

Only the namespaces that a test makes are reached. A machine that is busy with other things makes a
run invalid, which the run says; then its times are not looked at.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from aqmlab import Run, Scenario
from aqmlab.errors import AqmlabError
from aqmlab.scenario.quantities import parsed_rate
from aqmlab.shell.link import FileLink, Link, Span, trace_rate_bps
from aqmlab.shell.notes import ways_out
from conftest import ROOT, Cli
from test_live import IN_NAMESPACE, WITHOUT_RIGHTS, as_nobody, holders, live, namespaces, own_folder

__all__ = ["own_folder"]

SHELL = [sys.executable, "-m", "aqmlab", "shell"]
CELLULAR = "scenarios/cellular.toml"
PATIENCE_S = 40.0


def shell(*words: str, program: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a program, or Python's code, behind a queue; the run directory is ``run``."""
    code = [sys.executable, "-c", program] if program else []
    return subprocess.run(
        [*SHELL, "--out", "run", *words, *code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def directions() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the run's link did, down and up."""
    link = Run.open("run").summary["links"]["bottleneck"]
    return link["forward"], link["reverse"]


# ---- the link as a scenario ----


def disciplines(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The queues of a link with 12 Mbit/s down, 1.2 Mbit/s up and 100 ms, with some changes."""
    link = Link(**{"down_bps": 12e6, "up_bps": 1.2e6, "rtt_s": 0.1, **changes})
    bottleneck = link.scenario("a program", 1, Span(10.0)).data["topology"]["bottleneck"]
    return bottleneck["forward"]["discipline"], bottleneck["reverse"]["discipline"]


def test_a_buffer_is_a_bandwidth_delay_product_unless_stated() -> None:
    assert [it["limit"] for it in disciplines()] == ["150000 bytes", "15000 bytes"]
    assert [it["limit"] for it in disciplines(buffer="2 bdp")] == ["300000 bytes", "30000 bytes"]
    assert [it["limit"] for it in disciplines(buffer="250 ms")] == ["375000 bytes", "37500 bytes"]
    assert [it["limit"] for it in disciplines(buffer="1 ms")] == ["3000 bytes", "3000 bytes"]
    assert [it["limit"] for it in disciplines(buffer="7 packets")] == ["7 packets"] * 2
    own = disciplines(queue_down="droptail:64 kB", queue_up="droptail-24", buffer="1 s")
    assert [it["limit"] for it in own] == ["64000 bytes", "150000 bytes"]
    down, up = disciplines(queue_down="fq-codel", queue_up='{ kind = "codel", target = "9 ms" }')
    assert (down["kind"], up["kind"], up["target"]) == ("fq-codel", "codel", "9 ms")


def test_a_link_is_a_scenario_that_can_be_simulated() -> None:
    link = Link(down_bps=20e6, up_bps=2e6, rtt_s=0.04, loss=0.01)
    scenario = link.scenario("curl", 7, Span(30.0))
    assert Scenario.from_toml(scenario.effective).effective == scenario.effective
    bottleneck = scenario.data["topology"]["bottleneck"]
    assert bottleneck["forward"]["rate"] == "20 Mbit/s"
    assert bottleneck["reverse"]["delay"] == "20 ms"
    assert bottleneck["reverse"]["loss"] == 0.01


def test_a_trace_has_its_mean_rate() -> None:
    trace = ROOT / "scenarios/traces/lte.trace"
    link = Link(down_bps=trace_rate_bps(trace, "forward"), up_bps=2e6, trace_down=trace)
    assert link.down_bps == pytest.approx(27_789 * 12_000 / 30)
    ways = link.scenario("curl", 1, Span(5.0)).data["topology"]["bottleneck"]
    assert len(ways["forward"]["trace"]["opportunities"]) == 27_789
    assert ways["reverse"].get("trace") is None
    assert "11.1156 Mbit/s down by lte.trace, 2 Mbit/s up" in str(link)


def test_a_file_gives_the_link() -> None:
    own = FileLink.load(ROOT / "scenarios/cellular.toml", None, 0.0)
    assert own.rtt_s == pytest.approx(0.02)
    ways = own.scenario("curl", 3, Span(5.0)).data["topology"]["bottleneck"]
    assert ways["forward"]["discipline"]["kind"] == "fq-codel"
    assert "fq-codel (cellular.toml)" in str(own)
    # A link without delay, and another round trip.
    for rtt_s, delay in ((None, "10 ms"), (0.05, "25 ms")):
        link = FileLink.load(ROOT / "scenarios/quickstart.toml", rtt_s, 0.0)
        data = link.scenario("curl", 3, Span(5.0)).data
        assert data["topology"]["bottleneck"]["forward"]["delay"] == delay
        assert [it["name"] for it in data["traffic"]] == ["program"]
    with pytest.raises(AqmlabError, match='kind: found "parking-lot", but programs'):
        FileLink.load(ROOT / "scenarios/parking-lot.toml", None, 0.0)


def test_a_file_gives_the_link_with_another_queue() -> None:
    own = FileLink.load(ROOT / CELLULAR, None, 0.0).bottleneck
    for given, kinds in (
        (("droptail:250 ms", "droptail:250 ms"), ["droptail", "droptail"]),
        (("pie", None), ["pie", own["reverse"]["discipline"]["kind"]]),
        ((None, '{ kind = "codel", target = "9 ms" }'), ["fq-codel", "codel"]),
    ):
        link = FileLink.load(ROOT / CELLULAR, None, 0.0, *given)
        ways = link.scenario("curl", 3, Span(5.0)).data["topology"]["bottleneck"]
        found = [ways[way] for way in ("forward", "reverse")]
        assert [way["discipline"]["kind"] for way in found] == kinds
        # The rest of the link is that of the file.
        for way, name in zip(found, ("forward", "reverse"), strict=True):
            assert {key: way[key] for key in way if key != "discipline"} == {
                key: own[name][key] for key in own[name] if key != "discipline"
            }
        assert (link.asked is not None) == (given[0] == given[1])
    # A quarter of a second of each direction's own rate; a buffer is one of queues without one.
    slow = FileLink.load(ROOT / CELLULAR, None, 0.0, "droptail", "droptail:9 kB", "250 ms")
    ways = slow.scenario("curl", 3, Span(5.0)).data["topology"]["bottleneck"]
    rate_bps = parsed_rate(ways["forward"]["rate"])
    assert ways["forward"]["discipline"]["limit"] == f"{round(rate_bps / 32)} bytes"
    assert ways["reverse"]["discipline"]["limit"] == "9000 bytes"
    assert "droptail (down), droptail:9 kB (up) (cellular.toml)" in str(slow)


@pytest.mark.parametrize("size", ["many", "-3 ms", "10 parsecs"])
def test_a_wrong_buffer_is_named(size: str) -> None:
    with pytest.raises(AqmlabError, match=f'--queue-down: found the buffer "{size}"; exp'):
        disciplines(queue_down=f"droptail:{size}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no-such-program"], "program: found no-such-program, which is no program of your PATH"),
        (["--rate", "x", "true"], '--rate: found "x"; expected a rate such as 100/20'),
        (["--rtt", "1 h", "true"], '--rtt: found "1 h"; expected'),
        (["--for", "3 days", "true"], '--for: found "3 days"; expected a time'),
        (["--for", "48 h", "true"], '--for: found "48 h"; expected 10 ms to 24 h'),
        (["--jitter", "1 min", "true"], '--jitter: found "1 min"; expected at most 10 s'),
        (["--queue", "cordel", "true"], '--queue: found "cordel"; did you mean "codel"?'),
        (["--queue-up", "cordel", "true"], '--queue-up: found "cordel"'),
        (["--queue", "red", "true"], "--queue: min_th: missing"),
        (["--queue", "{ kind", "true"], "--queue: found { kind: "),
        (["--loss", "2", "true"], "--loss: found 2; a probability"),
        (["--down", "no-file", "true"], '--down: found "no-file", which is no file; expected'),
        (["--up", "pyproject", "true"], '--up: found "pyproject"'),
        (["--scenario", "none.toml", "true"], "none.toml"),
        (["--scenario", "none.toml", "--rate", "3", "true"], "--rate: found one beside --scenario"),
        (
            ["--scenario", "none.toml", "--buffer", "1 bdp", "true"],
            "--buffer: found one beside --scenario, whose queue says it; expected --queue, too",
        ),
        (["--scenario", CELLULAR, "--queue", "cordel", "true"], '--queue: found "cordel"; did you'),
        (["--scenario", CELLULAR, "--queue-up", "red", "true"], "--queue-up: min_th: missing"),
        (
            ["--scenario", CELLULAR, "--queue", "pie", "--buffer", "many", "true"],
            '--buffer: found the buffer "many"; expected',
        ),
        (["--net", "moon", "true"], '--net: found "moon"; expected none, local, host, all, or'),
        (["--net", "none,all", "true"], '--net: found "none,all"; expected'),
        (["--queue", "pie,,", "true"], '--queue: found "pie,,", where a name is missing'),
        (["--queue", "pie", "--queue", "pie", "true"], "--queue: found pie twice; --repeat"),
        (
            ["--queue", "a,b", "--queue-down", "pie", "--queue-up", "pie", "true"],
            "--queue: found several beside --queue-down and --queue-up",
        ),
        (["--out", ".", "true"], "--out: . is there already"),
    ],
)
def test_wrong_input_is_named_in_a_line(
    aqmlab: Cli, elsewhere: Path, words: list[str], message: str
) -> None:
    words = [os.fspath(ROOT / word) if word == CELLULAR else word for word in words]
    answer = aqmlab("shell", *words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1
    assert not any(elsewhere.iterdir())


# ---- programs ----

GOODPUT = ("goodput_bps", "upload_goodput_bps")

DOWNLOAD = """
import socket, sys, time, urllib.request
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
def connect():
    began = time.monotonic()
    socket.create_connection(("100.64.0.1", 8000)).close()
    return time.monotonic() - began
print(min(connect() for _ in range(5)))
print(len(urllib.request.urlopen("http://host.aqmlab:8000/300kB").read()))
upload = urllib.request.Request("http://host.aqmlab:8000/", data=bytes(50_000), method="PUT")
print(urllib.request.urlopen(upload).read().decode().strip())
sys.exit(5)
"""


@live
def test_a_program_is_behind_the_queue() -> None:
    options = ["--rate", "8/2", "--rtt", "40 ms", "--queue", "fq-codel", "--seed", "3"]
    answer = shell(*options, program=DOWNLOAD)
    connect_s, downloaded, uploaded = answer.stdout.splitlines()
    assert (downloaded, uploaded) == ("300000", "50000 bytes received")
    assert answer.returncode == 5, answer.stderr
    run = Run.open("run")
    down, up = directions()
    assert (run.world, run.seed) == ("live", 3)
    assert 300_000 * 8 < down["throughput_bps"] * run.summary["measured_s"] < 400_000 * 8
    assert 50_000 * 8 < up["throughput_bps"] * run.summary["measured_s"] < 90_000 * 8
    # What the program received and sent itself: the files, and what HTTP adds to three exchanges.
    flows = run.summary["flows"]["program"]
    moved = [flows[key] * run.summary["measured_s"] / 8 for key in GOODPUT]
    assert 300_000 < moved[0] < 301_000
    assert 50_000 < moved[1] < 51_000
    # The last connections may end with the program, whose end ends the run.
    assert flows["count"] + flows["still_open"] == 7
    assert flows["count"] >= 5
    assert down["throughput_bps"] < 8e6
    assert up["throughput_bps"] < 2e6
    assert float(connect_s) >= 0.04
    if not run.invalid:
        assert float(connect_s) < 0.06
    # What it says of itself: ten lines.
    said = answer.stderr.splitlines()
    assert len(said) == 10 + len(ways_out([run]))
    assert re.search(r"ended with status 5 after \d+\.\d\d s: 8 Mbit/s down, 2 Mbit/s up", said[0])
    assert all(line.startswith("aqmlab: ") for line in said)
    assert re.match(r"aqmlab:   goodput  \S+ [kM]bit/s +\S+ kbit/s$", said[2])
    controls = list(run.summary["live"]["program"]["controls"].values())
    assert said[7].split() == ["aqmlab:", "control", *controls]
    assert 0.3 < run.summary["live"]["program"]["time_s"] <= run.summary["measured_s"]
    assert said[8].startswith("aqmlab:   valid: " if not run.invalid else "aqmlab:   INVALID: ")
    assert said[-1] == "aqmlab:   run directory: run"
    # The file of the link can be simulated, for as long as the program took.
    assert Scenario.load(run.path / "scenario.toml").data["traffic"][0]["name"] == "program"
    shown = {}
    for command in (
        ["show", "run"],
        ["run", "run/scenario.toml", "--out", "sim"],
        ["compare", "run", "sim"],
        ["plot", "delay", "run", "-o", "delays.svg"],
    ):
        ended = subprocess.run([*SHELL[:-1], *command], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "fq-codel" in ended.stdout or Path("delays.svg").is_file()
        shown[command[0]] = ended.stdout
    # Both have the goodput of the download; only the program uploads.
    for way, key in zip(("", "upload "), GOODPUT, strict=True):
        row = rf"program {way}goodput \(Mbit/s\) +{flows[key] / 1e6:.3f} "
        assert re.search(row, shown["compare"]), shown["compare"]
    assert "program upload goodput" not in shown["run"]
    # A simulated download has no program's time.
    took = run.summary["live"]["program"]["time_s"]
    assert re.search(rf"program time \(s\) +{took:.2f} +-\s", shown["compare"]), shown["compare"]


ONCE = """
import os, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open("http://100.64.0.1:8000/100kB").read()
time.sleep(0.2 * ("-2" in os.environ["AQMLAB_RUN"]))
sys.exit(3 * os.environ["AQMLAB_RUN"].endswith("codel-2"))
"""


@live
def test_queues_take_turns_and_are_compared() -> None:
    queues = ["--queue", "droptail:100 ms", "--queue", '{ kind = "codel", target = "9 ms" },codel']
    answer = shell("--rate", "8/2", *queues, "--repeat", "2", "--seed", "5", program=ONCE)
    assert answer.returncode == 3, answer.stderr
    folders = ["droptail-100-ms", "kind-codel-target-9-ms", "codel"]
    runs = [Run.open(f"run/{name}-{number}") for number in (1, 2) for name in folders]
    assert [run.seed for run in runs] == [5] * 3 + [6] * 3
    said = answer.stderr.splitlines()
    order = [line.split(": ")[2] for line in said[:6]]
    assert order == ["droptail:100 ms", '{ kind = "codel", target = "9 ms" }', "codel"] * 2
    assert "codel: ended with status 3 after" in said[5]
    assert said[6].startswith("queues beside each other, 2 runs each")
    rows = {line.split("  ")[0]: line for line in said[8:11]}
    assert list(rows) == order[:3]
    times = [run.summary["measured_s"] for run in runs if run.scenario["seed"] == 6]
    assert min(times) > 0.3
    # Repetitions that took another time are of one group; so are simulated runs beside them.
    simulate = ["run", "run/codel-1/scenario.toml", "--seeds", "5..6", "--out", "sim"]
    for command in (simulate, ["compare", "run", "sim"]):
        ended = subprocess.run([*SHELL[:-1], *command], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    assert "2 seeds each" in ended.stdout
    assert "droptail:100 ms, live" in ended.stdout


FLOOD = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
began = time.monotonic()
for number in range(500):
    out.sendto(bytes(972), ("100.64.0.1", 9))
    time.sleep(max(0.0, began + 0.002 * number - time.monotonic()))
print(time.monotonic() - began)
"""


@live
def test_a_flood_loses_what_the_link_cannot_carry() -> None:
    answer = shell("--rate", "2/2", "--buffer", "10 packets", program=FLOOD)
    assert answer.returncode == 0, answer.stderr
    _, up = directions()
    # 500 datagrams of 1000 bytes at 4 Mbit/s over 2 Mbit/s. The last of ten waits for nine others,
    # 4 ms each, and for the rest of the one that is being sent; the router may be 5 ms late.
    assert up["arrived_packets"] == 500
    waiting = up["arrived_packets"] - up["dropped_packets"] - up["departed_packets"]
    assert 0 <= waiting <= 11
    assert 0.036 <= up["sojourn_max_s"] <= 0.045
    carried = up["departed_packets"] * 8000 / (float(answer.stdout) * 2e6)
    assert carried < 1.1
    if not Run.open("run").invalid:
        assert carried > 0.8


DOWNLOAD_1MB = """
import time, urllib.request
began = last = time.monotonic()
longest = 0
with urllib.request.urlopen("http://100.64.0.1:8000/1MB") as answer:
    while answer.read(1400):
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
print(last - began, longest)
"""


@live
def test_a_trace_paces_a_program() -> None:
    # 251 packets a second, all of them in its first half.
    Path("gaps.trace").write_text("\n".join(map(str, [*range(2, 501, 2), 1000])) + "\n")
    answer = shell("--down", "gaps.trace", "--up", "10", "--buffer", "1 s", program=DOWNLOAD_1MB)
    assert answer.returncode == 0, answer.stderr
    took_s, longest_s = map(float, answer.stdout.split())
    # 1 MB needs 690 of them or more.
    assert took_s > 2.2
    assert longest_s > 0.4
    down, _ = directions()
    assert down["departed_packets"] >= 690
    assert "by gaps.trace" in answer.stderr


ENDS = """
import socket, time
try:
    began = time.monotonic()
    socket.create_connection(("host.aqmlab", 9))
except ConnectionRefusedError:
    print("refused", time.monotonic() - began > 0.03)
try:
    socket.create_connection(("192.0.2.1", 80))
except OSError as error:
    print(error.strerror)
with socket.create_connection(("host.aqmlab", 7)) as echo:
    echo.sendall(bytes(100_000))
    echo.shutdown(socket.SHUT_WR)
    received = 0
    while part := echo.recv(65536):
        received += len(part)
    print(received)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
    echo.settimeout(10)
    echo.sendto(b"hello", ("host.aqmlab", 7))
    print(echo.recv(100))
"""


@live
def test_connections_end_as_they_do_outside() -> None:
    answer = shell("--rate", "20/20", "--rtt", "30 ms", program=ENDS)
    assert answer.returncode == 0, answer.stderr
    said = ["refused True", "Network is unreachable", "100000", "b'hello'"]
    assert answer.stdout.splitlines() == said


CROWD = """
import resource, socket, sys, time
print(*resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)

def fetched():
    with socket.create_connection(("100.64.0.1", 8000), 20) as stream:
        stream.sendall(b"GET /100 HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n")
        return sum(map(len, iter(lambda: stream.recv(4096), b"")))

def echoed():
    with socket.create_connection(("100.64.0.1", 7), 20) as stream:
        stream.sendall(b"x")
        return stream.recv(1)

for port in (8000, 7):
    held = [socket.create_connection(("100.64.0.1", port), 20) for _ in range(MANY)]
    time.sleep(1)
    for stream in held:
        stream.close()
    print(fetched() > 100, echoed(), flush=True)
"""
"""Holds many connections to each service, ends them, and asks both services once more."""


def with_files(soft: int, hard: int, program: str) -> subprocess.CompletedProcess[str]:
    """Python's code behind a queue, by an aqmlab that may have so many open files."""
    code = ["--", sys.executable, "-c", program]
    return subprocess.run(
        ["prlimit", f"--nofile={soft}:{hard}", *SHELL, "--out", "run", *code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@live
def test_services_go_on_when_the_machine_has_files_again() -> None:
    """The program holds more connections than aqmlab has files for."""
    answer = with_files(150, 150, CROWD.replace("MANY", "140"))
    assert answer.stdout.splitlines()[1:] == ["True b'x'"] * 2, answer.stdout + answer.stderr
    [why] = [reason for reason in Run.open("run").invalid if "connections failed" in reason]
    assert "Too many open files" in why
    # Those that waited, each once: 280 at most, and more than one.
    assert 10 < int(why.split()[1]) <= 280, why
    assert why in answer.stderr
    assert "a higher ulimit -Hn -Sn lets more in" in answer.stderr
    assert "--net host reaches" not in answer.stderr


@live
def test_a_program_has_the_callers_limit_of_open_files_and_aqmlab_the_highest() -> None:
    answer = with_files(150, 1000, CROWD.replace("MANY", "140"))
    assert answer.stdout.splitlines() == ["150 1000", *["True b'x'"] * 2], answer.stderr
    assert not any("connections failed" in reason for reason in Run.open("run").invalid)


@live
@pytest.mark.parametrize("series", [(), ("--queue", "pie,cake")])
def test_two_runs_into_one_folder_are_refused_at_the_start(series: Sequence[str]) -> None:
    command = [*SHELL, "--out", "run"]
    # It lasts until its standard input ends.
    with subprocess.Popen([*command, "--", "cat"], stdin=PIPE, stderr=PIPE, text=True) as first:
        assert first.stdin is not None
        deadline = time.monotonic() + PATIENCE_S
        while not [*Path().glob(".run.*.partial")]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        answer = subprocess.run(
            [*command, *series, "--", "touch", "second"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        first.stdin.close()
        assert first.wait(PATIENCE_S) == 0
    assert (answer.returncode, answer.stdout) == (2, "")
    message = "aqmlab: --out: another aqmlab is writing run; choose another place\n"
    assert answer.stderr.endswith(message)
    assert not Path("second").exists()
    assert Run.open("run").summary["live"]["program"]["time_s"] > 0
    again = subprocess.run(
        [*command, *series, "--", "true"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 2
    assert "--out: run is there already; choose another place" in again.stderr


@live
def test_nothing_is_there_without_a_network() -> None:
    code = "import socket; socket.create_connection(('host.aqmlab', 8000))"
    answer = shell("--net", "none", program=code)
    assert answer.returncode == 1
    assert "ConnectionRefusedError" in answer.stderr


@live
def test_time_ends_a_program_and_what_it_has_started() -> None:
    began = time.monotonic()
    mark = f"{os.getpid()}.25"
    script = f"setsid sleep 9{mark} & sleep 8{mark}"
    answer = shell("--for", "0.5 s", "sh", "-c", script)
    assert answer.returncode == 0, answer.stderr
    assert time.monotonic() - began < 30
    assert re.search(r"sh was ended after 0\.\d\d s", answer.stderr)
    assert Run.open("run").summary["measured_s"] == 0.5
    assert not processes_with(mark)


def processes_with(mark: str) -> list[int]:
    """The processes whose command has some text, except this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in command and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def started(mark: str, script: str) -> subprocess.Popen[str]:
    """A script behind a queue that has come to its ``sleep``."""
    process = subprocess.Popen(
        [*SHELL, "--out", "run", "sh", "-c", script],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for number in processes_with(f"sleep\0{mark}"):
            if number != process.pid:
                return process
        time.sleep(0.02)
    process.kill()
    raise AssertionError(f"the program has not begun: {process.communicate()}")


@live
def test_a_signal_is_the_programs() -> None:
    mark = f"7{os.getpid()}.5"
    process = started(mark, f"trap 'exit 9' TERM; sleep {mark} & wait")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 9, said
    assert "ended with status 9" in said
    assert Run.open("run").world == "live"
    assert not processes_with(mark)


@live
def test_a_second_signal_kills_a_program_that_ignores_it() -> None:
    mark = f"6{os.getpid()}.5"
    process = started(mark, f"trap '' TERM; sleep {mark}; sleep {mark}")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGKILL, said
    assert not processes_with(mark)


@live
@pytest.mark.parametrize("part", ["aqmlab", "first process", "program"])
def test_nothing_is_left_when_a_part_is_killed(part: str) -> None:
    mark = f"5{os.getpid()}.5"
    process = started(mark, f"setsid sleep {mark} & sleep {mark}; :")
    spaces = namespaces(process.pid)
    assert len(spaces) == 2
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    [first] = [int(word) for child in children for word in child.read_text().split()]
    [program] = map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split()[:1])
    victim = {"aqmlab": process.pid, "first process": first, "program": program}[part]
    os.kill(victim, signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE_S)
    killed = -signal.SIGKILL if part == "aqmlab" else 128 + signal.SIGKILL
    assert process.returncode == killed, said
    end = time.monotonic() + 5
    while (processes_with(mark) or holders(spaces)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not processes_with(mark)
    assert not holders(spaces)


# ---- what stands in the way ----


def behind(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program behind a command that takes something away."""
    return subprocess.run(
        [*command, *SHELL, "true"], capture_output=True, text=True, timeout=60, check=False
    )


@live
def test_a_missing_device_is_named(elsewhere: Path) -> None:
    hide = 'mount -t tmpfs none /dev/net && exec "$@"'
    answer = behind("unshare", "--mount", "sh", "-c", hide, "sh")
    assert answer.returncode == 125
    assert "needs /dev/net/tun" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not any(elsewhere.iterdir())


@live
def test_a_kernel_without_user_namespaces_is_named(elsewhere: Path) -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    answer = behind(*IN_NAMESPACE, "sh", "-c", forbid, "sh", *WITHOUT_RIGHTS)
    assert answer.returncode == 125
    assert answer.stderr.endswith(" (user.max_user_namespaces is 0)\n")
    assert answer.stderr.count("\n") == 1
    assert not any(elsewhere.iterdir())


@live
def test_the_doctor_finds_a_machine_well(aqmlab: Cli) -> None:
    answer = aqmlab("shell", "--doctor")
    assert answer.status == 0, answer.err
    parts = [line[:15].strip() for line in answer.out.splitlines()[2:]]
    assert [part for part in parts if part] == [
        *("system", "command ip", "command unshare", "TUN devices", "namespaces"),
        *("timers", "processors", "ping", "controls"),
    ]
    assert "missing" not in answer.out
    assert re.search(r"timers +(fine|poor) +\d+\.\d\d ms late", answer.out)


@live
def test_the_doctor_has_a_cure() -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    doctor = [*SHELL, "--doctor"]
    command = [*IN_NAMESPACE, "sh", "-c", forbid, "sh", *WITHOUT_RIGHTS, *doctor]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 125, answer.stderr
    cure = "user.max_user_namespaces is 0. Cure: sudo sysctl user.max_user_namespaces=15000"
    assert re.search(rf"namespaces +missing +{re.escape(cure)}", answer.stdout)


@live
def test_programs_need_no_root(own_folder: Path, tmp_path: Path) -> None:
    code = (
        "import os; print(os.getuid());"
        "print([line for line in open('/proc/self/status') if 'CapEff' in line or 'NoNew' in line])"
    )
    options = ("shell", "--out", "run", "--queue", "fq-codel")
    answer = as_nobody(own_folder, tmp_path / "held", "666", *options, sys.executable, "-c", code)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "65534\n['CapEff:\\t0000000000000000\\n', 'NoNewPrivs:\\t1\\n']\n"
    run = Run.open(own_folder / "run")
    assert run.path.stat().st_uid == 65534
