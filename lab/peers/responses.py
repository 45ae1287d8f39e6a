"""Response times of web traffic here and in ns-2: the same exchanges through the same queues.

    .venv/bin/python -m lab.peers.responses [--out FOLDER]

prints the table of docs/other-tools.md ("Web traffic"). Needs ns2. The exchanges of a run without
congestion become a list; ns-2 carries it out with its two-way TCP, and we run the scenario.
"""

from __future__ import annotations

import csv
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from aqmlab._util.console import out, say
from aqmlab._util.markup import markdown
from aqmlab.engine.execute import execute
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

from lab import study
from lab.peers import ns2

HERE = Path(__file__).resolve().parent
SCENARIO = HERE / "responses.toml"
ROUND_TRIPS = HERE / "responses_rtt.csv"
RATE_PER_PERCENT = 1.3215  # connections per second of each direction
WARM_UP, SECONDS = 20, 180
TIMES = (0.2, 0.4, 0.7, 1.0, 1.5)
SETTLED = 10.0  # s before the end: what began later may not have ended

ARED = (
    'kind = "ared", limit = "370 packets", mean_packet = "1250 bytes", '
    'gap = "wait", gentle_slope = "first-max-p"'
)
ARED_NS2 = (
    "adaptive_ 1 gentle_ true thresh_ 0 maxthresh_ 0 q_weight_ 0 mean_pktsize_ 1250 "
    "bytes_ false queue_in_bytes_ false wait_ true"
)
MARKS = ', ecn = true, mark_region = "below-twice-max-th"'
MARKS_NS2 = " setbit_ true use_mark_p_ false"


@dataclass(frozen=True)
class Setting:
    """A discipline of both simulators at a load."""

    title: str
    load: int
    ours: str
    theirs: str
    settings: str = ""
    limit: int = 370
    kind: str = "Reno"
    ecn: bool = False

    @property
    def name(self) -> str:
        """For files."""
        return "-".join(self.title.lower().replace(",", "").split()) + f"-{self.load}"


DROP_TAIL = ('{ kind = "droptail", limit = "148 packets" }', "DropTail", "", 149)
SETTINGS = tuple(
    setting
    for load in (80, 105)
    for setting in (
        Setting("drop-tail 148", load, *DROP_TAIL),
        Setting("drop-tail 148, SACK", load, *DROP_TAIL, kind="Sack"),
        *(
            Setting(
                f"ARED {target} ms" + (", ECN" if ecn else ""),
                load,
                f'{{ {ARED}, target_delay = "{target} ms"{MARKS if ecn else ""} }}',
                "RED",
                f"{ARED_NS2} targetdelay_ {target / 1000}" + (MARKS_NS2 if ecn else ""),
                ecn=ecn,
            )
            for target in (5, 60)
            for ecn in (False, True)
        ),
    )
)


def run(folder: Path, load: int, more: dict[str, str]) -> Run:
    """Our run; made once."""
    rate = f"{RATE_PER_PERCENT * load:.4f} /s"
    values = {f"traffic.{side}.rate": rate for side in ("left", "right")} | more
    return execute(Scenario.load(SCENARIO).with_overrides(values), folder, reuse=True)


def answered(run: Run) -> pa.Table:
    """The table of a run's responses."""
    return pq.read_table(run.path / "responses.parquet")


def write_list(folder: Path, load: int) -> Path:
    """The exchanges at a load, and the round-trip times, as ns-2's program reads them."""
    path = folder / f"exchanges-{load}"
    values = {
        "topology.bottleneck.rate": "10 Gbit/s",
        "measure.warm_up": "0 s",
        "measure.duration": f"{WARM_UP + SECONDS} s",
    }
    table = answered(run(folder / f"free-{load}", load, values))
    with ROUND_TRIPS.open() as file:
        rows = [row[1:] for row in list(csv.reader(file))[1:]]
    names = ("start_s", "class", "client", "server", "request_bytes", "response_bytes")
    with path.open("w") as file:
        file.write(" ".join(f"{float(cell) / 1000:.9f}" for row in rows for cell in row) + "\n")
        for start, side, client, server, request, response in sorted(
            zip(*(table.column(name).to_pylist() for name in names), strict=True)
        ):
            # Rows of the matrix are the hosts on the left.
            pair = server * len(rows) + client if side == "left" else client * len(rows) + server
            letter = "L" if side == "left" else "R"
            file.write(f"{start:.9f} {letter} {pair} {request} {response}\n")
    return path


