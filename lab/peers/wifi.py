"""CPU for each packet of saturated Wi-Fi senders, in ns-3 and here: `records/wifi.md`.

    python -m lab.peers.wifi NS3_PROGRAM AQMLAB_EXAMPLE

The first is `wifi_ns3.cc`, compiled; the second is the example `run` of `crates/sim`. They take
turns.
"""

import json
import resource
import statistics
import subprocess
import sys

OFFERED = 45e6
"""Bits a second of all senders together: more than the air carries."""
SEEDS = (1, 2, 3)
LENGTHS = {1: (5, 100), 2: (5, 100), 5: (4, 100), 10: (3, 100), 20: (2, 60)}
"""Simulated seconds by number of senders: of ns-3, and here."""
PAYLOAD = 1472


def printed(command: list[str]) -> str:
    """What a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def of_ns3(program: str, senders: int, seconds: int, seed: int) -> tuple[float, float]:
    """Microseconds for a packet, and Mbit/s of payload."""
    options = {"senders": senders, "rate": OFFERED / senders, "seconds": seconds, "seed": seed}
    lines = printed([program, *(f"--{key}={value}" for key, value in options.items())]).splitlines()
    found = {name: float(value) for name, value in map(str.split, lines)}
    return 1e6 * found["cpu_s"] / found["packets"], found["mbps"]


def ours(program: str, senders: int, seconds: int, seed: int) -> tuple[float, float]:
    """The same here; the time is that of the whole process."""
    settings = {
        "topology.hosts.clients": senders,
        "topology.wifi.stations.0.count": senders,
        "traffic.datagrams.flows": senders,
        "traffic.datagrams.rate": f'"{OFFERED / senders / 1e6:g} Mbit/s"',
        "traffic.datagrams.gaps": '"constant"',
        "traffic.datagrams.start_within": '"1 ms"',
        "measure.warm_up": '"0 s"',
        "measure.duration": f'"{seconds} s"',
        "seed": seed,
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    options = [f"{key}={value}" for key, value in settings.items()]
    summary = json.loads(printed([program, "scenarios/wifi/senders.toml", *options]))
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    packets = summary["links"]["wifi"]["up"]["departed_packets"]
    return 1e6 * spent / packets, packets * PAYLOAD * 8 / seconds / 1e6


def shown(found: list[tuple[float, float]]) -> str:
    """The median of the times with their range, and the mean rate."""
    times = [time for time, _ in found]
    rate = statistics.fmean(rate for _, rate in found)
    median = statistics.median(times)
    return f"{median:.3g} ({min(times):.3g} to {max(times):.3g}) us, {rate:.2f} Mbit/s"


def main() -> None:
    """Prints a line for each number of senders."""
    ns3, aqmlab = sys.argv[1:]
    for senders, (long, longer) in LENGTHS.items():
        theirs, own = [], []
        for seed in SEEDS:
            theirs.append(of_ns3(ns3, senders, long, seed))
            own.append(ours(aqmlab, senders, longer, seed))
        ratio = statistics.median(t for t, _ in theirs) / statistics.median(t for t, _ in own)
        print(f"{senders}: ns-3 {shown(theirs)}; aqmlab {shown(own)}; {ratio:.0f} times less")


if __name__ == "__main__":
    main()
