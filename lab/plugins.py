"""What algorithms of one's own cost beside native ones: `make bench-plugins`.

RED, CoDel and CUBIC of `tests/plugins`, which give the same bytes as the native ones, each in
Python, compiled by numba, and in C. The ways take turns: a round makes one run of each, and what is
compared are runs of the same round, so a machine that is slower for a while is so for all. The
second table has steps per second of environments for learning.

Time is the processor time of the stretch that is simulated, without the start of the run; nothing
is recorded. Packets are those that arrive at the bottleneck towards the clients; in the second
table both ways, as in the comparison with other simulators.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import aqmlab
import numpy as np
from aqmlab import Scenario, plugins
from aqmlab.gym import AqmVectorEnv

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests" / "plugins"
QUEUE = "topology.bottleneck.forward.discipline"
STACK = "traffic.transfers.tcp"
LEAST_PYTHON = 500_000
"""Packets per second of processor time that callbacks in Python are to reach."""
MOST_COMPILED = 1.3
"""Times the native time per packet that compiled callbacks may take."""
NS3 = 65_000
"""Packets per second of processor time in ns-3, `bulk-50` of docs/other-tools.md."""


@dataclass
class Way:
    """One way to write an algorithm, and what its runs took."""

    name: str
    scenario: Scenario
    packets: int = 0
    seconds: list[float] = field(default_factory=list)

    def run(self) -> None:
        """One run more."""
        with aqmlab.Simulation(self.scenario, record=False) as simulation:
            gc.collect()
            began = time.process_time()
            simulation.run_until(simulation.end)
            self.seconds.append(time.process_time() - began)
            self.packets = simulation.links["bottleneck.forward"].arrived_packets


def ways(what: str, folder: Path, base: Scenario) -> list[Way]:
    """The ways of an algorithm, the native one first."""
    files = {"numba": folder / f"{what}_numba.py", "C": folder / f"lib{what}.so"}
    files["Python"] = SOURCES / f"{what}.py"
    text = files["Python"].read_text().replace("class Py", "@compiled\nclass Numba")
    known = "from aqmlab.plugins import"
    files["numba"].write_text(text.replace(known, f"{known} compiled\n{known}", 1))
    include = f"-I{Path(plugins.__file__).parent}"
    flags = ["-O2", "-shared", "-fPIC", "-ffp-contract=off", include]
    command: list[str | Path] = ["cc", *flags, "-o", files["C"], SOURCES / f"{what}.c", "-lm"]
    if shutil.which("cc") is None:
        print("bench: NO C PLUG-IN WAS MEASURED: no compiler cc", file=sys.stderr)
        del files["C"]
    else:
        subprocess.run(command, check=True)

    def scenario(kind: str) -> Scenario:
        if what == "cubic":
            stack = f'{{ profile = "linux", congestion_control = {{ {kind} }} }}'
            return base.with_overrides({STACK: stack})
        limits = 'limit = "240 packets"'
        if what == "red":
            limits += ', min_th = "20 packets", max_th = "60 packets"'
        return base.with_overrides({QUEUE: f"{{ {kind}, {limits} }}"})

    found = [Way("native", scenario(f'kind = "{what}"'))]
    for way, file in files.items():
        [name] = plugins.load(file)
        found.append(Way(way, scenario(f'kind = "plugin", name = "{name}"')))
    return found


def compare(rounds: int, seconds: int) -> bool:
    """Prints what a packet costs in each way; whether all is as it is to be."""
    base = Scenario.load(ROOT / "scenarios" / "bulk.toml").with_overrides(
        {
            "measure.warm_up": "0 s",
            "measure.duration": f"{seconds} s",
            "topology.bottleneck.rate": "100 Mbit/s",
            "traffic.transfers.flows": "40",
        }
    )
    print(f"\nProcessor time, medians of {rounds} rounds; {seconds} s of 40 transfers, 100 Mbit/s")
    print("| algorithm | way | packets | ns/packet | packets per CPU second | times native |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    is_met = True
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as folder:
        for what in ("red", "codel", "cubic"):
            found = ways(what, Path(folder), base)
            for way in found:
                way.run()  # what is loaded once is not counted
                way.seconds.clear()
            for _ in range(rounds):
                for way in found:
                    way.run()
            native = found[0]
            for way in found:
                assert way.packets == native.packets, f"{what}: {way.name} is another algorithm"
                each = statistics.median(way.seconds) / way.packets
                pairs = zip(way.seconds, native.seconds, strict=True)
                ratio = statistics.median(mine / its for mine, its in pairs)
                if way.name == "Python":
                    is_met &= 1 / each >= LEAST_PYTHON
                else:
                    is_met &= ratio <= MOST_COMPILED
                print(
                    f"| {what} | {way.name} | {way.packets:,} | {each * 1e9:.0f} | {1 / each:,.0f} "
                    f"| {ratio:.2f} |"
                )
    return is_met


def arrived(envs: AqmVectorEnv) -> int:
    """Packets at the bottlenecks of all, both ways, since the start of their episodes."""
    directions = ("bottleneck.forward", "bottleneck.reverse")
    links = [env.under_way().stepper.link(name) for env in envs.envs for name in directions]
    return sum(link[1][0] for link in links if link is not None)


def environments(rounds: int) -> None:
    """Prints how many steps per second environments make."""
    scenario = Scenario.load(ROOT / "scenarios" / "bulk.toml").with_overrides(
        {"measure.warm_up": "0 s", "measure.duration": "1000 s"}
    )
    print(f"\nSteps of 10 ms at 10 Mbit/s, 8 transfers, medians of {rounds} rounds")
    print(
        "| environments | steps per second | per CPU second | packets per CPU second | times ns-3 |"
    )
    print("| ---: | ---: | ---: | ---: | ---: |")
    for count in (1, 8, 64):
        envs = AqmVectorEnv(count, scenario, interval=0.01)
        envs.reset(seed=1)
        actions = np.full((count, 1), 0.01, np.float32)
        steps = max(100, 4000 // count)
        for _ in range(200):
            envs.step(actions)
        walls, processors, packets = [], [], []
        counted = arrived(envs)
        for _ in range(rounds):
            began = time.perf_counter(), time.process_time()
            for _ in range(steps):
                envs.step(actions)
            walls.append(count * steps / (time.perf_counter() - began[0]))
            used = time.process_time() - began[1]
            processors.append(count * steps / used)
            before, counted = counted, arrived(envs)
            packets.append((counted - before) / used)
        envs.close()
        rate = statistics.median(packets)
        print(
            f"| {count} | {statistics.median(walls):,.0f} | {statistics.median(processors):,.0f} "
            f"| {rate:,.0f} | {rate / NS3:.1f} |"
        )


def main() -> None:
    """Measures, and ends with status 1 if something is slower than it is to be."""
    parser = argparse.ArgumentParser(description="What algorithms of one's own cost.")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each comparison")
    parser.add_argument("--seconds", type=int, default=40, help="simulated seconds of a run")
    chosen = parser.parse_args()
    is_met = compare(chosen.rounds, chosen.seconds)
    environments(chosen.rounds)
    if not is_met:
        sys.exit(
            f"bench: not {LEAST_PYTHON:,} packets per CPU second in Python, or compiled code "
            f"above {MOST_COMPILED} times native"
        )


if __name__ == "__main__":
    main()
