"""Feeds one list of packets to the queues of ns-2 and ns-3 and keeps what they did with it.

    .venv/bin/python -m lab.peers.traces.make [CASE...]

writes crates/aqm/tests/data/peers, which crates/aqm/tests/peers.rs compares with our disciplines.
Needs ns2, libns3-dev and g++ (docs/other-tools.md). Without a CASE everything is made anew.
"""

from __future__ import annotations

import math
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lab.peers import ns2, ns3

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "crates" / "aqm" / "tests" / "data" / "peers"

RATE = 10e6  # bit/s, of the link; the two programs have it, too
PACKETS = 24_000
# Flows 0 to 9: bytes of each packet, and how many of 14 packets are theirs.
SIZES = (1000, 1000, 1000, 1000, 1000, 1000, 500, 500, 40, 1500)
SHARES = (5, 1, 1, 1, 1, 1, 1, 1, 1, 1)
LOADS = (0.6, 0.9, 1.0, 1.1, 1.2)
STAY = (0.3, 1.0)  # s, with one load
TICK = 1e-7  # s, the unit of gaps in arrivals.csv
BIN = 0.1  # s
RUNS = 40


@dataclass(frozen=True)
class Case:
    """A queue of a peer. `draws`: its decisions are random, so that one run says little."""

    peer: str
    kind: str
    settings: Mapping[str, object] = field(default_factory=dict)
    variable: str = "-"
    draws: bool = True
    ecn: bool = False


RED_NS2 = {
    "limit_": 60,
    "thresh_": 5,
    "maxthresh_": 15,
    "linterm_": 10,
    "q_weight_": 0.002,
    "mean_pktsize_": 1000,
    "bytes_": "false",
    "queue_in_bytes_": "false",
    "gentle_": "false",
    "use_mark_p_": "false",
}
ADAPTIVE_NS2 = RED_NS2 | {
    "thresh_": 12,
    "maxthresh_": 36,
    "linterm_": 4,
    "limit_": 120,
    "gentle_": "true",
    "adaptive_": 1,
    "bottom_": 0.01,
    "top_": 0.5,
}
RED_NS3 = {
    "MaxSize": "60p",
    "MinTh": 5,
    "MaxTh": 15,
    "LInterm": 10,
    "QW": 0.002,
    "MeanPktSize": 1000,
    "LinkBandwidth": "10Mbps",
    "Gentle": "false",
}
PI_NS2 = {
    "limit_": 100,
    "a_": 2e-3,
    "b_": 1.9e-3,
    "w_": 160,
    "qref_": 20,
    "mean_pktsize_": 1000,
    "bytes_": "false",
    "queue_in_bytes_": "false",
}
REM_NS2 = {
    "limit_": 101,
    "gamma_": 0.05,
    "phi_": 1.001,
    "inw_": 1,
    "pupdtime_": 0.01,
    "pbo_": 20,
    "mean_pktsize_": 1000,
    "qib_": "false",
}
CODEL_NS3 = {"MaxSize": "1000p", "Target": "5ms", "Interval": "100ms"}
CASES = {
    "ns2-red": Case("ns2", "RED", RED_NS2, "ave_"),
    "ns2-red-uniform": Case("ns2", "RED", RED_NS2 | {"wait_": "false"}, "ave_"),
    "ns2-red-gentle": Case("ns2", "RED", RED_NS2 | {"gentle_": "true"}, "ave_"),
    "ns2-red-bytes": Case(
        "ns2", "RED", RED_NS2 | {"bytes_": "true", "queue_in_bytes_": "true"}, "ave_"
    ),
    "ns2-ared": Case("ns2", "RED", ADAPTIVE_NS2, "cur_max_p_"),
    "ns2-ared-feng": Case(
        "ns2",
        "RED",
        ADAPTIVE_NS2 | {"gentle_": "false", "feng_adaptive_": 1, "alpha_": 3, "beta_": 2},
        "cur_max_p_",
    ),
    "ns2-pi": Case("ns2", "PI", PI_NS2, "prob_"),
    "ns2-pi-bytes": Case(
        "ns2", "PI", PI_NS2 | {"limit_": 1000, "bytes_": "true", "queue_in_bytes_": "true"}, "prob_"
    ),
    "ns2-rem": Case("ns2", "REM", REM_NS2, "prob_"),
    "ns2-rem-bytes": Case("ns2", "REM", REM_NS2 | {"limit_": 1000, "qib_": "true"}, "prob_"),
    "ns2-avq": Case(
        "ns2",
        "Vq",
        {"limit_": 20, "ecnlim_": 1, "queue_in_bytes_": "true", "mean_pktsize_": 1000},
        draws=False,
    ),
    "ns3-red": Case("ns3", "RedQueueDisc", RED_NS3),
    "ns3-red-ecn": Case("ns3", "RedQueueDisc", RED_NS3 | {"UseEcn": "true"}, ecn=True),
    "ns3-pie": Case("ns3", "PieQueueDisc", {"MaxSize": "1000p", "MaxBurstAllowance": "150ms"}),
    "ns3-codel": Case("ns3", "CoDelQueueDisc", CODEL_NS3, draws=False),
    "ns3-codel-ecn": Case(
        "ns3", "CoDelQueueDisc", CODEL_NS3 | {"UseEcn": "true"}, draws=False, ecn=True
    ),
    "ns3-fq-codel": Case(
        "ns3",
        "FqCoDelQueueDisc",
        CODEL_NS3 | {"UseEcn": "false", "Quantum": 300},
        draws=False,
    ),
}


