"""Plays the packet scripts of profile ``linux`` to this machine's kernel.

``python -m lab.kernel.scripts`` plays those of ``crates/tcp/tests/scripts`` and
writes ``records/kernel-scripts.md``. With files as arguments, packet scripts or packetdrill's, it
plays these and prints what the kernel sent where one differs. The exit status is 1 where a script
differs without a reason in ``lab/kernel/reasons.toml``, or holds with one, and 2 where
nothing can be played.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab._util.console import out, say
from aqmlab._util.fields import toml_table
from aqmlab._util.files import write_text
from aqmlab._util.markup import markdown
from aqmlab.errors import AqmlabError
from aqmlab.validation.packetdrill import PACKETDRILL, as_script
from aqmlab.validation.script import Script, parse

from lab.kernel.compare import difference
from lab.kernel.host import missing
from lab.kernel.play import Played, play_all

__all__ = ["FOLDER", "PAGE", "REASONS", "Verdict", "judge", "main", "page", "shipped"]

FOLDER = Path("crates/tcp/tests/scripts")
"""The scripts of the repository."""
REASONS = Path("lab/kernel/reasons.toml")
"""Why a script does not hold, or is not played."""
PAGE = Path("records/kernel-scripts.md")
"""What is written."""
HEAD = (
    "# Packet scripts of profile `linux` on a Linux kernel\n\n"
    "`make kernel-scripts` wrote this page. It plays every packet script of profile `linux` to the"
    " kernel of the machine, here {kernel},\n"
    "as [the live bed](../docs/live.md#packet-scripts-on-the-kernel) describes. A segment must be"
    " the stated one, and come as exactly\nas the kernel's timers are.\n\n"
)


@dataclass(frozen=True)
class Verdict:
    """What the kernel makes of a script."""

    name: str
    word: str
    """``holds``, ``differs`` or ``not played``."""
    why: str = ""
    """The first difference, or why the script was not played."""


def verdict(name: str, script: Script, played: Played) -> Verdict:
    """The verdict on a script that was played."""
    if played.seen is None:
        return Verdict(name, "not played", played.refusal or "")
    found = difference(script, played.seen)
    return Verdict(name, "differs", found) if found else Verdict(name, "holds")


def judge(scripts: Mapping[str, Script], at_once: int = 4) -> Iterator[tuple[Verdict, Played]]:
    """Plays scripts by name. One that differs is played again alone: the machine may be busy."""
    for (name, script), played in zip(
        scripts.items(), play_all([*scripts.values()], at_once), strict=True
    ):
        found, shown = verdict(name, script, played), played
        if found.word == "differs":
            (shown,) = play_all([script], 1)
            found = verdict(name, script, shown)
        yield found, shown


def read(path: Path) -> Script:
    """A packet script, or one of packetdrill's that holds here."""
    if path.suffix == PACKETDRILL:
        return as_script(path)
    return parse(path.read_text(), str(path))


def shipped() -> dict[str, Script]:
    """The repository's scripts of profile ``linux``."""
    read = {path.stem: parse(path.read_text(), path.name) for path in FOLDER.glob("*.script")}
    return {name: script for name, script in sorted(read.items()) if script.profile == "linux"}


def page(verdicts: Sequence[Verdict], reasons: Mapping[str, str]) -> str:
    """The page with its table."""
    release = re.match(r"\d+\.\d+", platform.release())
    kernel = f"Linux {release[0] if release else platform.release()}"
    holds = sum(one.word == "holds" for one in verdicts)
    rows = [
        (one.name, one.word, one.why.replace("|", "\\|"), reasons.get(one.name, ""))
        for one in verdicts
    ]
    head = ("script", "kernel", "first difference", "reason")
    summary = f"{holds} of {len(verdicts)} hold.\n\n"
    return HEAD.format(kernel=kernel) + summary + markdown(head, rows, left=4) + "\n"


def faults(verdicts: Sequence[Verdict], reasons: Mapping[str, str]) -> list[str]:
    """Verdicts that lack a reason, and reasons that have no verdict."""
    found = [
        f"{one.name}: {one.word} without a reason in {REASONS}: {one.why}"
        for one in verdicts
        if one.word != "holds" and one.name not in reasons
    ]
    holding = {one.name for one in verdicts if one.word == "holds"}
    known = {one.name for one in verdicts}
    for name in reasons:
        if name not in known or name in holding:
            state = "holds" if name in holding else "does not exist"
            found.append(f"{REASONS}: {name}: the script {state}; expected no reason")
    return found


def show(played: Played) -> None:
    """Prints what the kernel sent."""
    for time, segment in played.seen.sent if played.seen else ():
        out(f"    {time:.4f} > {segment}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays scripts and says what the kernel makes of them."""
    parser = argparse.ArgumentParser(prog="kernel-scripts", description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, help="scripts; without any, the shipped ones"
    )
    parser.add_argument("--at-once", type=int, default=4, help="how many are played at a time")
    chosen = parser.parse_args(arguments)
    if why := missing():
        say(f"kernel scripts are skipped: {why}")
        return 2
    try:
        own = {str(path): read(path) for path in chosen.files}
        scripts = own or shipped()
        verdicts = []
        for found, played in judge(scripts, chosen.at_once):
            verdicts.append(found)
            out(f"{found.name}: {found.word}{': ' if found.why else ''}{found.why}")
            if own and found.word == "differs":
                show(played)
    except (AqmlabError, OSError) as error:
        say(f"{error}")
        return 2
    holds = sum(one.word == "holds" for one in verdicts)
    out(f"{holds} of {len(verdicts)} hold")
    if own:
        return int(holds < len(verdicts))
    reasons = {name: str(why) for name, why in toml_table(REASONS, "the reasons").items()}
    write_text(PAGE, page(verdicts, reasons))
    wrong = faults(verdicts, reasons)
    for line in wrong:
        say(f"{line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
