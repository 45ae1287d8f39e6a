"""QUIC by quinn beside our TCP: the same transfers, control, segment size and queue.

``make quic-witness`` runs every cell and writes ``records/quic.md``. Both have ECN, datagrams of
1,480 IP bytes, a first window of ten of them, NewReno or CUBIC, and no HyStart; TCP has RACK.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from aqmlab import Scenario, simulate

RECORD = Path("records/quic.md")
RATE = 10e6
SEEDS = (1, 2)
SEGMENT = 1480
CONTROLS = {
    "NewReno": ('"reno"', "new-reno"),
    "CUBIC": ('{ kind = "cubic", hystart = false }', "cubic"),
}
"""What TCP and quinn call a control."""
FLOWS = (1, 10, 50)
LOSSES = (0.0, 0.01, 0.05)
ROUND_TRIPS_MS = (10, 40, 200)
QUEUES = {
    "drop-tail, 1 BDP": '{ kind = "droptail", limit = "BDP packets" }',
    "RED, ECN": '{ kind = "red", min_th = "10 packets", max_th = "30 packets", '
    'limit = "100 packets", gentle = true, ecn = true }',
    "FQ-CoDel, ECN": '{ kind = "fq-codel", ecn = true }',
}
MEASURES = {"goodput": 2, "loss": 2, "marked": 2, "queue": 1}
"""What is compared, with its digits."""
INTRODUCTION = f"""\
# QUIC by quinn beside TCP

Endless transfers over 10 Mbit/s: our TCP with RACK, then quinn-proto 0.11.19. Both have ECN,
datagrams of 1,480 IP bytes, a first window of ten of them, the same congestion control, and no
HyStart. Means of {len(SEEDS)} seeds, 30 s after 5 s. `make quic-witness` writes this page.

## In short

Goodput of quinn as a share of TCP's, and how much longer a packet waits behind quinn. Medians over
flows and round trips, least and most in brackets.

| control | queue | random loss % | goodput, share | queue, ms more |
| --- | --- | ---: | ---: | ---: |
"""
EVERY = """
## Every cell

TCP, then quinn.

| control | queue | flows | random loss % | round trip, ms | goodput, Mbit/s | dropped % \
| marked % | queue, ms |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class Cell:
    """One setting."""

    control: str
    queue: str
    flows: int
    loss: float
    round_trip_ms: int

    def scenario(self, transport: str, seed: int) -> Scenario:
        """Endless transfers that begin within a second."""
        bdp = max(10, round(RATE * self.round_trip_ms / 1000 / 8 / SEGMENT))
        tcp, quinn = CONTROLS[self.control]
        queue = QUEUES[self.queue].replace("BDP", str(bdp))
        return Scenario.from_toml(f"""
            seed = {seed}
            [measure]
            warm_up = "5 s"
            duration = "30 s"
            record = []
            [topology]
            kind = "dumbbell"
            [topology.bottleneck]
            framing = "none"
            delay = "0 ms"
            discipline = {{ kind = "droptail", limit = "10000 packets" }}
            [topology.bottleneck.forward]
            rate = "10 Mbit/s"
            loss = {self.loss}
            discipline = {queue}
            [topology.bottleneck.reverse]
            rate = "1 Gbit/s"
            [[traffic]]
            name = "transfers"
            kind = "bulk"
            flows = {self.flows}
            transport = "{transport}"
            rtt = {{ kind = "constant", rtt = "{self.round_trip_ms} ms" }}
            [traffic.tcp]
            profile = "linux"
            ecn = true
            mss = "1428 bytes"
            congestion_control = {tcp}
            [traffic.quinn]
            congestion_control = "{quinn}"
            datagram = "1452 bytes"
            mtu_discovery = false
            initial_window = "14520 bytes"
            receive_window = "4000000 bytes"
        """)


def cells() -> Iterator[Cell]:
    """Every setting."""
    for values in product(CONTROLS, QUEUES, FLOWS, LOSSES, ROUND_TRIPS_MS):
        yield Cell(*values)


def measured(summary: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that are compared."""
    link = summary["links"]["bottleneck"]["forward"]
    return {
        "goodput": summary["flows"]["transfers"]["goodput_bps"] / 1e6,
        "loss": 100 * link["loss_rate"],
        "marked": 100 * link["mark_rate"],
        "queue": 1000 * (link["sojourn_mean_s"] or 0.0),
    }


def run(work: tuple[Cell, str]) -> dict[str, float]:
    """Means over the seeds."""
    cell, transport = work
    runs = [measured(simulate(cell.scenario(transport, seed)).summary) for seed in SEEDS]
    return {name: fmean(one[name] for one in runs) for name in MEASURES}


Pair = tuple[dict[str, float], dict[str, float]]


def _shown(name: str, both: Pair) -> str:
    """The values of both."""
    return ", ".join(f"{one[name]:.{MEASURES[name]}f}" for one in both)


def page(pairs: dict[Cell, Pair]) -> str:
    """The record."""
    text = INTRODUCTION
    for control, queue, loss in product(CONTROLS, QUEUES, LOSSES):
        of_it = [
            pair
            for cell, pair in pairs.items()
            if (cell.control, cell.queue, cell.loss) == (control, queue, loss)
        ]
        shares = [quinn["goodput"] / tcp["goodput"] for tcp, quinn in of_it]
        waits = [quinn["queue"] - tcp["queue"] for tcp, quinn in of_it]
        text += (
            f"| {control} | {queue} | {100 * loss:g} "
            f"| {median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f}) "
            f"| {median(waits):.1f} ({min(waits):.1f} to {max(waits):.1f}) |\n"
        )
    text += EVERY
    for cell, both in pairs.items():
        values = " | ".join(_shown(name, both) for name in MEASURES)
        text += (
            f"| {cell.control} | {cell.queue} | {cell.flows} | {100 * cell.loss:g} "
            f"| {cell.round_trip_ms} | {values} |\n"
        )
    return text


def main() -> None:
    """Runs every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=RECORD, help="the page")
    arguments = parser.parse_args()
    every = list(cells())
    with ThreadPoolExecutor(arguments.jobs) as pool:
        tcp, quinn = (
            list(pool.map(run, ((cell, transport) for cell in every)))
            for transport in ("tcp", "quinn")
        )
    pairs = dict(zip(every, zip(tcp, quinn, strict=True), strict=True))
    arguments.out.write_text(page(pairs), encoding="utf-8")
    sys.stdout.write(f"{arguments.out}: {len(every)} cells\n")


if __name__ == "__main__":
    main()