def here(folder: Path, setting: Setting) -> tuple[list[float], float, float]:
    """Our response times, loss and mean queue, of both directions together."""
    recovery = "reno" if setting.kind == "Reno" else "sack-pipe"
    ecn = str(setting.ecn).lower()
    tcp = f'{{ profile = "ns-full-tcp", recovery = "{recovery}", ecn = {ecn} }}'
    values = {f"traffic.{side}.tcp": tcp for side in ("left", "right")}
    values["topology.bottleneck.discipline"] = setting.ours
    ours = run(folder / setting.name, setting.load, values)
    table = answered(ours)
    times = [
        time
        for start, time in zip(
            table.column("start_s").to_pylist(), table.column("response_s").to_pylist(), strict=True
        )
        if WARM_UP <= start < WARM_UP + SECONDS - SETTLED
    ]
    link = ours.summary["links"]["bottleneck"].values()
    arrived = sum(way["arrived_packets"] for way in link)
    dropped = sum(way["arrived_packets"] * way["loss_rate"] for way in link)
    return times, dropped / arrived, sum(way["queue_mean_packets"] for way in link) / 2


def there(folder: Path, setting: Setting) -> tuple[list[float], float, float]:
    """The same of ns-2."""
    responses = folder / f"{setting.name}.responses"
    words = {
        "list": folder / f"exchanges-{setting.load}",
        "responses": responses,
        "warm_up": WARM_UP,
        "seconds": SECONDS,
        "queue": setting.limit,
        "discipline": setting.theirs,
        "settings": setting.settings,
        "kind": setting.kind,
        "ecn": int(setting.ecn),
    }
    printed = ns2.answer(HERE / "responses_ns2.tcl", words, setting.name)
    ways = [[float(word) for word in line.split()] for line in printed.splitlines()]
    rows = [[float(word) for word in line.split()] for line in responses.open()]
    times = [time for start, time, _ in rows if WARM_UP <= start < WARM_UP + SECONDS - SETTLED]
    loss = sum(dropped for _, dropped, _ in ways) / sum(arrived for arrived, *_ in ways)
    return times, loss, sum(queue for *_, queue in ways) / 2


def row(folder: Path, setting: Setting) -> list[str]:
    """A line of the table."""
    sides = [here(folder, setting), there(folder, setting)]
    # Both simulators began the same exchanges; those that never ended count as slow.
    begun = max(len(times) for times, *_ in sides)
    shares = [
        [100 * sum(time <= bound for time in times) / begun for bound in TIMES]
        for times, *_ in sides
    ]
    largest = max(abs(ours - theirs) for ours, theirs in zip(*shares, strict=True))
    say(setting.name)
    return [
        f"{setting.load} %",
        setting.title,
        " / ".join(f"{100 * loss:.2f}" for _, loss, _ in sides),
        " / ".join(f"{queue:.1f}" for *_, queue in sides),
        *(f"{ours:.1f} / {theirs:.1f}" for ours, theirs in zip(*shares, strict=True)),
        f"{largest:.1f}",
    ]


@study.program
def main() -> int:
    """The command."""
    folder = study.parser(__doc__, out="out/peers-responses").parse_args().out
    ns2.prepare()
    folder.mkdir(parents=True, exist_ok=True)
    for load in sorted({setting.load for setting in SETTINGS}):
        write_list(folder, load)
    heads = ["load", "queue", "loss, %", "mean queue", *(f"<= {t} s, %" for t in TIMES), "largest"]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda setting: row(folder, setting), SETTINGS))
    out(markdown(heads, rows, left=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
