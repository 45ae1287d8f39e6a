"""Predictions held against known worlds: ``make predict-worlds`` writes records/predict.md."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from aqmlab._util.console import say
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.traffic.foreseen import METRICS, Foreseen, foresee
from aqmlab.traffic.inferred import Inferred

from lab.known_worlds import WORLDS, taken

PAGE = Path(__file__).parents[1] / "records" / "predict.md"
SECONDS = 310
WARM_UP_S = 30
HEAD = """\
# Predictions held against known worlds

`make predict-worlds` writes this page (about three minutes on two cores).

The simulator writes a capture of each world behind its present queue: 300 s, begun in mid-traffic,
with a tap in the house. `aqmlab replay --predict` reads the capture only. The truth is the same
users behind the new queue. Truth and prediction share one engine, so this page says how well a
capture is understood. It does not say how well the engine follows real networks.

Each row compares a ratio new/old: the truth, the prediction and its band. A band
that misses the truth says so. Delays under 1 ms count as 1 ms.
"""


def main() -> int:
    """Writes the page."""
    rows: list[str] = []
    errors: list[tuple[float, bool, bool]] = []
    for name in WORLDS:
        with tempfile.TemporaryDirectory(prefix="worlds-") as folder:
            place = Path(folder)
            old = taken(name, place, seconds=SECONDS)
            queues = WORLDS[name].others
            truths = {queue: taken(name, place, seconds=SECONDS, queue=queue) for queue in queues}
            try:
                found = foresee(old.path / "capture.pcapng", queues)
            except AqmlabError as error:
                rows.append(f"| {name} | refused: {str(error).partition(': ')[2]} | | | | | |")
                continue
            if found.nothing_to_gain:
                rows.append(f"| {name} | nothing to gain: {found.nothing_to_gain} | | | | | |")
                continue
            rows += compared(name, found, old, truths, errors)
            shutil.rmtree(place, ignore_errors=True)
        say(name)
    total = len(errors)
    inside = sum(one[1] for one in errors)
    wrong = sum(one[2] for one in errors)
    typical = math.exp(float(np.median([one[0] for one in errors])))
    summary = (
        f"The band holds the truth in {inside} of {total} cells. The median error of a ratio is "
        f"x{typical:.2f}. {wrong} verdicts say the opposite of the truth."
    )
    lines = [
        HEAD,
        summary,
        "",
        "| world | queue | metric | truth | prediction | band | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    PAGE.write_text("\n".join(lines) + "\n")
    return 0


def values(run: Run) -> dict[str, float]:
    """What a capture and the simulator's own record of its queues say."""
    times = Inferred.read(run.path / "capture.pcapng", (1e9, 1e9)).responses(WARM_UP_S)
    link = run.summary["links"]["bottleneck"]
    found = {"t50": float(np.quantile(times, 0.5)), "t90": float(np.quantile(times, 0.9))}
    for way, name in (("down", "forward"), ("up", "reverse")):
        found[f"delay_{way}"] = max(link[name]["sojourn_p95_s"] or 0.0, 1e-3)
    return found


def compared(
    name: str,
    found: Foreseen,
    old: Run,
    truths: dict[str, Run],
    errors: list[tuple[float, bool, bool]],
) -> list[str]:
    """A row for each queue and metric."""
    before, rows = values(old), []
    for queue, run in truths.items():
        after = values(run)
        for key, one in found.ratios[queue].items():
            right = after[key] / before[key]
            holds = one.low <= right <= one.high
            opposite = (one.verdict == "better" and right > 1) or (
                one.verdict == "worse" and right < 1
            )
            errors.append((abs(math.log(one.ratio / right)), holds, opposite))
            rows.append(
                f"| {name} | {queue} | {METRICS[key]} | {right:.2f} | {one.ratio:.2f} | "
                f"{one.low:.2f} to {one.high:.2f}{'' if holds else ', missed'} | {one.verdict} |"
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
