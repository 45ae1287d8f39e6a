"""ns-2: how a program of ours is run in it, and what it calls a scenario's parts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

from lab.peers.simulators import called, parsed, plain

__all__ = ["NOTES", "PROGRAM", "answer", "discipline", "options", "prepare", "run", "stack_of"]


PROGRAM = Path("lab/peers/fidelity_ns2.tcl")
"""What ns-2 runs."""
NOTES = (
    (
        "Senders are ns-2's one-way TCP without handshake, delayed ACKs and random send delays, "
        "and without limited transmit where a setting does not name it; packets have 500 bytes, "
        "ACKs 40, the wire has no framing."
    ),
    (
        "ns-2's `DropTail` and `REM` keep one packet less waiting than their limit says and get a "
        "limit one higher."
    ),
    (
        "ns-2's RED has its default `use_mark_p_`: it marks up to a probability of 0.1 and drops "
        "beyond it. Ours marks below `max_th` and drops beyond it."
    ),
    "In a two-way setting every second flow sends against the others.",
)
"""What is equal, and what is not."""


def prepare(_: Path | None = None) -> None:
    """Refuses to begin without ns-2."""
    if shutil.which("ns") is None:
        raise AqmlabError(
            "ns-2 is not installed: there is no ns on the PATH; on Debian: apt-get install ns2"
        )


def run(scenario: Scenario, _: Path) -> tuple[dict[str, float], str]:
    """ns-2's numbers for a scenario, by metric, and its version."""
    return parsed("ns-2", answer(PROGRAM, options(scenario.data), scenario.name))


def answer(program: Path, options: Mapping[str, object], what: str, limit_s: float = 3600) -> str:
    """What a program prints with some options; `what` names the run in messages."""
    words = [str(word) for pair in options.items() for word in pair]
    return called("ns-2", ["ns", program, *words], what, limit_s)


def options(scenario: Mapping[str, Any]) -> dict[str, object]:
    """The options of ns-2's program for an effective scenario like ``dumbbell.toml``."""
    measure, [traffic] = scenario["measure"], scenario["traffic"]
    link, stack, flows = (
        scenario["topology"]["bottleneck"]["forward"],
        traffic["tcp"],
        traffic["flows"],
    )
    kind, settings, limit = discipline(link["discipline"])
    # Its dumbbell puts host i of n at (i + 1/2)/n of the range, ours puts flow i at i/(n - 1).
    low, high = plain(traffic["rtt"]["min"]), plain(traffic["rtt"]["max"])
    step = (high - low) / (flows - 1)
    return {
        "seconds": plain(measure["duration"]),
        "warm_up": plain(measure["warm_up"]),
        "seed": scenario["seed"],
        "flows": flows,
        "rate": f"{plain(link['rate']):.0f}",
        "queue": limit,
        "shortest": low - step / 2,
        "longest": high + step / 2,
        "start_within": plain(traffic["start_within"]),
        **stack_of(stack),
        "limited_transmit": int(stack["limited_transmit"]),
        "two_way": int(traffic["direction"] == "both"),
        "discipline": kind,
        "settings": " ".join(f"{name} {value}" for name, value in settings.items()),
    }


def stack_of(ours: Mapping[str, Any]) -> dict[str, object]:
    """The options that say how senders are, from a table of TCP's parameters."""
    return {
        "segment": int(plain(ours["mss"])),
        "window": int(plain(ours["send_buffer"])),
        "initial_window": ours["initial_window"],
        "tick": plain(ours["clock"]["period"]),
        "rto_initial": plain(ours["rto_initial"]),
        "rto_min": plain(ours["rto_min"]),
        "rto_max": plain(ours["rto_max"]),
        "sack": int(ours["recovery"] == "sack-pipe"),
        "ecn": int(ours["ecn"]),
    }


def discipline(ours: Mapping[str, Any]) -> tuple[str, dict[str, object], int]:
    """ns-2's name of a discipline, its settings and its limit.

    ns-2's drop-tail and REM keep one packet less waiting than their limit says.
    """
    kind, limit = ours["kind"], int(plain(ours["limit"]))
    if kind == "droptail":
        return "DropTail", {}, limit + 1
    if kind not in {"red", "pi", "rem"}:
        raise AqmlabError(
            f"topology.bottleneck.discipline.kind: found {kind}; "
            "the comparison knows droptail, red, pi and rem in ns-2"
        )
    mean = int(plain(ours["mean_packet"]))
    in_packets = {"mean_pktsize_": mean, "bytes_": "false", "queue_in_bytes_": "false"}
    ecn = "true" if ours["ecn"] else "false"
    if kind == "red":
        settings = {
            "thresh_": plain(ours["min_th"]),
            "maxthresh_": plain(ours["max_th"]),
            "linterm_": 1 / ours["max_p"],
            "q_weight_": ours["w_q"],
            "gentle_": "true" if ours["gentle"] else "false",
            "wait_": {"wait": "true", "uniform": "false"}[ours["gap"]],
            "setbit_": ecn,
        }
        return "RED", settings | in_packets, limit
    if kind == "pi":
        settings = {
            "a_": ours["a"],
            "b_": ours["b"],
            "w_": 1 / plain(ours["interval"]),
            "qref_": plain(ours["q_ref"]),
            "setbit_": ecn,
        }
        return "PI", settings | in_packets, limit
    settings = {
        "gamma_": ours["gamma"],
        "phi_": ours["phi"],
        "inw_": 1,  # the rate of the newest interval alone, as in the paper
        "pupdtime_": plain(ours["interval"]),
        "pbo_": plain(ours["q_ref"]),
        "mean_pktsize_": mean,
        "qib_": "false",
        "markpkts_": ecn,
    }
    return "REM", settings, limit + 1
