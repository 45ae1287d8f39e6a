"""Packets of programs and of live runs, as a table: the same as of a simulated run."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from aqmlab import Run, Scenario
from aqmlab import run as simulate
from aqmlab.engine.execute import World, execute
from conftest import Cli
from test_live import bulk, live
from test_shell_watched import packets as captured

SHELL = [sys.executable, "-m", "aqmlab", "shell", "--out", "run", "--record", "packets"]
PATIENCE_S = 40.0
KEPT = ("left", "marked", "wire", "waiting")
WAYS = ("forward", "reverse")

FLOOD = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
began = time.monotonic()
for number in range(500):
    out.sendto(bytes(972), ("100.64.0.1", 9))
    time.sleep(max(0.0, began + 0.002 * number - time.monotonic()))
time.sleep(0.5)
[line] = [line for line in open("/proc/net/dev") if "aqmlab0" in line]
print(line.split(":")[1].split()[9])
"""
"""Overloads the link up; prints how many packets the kernel has sent into it."""

FETCH = """
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for _ in range(3):
    opener.open("http://100.64.0.1:8000/200kB").read()
"""


def shell(*words: str, program: str) -> tuple[Run, str]:
    """A program behind a queue: its run, and what it printed."""
    answer = subprocess.run(
        [*SHELL, *words, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return Run.open("run"), answer.stdout


def rows(run: Run, way: str) -> pl.DataFrame:
    """The packets of a direction."""
    found = pl.from_arrow(run.packets)
    assert isinstance(found, pl.DataFrame)
    words = pl.col("outcome", "kind", "ecn", "class", "sender").cast(pl.String)
    return found.filter(pl.col("direction") == way).with_columns(words)


def check_balance(run: Run) -> None:
    """Rows and the summary count the same, in each direction."""
    for way in WAYS:
        own, link = rows(run, way), run.summary["links"]["bottleneck"][way]
        assert own.height == link["arrived_packets"] > 0
        outcomes = Counter(own["outcome"])
        # A departure counts when its transmission ends.
        gone = sum(outcomes[word] for word in KEPT[:3])
        assert gone - link["departed_packets"] in (0, 1)
        assert outcomes["marked"] == link["marked_packets"]
        drops = {word: count for word, count in outcomes.items() if word not in KEPT}
        assert drops == {word: count for word, count in link["drops"].items() if count}
        assert own["wait_ns"].null_count() == sum(drops.values()) + outcomes["waiting"]
        assert own["arrive_ns"].is_sorted()
        # The bins of sojourn.parquet hold the same waits.
        bins = pl.from_arrow(run.sojourn)
        assert isinstance(bins, pl.DataFrame)
        bins = bins.filter(pl.col("direction") == way)
        waits = own["wait_ns"].drop_nulls().sort() / 1e9
        below = waits.search_sorted(bins["below_s"] - 1e-12, side="left")
        assert below.to_list() == bins["count"].cum_sum().to_list()


def schema(path: Path) -> Any:
    """The columns of a table, and their types."""
    return pq.read_schema(path / "packets.parquet")


@live
def test_every_packet_of_a_program_is_a_row() -> None:
    queue = '{ kind = "step", threshold = "5 packets", limit = "20 packets" }'
    run, printed = shell("--rate", "2/2", "--queue", queue, "--pcap", program=FLOOD)
    check_balance(run)
    up = rows(run, "reverse")
    # The kernel counts the same, and the capture has the same times and fates.
    assert up.height == int(printed) == 500
    found = [it for it in captured(Path("run/capture.pcapng")) if it[1] == 1]
    comments = [comment for *_, comment in found]
    fates = {"left": "waited", "marked": "marked (early), waited", "overflow": "dropped (overflow)"}
    for row, comment in zip(up.iter_rows(named=True), comments, strict=True):
        assert comment.startswith(fates[row["outcome"]])
        if row["wait_ns"] is not None:
            [wait] = re.findall(r"waited ([\d.]+) ms", comment)
            assert float(wait) == pytest.approx(row["wait_ns"] / 1e6, abs=6e-4)
    assert up["number"].to_list() == list(range(500))
    assert set(up["size_bytes"]) == {1000}
    for column, word in (("kind", "datagram"), ("ecn", "ect0"), ("class", "program")):
        assert set(up[column]) == {word}
    assert (set(up["sender"]), set(up["again"])) == ({"client"}, {False})
    assert set(up.filter(pl.col("outcome") == "overflow")["backlog_packets"]) == {20}
    assert up["ring_ns"].null_count() == 500
    # What has no connection is a flow, too: the far end says that nobody listens.
    down = rows(run, "forward")
    assert set(down["kind"]) == {"datagram"}
    assert not set(down["flow"]) & set(up["flow"])


@live
def test_the_figures_by_packets_are_made_from_a_program() -> None:
    options = ["--rate", "8/2", "--rtt", "20 ms", "--queue", "fq-codel", "--beside", "bulk"]
    # The user begins within a second.
    program = f"import time; time.sleep(1.5)\n{FETCH}"
    run, _ = shell(*options, "--warm-up", "0 s", program=program)
    check_balance(run)
    down = rows(run, "forward")
    # Sojourn by flow: three connections of the program, and the user's.
    waits = down.group_by("class", "flow").agg(pl.col("wait_ns").median())
    assert Counter(waits["class"]) == {"program": 3, "bulk": 1}
    # The numbers are those of the connections.
    flows = pl.from_arrow(run.flows)
    assert isinstance(flows, pl.DataFrame)
    closed = flows.filter(pl.col("class").cast(pl.String) == "program")
    own = down.filter(pl.col("class") == "program")
    assert closed.height > 0
    assert set(closed["flow"]) <= set(own["flow"])
    for flow in own["flow"].unique():
        kinds = own.filter(pl.col("flow") == flow)["kind"].to_list()
        assert (kinds[0], kinds.count("syn")) == ("syn", 1)
        assert kinds.count("data") > 100
    numbers = own.sort("flow", "number").group_by("flow", maintain_order=True).agg("number")
    assert all(list(found) == list(range(len(found))) for found in numbers["number"])
    longest = run.metric("max(packets.wait_s, where=packets.direction == 'forward')")
    assert longest == pytest.approx(down["wait_ns"].drop_nulls().to_numpy().max() / 1e9)
    share = run.metric("share(packets.kind == 'data', where=packets.direction == 'forward')")
    assert share is not None
    assert share > 0.9


@live
def test_the_live_bed_writes_what_a_simulated_run_does(tmp_path: Path) -> None:
    text = bulk("1 s", "3 s").replace("[topology.bottleneck]\n", "[topology.bottleneck]\nINPUT\n")
    text = text.replace("INPUT", 'input = { packet_time = "0.2 ms", limit = "50 packets" }')
    scenario = Scenario.from_toml(text).with_overrides({"measure.record": ["packets", "flows"]})
    run = execute(scenario, tmp_path / "live", world=World.LIVE)
    simulated = simulate(scenario, out_dir=tmp_path / "simulated", progress=False)
    assert schema(run.path).equals(schema(simulated.path), check_metadata=True)
    for made in (run, simulated):
        assert made.packets is not None
        ports = made.packets.column("link").to_pylist()
        counted = {
            link: sum(way["arrived_packets"] for way in ways.values())
            for link, ways in made.summary["links"].items()
        }
        assert dict(Counter(ports)) == counted
        forward = rows(made, "forward")
        assert set(forward["flow"]) == {1, 2, 3, 4}
        assert set(forward["sender"]) == {"server"}
        assert set(rows(made, "reverse")["sender"]) == {"client"}
        assert forward["arrive_ns"].to_numpy().min() >= 1_000_000_000
        # A packet has the same number at both queues.
        at = [forward.filter(pl.col("link") == name).select("flow", "number") for name in counted]
        assert at[0].join(at[1], on=["flow", "number"]).height > 0.9 * at[0].height
        # What is sent again was sent before.
        data = forward.filter((pl.col("kind") == "data") & (pl.col("link") == "bottleneck"))
        lost = data.filter(~pl.col("outcome").is_in(KEPT)).height
        assert lost > 0
        assert 0 < data["again"].sum() < 3 * lost


@live
def test_a_program_that_is_killed_leaves_whole_tables() -> None:
    command = [*SHELL, "--rate", "8/2", sys.executable, "-c", f"{FETCH}import time\ntime.sleep(60)"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    end = time.monotonic() + PATIENCE_S
    while not any(Path().glob(".run.*/packets.parquet")) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    check_balance(Run.open("run"))


MANY = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(300):
    for _ in range(100):
        out.sendto(bytes(72), ("100.64.0.1", 9))
    time.sleep(0.01)
"""


@live
def test_a_full_disk_ends_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    small = f'mount -t tmpfs -o size=96k none {disk} && exec "$@"'
    look = f'"$@"; status=$?; ls -A {disk} >&2; exit $status'
    behind = ["unshare", "--mount", "sh", "-c", small, "sh", "sh", "-c", look, "sh"]
    command = [*SHELL, "--out", str(disk / "run"), "--rate", "50/50", sys.executable, "-c", MANY]
    answer = subprocess.run(
        [*behind, *command], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert answer.returncode == 125, answer.stderr
    full = r"[a-z]+\.parquet: No space left on device \(os error 28\)\n"  # whichever is first
    ends = f"{re.escape(str(disk / 'run'))}: cannot be written: {full}$"
    assert re.search(ends, answer.stderr), answer.stderr


def test_an_unknown_table_is_named_in_a_line(aqmlab: Cli) -> None:
    answer = aqmlab("shell", "--record", "packets,pakets", "true")
    assert (answer.status, answer.out) == (2, "")
    tables = "responses, flows, queue, packets, subscribers, sojourn"
    wrong = f'--record: found "pakets"; did you mean "packets"? (allowed: {tables})'
    assert answer.err == f"aqmlab: {wrong}\n"
    assert not Path("run").exists()
