"""Traced connections as qlog: what the drafts ask for, and the numbers of the trace.

Rules are those of qlog 0.3: draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events
as of 2023. Comments name the sections.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import aqmlab
import pytest
from aqmlab.cli.app import main
from aqmlab.results import qlog

SCENARIO = """
title = "qlog"

[measure]
warm_up = "0 s"
duration = "12 s"
record = ["packets"]
flow_trace = { flows = 1 }

[topology]
kind = "dumbbell"

[topology.bottleneck]
rate = "10 Mbit/s"
discipline = { kind = "droptail", limit = "40 packets" }

[[traffic]]
name = "cubic"
kind = "bulk"
flows = 1
tcp = "linux"
rtt = { kind = "constant", rtt = "40 ms" }

[[traffic]]
name = "bbr"
kind = "bulk"
flows = 1
transport = "quic"
quic = { congestion_control = "bbr3" }
rtt = { kind = "constant", rtt = "40 ms" }
"""

# RecoveryMetricsUpdated: every field is optional; ms, bytes, bits per second.
METRICS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"), (int, float)),
    **dict.fromkeys(("congestion_window", "bytes_in_flight", "ssthresh"), int),
    **dict.fromkeys(("pto_count", "packets_in_flight", "pacing_rate"), int),
}
# PacketHeader: packet_type is an enumeration.
PACKET_TYPES = {
    *("initial", "handshake", "0RTT", "1RTT", "retry"),
    *("version_negotiation", "stateless_reset", "unknown"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> aqmlab.Run:
    folder = tmp_path_factory.mktemp("qlog")
    (folder / "qlog.toml").write_text(SCENARIO)
    return aqmlab.run(folder / "qlog.toml", out_dir=folder / "run")


def records(text: str) -> list[dict[str, Any]]:
    """The texts of a sequence (RFC 7464): each begins with RS and ends with a line feed."""
    assert text[0] == "\x1e"
    parts = text[1:].split("\x1e")
    assert all(part.endswith("\n") for part in parts)
    return [json.loads(part) for part in parts]


def written(run: aqmlab.Run, class_: str, link: str | None = None) -> list[dict[str, Any]]:
    [connection] = [it for it in qlog.connections(run) if it.class_ == class_]
    return records("".join(qlog.lines(connection, link)))


def check_header(header: dict[str, Any]) -> None:
    # "qlog to JSON Text Sequences mapping": QlogFileSeq and TraceSeq.
    assert header["qlog_format"] == "JSON-SEQ"
    assert header["qlog_version"] == "0.3"
    assert set(header) <= {
        *("qlog_format", "qlog_version", "title", "description", "summary", "trace")
    }
    # "The high level qlog schema": version and format in the first 256 bytes.
    assert json.dumps(header).index('"qlog_format"') < 200
    trace = header["trace"]
    assert set(trace) <= {
        *("title", "description", "configuration", "common_fields", "vantage_point")
    }
    # "Configuration": both fields, then those of tools under the tool's name.
    assert isinstance(trace["configuration"]["time_offset"], float)
    assert isinstance(trace["configuration"]["original_uris"], list)
    assert set(trace["configuration"]) == {"time_offset", "original_uris", "aqmlab"}
    # "vantage_point": flow where the type is network.
    point = trace["vantage_point"]
    assert point["type"] in {"client", "server", "network", "unknown"}
    assert ("flow" in point) == (point["type"] == "network")
    # "Timestamps" and "common_fields".
    common = trace["common_fields"]
    assert common["time_format"] == "relative"
    assert isinstance(common["reference_time"], float)
    assert isinstance(common["group_id"], str)
    assert all(isinstance(name, str) for name in common["protocol_type"])


def check_event(event: dict[str, Any]) -> None:
    # "Field name semantics": time, name and data are there; other fields may be.
    assert isinstance(event["time"], float)
    assert isinstance(event["data"], dict)
    assert set(event) <= {"time", "name", "data", "aqmlab"}
    # JSON-SEQ: "all qlog field names MUST be lowercase".
    assert all(key == key.lower() for key in event["data"])
    data = event["data"]
    match event["name"]:
        case "recovery:metrics_updated":
            # "metrics_updated": at least one of the listed metrics.
            assert data
            assert set(data) <= set(METRICS)
            for key, value in data.items():
                assert isinstance(value, METRICS[key])
                assert isinstance(value, int | float)
                assert value >= 0
        case "recovery:congestion_state_updated":
            # "congestion_state_updated": new is a text, old may be.
            assert isinstance(data["new"], str)
            assert set(data) <= {"old", "new", "trigger"}
        case "transport:packet_sent" | "transport:packet_received":
            # "packet_sent": header is needed; RawInfo has a length.
            check_packet(data["header"])
            assert data["raw"]["length"] > 0
            assert set(data) == {"header", "raw"}
        case "recovery:packet_lost":
            # "packet_lost": the header has at least type and number.
            check_packet(data["header"])
            assert set(data) == {"header"}
        case name:
            # An event of our own has a category of its own.
            assert name == "aqmlab:control_state"
            assert data


def check_packet(header: dict[str, Any]) -> None:
    assert header["packet_type"] in PACKET_TYPES
    assert isinstance(header["packet_number"], int)


@pytest.mark.parametrize("link", [None, "bottleneck"])
@pytest.mark.parametrize(("class_", "protocol"), [("cubic", "TCP"), ("bbr", "QUIC")])
def test_files_follow_the_drafts(
    run: aqmlab.Run, class_: str, protocol: str, link: str | None
) -> None:
    header, *events = written(run, class_, link)
    check_header(header)
    assert header["trace"]["common_fields"]["protocol_type"] == [protocol]
    point = header["trace"]["vantage_point"]["type"]
    assert point == ("server" if link is None else "network")
    for event in events:
        check_event(event)
    # "Timestamps": in ascending order.
    assert all(before["time"] <= after["time"] for before, after in pairwise(events))
    names = {event["name"] for event in events}
    assert {"recovery:metrics_updated", "recovery:congestion_state_updated"} <= names
    assert ("transport:packet_sent" in names) == (link is not None)


@pytest.mark.parametrize("class_", ["cubic", "bbr"])
def test_the_values_of_a_file_are_those_of_the_trace(run: aqmlab.Run, class_: str) -> None:
    """Each row of the trace is what a reader of the file knows at that time."""
    _, *events = written(run, class_, "bottleneck")
    assert run.flow_trace is not None
    rows = [row for row in run.flow_trace.to_pylist() if row["class"] == class_]
    # A file has one state at a time: the last row of a time counts.
    last = {round(row["time_s"] * 1e9): row for row in rows}
    known: dict[str, Any] = {}
    pending = iter(events)
    event = next(pending, None)
    for time, row in last.items():
        while event is not None and round(event["time"] * 1e6) <= time:
            if event["name"] in {"recovery:metrics_updated", "aqmlab:control_state"}:
                known.update(event["data"])
            event = next(pending, None)
        assert known["congestion_window"] == row["cwnd_bytes"]
        assert known["bytes_in_flight"] == row["in_flight_bytes"]
        for key, column in {"smoothed_rtt": "rtt_s", "min_rtt": "min_rtt_s"}.items():
            if row[column] is not None:
                assert round(known[key] * 1e6) == round(row[column] * 1e9)
        if row["ssthresh_bytes"] < 2**53:
            assert known["ssthresh"] == row["ssthresh_bytes"]
        if row["pacing_bps"] is not None:
            assert known["pacing_rate"] == round(row["pacing_bps"])
        for column in ("state", "phase", "rto_s", "max_bw_bps", "round", "cycle"):
            assert known.get(column) == row[column]
    assert len(last) > 1000


@pytest.mark.parametrize("class_", ["cubic", "bbr"])
def test_packets_are_those_of_the_table(run: aqmlab.Run, class_: str) -> None:
    _, *events = written(run, class_, "bottleneck")
    assert run.packets is not None
    rows = [row for row in run.packets.to_pylist() if row["class"] == class_]
    found = {
        name: [it for it in events if it["name"].endswith(name)]
        for name in ("packet_sent", "packet_received", "packet_lost")
    }
    sent = [row for row in rows if row["sender"] == "server"]
    lost = [row["number"] for row in sent if row["outcome"] == "overflow"]
    numbers = [it["data"]["header"]["packet_number"] for it in found["packet_sent"]]
    assert sorted(numbers) == [row["number"] for row in sorted(sent, key=lambda it: it["number"])]
    assert sum(it["data"]["raw"]["length"] for it in found["packet_sent"]) == sum(
        row["size_bytes"] for row in sent
    )
    assert [it["data"]["header"]["packet_number"] for it in found["packet_lost"]] == lost
    assert lost
    came = [row for row in rows if row["sender"] == "client" and row["outcome"] == "left"]
    assert [round(it["time"] * 1e6) for it in found["packet_received"]] == [
        row["arrive_ns"] + row["wait_ns"] for row in came
    ]


def test_states_have_the_drafts_names_or_those_of_the_control(run: aqmlab.Run) -> None:
    """Reno's states as the drafts name them; those of BBR are its phases, in QUIC too."""
    states = {
        class_: [
            event["data"]
            for event in written(run, class_)
            if event.get("name") == "recovery:congestion_state_updated"
        ]
        for class_ in ("cubic", "bbr")
    }
    for updates in states.values():
        assert "old" not in updates[0]
        assert all(after["old"] == before["new"] for before, after in pairwise(updates))
        assert all(update["new"] != update.get("old") for update in updates)
    named = {class_: {it["new"] for it in updates} for class_, updates in states.items()}
    assert named["cubic"] == {"slow_start", "congestion_avoidance", "recovery"}
    assert {"startup", "drain", "probe_up", "probe_rtt"} <= named["bbr"]


