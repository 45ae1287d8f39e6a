"""Claims about Web sessions beside FTP, judged by ns-2's numbers: Zhang and Qiu 2000.

    .venv/bin/python -m lab.peers.sessions [--out FOLDER] [--seeds N] [WAY]...

runs the rows behind the paper's claims on short and long transfers and on FTP both ways, here and
in ns-2 with its one-way TCP, and prints both beside each other: rates, loss, queue, and the
verdicts of the rules in papers/zhangqiu2000/claims.toml. A way (default: new and kept) says how a
session of ns-2 uses connections and what else differs from the scenarios; see WAYS. Needs ns2
(docs/other-tools.md). A run is made once.
"""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from aqmlab._util.console import out
from aqmlab._util.markup import markdown
from aqmlab.papers.paper import Paper, PaperRow, Table
from aqmlab.papers.rule import decide, rows_of
from aqmlab.results.terms import total
from aqmlab.scenario.scenario import Scenario

from lab import study
from lab.peers import ns2
from lab.peers.simulators import plain

HERE = Path(__file__).resolve().parent
PAPER = "zhangqiu2000"
JUDGED = ("Z01", "Z04", "Z05", "Z07", "Z08", "Z09", "Z11", "Z37", "Z38", "Z39")
BESIDE = ("Z02", "Z03", "Z06", "Z10", "Z35", "Z40", "Z41")
"""Claims on the same rows that hold here, or that seeds decide differently."""
COLUMNS = (
    *("web", "ftp", "total_kbps", "loss_pct", "queue_packets", "web_lost", "web_sent"),
    *("ftp_lost", "ftp_sent", "timeouts", "forward", "reverse"),
)
SHOWN = {
    "figure3": ("web", "ftp", "loss_pct", "queue_packets", "timeouts"),
    "figure5": ("web", "ftp", "loss_pct", "queue_packets"),
    "figure17": ("total_kbps", "loss_pct", "queue_packets"),
    "figure19": ("forward", "reverse", "loss_pct", "queue_packets"),
}


@dataclass(frozen=True)
class Way:
    """How ns-2 is set up beside a scenario."""

    title: str
    options: Mapping[str, object] = field(default_factory=dict)
    """Of sessions_ns2.tcl, on top of the scenario's."""
    agents: str = ""
    """Options of Agent/TCP."""
    red: Mapping[str, object] = field(default_factory=dict)
    """Options of Queue/RED."""

    @property
    def suffix(self) -> str:
        """Of the tables with our reading of it."""
        return "-kept" if self.options.get("connections") == "kept" else ""


NEW: Mapping[str, object] = {"connections": "new"}
KEPT: Mapping[str, object] = {"connections": "kept"}
RED_IN_BYTES = {"bytes_": "true", "queue_in_bytes_": "true"}
WAYS = {
    "new": Way("new agents for each transfer", NEW),
    "kept": Way("one agent for the session", KEPT),
    "reset": Way("the agents reset for each transfer", {"connections": "reset"}),
    "kept-full": Way(
        "one agent, whose window stays through idle times", KEPT, agents="slow_start_restart_ false"
    ),
}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "window-20": {"title": "windows of 20 packets", "options": {"window": 9200}},
    "packets-1000": {"title": "packets of 1000 bytes", "options": {"segment": 960}},
    "tick-10": {"title": "ticks of 10 ms", "options": {"tick": 0.01}},
    "tick-500": {"title": "ticks of 500 ms", "options": {"tick": 0.5}},
    "no-delay": {"title": "no random delay", "options": {"send_delay": 0}},
    "window-init-2": {"title": "initial windows of 2", "options": {"initial_window": 2}},
    "limited": {"title": "limited transmit", "agents": "singledup_ 1"},
    "ns-2.35": {
        "title": "ns-2.35's defaults: SYN, limited transmit, ticks of 10 ms, RTO of 3 s",
        "options": {"tick": 0.01, "rto_initial": 3, "initial_window": 2, "send_delay": 0},
        "agents": "syn_ true delay_growth_ true singledup_ 1 exitFastRetrans_ true bugfix_ss_ 1",
    },
    "red-bytes": {"title": "RED in bytes", "red": RED_IN_BYTES},
    "red-mean-1000": {"title": "RED's mean packet 1000 bytes", "red": {"mean_pktsize_": 1000}},
    "old-restart": {"title": "idle time-outs halve ssthresh", "agents": "restart_bugfix_ false"},
}
"""Single settings that a study of 2000 may have had: ways `window-20` and `kept-window-20`."""
for _name, _change in CHANGES.items():
    _rest = {key: _change[key] for key in ("agents", "red") if key in _change}
    for _prefix, _base in (("", NEW), ("kept-", KEPT)):
        _way = f"{WAYS['kept' if _prefix else 'new'].title}, {_change['title']}"
        WAYS[_prefix + _name] = Way(_way, {**_base, **_change.get("options", {})}, **_rest)