def uniforms(seed: int) -> Iterator[float]:
    """Numbers uniform on [0, 1): SplitMix64 (Steele, Lea, Flood 2014)."""
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        yield ((z ^ z >> 31) >> 11) / (1 << 53)


def make_arrivals() -> list[tuple[int, int]]:
    """Gaps in ticks and flows: Poisson arrivals at a load that changes now and then."""
    random = uniforms(1)
    flows = [flow for flow, share in enumerate(SHARES) for _ in range(share)]
    bits = 8 * sum(SIZES[flow] for flow in flows) / len(flows)
    arrivals: list[tuple[int, int]] = []
    load, left = 0.0, 0.0
    while len(arrivals) < PACKETS:
        if left <= 0:
            load = LOADS[int(next(random) * len(LOADS))]
            left = STAY[0] + (STAY[1] - STAY[0]) * next(random)
        gap = -math.log(1 - next(random)) * bits / (RATE * load)
        left -= gap
        arrivals.append((max(1, round(gap / TICK)), flows[int(next(random) * len(flows))]))
    return arrivals


@dataclass
class Run:
    """What one run of a peer did."""

    dropped: list[int] = field(default_factory=list)  # numbers of packets
    marked: list[int] = field(default_factory=list)
    queue: list[float] = field(default_factory=list)  # time average of each bin, in packets
    variable: list[float] = field(default_factory=list)  # 1 ms before the end of each bin


def read(lines: Iterator[str], bins: int) -> Run:
    """Reads the events of either program: letter, time and, somewhere, the packet's number."""
    run = Run()
    waiting, last, area, end = 0, 0.0, 0.0, BIN
    for line in lines:
        what, time, *rest = line.split()
        if what == "v":
            run.variable.append(float(rest[0]))
            continue
        if what == "r":  # received at the far end
            continue
        now = float(time) if len(rest) > 1 else int(time) * 1e-9
        while now >= end and len(run.queue) < bins:
            run.queue.append((area + waiting * (end - last)) / BIN)
            area, last = 0.0, end
            end = (len(run.queue) + 1) * BIN
        area += waiting * (now - last)
        last = now
        if what == "m":
            run.marked.append(int(rest[-1]))
            continue
        waiting += 1 if what == "+" else -1
        if what == "d":
            run.dropped.append(int(rest[-1]))
    run.queue += [float(waiting)] * (bins - len(run.queue))
    return run


