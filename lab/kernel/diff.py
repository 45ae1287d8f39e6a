"""Random transfers of our end point beside this machine's kernel, segment by segment.

``python -m lab.kernel.diff --seeds 1..100`` draws a plan for each seed, lets our end
point run it, and plays what comes of it to the kernel. It prints each seed whose transfer differs,
shrunk to fewer events and segments, and how many are equal. With ``--out`` it keeps the scripts of
those that differ.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from aqmlab._util.console import out, say
from aqmlab.errors import AqmlabError

from lab.kernel.host import CONTROLS, missing
from lab.kernel.plans import LONGEST, Plan, drawn, scripts_of, smaller
from lab.kernel.play import Played, play_all
from lab.kernel.scripts import Verdict, judge, verdict

__all__ = ["main", "shrunk"]

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MOST_TRIALS = 120
"""So many smaller transfers are played at most for one that differs."""


def seeds_of(text: str) -> range:
    """The seeds of ``1..100`` or ``7``."""
    found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    if not found or int(found[2] or found[1]) < int(found[1]):
        raise AqmlabError(f"--seeds: found {text!r}; expected seeds like 1..100 or 7")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def differing(plans: Sequence[Plan], at_once: int) -> int | None:
    """The first of some plans whose transfer differs, twice if need be."""
    written = scripts_of(plans)
    scripts = [script for _, script in written]
    for place, played in enumerate(play_all(scripts, at_once)):
        if verdict("", scripts[place], played).word == "differs":
            (again,) = play_all([scripts[place]], 1)
            if verdict("", scripts[place], again).word == "differs":
                return place
    return None


def shrunk(plan: Plan, at_once: int = 4) -> Plan:
    """A plan with less in it whose transfer differs, too."""
    trials = 0
    while True:
        others = list(smaller(plan))
        for start in range(0, len(others), at_once):
            trials += at_once
            tried = others[start : start + at_once]
            found = differing(tried, at_once)
            if found is not None:
                plan = tried[found]
                break
            if trials >= MOST_TRIALS:
                return plan
        else:
            return plan


def report(found: Verdict, plan: Plan, text: str, played: Played) -> None:
    """Prints a transfer that differs: its plan, its script, and what the kernel sent."""
    out(f"{found.name}: differs: {found.why}")
    out(f"  plan: {plan}")
    for number, line in enumerate(text.splitlines(), start=1):
        out(f"  {number:4} {line}")
    out("  the kernel:")
    for time, segment in played.seen.sent if played.seen else ():
        out(f"       {time:.4f} > {segment}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares transfers and says how many are equal."""
    parser = argparse.ArgumentParser(prog="kernel-diff", description=__doc__)
    parser.add_argument("--seeds", default="1..100", help="such as 1..100")
    parser.add_argument("--longest", type=int, default=LONGEST, help="segments of the longest one")
    parser.add_argument("--at-once", type=int, default=4, help="how many are played at a time")
    parser.add_argument("--plain", action="store_true", help="do not shrink transfers that differ")
    parser.add_argument("--out", type=Path, help="a folder for the scripts of those that differ")
    chosen = parser.parse_args(arguments)
    if why := missing():
        say(f"transfers are not compared: {why}")
        return 2
    try:
        seeds = seeds_of(chosen.seeds)
        known = AVAILABLE.read_text().split()
        controls = [ours for ours, theirs in CONTROLS.items() if theirs in known]
        plans = {str(seed): drawn(seed, controls, chosen.longest) for seed in seeds}
        written = dict(zip(plans, scripts_of([*plans.values()]), strict=True))
        scripts = {seed: script for seed, (_, script) in written.items()}
        other = 0
        for verdict_, seen in judge(scripts, chosen.at_once):
            if verdict_.word == "holds":
                continue
            other += 1
            found, played = verdict_, seen
            plan, text = plans[found.name], written[found.name][0]
            if not chosen.plain:
                less = shrunk(plan, chosen.at_once)
                ((shorter, script),) = scripts_of([less])
                # What is shown is that of the smaller transfer, if it differs each time.
                ((again, shown),) = judge({found.name: script}, 1)
                if again.word == "differs":
                    found, played, plan, text = again, shown, less, shorter
            if chosen.out:
                chosen.out.mkdir(parents=True, exist_ok=True)
                (chosen.out / f"{found.name}.script").write_text(f"# {plan}\n{text}")
            report(found, plan, text, played)
    except (AqmlabError, OSError) as error:
        say(str(error))
        return 2
    out(f"{len(seeds) - other} of {len(seeds)} equal")
    return int(other > 0)


if __name__ == "__main__":
    sys.exit(main())