_Values = Mapping[tuple[str, str, str], Sequence[float]]
"""Numbers over the seeds, by table, row and column."""


def words(scenario: Mapping[str, Any], way: Way) -> dict[str, object]:
    """The options of ns-2's program for an effective scenario."""
    link, hosts = scenario["topology"]["bottleneck"]["forward"], scenario["topology"]["hosts"]
    first = scenario["traffic"][0]
    stack = first["tcp"]
    kind, settings, queue = ns2.discipline(link["discipline"])
    settings |= way.red if kind == "RED" else {}
    numbers = {"ftp": 0, "web": 0, "reverse": 0}
    for source in scenario["traffic"]:
        numbers[class_of(source)] = source.get("sessions", source.get("flows"))
    # Traffic without Web sessions is the same in all ways to use connections.
    own = {
        key: value for key, value in way.options.items() if numbers["web"] or key != "connections"
    }
    return {
        "seconds": plain(scenario["measure"]["duration"]),
        "warm_up": plain(scenario["measure"]["warm_up"]),
        "seed": scenario["seed"],
        **numbers,
        "rate": f"{plain(link['rate']):.0f}",
        "delay": plain(link["delay"]),
        "hosts": hosts["servers"],
        "host_rate": f"{plain(hosts['rate']):.0f}",
        "rtt": plain(first["rtt"]["rtt"]),
        "queue": queue,
        **ns2.stack_of(stack),
        "send_delay": plain(stack["random_send_delay"]),
        "discipline": kind,
        "settings": " ".join(f"{name} {value}" for name, value in settings.items()),
        **own,
        "agents": way.agents,
    }


def class_of(source: Mapping[str, Any]) -> str:
    """What ns-2's program calls a class of the scenario."""
    if source["kind"] == "web-sessions":
        return "web"
    return "reverse" if source["direction"] == "reverse" else "ftp"


def printed(folder: Path, options: Mapping[str, object]) -> list[str]:
    """What ns-2's program prints with some options."""
    program = HERE / "sessions_ns2.tcl"
    key = hashlib.sha256(program.read_bytes() + repr(options).encode()).hexdigest()
    path = folder / "ns-2" / key[:20]
    if not path.exists():
        text = ns2.answer(program, options, str(options))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path.read_text().splitlines()


def there(folder: Path, scenario: Scenario, way: Way) -> dict[str, Any]:
    """ns-2's numbers of a scenario, under the names of our summary."""
    lines = printed(folder, words(scenario.data, way))
    found = {name: float(value) for name, value in (line.split() for line in lines)}
    flows: dict[str, dict[str, float]] = {}
    recorded = {}
    for source in scenario.data["traffic"]:
        name, theirs = source["name"], class_of(source)
        flows[name] = {
            "goodput_bps": found[f"{theirs}_goodput_bps"],
            "lost_segments": found[f"{theirs}_dropped_segments"],
            "span_timeouts": found[f"{theirs}_timeouts"],
        }
        if theirs == "web":
            recorded[name] = {"goodput_bps": found["web_rate_bps"]}
    keys = ("goodput_bps", "lost_segments", "span_timeouts")
    flows["all"] = {key: sum(one[key] for one in flows.values()) for key in keys}
    forward = {
        "loss_rate": found["dropped_packets"] / found["arrived_packets"],
        "queue_mean_packets": found["queue_mean_packets"],
    }
    return {
        "measured_s": plain(scenario.data["measure"]["duration"]),
        "flows": flows,
        "recorded": recorded,
        "links": {"bottleneck": {"forward": forward}},
    }


