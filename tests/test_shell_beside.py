"""Programs behind a queue by mahimahi's words, beside others, and the built-in tests."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import aqmlab
import pytest
from aqmlab import Run
from aqmlab._util.console import folded
from aqmlab.errors import AqmlabError
from aqmlab.shell.link import Link, Span
from aqmlab.shell.mahimahi import read
from aqmlab.shell.program import ProgramOutcome
from aqmlab.shell.tables import series_table
from aqmlab.shell.tests import BuiltIn, LinkTest, responsiveness
from aqmlab.shell.users import users_of
from conftest import ROOT, Cli
from test_live import live

SHELL = [sys.executable, "-m", "aqmlab", "shell"]
PATIENCE_S = 60.0


def shell(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs something behind a queue."""
    return subprocess.run(
        [*SHELL, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def outcome(run: Run, took_s: float, *reasons: str) -> ProgramOutcome:
    """What became of a program that took so long, invalid for these reasons."""
    program = {"time_s": took_s, "controls": {"forward": "cubic", "reverse": "cubic"}}
    live = {"reasons": reasons, "program": program}
    return ProgramOutcome(replace(run, summary={**run.summary, "live": live}), 0)


def test_a_table_of_queues_has_the_means_of_valid_runs(small: Path) -> None:
    run = aqmlab.run(small, progress=False)
    late = outcome(run, 9.0, "late")
    table = series_table({"a": [outcome(run, 1.0), late, outcome(run, 2.0)], "b": [late]})
    [several, single] = [[cell.text for cell in row] for row in table.rows]
    assert several[1].startswith("1.5")
    assert several[-1] == "2 of 3"
    assert (single[1], single[-1]) == ("9.00", "0 of 1")


def test_lines_of_a_summary_continue_under_their_text() -> None:
    line = (
        "  queueing p50 12345 p95 23456 max 34567 ms  p50 0.1 p95 0.2 max 45678 ms "
        "INVALID: router forward: 1 % of the packets left more than 12.3 ms late; load: busy"
    )
    parts = folded(line, 72)
    assert len(parts) > 1
    assert max(map(len, parts)) <= 72
    assert all(part.startswith(" " * 11 + part.strip()[0]) for part in parts[1:])
    assert " ".join(parts).split() == line.split()
    assert folded("  valid", 72) == ["  valid"]
    path = f"  run directory: /{'long/' * 30}"
    assert [part.strip() for part in folded(path, 72)] == [
        "run directory:",
        path.rsplit(maxsplit=1)[-1],
    ]


# ---- mahimahi's words ----


def test_mahimahis_words_are_options() -> None:
    line = read(
        ["mm-delay", "20", "mm-link", "--uplink-queue=codel", "a", "b", "--", "ssh", "-v", "host"]
    )
    assert (line.up, line.down, line.program) == ("a", "b", ["ssh", "-v", "host"])
    assert line.rtt_s == pytest.approx(0.04)
    options = line.options()
    assert (options["up"], options["down"]) == ("a", "b")
    assert options["queue_up"] == '{ kind = "codel" }'
    # What is not said is mahimahi's default: a queue that never fills.
    assert options["queue_down"] == '{ kind = "droptail", limit = "1000000000 bytes" }'
    pie = ["--downlink-queue=pie", "--downlink-queue-args", "packets=9, qdelay_ref=20"]
    asked = read(["up", "down", *pie, "curl", "--up"])
    assert asked.program == ["curl", "--up"]
    expected = '{ kind = "pie", limit = "9 packets", qdelay_ref = "20 ms" }'
    assert asked.options()["queue_down"] == expected
    assert read(["a", "b"]).program == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "--mm: found no traces"),
        ("mm-link a", "--mm: found no traces"),
        ("mm-delay soon a b", "--mm: mm-delay needs its milliseconds"),
        ("mm-loss uplink 0.1 mm-link a b", "--mm: found mm-loss; expected mm-delay and mm-link"),
        ("a b --once", "--mm: found --once; expected --uplink-queue"),
        ("a b --uplink-queue=drophead", "--mm: found --uplink-queue=drophead; expected infinite"),
        ("a b --uplink-queue=codel --uplink-queue-args=x=1", '--mm: found "x=1" for a queue codel'),
    ],
)
def test_a_wrong_word_of_mahimahi_is_named(words: str, message: str) -> None:
    with pytest.raises(AqmlabError) as raised:
        read(words.split()).options()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mm", "--rate", "3", "a", "b"], "--rate: found one beside --mm"),
        (["--warm-up", "2 h", "true"], '--warm-up: found "2 h"; expected 0 s to 1 h'),
        (["--test", "rpm", "true"], "program: found one beside --test"),
        (["--test", "rpm", "--net", "none"], "--net: found none beside --test"),
        (["--test", "rpm", "--for", "1 s"], '--for: found "1 s"; tests take 3 s or more'),
        (["--attach", "nowhere", "true"], "--attach: no program of nowhere runs"),
        (["--attach", "nowhere", "--view"], "--view: found one beside --attach, which does not"),
        (["--attach", "nowhere", "--test", "rpm"], "--attach: found one beside --test"),
        (["--doctor", "--rate", "3"], "--rate: found one beside --doctor, which does not take it"),
        (["--doctor", "--for", "3 s"], "--for: found one beside --doctor"),
        (["--doctor", "--no-ecn"], "--ecn: found one beside --doctor"),
        (["--doctor", "true"], "program: found one beside --doctor"),
    ],
)
def test_wrong_input_is_named(aqmlab: Cli, elsewhere: Path, words: list[str], message: str) -> None:
    answer = aqmlab("shell", *words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    assert not any(elsewhere.iterdir())


@live
def test_mahimahis_line_runs() -> None:
    # 12 Mbit/s up, 6 Mbit/s down.
    Path("up.trace").write_text("1\n")
    Path("down.trace").write_text("2\n")
    line = ["mm-delay", "15", "mm-link", "up.trace", "down.trace", "--downlink-queue=codel"]
    code = "import socket; socket.create_connection(('100.64.0.1', 7)).close()"
    answer = shell("--out", "run", "--mm", *line, "--", sys.executable, "-c", code)
    assert answer.returncode == 0, answer.stderr
    ways = Run.open("run").scenario["topology"]["bottleneck"]
    assert (ways["forward"]["rate"], ways["reverse"]["rate"]) == ("6 Mbit/s", "12 Mbit/s")
    assert ways["forward"]["delay"] == ways["reverse"]["delay"] == "15 ms"
    kinds = [ways[way]["discipline"]["kind"] for way in ("forward", "reverse")]
    assert kinds == ["codel", "droptail"]


# ---- beside another program ----

ATTACHED = """
import os, socket, sys, urllib.request
print(os.getcwd(), os.getuid())
status = open("/proc/self/status").read().split("\\n")
print([line.split()[1] for line in status if line.startswith(("CapEff", "CapBnd", "NoNewPrivs"))])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(len(opener.open("http://host.aqmlab:8000/200kB").read()))
sys.exit(7)
"""


def attached(*aqmlab: str) -> None:
    """Runs a program beside a first one and looks at what the second finds."""
    first = subprocess.Popen(
        [*aqmlab, "--out", "run", "--", "sh", "-c", "echo ready; sleep 50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        command = [*aqmlab, "--attach", "run", "--", sys.executable, "-c", ATTACHED]
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert answer.returncode == 7, answer.stderr
        where, rights, size = answer.stdout.splitlines()
        assert where.split()[0] == str(Path.cwd())
        assert rights == str(["0" * 16, "0" * 16, "1"])  # capabilities; no_new_privs
        assert size == "200000"
        # The second program ends with the first.
        stays = ["sh", "-c", "echo ready; sleep 50"]
        other = subprocess.Popen(
            [*aqmlab, "--attach", "run", "--", *stays], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        first.terminate()
        first.communicate(timeout=PATIENCE_S)
        other.communicate(timeout=PATIENCE_S)
        assert other.returncode == 128 + 9
    finally:
        first.kill()
        first.communicate()
    down = Run.open("run").summary["links"]["bottleneck"]["forward"]
    assert down["departed_packets"] > 130


@live
def test_a_second_program_joins_the_first() -> None:
    attached(*SHELL)


@live
def test_nobody_joins_a_process_that_only_says_that_it_is_the_run(tmp_path: Path) -> None:
    """In another network, with the run's name in its environment; no aqmlab stands behind it."""
    run = tmp_path / "run"
    forged = ["unshare", "--user", "--map-root-user", "--net", "env", f"AQMLAB_RUN={run}"]
    with subprocess.Popen([*forged, "sh", "-c", "echo ready; sleep 50"], stdout=-1) as stranger:
        try:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == b"ready\n"
            answer = shell("--attach", str(run), "--", "true")
        finally:
            stranger.kill()
    assert answer.returncode == 2, answer.stdout
    assert "no program of" in answer.stderr


# ---- beside users ----


def test_words_become_users() -> None:
    words = ["http2-web:10", "upload", '{ kind = "cbr", flows = 2, rate = "1 Mbit/s" }', "bulk"]
    found = users_of([*words, "upload:2"], 0.04)
    assert [it["name"] for it in found] == ["http2-web", "upload", "cbr", "bulk", "upload-2"]
    assert [found[0]["users"], found[1]["direction"], found[4]["flows"]] == [10, "reverse", 2]
    assert {it["rtt"]["rtt"] for it in found} == {"40 ms"}
    link = Link(down_bps=10e6, up_bps=10e6)
    content = link.scenario("curl", 1, Span(5.0, 2.0), found)
    assert content.data["measure"]["warm_up"] == "2 s"
    assert [it["name"] for it in content.data["traffic"]][:2] == ["program", "http2-web"]
    # A scenario brings all its users, with their own round trips and this kernel's TCP.
    own = users_of([str(ROOT / "scenarios/cellular.toml")], 0.04)
    assert own
    assert {it["tcp"] for it in own} == {"linux"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("web:3", '--beside: found "web", which is no kind of traffic'),
        ("bulk:many", '--beside: found "many" bulk; expected a number'),
        ("bulk:0", '--beside: found "0" bulk; expected a number'),
        ("bulk:2:up", "transfers from the program's side are upload:3"),
        ("cbr:3", "--beside: cbr needs rate; write a table"),
        ("{ kind", "--beside: found { kind: "),
    ],
)
def test_wrong_users_are_named(text: str, message: str) -> None:
    with pytest.raises(AqmlabError) as raised:
        users_of([text], 0.02)
    assert message in str(raised.value)


BESIDE = """
import time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(len(opener.open("http://test.aqmlab:8000/100kB").read()))
print(opener.open("http://host.aqmlab:PORT/").status)
time.sleep(4)
"""


class _Quiet(BaseHTTPRequestHandler):
    """Answers with nothing, and says nothing."""

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


@live
def test_users_are_beside_a_program() -> None:
    users = ["telnet:5", "bulk:2", "upload", '{ kind = "cbr", flows = 1, rate = "80 kbit/s" }']
    options = [word for text in users for word in ("--beside", text)]
    with HTTPServer(("127.0.0.1", 0), _Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        program = BESIDE.replace("PORT", str(server.server_port))
        link = ["--rate", "10/10", "--rtt", "20 ms", "--queue", "fq-codel", "--net", "host"]
        command = [sys.executable, "-c", program]
        answer = shell("--out", "run", *link, *options, "--", *command)
        server.shutdown()
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == ["100000", "204"]
    run = Run.open("run")
    assert run.scenario["measure"]["warm_up"] == "5 s"
    # The warm-up is no time of the program.
    assert 4.0 < run.summary["live"]["program"]["time_s"] <= run.summary["measured_s"] < 9.0
    flows, measured_s = run.summary["flows"], run.summary["measured_s"]
    # The program's bytes are its own: what its users do counts for them.
    assert 100_000 < flows["program"]["goodput_bps"] * measured_s / 8 < 101_000
    assert flows["program"]["count"] + flows["program"]["still_open"] == 2
    assert run.summary["responses"]["telnet"]["count"] > 0
    assert flows["bulk"]["goodput_bps"] > 2e6
    assert flows["upload"]["goodput_bps"] > 2e6
    assert flows["cbr"]["datagrams_sent"] > 30
    if not run.invalid:
        link_bps = run.summary["links"]["bottleneck"]["forward"]["throughput_bps"]
        assert sum(flows[name]["goodput_bps"] for name in ("bulk", "telnet")) < link_bps
        # Two flows beside each other share by halves behind FQ-CoDel.
        assert flows["bulk"]["fairness_jain"] > 0.95
    assert re.search(r" telnet: \d+ responses, p50 ", answer.stderr)
    assert re.search(r"  beside   bulk: goodput \S+ Mbit/s", answer.stderr)
    assert re.search(r" upload: goodput \S+ Mbit/s", answer.stderr)
    # All of it can be simulated.
    short = ["--set", "measure.duration=3 s", "--out", "simulated"]
    again = [*SHELL[:-1], "run", "run/scenario.toml", *short]
    ended = subprocess.run(again, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr


SMALL = """
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(len(opener.open("http://host.aqmlab:8000/30kB").read()))
"""


@live
def test_a_short_program_meets_the_queue_of_users_beside_it() -> None:
    link = ["--rate", "20/2", "--rtt", "30 ms", "--queue", "droptail:250 ms", "--beside", "upload"]
    program = ["--", sys.executable, "-c", SMALL]
    seen = {}
    for name, words in (("warm", []), ("cold", ["--warm-up", "0 s"])):
        answer = shell("--out", name, *link, *words, *program)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout == "30000\n"
        summary = Run.open(name).summary
        up = summary["links"]["bottleneck"]["reverse"]
        seen[name] = up["sojourn_p95_s"] or 0.0
        # What users moved in the warm-up does not count.
        assert summary["flows"]["upload"]["goodput_bps"] < 2.1e6
    # At least half of the buffer is full, where there was time for it.
    assert seen["warm"] > 0.125 > seen["cold"]


# ---- built-in tests ----


def test_responsiveness_is_that_of_the_draft() -> None:
    # A probe of 200 ms is two round trips of 100 ms: 600 a minute. The load sees 50 ms: 1200.
    assert responsiveness([0.2] * 20, [0.05] * 20) == pytest.approx(900)
    # The worst 5 % are left out.
    assert responsiveness([0.2] * 19 + [9.0], [0.05] * 19 + [9.0]) == pytest.approx(900)
    assert responsiveness([], [0.05]) is None


def test_a_short_test_leaves_out_its_first_third(tmp_path: Path) -> None:
    file = tmp_path / "seen.json"
    seen = {
        # 1 MB a second after a second; nothing is counted before 2 s.
        "bulk": {"down 1": [(0.0, 0), (1.0, 0), (6.0, 5_000_000)], "up 1": []},
        "probes": {"page": [(0.5, 9.0), *((2 + n / 100, 0.1) for n in range(99)), (4.0, None)]},
        "round_trips_s": [0.05] * 100,
        "failed": [],
    }
    file.write_text(json.dumps(seen))
    found = LinkTest(BuiltIn.RPM, 6.0).results(file, tmp_path)
    assert found["goodput_bps"] == {"down 1": pytest.approx(8e6), "up 1": 0.0}
    assert found["probes"]["page"]["count"] == 100
    assert (found["probes"]["page"]["lost"], found["probes"]["page"]["p99_s"]) == (1, 0.1)
    assert found["rpm"] == pytest.approx((1200 + 1200) / 2)
    lost = LinkTest(BuiltIn.RPM, 6.0).results(tmp_path / "none", tmp_path)
    assert lost["failed"] == ["the test did not come to its end"]


@live
def test_rpm_tells_queues_apart() -> None:
    options = ["--out", "run", "--rate", "10/2", "--rtt", "40 ms", "--for", "6 s"]
    answer = shell(*options, "--test", "rpm", "--queue", "droptail:300 ms,fq-codel")
    assert answer.returncode == 0, answer.stderr
    runs = [Run.open(f"run/{name}") for name in ("droptail-300-ms", "fq-codel")]
    tests = [run.summary["test"] for run in runs]
    for test in tests:
        assert test["failed"] == []
        assert test["kind"] == "rpm"
        assert test["span_s"] == 4.0
        assert test["probes"]["page"]["count"] == pytest.approx(100, abs=5)
        assert test["rpm"] == pytest.approx((test["probe_rpm"] + test["load_rpm"]) / 2)
    if not any(run.invalid for run in runs):
        # Two queues of up to 300 ms, against two of some milliseconds.
        assert tests[0]["rpm"] < 400
        assert tests[1]["rpm"] > 2 * tests[0]["rpm"]
        assert tests[1]["goodput_down_bps"] > 0.7 * 10e6
        # The link carries no more than its rate. What waited for a retransmission when the count
        # began is counted too: at most a round trip's bytes.
        most = [1 + (0.04 + queue_s) / 4.0 for queue_s in (2 * 0.3, 2 * 0.005)]
        for test, times in zip(tests, most, strict=True):
            assert test["goodput_down_bps"] < times * 10e6
            assert 0.5 * 2e6 < test["goodput_up_bps"] < times * 2e6
    assert "RPM" in answer.stderr


@live
def test_rrul_leaves_a_file_for_flent() -> None:
    options = ["--rate", "10/5", "--for", "6 s", "--queue", "cake"]
    answer = shell("--out", "run", *options, "--test", "rrul")
    assert answer.returncode == 0, answer.stderr
    run = Run.open("run")
    test = run.summary["test"]
    assert set(test["goodput_bps"]) == {
        f"{way} {name}" for way in ("down", "up") for name in ("BE", "BK", "CS5", "EF")
    }
    assert {"UDP BE", "UDP BK", "UDP EF"} <= set(test["probes"])
    assert test["probes"]["UDP BE"]["count"] == pytest.approx(80, abs=5)
    with gzip.open("run/rrul.flent.gz", "rt") as stream:
        flent = json.load(stream)
    assert (flent["version"], len(flent["x_values"])) == (4, 30)
    assert set(map(len, flent["results"].values())) == {30}
    assert {"TCP download BE", "TCP upload EF", "Ping (ms) UDP BE"} <= set(flent["results"])
    down = [rate or 0 for rate in flent["results"]["TCP download BE"]]
    assert max(down) > 0.5
    # CAKE knows the background by its code point, both ways.
    if not run.invalid:
        for way in ("down", "up"):
            assert test["goodput_bps"][f"{way} BK"] < 0.5 * test["goodput_bps"][f"{way} BE"]
