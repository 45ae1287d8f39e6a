"""No input takes all memory: what cannot fit is refused, and what grows is ended."""

from __future__ import annotations

import re
import resource
import struct
import subprocess
import sys
from pathlib import Path

import aqmlab as package
import pytest
from aqmlab import _native
from aqmlab.engine import memory
from conftest import SMALL, Cli


def entries(folder: Path) -> set[str]:
    """Everything in a folder, hidden things too."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def one_line(text: str) -> str:
    """The only line, which must begin with the command's name."""
    assert text.startswith("aqmlab: ")
    assert text.count("\n") == 1
    return text.removeprefix("aqmlab: ").rstrip("\n")


NETWORK = SMALL.partition("[[traffic]]")[0]
RTT = 'rtt = { kind = "constant", rtt = "60 ms" }\n'
MIB = 1 << 20

ENDLESS = {
    "flows": 'kind = "bulk"\nflows = 4000000000\n',
    "users": 'kind = "mah-web"\nusers = 4000000000\n',
    "sessions": 'kind = "telnet"\nsessions = 4000000000\n',
    "rate": 'kind = "packmime"\nrate = "1000000000000 /s"\n',
}
"""Populations that no machine holds, by the field that says so."""


def scenario_file(folder: Path, traffic: str, network: str = NETWORK) -> Path:
    """A scenario with one class of traffic."""
    file = folder / "scenario.toml"
    file.write_text(f'{network}[[traffic]]\nname = "many"\n{traffic}{RTT}', encoding="utf-8")
    return file


@pytest.mark.parametrize("field", ENDLESS)
def test_a_population_that_cannot_fit_is_refused(aqmlab: Cli, elsewhere: Path, field: str) -> None:
    file = scenario_file(elsewhere, ENDLESS[field])
    before = entries(elsewhere)
    for command in (["run"], ["compare", "--vary", "seed=1,2"]):
        answer = aqmlab(*command, file)
        assert (answer.status, answer.out) == (2, "")
        message = one_line(answer.err)
        assert re.search(rf"traffic\.many\.{field}: found \d+; such a run takes", message)
        assert re.search(r"takes [0-9.]+ .iB of memory or more, and may take [0-9.]+ .iB", message)
    assert entries(elsewhere) - before <= {"runs"}
    with pytest.raises(package.ScenarioError, match=rf"traffic\.many\.{field}: found"):
        package.run(file)


def test_more_connections_than_a_bound_holds_are_refused(aqmlab: Cli, elsewhere: Path) -> None:
    file = scenario_file(elsewhere, 'kind = "packmime"\nrate = "1000000000 /s"\n')
    answer = aqmlab("run", file, "--memory", "4 GiB")
    assert (answer.status, answer.out) == (2, "")
    assert "traffic.many.rate: found 1000000000; such a run takes" in one_line(answer.err)


def test_describing_what_cannot_fit_is_refused(aqmlab: Cli, elsewhere: Path) -> None:
    for field in ("flows", "rate"):
        answer = aqmlab("traffic", "describe", scenario_file(elsewhere, ENDLESS[field]))
        assert (answer.status, answer.out) == (2, "")
        assert f"traffic.many.{field}: found" in one_line(answer.err)


def test_a_sweep_names_what_cannot_fit(aqmlab: Cli, elsewhere: Path) -> None:
    scenario_file(elsewhere, ENDLESS["flows"])
    sweep = 'scenario = "scenario.toml"\nseeds = "1..2"\n'
    (elsewhere / "sweep.toml").write_text(sweep, encoding="utf-8")
    answer = aqmlab("sweep", "sweep.toml", "--jobs", "1")
    assert answer.status != 0
    assert "traffic.many.flows: found 4000000000; such a run takes" in answer.err


def test_the_bound_is_an_option_a_variable_and_an_argument(
    aqmlab: Cli, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = scenario_file(elsewhere, 'kind = "bulk"\nflows = 20000\n')
    expected = "memory: 8 MiB is too little; this run needs about [0-9.]+ MiB"
    answer = aqmlab("run", file, "--memory", "8 MiB")
    assert (answer.status, bool(re.search(expected, answer.err))) == (2, True)
    memory.limit(None)
    with pytest.raises(package.ScenarioError, match=expected):
        package.run(file, memory="8 MiB")
    with pytest.raises(package.ScenarioError, match=expected):
        package.run(file, seeds=[1, 2], memory=8 * MIB)
    monkeypatch.setenv(memory.VARIABLE, "8 MiB")
    with pytest.raises(package.ScenarioError, match=expected):
        package.run(file)
    assert memory.share(2) == 4 * MIB
    with memory.limited(6 * MIB):
        assert memory.share(2) == 3 * MIB
    assert memory.bound() == 8 * MIB
    monkeypatch.delenv(memory.VARIABLE)
    free = memory.share(1)
    assert free is not None
    assert MIB < free <= (_native.memory_free() or 0) * 2


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("many", '--memory: found "many", which does not start with a number'),
        ("4", '--memory: found "4", which has no unit'),
        ("0 MiB", "--memory: found 0 MiB; a run needs some memory"),
        ("1 KiB", "--memory: 1 KiB is too little; this run needs about 803 KiB"),
    ],
)
def test_a_wrong_bound_is_refused(aqmlab: Cli, small: Path, size: str, message: str) -> None:
    answer = aqmlab("run", small, "--memory", size)
    assert answer.status == 2
    assert message in one_line(answer.err)


