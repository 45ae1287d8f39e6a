"""Ten tests of the card in other worlds: does a queue differ from drop-tail with the same sign?

``python -m lab.card_rows`` reads ``lab/card_rows.toml``. It runs each test
behind drop-tail and behind some queues: here and in ns-3 (Debian's ``libns3-dev``), and, as root,
here and on the live bed. It writes ``records/card-rows.csv``, the table of
``records/card-rows.md``, and ``scoreboard.json`` beside the runs.

A difference counts if ours is large enough to matter by the card's own rule. An invalid live run
does not count, and is named.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from aqmlab._util.console import out, say
from aqmlab._util.fields import toml_table
from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown
from aqmlab.cards.candidates import DROPTAIL, named
from aqmlab.cards.generator import SuiteCell, cells, scenario_of
from aqmlab.cards.measures import values
from aqmlab.cards.scoring import LOGS, matters
from aqmlab.cards.suites import Measure, measures, rows
from aqmlab.engine.execute import execute
from aqmlab.errors import RunError
from aqmlab.scenario.scenario import Scenario

from lab import study
from lab.live.compare import Case, live_run
from lab.peers import ns3
from lab.peers.simulators import plain

__all__ = [
    "DATA",
    "PAGE",
    "Difference",
    "World",
    "kernel_scenario",
    "load",
    "main",
    "number_of",
    "read",
    "section",
    "with_section",
]


FILE = Path("lab/card_rows.toml")
"""What is compared."""
DATA = Path("records/card-rows.csv")
"""Every difference."""
PAGE = Path("records/card-rows.md")
"""The page with the table."""
_KERNEL_RENO = {"profile": "linux", "congestion_control": "reno"}
"""What stands for the card's NewReno on the live bed."""


@dataclass(frozen=True)
class World:
    """Where the tests are run."""

    name: str
    queues: tuple[str, ...]
    without: tuple[str, ...]
    """Tests that are not run there."""
    seeds: tuple[int, ...]
    warm_up: str
    duration: str


@dataclass(frozen=True)
class Difference:
    """How a queue differs from drop-tail in a test: here, and in another world."""

    world: str
    test: str
    queue: str
    number: str
    ours: float | None
    """Of logarithms, or of values: see ``is_ratio``. None: the other world has no number."""
    theirs: float | None
    is_ratio: bool
    counts: bool
    """Whether ours is large enough to matter."""

    @property
    def same(self) -> bool | None:
        """Whether both have the same sign; None: it does not count."""
        if not self.counts or self.ours is None or self.theirs is None:
            return None
        return self.ours * self.theirs > 0

    @property
    def shown(self) -> str:
        """Ours and theirs, as a cell of the table."""
        if self.ours is None or self.theirs is None:
            return "invalid"
        both = f"{self._worded(self.ours)} / {self._worded(self.theirs)}"
        return {None: f"({both})", True: both, False: f"**{both}**"}[self.same]

    def _worded(self, value: float) -> str:
        if not self.is_ratio:
            return f"{value:+.2f}"
        return f"{100 * math.expm1(value):+.0f} %"


@study.program
def main(arguments: Sequence[str] | None = None) -> int:
    """The command.

    Returns:
        0 if nine of ten differences have the same sign in each world, 1 if not, 2 for wrong input.
    """
    parser = study.parser(__doc__, out="out/card-rows")
    parser.add_argument("worlds", nargs="*", help="ns-3, live; default: both")
    options = parser.parse_args(arguments)
    return _compare(options.worlds, options.out)


def load() -> tuple[dict[str, SuiteCell], dict[str, World]]:
    """The settings of the tests, and the worlds, by name."""
    content = toml_table(FILE, "settings")
    by_id = {row.id: row for row in rows("card")}
    found = {}
    for name, entry in content["tests"].items():
        number = int(entry["cell"])
        found[name] = next(one for one in cells(by_id[name]) if one.number == number)
    worlds = {
        name: World(
            name,
            tuple(entry["queues"]),
            tuple(entry.get("without", ())),
            tuple(entry["seeds"]),
            entry["warm_up"],
            entry["duration"],
        )
        for name, entry in content["worlds"].items()
    }
    return found, worlds


