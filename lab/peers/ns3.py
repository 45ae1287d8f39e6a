"""ns-3: how a program of ours is compiled and run, and what it calls a scenario's parts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

from lab.peers.simulators import called, parsed, plain

__all__ = ["NOTES", "PROGRAM", "answer", "compiled", "options", "prepare", "printed", "run"]


PROGRAM = Path("lab/peers/fidelity_ns3.cc")
"""What is compiled for ns-3."""
_LIBRARIES = (
    *("applications", "internet", "point-to-point", "traffic-control"),
    *("network", "core"),
)
NOTES = (
    (
        "Senders are ns-3's `TcpNewReno` with SACK, proportional rate reduction, limited transmit "
        "and delayed ACKs; ours are profile `rfc` with the same. Segments have 1,460 bytes, the "
        "wire 2 bytes of framing. Without SACK ns-3 is no model of NewReno."
    ),
    (
        "Below ns-3's queue disc the device keeps one packet waiting; ours has `device_ring` for "
        "it. The queue is what the discipline holds."
    ),
    (
        "CoDel leaves a queue alone that holds no more than one packet (RFC 8289); ns-3's does so "
        "below `MinBytes`, so that it drops with one packet of 1,500 bytes waiting. It gets 1,501 "
        "here; as it comes its FQ-CoDel has a mean queue of 6.6 packets, not 9."
    ),
    "ns-3's SACK blocks lengthen ACKs; ours have 40 bytes throughout.",
    "ns-3's RED marks in the gentle region, too; ours drops there.",
    (
        "ns-3's CoDel takes 1/sqrt(count) from one step of Newton's method; ours computes it. "
        "After a mark it schedules the next from the present time, ours as after a drop."
    ),
)
"""What is equal, and what is not."""
_CONTROLS = {"reno": "TcpNewReno", "cubic": "TcpCubic"}
"""By name: ns-3's types of congestion controls."""
_LARGEST_PLAIN_WINDOW = 65535
"""Bytes; larger windows are scaled (RFC 7323)."""
_PACKET = 1500
"""Bytes of a packet, for limits in bytes: ns-3's FQ-CoDel counts packets only."""
_ECN_KINDS = ("red", "codel", "fq-codel", "pie")


def prepare(folder: Path) -> None:
    """Compiles the program of the comparison into a folder, or refuses to begin."""
    compiled(PROGRAM, folder)


def compiled(source: Path, folder: Path) -> Path:
    """The program of a file, made in a folder; refuses to begin without ns-3."""
    program = folder / source.stem
    folder.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{name}" for name in _LIBRARIES]
    # The libraries by name: the list that Debian's pkg-config gives names files it lacks.
    command: list[str | Path] = ["g++", "-O2", "-std=c++17", source, "-o", program, *libraries]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        said = made.stderr if made.returncode else ""
    except OSError as error:
        said = f"error: {error}"
    if said:
        errors = [line for line in said.splitlines() if "error" in line or "cannot find" in line]
        raise AqmlabError(
            f"ns-3 is not installed: {source} does not compile "
            f"({(errors or [said.strip()])[0]}); on Debian: apt-get install libns3-dev g++"
        )
    return program


def run(scenario: Scenario, folder: Path) -> tuple[dict[str, float], str]:
    """ns-3's numbers for a scenario, by metric, and its version."""
    numbers, _ = parsed("ns-3", _called(scenario, folder))
    return numbers, _version(called("ns-3", ["ldd", folder / PROGRAM.stem], "ldd"))


def printed(scenario: Scenario, folder: Path) -> dict[str, float]:
    """Everything that the program prints for a scenario, by name."""
    lines = (line.split() for line in _called(scenario, folder).splitlines())
    return {name: float(value) for name, value in lines}


def _called(scenario: Scenario, folder: Path) -> str:
    """What the program of the comparison prints for a scenario."""
    return answer(folder / PROGRAM.stem, options(scenario.data), scenario.name)


def answer(program: Path, options: Mapping[str, object], what: str, limit_s: float = 3600) -> str:
    """What a program prints with some options; `what` names the run in messages."""
    words = [f"--{name}={value}" for name, value in options.items()]
    return called("ns-3", [program, *words], what, limit_s)


def _version(linked: str) -> str:
    """The version of the libraries that a program is linked with."""
    found = re.search(r"libns3-core\.so\.(\S+)", linked)
    return f"3.{found[1]}" if found else ""