def test_the_command_writes_a_file_for_each_connection(
    run: aqmlab.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert main(["export", str(run.path), "-o", str(folder)]) == 0
    shown = capsys.readouterr()
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["run-flow-1.sqlog", "run-flow-2.sqlog"]
    assert shown.out.split() == [str(file) for file in files]
    [first, _] = qlog.connections(run)
    assert files[0].read_text() == "".join(qlog.lines(first))
    assert main(["export", str(run.path), "-o", str(folder / "one"), "--flow", "2"]) == 0
    assert [file.name for file in (folder / "one").iterdir()] == ["run-flow-2.sqlog"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--flow", "7"], "--flow 7: not traced in {run}; traced: 1, 2"),
        (["--packets", "core"], "--packets core: {run} has no such link; it has bottleneck"),
    ],
)
def test_what_a_run_does_not_have_is_refused(
    run: aqmlab.Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    assert main(["export", str(run.path), "-o", str(tmp_path / "out"), *words]) == 2
    assert capsys.readouterr().err == f"aqmlab: {message.format(run=run.path)}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "words", "message"),
    [
        (
            "flow_trace = { flows = 1 }\n",
            [],
            "no connection was traced; run it with --set measure.flow_trace='{ flows = 1 }'",
        ),
        (
            'record = ["packets"]\n',
            ["--packets", "bottleneck"],
            "has no packets.parquet; run it with --set 'measure.record=[\"packets\"]'",
        ),
    ],
)
def test_what_a_run_has_not_recorded_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: list[str], message: str
) -> None:
    scenario = tmp_path / "short.toml"
    scenario.write_text(SCENARIO.replace(line, "").replace('"12 s"', '"1 s"'))
    run = aqmlab.run(scenario, out_dir=tmp_path / "run")
    assert main(["export", str(run.path), "-o", str(tmp_path / "out"), *words]) == 2
    err = capsys.readouterr().err
    assert str(run.path) in err
    assert err.endswith(f"{message}\n")
    assert err.count("\n") == 1


def test_a_trace_that_matches_nothing_and_runs_of_one_name_are_refused(
    run: aqmlab.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "none.toml"
    scenario.write_text(
        SCENARIO.replace("{ flows = 1 }", '{ flows = 1, after = "100 s" }').replace("12 s", "1 s")
    )
    none = aqmlab.run(scenario, out_dir=tmp_path / "none" / "run")
    assert main(["export", str(none.path), "-o", str(tmp_path / "out")]) == 2
    assert "measure.flow_trace matched no connection" in capsys.readouterr().err
    scenario.write_text(SCENARIO.replace('"12 s"', '"1 s"'))
    other = aqmlab.run(scenario, out_dir=tmp_path / "other" / "run")
    assert main(["export", str(run.path), str(other.path), "-o", str(tmp_path / "out")]) == 2
    assert "both give run-flow-1.sqlog" in capsys.readouterr().err


def test_too_many_files_are_refused(
    run: aqmlab.Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aqmlab.cli.commands.export._MOST", 1)
    assert main(["export", str(run.path), "-o", str(tmp_path / "out")]) == 2
    assert "2 traced connections; at most 1 files" in capsys.readouterr().err
    assert main(["export", str(run.path), "-o", str(tmp_path / "out"), "--flow", "1"]) == 0
