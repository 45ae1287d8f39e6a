"""The worksheets of the playground: every setting is run, and every number of the answers compared.

The scenarios are those of the page (``web/src/scenario.ts``): the address that
:mod:`aqmlab.reports.playground` writes for each must lead back to the settings of the sheet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import aqmlab
import pytest
from aqmlab.reports.playground import fragment
from conftest import ROOT

SHEETS = ROOT / "docs" / "labs" / "worksheets"
RENEW = bool(os.environ.get("AQMLAB_REWRITE"))
MARKS: dict[str, dict[str, object]] = {
    "prague": {"ecn": True, "ect": "ect1", "ect_on": "all-data", "ecn_echo": "accurate"}
}
NEVER_FULL = 1000.0

Summary = Mapping[str, Any]
Cell = Callable[[Sequence[Summary]], str]


def columns(*cells: Cell) -> tuple[Cell, ...]:
    return cells


@dataclass
class Row:
    """A row of the answers: what the sheet changes in the address, and its head."""

    head: str
    changed: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass
class Sheet:
    """A worksheet: the rows of its answers, the columns, and the measured seconds."""

    name: str
    rows: Sequence[Row]
    cells: Sequence[Cell]
    end_s: int
    start_s: int = 20
    more: Sequence[Row] = ()
    """Settings whose lanes follow those of the rows, for sheets with two settings to a row."""


def link(summary: Summary, way: str = "forward") -> Mapping[str, Any]:
    found: Mapping[str, Any] = summary["links"]["bottleneck"][way]
    return found


def delay(lane: int, way: str = "forward") -> Cell:
    def cell(lanes: Sequence[Summary]) -> str:
        ms = 1e3 * link(lanes[lane], way)["sojourn_mean_s"]
        return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}"

    return cell


def share(key: str, lane: int) -> Cell:
    return lambda lanes: f"{100 * link(lanes[lane])[key]:.1f}"


def opinion(lane: int) -> Cell:
    return lambda lanes: f"{lanes[lane]['quality']['call']['mos_mean']:.1f}"


def received(group: int, lane: int) -> Cell:
    name = f"transfers-{group}"
    return lambda lanes: f"{lanes[lane]['flows'][name]['goodput_bps'] / 1e6:.1f}"


def round_trip(group: int, lane: int) -> Cell:
    name = f"transfers-{group}"
    return lambda lanes: f"{1e3 * lanes[lane]['flows'][name]['rtt_mean_s']:.0f}"


def response(key: str, lane: int) -> Cell:
    return lambda lanes: f"{lanes[lane]['responses']['web'][key]:.2f}"


BUFFERS = [Row(f"{ms:,}", {"buffer": [str(ms)]}) for ms in (1000, 200, 50, 10)]
WINDOWS = [Row(str(ms), {"buffer": [str(ms)]}) for ms in (100, 50, 25, 6)]
SIXTEEN = [
    Row(one.head, {**one.changed, "transfers": ["16,reno,100", "0,reno,40"]}) for one in WINDOWS
]
CONTROLS = [
    Row(said, {"transfers": [f"2,{name},20", f"2,{name},200"]})
    for name, said in (("reno", "Reno"), ("cubic", "CUBIC"), ("bbr3", "BBR version 3"))
]
MANY = [
    *(
        Row(str(many), {"transfers": [f"{many},cubic,40,ecn", "0,reno,40"]})
        for many in (1, 4, 16, 50)
    ),
    Row("4, without ECN", {"transfers": ["4,cubic,40", "0,reno,40"]}),
]
UPLOADS = [
    *(Row(f"{ms:,}", {"buffer": [str(ms)]}) for ms in (500, 50, 2000)),
    Row("500, no upload", {"transfers": ["0,cubic,40", "0,cubic,40,up"]}),
]
LANES = ("droptail", "fq-codel", "dualpi2")
NAMES = ("A, drop-tail", "B, FQ-CoDel", "C, DualPI2")
L4S = [
    Row(f"{many}, {said}", {"transfers": ["1,prague,20,ecn", f"{many},cubic,20"], "lane": [lane]})
    for many in (1, 4)
    for lane, said in zip(LANES, NAMES, strict=True)
]
ALL = [
    Sheet(
        "buffer",
        BUFFERS,
        columns(
            delay(0),
            share("utilization", 0),
            opinion(0),
            delay(1),
            opinion(1),
            delay(2),
            opinion(2),
        ),
        180,
    ),
    Sheet(
        "sawtooth",
        WINDOWS,
        columns(share("utilization", 0), delay(0), share("utilization", 1), delay(1)),
        120,
        more=SIXTEEN,
    ),
    Sheet(
        "round-trips",
        CONTROLS,
        columns(received(1, 0), received(2, 0), received(1, 1), received(2, 1)),
        120,
    ),
    Sheet(
        "marks",
        MANY,
        columns(
            share("loss_rate", 0),
            delay(0),
            share("mark_rate", 1),
            share("loss_rate", 1),
            delay(1),
        ),
        60,
    ),
    Sheet(
        "upload",
        UPLOADS,
        columns(
            delay(0, "reverse"),
            response("p50_s", 0),
            response("p95_s", 0),
            lambda lanes: received(2, 0)(lanes) if "transfers-2" in lanes[0]["flows"] else "none",
            delay(1, "reverse"),
            response("p50_s", 1),
        ),
        120,
    ),
    Sheet(
        "l4s",
        L4S,
        columns(round_trip(1, 0), round_trip(2, 0), received(1, 0), received(2, 0)),
        60,
    ),
]


def address(page: str) -> dict[str, list[str]]:
    """The fields of the address on a sheet."""
    found = re.search(r"^#(rate=.*)$", page, re.MULTILINE)
    assert found is not None
    return parse_qs(found[1], separator="&")


def group(name: str, text: str) -> dict[str, object] | None:
    """A group of transfers, as the page has it; none if it is empty."""
    flows, control, rtt, *flags = text.split(",")
    if flows == "0":
        return None
    return {
        "name": name,
        "kind": "bulk",
        "flows": int(flows),
        "start_within": "2 s",
        "direction": "reverse" if "up" in flags else "forward",
        "tcp": {
            "profile": "linux",
            "congestion_control": control,
            **MARKS.get(control, {"ecn": "ecn" in flags}),
        },
        "rtt": {"kind": "constant", "rtt": f"{rtt} ms"},
    }


def scenario(fields: Mapping[str, list[str]], lane: str, sheet: Sheet) -> aqmlab.Scenario:
    """What a lane of the page runs, measured over the seconds of the sheet."""
    rate, buffer = float(fields["rate"][0]), float(fields["buffer"][0])
    up = float(fields.get("up", [str(NEVER_FULL)])[0])
    kind, *pairs = lane.split(";")
    given = {name: value == "true" for name, value in (pair.split("=") for pair in pairs)}

    def discipline(of_rate: float) -> dict[str, object]:
        packets = max(2, round(of_rate * buffer * 1000 / 12_000))
        return {"kind": kind, "limit": f"{packets} packets", **given}

    never = {"kind": "droptail", "limit": "10000 packets"}
    traffic = [
        group(name, text)
        for name, text in zip(("transfers-1", "transfers-2"), fields["transfers"], strict=True)
    ]
    constant = {"kind": "constant", "rtt": "40 ms"}
    if users := int(fields["web"][0]):
        web = {"kind": "unc-web", "users": users, "tcp": "linux", "rtt": constant}
        traffic.append({"name": "web", **web})
    if fields["call"] == ["1"]:
        traffic.append({"name": "call", "kind": "voip", "calls": 1, "rtt": constant})
    return aqmlab.Scenario.from_dict(
        {
            "title": "A lane of a worksheet",
            "seed": 1,
            "measure": {
                "warm_up": f"{sheet.start_s} s",
                "duration": f"{sheet.end_s - sheet.start_s} s",
            },
            "topology": {
                "kind": "dumbbell",
                "bottleneck": {
                    "rate": f"{rate:g} Mbit/s",
                    "discipline": discipline(rate),
                    "forward": {"delay": "0 ms"},
                    "reverse": {
                        "rate": f"{up:g} Mbit/s",
                        "discipline": discipline(up) if up < NEVER_FULL else never,
                    },
                },
            },
            "traffic": [one for one in traffic if one is not None],
        }
    )


def measured(fields: Mapping[str, list[str]], setting: Row, sheet: Sheet) -> list[Summary]:
    """The summaries of the lanes."""
    of = {**fields, **setting.changed}
    found = []
    for lane in of["lane"]:
        one = scenario(of, lane, sheet)
        shown = fragment(one.data)
        assert shown is not None, f"{sheet.name}, {setting.head}: the page has no place for it"
        there = parse_qs(shown)
        for name in ("rate", "web", "call"):
            assert float(there[name][0]) == float(of[name][0])
        assert there["lane"][0].split(";")[0] == lane.split(";")[0]
        found.append(aqmlab.simulate(one).summary)
    return found


@pytest.mark.long_cases("l4s", "buffer")
@pytest.mark.parametrize("sheet", ALL, ids=lambda sheet: sheet.name)
def test_the_answers_are_those_of_the_runs(sheet: Sheet) -> None:
    path = SHEETS / f"{sheet.name}.md"
    page = path.read_text()
    fields = address(page)
    lines = []
    for place, setting in enumerate(sheet.rows):
        lanes = measured(fields, setting, sheet)
        if sheet.more:
            lanes += measured(fields, sheet.more[place], sheet)
        cells = [setting.head, *(cell(lanes) for cell in sheet.cells)]
        lines.append(f"| {' | '.join(cells)} |")
    head = re.search(r"## Answers\n\n\|.*\n\|.*\n((?:\|.*\n)*)", page)
    assert head is not None
    table = "".join(f"{line}\n" for line in lines)
    if RENEW:
        path.write_text(page[: head.start(1)] + table + page[head.end(1) :])
    else:
        assert head[1] == table


def test_every_sheet_is_tested_and_listed() -> None:
    names = {path.stem for path in SHEETS.glob("*.md")} - {"index"}
    assert names == {sheet.name for sheet in ALL}
    index = (SHEETS / "index.md").read_text()
    assert all(f"]({name}.md)" in index for name in names)