def options(scenario: Mapping[str, Any]) -> dict[str, object]:
    """The options of ns-3's program for an effective scenario: endless transfers, datagrams."""
    measure, link = scenario["measure"], scenario["topology"]["bottleneck"]["forward"]
    stack = next(one["tcp"] for one in scenario["traffic"] if one["kind"] == "bulk")
    kind, settings = _discipline(link["discipline"], link["rate"])
    window = int(plain(stack["send_buffer"]))
    return {
        "seconds": plain(measure["duration"]),
        "warm_up": plain(measure["warm_up"]),
        "seed": scenario["seed"],
        "senders": ",".join(one for traffic in scenario["traffic"] for one in _senders(traffic)),
        "rate": f"{plain(link['rate']):.0f}bps",
        "segment": int(plain(stack["mss"])),
        "window": window,
        "scaling": int(window > _LARGEST_PLAIN_WINDOW),
        "initial_window": stack["initial_window"],
        "rto_min": plain(stack["rto_min"]),
        "delayed_ack": plain(stack["delayed_ack"]["delay"]),
        "ecn": int(stack["ecn"]),
        "discipline": f"ns3::{kind}QueueDisc",
        "settings": ",".join(f"{name}={value}" for name, value in settings.items()),
    }


def _senders(traffic: Mapping[str, Any]) -> Iterator[str]:
    """The senders of a class, as the program reads them."""
    count, rtt = traffic["flows"], traffic["rtt"]
    ends = (rtt["rtt"], rtt["rtt"]) if rtt["kind"] == "constant" else (rtt["min"], rtt["max"])
    shortest, longest = map(plain, ends)
    start, within = plain(traffic["start"]), plain(traffic["start_within"])
    for host in range(count):
        own = shortest + (longest - shortest) * host / max(1, count - 1)
        if traffic["kind"] == "cbr":
            yield f"datagrams/{own:.9g}/{start:g}/{within:g}/{plain(traffic['rate']):.0f}"
        else:
            control = _CONTROLS[traffic["tcp"]["congestion_control"]["kind"]]
            yield f"{control}/{own:.9g}/{start:g}/{within:g}/0"


def _discipline(ours: Mapping[str, Any], rate: str) -> tuple[str, dict[str, object]]:
    """ns-3's name of a discipline and its attributes."""
    kind = ours["kind"]
    limit = plain(ours["limit"]) / (_PACKET if ours["limit"].endswith("bytes") else 1)
    settings: dict[str, object] = {"MaxSize": f"{int(limit)}p"}
    if kind in _ECN_KINDS:
        settings["UseEcn"] = "true" if ours["ecn"] else "false"
    if kind in ("codel", "fq-codel"):
        settings |= {
            "Target": f"{1e3 * plain(ours['target'] or '5 ms'):g}ms",
            "Interval": f"{1e3 * plain(ours['interval']):g}ms",
            # It leaves a queue of less than so many bytes alone, ours one of no more than `mtu`.
            "ns3::CoDelQueueDisc::MinBytes": int(plain(ours["mtu"])) + 1,
        }
    match kind:
        case "droptail":
            return "Fifo", settings
        case "codel":
            return "CoDel", settings
        case "fq-codel":
            # Its quantum is the device's MTU of 1,500 bytes.
            return "FqCoDel", settings | {"Flows": ours["flows"]}
        case "pie":
            return "Pie", settings | {
                "QueueDelayReference": f"{1e3 * plain(ours['qdelay_ref']):g}ms",
                "Tupdate": f"{1e3 * plain(ours['t_update']):g}ms",
                "MaxBurstAllowance": f"{1e3 * plain(ours['max_burst']):g}ms",
                "MeanPktSize": int(plain(ours["mean_packet"])),
                "MarkEcnThreshold": ours["mark_ecnth"],
            }
        case "red":
            return "Red", settings | {
                "MinTh": plain(ours["min_th"]),
                "MaxTh": plain(ours["max_th"]),
                "LInterm": 1 / ours["max_p"],
                "QW": ours["w_q"],
                "Gentle": "true" if ours["gentle"] else "false",
                "Wait": {"wait": "true", "uniform": "false"}[ours["gap"]],
                "MeanPktSize": int(plain(ours["mean_packet"])),
                "LinkBandwidth": f"{plain(rate):.0f}bps",
            }
    raise AqmlabError(
        f"topology.bottleneck.discipline.kind: found {kind}; "
        "the comparison knows droptail, red, codel, fq-codel and pie in ns-3"
    )