def needed(paper: Paper) -> list[tuple[Table, PaperRow]]:
    """The rows that the claims rest on."""
    wanted = {
        place
        for claim in paper.claims.entries
        if claim.id in JUDGED + BESIDE
        for place in rows_of(claim, paper)
    }
    return [
        (table, row)
        for table in paper.tables
        for row in table.rows
        if (table.id, row.label) in wanted
    ]


def values_there(folder: Path, paper: Paper, way: Way, seeds: Sequence[int]) -> _Values:
    """ns-2's numbers of all rows."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for table, row in needed(paper):
        for seed in seeds:
            overrides = [*paper.common, *row.overrides, ("seed", str(seed))]
            summary = there(folder, Scenario.load(table.scenario, overrides), way)
            for column in table.columns:
                if column.name in COLUMNS:
                    number = total(column.terms, summary)
                    values.setdefault((table.id, row.label, column.name), []).append(number)
    return values


def ours(paper: Paper, folder: Path) -> tuple[dict[tuple[str, str, str], float], dict[str, Any]]:
    """Our means, by table, row and column, and the verdicts; runs are made once."""
    # Its second reading is judged with all of the paper's tables only.
    command = [sys.executable, "-m", "aqmlab", "reproduce", paper.name, "--jobs", "1", "--json"]
    subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    with (folder / "cells.csv").open() as file:
        means = {
            (line["table"], line["row"], line["column"]): float(line["ours"])
            for line in csv.DictReader(file)
        }
    board = json.loads((folder / "scoreboard.json").read_text())
    first = {one["id"]: one["verdict"] for one in board["claims"]["verdicts"]}
    again = {
        one["id"]: one["second"] for reading in board["readings"] for one in reading["concerned"]
    }
    return means, {"": first, "-kept": {**first, **again}}


def number(value: float) -> str:
    """Four digits, as the reports have them."""
    return f"{value:.4g}"


def table_of(
    paper: Paper, name: str, way: Way, mine: Mapping[tuple[str, str, str], float], theirs: _Values
) -> str:
    """A table: ours / ns-2."""
    titles = {column.name: column.title for column in paper.table(name).columns}
    suffix = way.suffix if name in {"figure3", "figure5"} else ""
    heads = [name + suffix, *(titles[column] for column in SHOWN[name])]
    rows = []
    for table, row in needed(paper):
        if table.id == name:
            cells = [
                f"{number(mine[name + suffix, row.label, column])} / "
                f"{number(fmean(theirs[name, row.label, column]))}"
                for column in SHOWN[name]
            ]
            rows.append([row.label, *cells])
    return markdown(heads, rows)


def verdicts(paper: Paper, way: Way, mine: Mapping[str, Mapping[str, str]], theirs: _Values) -> str:
    """The claims' verdicts by our numbers and by ns-2's, with the latter."""
    rows = []
    for claim in paper.claims.entries:
        if claim.id in JUDGED + BESIDE:
            found = decide(claim, paper, theirs)
            rows.append([claim.id, mine[way.suffix][claim.id], found.outcome, found.measured])
    return markdown(("claim", "ours", "ns-2", "ns-2's numbers"), rows, left=4)


@study.program
def main() -> int:
    """The command."""
    parser = study.parser(__doc__, out="out/peers-sessions")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}")
    parser.add_argument("--seeds", type=int, help="ns-2's; default: as many as ours")
    options = parser.parse_args()
    names = options.ways or ["new", "kept"]
    ways = study.chosen(WAYS, names, "there is no way {}")
    ns2.prepare()
    paper = Paper.load(PAPER)
    means, judged = ours(paper, options.out / "ours")
    for name, way in zip(names, ways, strict=True):
        theirs = values_there(options.out, paper, way, paper.seeds[: options.seeds])
        tables = [table_of(paper, table, way, means, theirs) for table in SHOWN]
        tables.append(verdicts(paper, way, judged, theirs))
        out("\n\n".join([f"## {name}: {way.title}", *tables]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