def test_a_run_that_grows_ends_and_leaves_nothing(aqmlab: Cli, elsewhere: Path) -> None:
    # Connections arrive much faster than the link lets them go.
    traffic = """kind = "poisson"
rate = "20000 /s"
request = { kind = "constant", size = "400 bytes" }
response = { kind = "constant", size = "1 MB" }
tcp = { profile = "linux", connect_timeout = "1 h" }
"""
    file = scenario_file(elsewhere, traffic)
    before = entries(elsewhere)
    answer = aqmlab("run", file, "--memory", "60 MiB")
    memory.limit(None)
    assert (answer.status, answer.out) == (1, "")
    assert re.search(r"it takes [0-9.]+ MiB of memory, and may take 60 MiB", answer.err)
    assert entries(elsewhere) - before <= {"runs"}


POPULATIONS = {
    "bulk": ('kind = "bulk"\nflows = 60000\nstart_within = "1 s"\n', 2.0),
    "users": ('kind = "mah-web"\nusers = 200000\nstart_within = "1 h"\n', 2.5),
    "datagrams": ('kind = "cbr"\nflows = 200000\nrate = "1 kbit/s"\nstart_within = "1 s"\n', 2.5),
}
"""Traffic, and within which factor its memory is estimated."""

MEASURE = """
import re
from pathlib import Path
import aqmlab
from aqmlab import _native


def peak():
    return int(re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1])


_native.run(aqmlab.Scenario.load("small.toml").effective, None)
effective, base = aqmlab.Scenario.load("scenario.toml").effective, peak()
_native.run(effective, None)
print((peak() - base) / 1024)
"""
"""Prints by how many MiB the peak memory of a process grows in a run."""


@pytest.mark.parametrize("kind", POPULATIONS)
def test_estimates_are_near_what_is_measured(elsewhere: Path, kind: str) -> None:
    traffic, factor = POPULATIONS[kind]
    network = NETWORK.replace('"2 s"', '"100 ms"').replace('"20 s"', '"900 ms"')
    file = scenario_file(elsewhere, traffic, network)
    (elsewhere / "small.toml").write_text(SMALL, encoding="utf-8")
    with pytest.raises(package.ScenarioError) as refused:
        _native.run(package.Scenario.load(file).effective, None, None, MIB)
    estimate = re.search(r"(?:takes|needs about) ([0-9.]+) MiB", str(refused.value))
    assert estimate is not None
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], cwd=elsewhere, capture_output=True, text=True, check=True
    )
    measured = float(done.stdout)
    ratio = float(estimate[1]) / measured
    assert 1 / factor < ratio < factor, f"estimated {estimate[1]} MiB, measured {measured:.1f} MiB"


@pytest.mark.long
def test_a_capture_of_many_interfaces_takes_little(elsewhere: Path) -> None:
    def block(kind: int, body: bytes) -> bytes:
        size = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + size + body + size

    blocks = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks += [block(1, struct.pack("<HHI", 101, 0, 0))] * 400
    for interface in range(400):
        for stamp in (0, 10**12):  # 11 days apart
            head = struct.pack("<IIIII", interface, stamp >> 32, stamp & 0xFFFFFFFF, 20, 1500)
            blocks.append(block(6, head + bytes(20)))
    (elsewhere / "many.pcapng").write_bytes(b"".join(blocks))
    limit = 3 << 30
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", "traffic", "describe", "many.pcapng", "--json"],
        cwd=elsewhere,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    assert done.returncode == 0, done.stderr[-500:]


def test_time_without_events_costs_nothing(elsewhere: Path) -> None:
    """One user who tries for 700 hours over round trips of an hour, longer than any handshake."""
    network = NETWORK.replace('"2 s"', '"0 s"').replace('"20 s"', '"700 h"')
    text = f"""{network}[[traffic]]
name = "one"
kind = "mah-web"
users = 1
rtt = {{ kind = "constant", rtt = "1 h" }}
"""
    text = text.replace("[measure]", '[measure]\nqueue_sample = "1 h"\nrecord = []')
    (elsewhere / "scenario.toml").write_text(text, encoding="utf-8")
    run = package.run(elsewhere / "scenario.toml")
    assert run.summary["events"] < 1_000_000
