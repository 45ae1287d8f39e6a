"""QUIC: same seed, same bytes, what such a class cannot have, and a sweep of shares."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import ROOT, Cli

TRANSFERS = """
[measure]
warm_up = "0 s"
duration = "5 s"
capture = "bottleneck"
flow_trace = { flows = 1, period = "100 ms" }
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "10 Mbit/s"
discipline = { kind = "red", min_th = "5 packets", max_th = "15 packets", limit = "60 packets" }
[[traffic]]
kind = "bulk"
name = "transfers"
flows = 4
size = "500000 bytes"
transport = { quinn = 0.5, tcp = 0.5 }
rtt = { kind = "constant", rtt = "40 ms" }
"""

FIELD = "traffic.transfers"


@pytest.fixture
def transfers(elsewhere: Path) -> Path:
    """Transfers of which half have QUIC."""
    file = elsewhere / "transfers.toml"
    file.write_text(TRANSFERS)
    return file


def _measured(folder: Path) -> dict[str, bytes]:
    """Every table and the capture of a run."""
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.suffix in {".parquet", ".pcapng"}
    }


def test_the_same_seed_gives_the_same_bytes_in_every_process(aqmlab: Cli, transfers: Path) -> None:
    for jobs in ("1", "2"):
        answer = aqmlab("run", transfers, "--seeds", "1..2", "--jobs", jobs, "--out", jobs)
        assert answer.status == 0, answer.err
    one, two = (
        [file.parent for file in sorted(Path(jobs).rglob("summary.json"))] for jobs in ("1", "2")
    )
    assert [len(one), len(two)] == [2, 2]
    for first, second in zip(one, two, strict=True):
        tables = _measured(first)
        assert {"flow_trace.parquet", "capture.pcapng", "flows.parquet"} <= set(tables)
        assert tables == _measured(second)
    assert _measured(one[0]) != _measured(one[1])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("transport", "quin", 'transport: found "quin"; did you mean "quinn"?'),
        ("transport", "{ quinn = 2 }", "transport.quinn: found 2; a share is 0 to 1"),
        ("quinn.congestion_control", "bbr", 'quinn.congestion_control: found "bbr"'),
        ("quinn.datagram", "1 kB", "quinn.datagram: found"),
        (
            "quinn.datagram",
            "1500 bytes",
            "quinn.datagram: found 1500 bytes, but the search for larger datagrams ends at 1452",
        ),
    ],
)
def test_mistakes_name_the_field(
    aqmlab: Cli, transfers: Path, key: str, value: str, message: str
) -> None:
    answer = aqmlab("run", transfers, "--set", f"{FIELD}.{key}={value}")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"aqmlab: {FIELD}.{message}")
    assert answer.err.count("\n") == 1


def test_datagrams_and_vectors_have_no_transport_to_choose(aqmlab: Cli, elsewhere: Path) -> None:
    file = elsewhere / "calls.toml"
    head = TRANSFERS.partition("[[traffic]]")[0]
    file.write_text(
        head + '[[traffic]]\nkind = "voip"\ncalls = 1\ntransport = "quinn"\n'
        'rtt = { kind = "constant", rtt = "40 ms" }\n'
    )
    answer = aqmlab("run", file)
    assert answer.status == 2
    assert answer.err == (
        "aqmlab: traffic.voip.transport: found quinn, but this model sends datagrams of its own; "
        "leave it out\n"
    )


def test_vectors_have_quic_without_their_windows(aqmlab: Cli, elsewhere: Path) -> None:
    text = TRANSFERS.partition("[[traffic]]")[0] + (
        '[[traffic]]\nkind = "vectors"\nfile = "one.cvec"\ncopies = 1\ntransport = "quic"\n'
        'rtt = { kind = "constant", rtt = "40 ms" }\n'
    )
    (elsewhere / "one.cvec").write_text("SEQ 0 1 0 1\n> 300\nt 0\n< 90000\nt 0\n\n")
    Path("vectors.toml").write_text(text)
    answer = aqmlab("run", "vectors.toml")
    assert answer.status == 2
    assert answer.err == (
        "aqmlab: traffic.vectors.transport: found quic, but vectors have the windows, segments and "
        "losses of TCP connections; expected tcp, or windows = false and losses = false\n"
    )
    Path("vectors.toml").write_text(text + "windows = false\n")
    answer = aqmlab("run", "vectors.toml", "--out", "out", "--set", 'measure.record=["responses"]')
    assert answer.status == 0, answer.err
    assert pq.read_table(elsewhere / "out/responses.parquet")["response_bytes"].to_pylist() == [
        90_000
    ]


def test_the_sweep_of_five_queues_runs(aqmlab: Cli, elsewhere: Path) -> None:
    sweep = ROOT / "scenarios/sweeps/quic.toml"
    short = ("--set", "measure.warm_up=1 s", "--set", "measure.duration=4 s", "--seeds", "1")
    answer = aqmlab("sweep", sweep, *short, "--out", "out", "--json")
    assert answer.status == 0, answer.err
    rows = pq.read_table(elsewhere / "out/results.parquet").to_pylist()
    assert len(rows) == 5 * 4
    runs = {(row["queue"], row["links.bottleneck.forward.arrived_packets"]) for row in rows}
    assert len(runs) == len(rows), "each kind of users has a run of its own"