def _compare(names: Sequence[str], folder: Path) -> int:
    """Compares in some worlds, or in all; the others keep what the file has."""
    tests, worlds = load()
    chosen = study.chosen(worlds, names, f"{FILE}: has no world {{}}")
    done = {world.name for world in chosen}
    kept = [one for one in (read(DATA) if DATA.is_file() else []) if one.world not in done]
    fresh = [one for world in chosen for one in _differences(world, tests, folder)]
    order = [*worlds]
    found = sorted([*kept, *fresh], key=lambda one: order.index(one.world))
    write_text(folder / "scoreboard.json", json.dumps([asdict(one) for one in found], indent=1))
    write_text(DATA, _csv(found))
    write_text(PAGE, with_section(PAGE.read_text(encoding="utf-8"), found))
    out(section(found))
    scores = [_score(fresh, world.name) for world in chosen]
    return 0 if all(10 * same >= 9 * counted for same, counted in scores) else 1


def _differences(world: World, tests: Mapping[str, SuiteCell], folder: Path) -> list[Difference]:
    """Every test with every queue of a world."""
    if world.name == "ns-3":
        ns3.prepare(folder / "programs")
    found = []
    for name, cell in tests.items():
        if name in world.without:
            continue
        measure = _measure(name)
        both = {
            queue: _both(world, cell, queue, measure, folder) for queue in (DROPTAIL, *world.queues)
        }
        say(f"{world.name}: {name}")
        found += [_difference(world, name, queue, measure, both) for queue in world.queues]
    return found


def _measure(test: str) -> Measure:
    """The number of a test: the first that the card scores."""
    return next(one for one in measures() if one.test == test and one.letter in "DF")


def _both(
    world: World, cell: SuiteCell, queue: str, measure: Measure, folder: Path
) -> list[tuple[float, float | None]]:
    """The number here and in the world, for each seed."""
    scenario = scenario_of(cell, named(queue)).with_overrides(
        {"measure.warm_up": world.warm_up, "measure.duration": world.duration}
    )
    if world.name != "ns-3":
        scenario = kernel_scenario(scenario)
    found = []
    for seed in world.seeds:
        seeded = scenario.with_overrides({"seed": seed})
        run = execute(seeded, folder / f"{cell.row.id}-{queue}-{seeded.key[:12]}", reuse=True)
        ours = values(run, cell)[measure.measure]
        if world.name == "ns-3":
            printed = ns3.printed(seeded, folder / "programs")
            theirs: float | None = number_of(measure, seeded, printed)
        else:
            theirs = _live(scenario, cell, queue, seed, measure, folder)
        found.append((ours, theirs))
    return found


def kernel_scenario(scenario: Scenario) -> Scenario:
    """A scenario whose transfers have the kernel's stack: NewReno becomes its Reno."""
    classes = scenario.data["traffic"]
    stack = next(one["tcp"] for one in classes if one["kind"] == "bulk")
    if stack["profile"] == "linux":
        return scenario
    kept = {key: stack[key] for key in ("ecn", "send_buffer", "receive_buffer")}
    # Classes share the kernel's stack, also those that send datagrams.
    changed = {f"traffic.{one['name']}.tcp": _inline({**_KERNEL_RENO, **kept}) for one in classes}
    return scenario.with_overrides(changed)


def _inline(table: Mapping[str, Any]) -> str:
    """A table of a scenario as an override."""
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + " }"


def _live(
    scenario: Scenario, cell: SuiteCell, queue: str, seed: int, measure: Measure, folder: Path
) -> float | None:
    """The number on the live bed; None if no run was valid."""
    case = Case(f"{cell.row.id}-{queue}", cell.row.scenario, scenario, (seed,), {})
    try:
        return values(live_run(case, seed, folder), cell)[measure.measure]
    except RunError as error:
        say(str(error))
        return None