def play(case: Case, seed: int, arrivals: Path, program: Path, bins: int) -> Run:
    """One run of a peer."""
    with tempfile.NamedTemporaryFile("r", suffix=".out") as output:
        if case.peer == "ns2":
            settings = " ".join(f"{name} {value}" for name, value in case.settings.items())
            command: list[str | Path] = [
                "ns",
                HERE / "queue_ns2.tcl",
                case.kind,
                settings,
                case.variable,
            ]
        else:
            settings = ",".join(f"{name}={value}" for name, value in case.settings.items())
            command = [program, case.kind, settings, str(int(case.ecn))]
        subprocess.run([*command, arrivals, str(seed), output.name], check=True)
        return read(iter(output), bins)


def mean_and_deviation(values: tuple[float, ...]) -> str:
    """Of one quantity in all runs."""
    if len(values) == 1:
        return f"{values[0]:.5g}"
    return f"{statistics.fmean(values):.5g},{statistics.stdev(values):.3g}"


def keep(name: str, case: Case, runs: list[Run], sizes: list[int]) -> None:
    """Writes what the tests compare."""
    kinds = sorted(set(SIZES))
    with (DATA / f"{name}.csv").open("w") as file:
        columns = ["queue"] + (["variable"] if case.variable != "-" else [])
        names = [f"{c}_mean,{c}_deviation" if case.draws else c for c in columns]
        print(",".join(names), file=file)
        table = [zip(*(run.queue for run in runs), strict=True)]
        if case.variable != "-":
            table.append(zip(*(run.variable for run in runs), strict=True))
        for row in zip(*table, strict=True):
            print(",".join(mean_and_deviation(values) for values in row), file=file)
    with (DATA / f"{name}.drops.csv").open("w") as file:
        if not case.draws:
            print("packet,fate", file=file)
            fates = [(n, "dropped") for n in runs[0].dropped]
            fates += [(n, "marked") for n in runs[0].marked]
            for number, fate in sorted(fates):
                print(f"{number},{fate}", file=file)
            return
        print(",".join(f"dropped_{size}" for size in kinds) + ",marked", file=file)
        for run in runs:
            counts = [sum(sizes[n] == size for n in run.dropped) for size in kinds]
            print(",".join(map(str, [*counts, len(run.marked)])), file=file)


def main() -> None:
    """Makes all cases, or those that are named."""
    wanted = sys.argv[1:] or list(CASES)
    if unknown := set(wanted) - set(CASES):
        sys.exit(f"unknown case {shlex.join(unknown)}; known: {', '.join(CASES)}")
    ns2.prepare()
    DATA.mkdir(parents=True, exist_ok=True)
    arrivals = make_arrivals()
    with (DATA / "arrivals.csv").open("w") as file:
        print("gap_100ns,flow", file=file)
        for gap, flow in arrivals:
            print(f"{gap},{flow}", file=file)
    sizes = [SIZES[flow] for _, flow in arrivals]
    with tempfile.TemporaryDirectory() as directory:
        program = ns3.compiled(HERE / "queue_ns3.cc", Path(directory))
        packets = Path(directory) / "arrivals.txt"
        time = 0
        with packets.open("w") as file:
            for (gap, flow), size in zip(arrivals, sizes, strict=True):
                time += gap
                print(f"{time * TICK:.7f} {flow} {size}", file=file)
        bins = int(time * TICK / BIN)
        with ThreadPoolExecutor(2) as pool:
            for name in wanted:
                case = CASES[name]
                seeds = range(1, RUNS + 1) if case.draws else [1]
                jobs = [pool.submit(play, case, seed, packets, program, bins) for seed in seeds]
                runs = [job.result() for job in jobs]
                keep(name, case, runs, sizes)
                dropped = statistics.fmean(len(run.dropped) for run in runs)
                marked = statistics.fmean(len(run.marked) for run in runs)
                numbers = f"{dropped:.1f} dropped, {marked:.1f} marked, {len(runs)} runs"
                sys.stdout.write(f"{name}: {numbers}\n")


if __name__ == "__main__":
    main()
