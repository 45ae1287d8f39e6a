"""Rules of a TCP stack that one sender alone reads are refused beside the other sender."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "crates" / "tcp" / "src"
SENDERS = ("classic", "rack")
OF_QUIC = "law.rs"


def listed(name: str) -> set[str]:
    """The rules of a sender in ``profile/senders.rs``."""
    text = (SOURCE / "profile" / "senders.rs").read_text()
    calls = re.findall(r"refuse!\(self, named, wrong,([^)]*)\)", " ".join(text.split()))
    assert len(calls) == len(SENDERS)
    return {*re.findall(r"\w+", calls[SENDERS.index(name)])}


def readers() -> dict[str, set[str]]:
    """For each key of a profile the folders and files that read it."""
    declared = (SOURCE / "profile" / "mod.rs").read_text().partition("pub struct Profile {")[2]
    keys = re.findall(r"^    pub (\w+):", declared.partition("\n}\n")[0], re.MULTILINE)
    assert len(keys) > 60
    found: dict[str, set[str]] = {key: set() for key in keys}
    for file in SOURCE.rglob("*.rs"):
        where = file.relative_to(SOURCE).parts
        if where[0] in {"profile", OF_QUIC}:
            continue
        place = where[1] if where[0] == "sender" and len(where) > 2 else where[-1]
        for key in {*re.findall(r"profile\s*\.(\w+)\b", file.read_text())} & {*keys}:
            found[key].add(place)
    return found


@pytest.mark.parametrize("name", SENDERS)
def test_each_list_has_what_its_sender_alone_reads(name: str) -> None:
    read = readers()
    # CUBIC asks whether a sender paces, which the sender that has no pace does not change.
    read["pacing"].remove("cubic.rs")
    # Laws, BBRv1 and CUBIC ask for it, too; no other sender has it.
    read["rack_rules"] -= {"congestion.rs", "mod.rs", "cubic.rs"}
    own = {key for key, places in read.items() if places == {name}}
    assert own - {"recovery"} == listed(name)