def number_of(measure: Measure, scenario: Scenario, printed: Mapping[str, float]) -> float:
    """The card's number, of what ns-3's program printed.

    Args:
        measure: the number.
        scenario: what was run.
        printed: waits in s, goodputs of senders in bit/s, by name.
    """
    words = measure.formula.split()
    if words[0] == "link":
        return printed[words[1].replace("sojourn", "wait")]
    classes: dict[str, list[float]] = {}
    place = 0
    for one in scenario.data["traffic"]:
        for _ in range(one["flows"]):
            classes.setdefault(one["name"], []).append(printed[f"goodput_bps_of_{place}"])
            place += 1
    sums = {name: math.fsum(own) for name, own in classes.items()}
    if words[0] == "share":
        rate = plain(scenario.data["topology"]["bottleneck"]["forward"]["rate"])
        return min(1.0, sums[words[1]] / (float(words[2]) * rate))
    if words[0] == "ratio":
        one, other = (sums[name] for name in words[1:])
        return min(one, other) / max(one, other)
    rates = [rate for own in classes.values() for rate in own]
    return math.fsum(rates) ** 2 / (len(rates) * math.fsum(rate**2 for rate in rates))


def _difference(
    world: World,
    test: str,
    queue: str,
    measure: Measure,
    both: Mapping[str, Sequence[tuple[float, float | None]]],
) -> Difference:
    """A queue beside drop-tail: the mean of the differences of the seeds."""
    is_ratio = measure.letter in LOGS

    def mean(side: int) -> float | None:
        found = []
        for mine, base in zip(both[queue], both[DROPTAIL], strict=True):
            one, other = mine[side], base[side]
            if one is None or other is None:
                return None
            found.append(math.log(one / other) if is_ratio else one - other)
        return fmean(found)

    ours, theirs = mean(0), mean(1)
    reference = fmean(pair[0] for pair in both[DROPTAIL])
    counts = ours is not None and theirs is not None and matters(measure, ours, reference)
    return Difference(world.name, test, queue, measure.titled, ours, theirs, is_ratio, counts)


def _score(found: Sequence[Difference], world: str) -> tuple[int, int]:
    """How many differences of a world have the same sign, and how many count."""
    own = [one.same for one in found if one.world == world and one.same is not None]
    return sum(own), len(own)


# ---- what is written ----


def _csv(found: Sequence[Difference]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*asdict(found[0])], lineterminator="\n")
    writer.writeheader()
    for one in found:
        row = asdict(one)
        for side in ("ours", "theirs"):
            row[side] = "" if row[side] is None else f"{row[side]:.4f}"
        writer.writerow(row)
    return stream.getvalue()


def read(path: Path) -> list[Difference]:
    """The differences of a written file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Difference(
                **{key: row[key] for key in ("world", "test", "queue", "number")},
                ours=float(row["ours"]) if row["ours"] else None,
                theirs=float(row["theirs"]) if row["theirs"] else None,
                is_ratio=row["is_ratio"] == "True",
                counts=row["counts"] == "True",
            )
            for row in csv.DictReader(file)
        ]


def section(found: Sequence[Difference]) -> str:
    """What the page shows: the score of each world, and a row for each test."""
    worlds = [*dict.fromkeys(one.world for one in found)]
    lines = []
    for world in worlds:
        same, counted = _score(found, world)
        lines.append(f"{_TITLES[world]}: {same} of {counted} differences have the same sign.")
    columns = [*dict.fromkeys((one.world, one.queue) for one in found)]
    head = ["test", "number", *(f"{queue}, {world}" for world, queue in columns)]
    rows_ = []
    by_place = {(one.test, one.world, one.queue): one for one in found}
    for test in dict.fromkeys(one.test for one in found):
        own = [by_place.get((test, *column)) for column in columns]
        number = next(one.number for one in own if one is not None)
        cells_ = ["not run" if one is None else one.shown for one in own]
        rows_.append([test, number, *cells_])
    return "\n".join([*lines, "", markdown(head, rows_, left=2)]) + "\n"


_TITLES = {"ns-3": "In ns-3", "live": "On the live bed"}


def with_section(page: str, found: Sequence[Difference]) -> str:
    """A page with its table renewed."""
    return study.with_section(page, "card rows", section(found))


if __name__ == "__main__":
    sys.exit(main())
