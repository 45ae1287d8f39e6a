"""What is evaluated: a queue discipline or a congestion control, however it is named."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from aqmlab import _native, plugins
from aqmlab._util.files import read_bytes
from aqmlab._util.words import nearest
from aqmlab.errors import AqmlabError
from aqmlab.plugins.files import kinds_of

__all__ = [
    "CUBIC",
    "DROPTAIL",
    "ECN",
    "Candidate",
    "CandidateControl",
    "candidate",
    "control",
    "named",
    "with_ecn",
]


DROPTAIL = "droptail"
"""The kind that every candidate is compared with."""
_BUFFERS = ("limit", "memory")
"""Keys that may name the size of a buffer; the first one that a discipline has is set."""
_MAX_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Candidate:
    """A queue discipline under test."""

    name: str
    """As people call it."""
    table: Mapping[str, Any]
    """As a scenario has it, without its buffer."""
    keys: frozenset[str]
    """Keys that its kind has."""
    file: Path | None = None
    """The file of a plug-in."""
    sha256: str = ""
    """The hash of that file."""

    def limited(self, size: int, *, marks: bool) -> dict[str, Any]:
        """Its table with a buffer of so many bytes, which all disciplines get alike.

        Args:
            size: IP bytes.
            marks: whether it marks ECN-capable packets, if it can.
        """
        [key, *_] = [one for one in _BUFFERS if one in self.keys]
        switch = {"ecn": True} if marks and "ecn" in self.keys and "ecn" not in self.table else {}
        return {**self.table, **switch, key: f"{size} bytes"}


def candidate(text: str) -> Candidate:
    """A discipline as the command line names it.

    Args:
        text: a plug-in's file (``.py`` or ``.so``), a preset, or a kind; behind a colon
            parameters: ``pie: qdelay_ref 5 ms, ecn true``.

    Raises:
        AqmlabError: there is no such discipline, or the file holds none, or several.
    """
    head, colon, rest = text.partition(":")
    head = head.strip()
    if Path(head).suffix in (".py", ".so", ".dylib"):
        return _of_file(Path(head), _parameters(rest, text) if colon else {})
    return named(text)


def _of_file(file: Path, given: Mapping[str, str]) -> Candidate:
    """The only discipline of a plug-in's file."""
    plugins.load(file)
    names = [name for kind, name in kinds_of(file) if kind == "discipline"]
    if len(names) != 1:
        found = f"found {', '.join(names)}" if names else "found no queue discipline"
        raise AqmlabError(f"{file}: {found}; expected one queue discipline in the file")
    sha256 = hashlib.sha256(read_bytes(file, "plug-in", _MAX_BYTES)).hexdigest()
    own = {one["name"] for entry in json.loads(_native.plugins()) if entry["name"] == names[0]
           for one in entry["parameters"]}  # fmt: skip
    keys = frozenset({"limit", "ecn", *own})
    table = {"kind": "plugin", "name": names[0], "sha256": sha256}
    return _with(Candidate(names[0], table, keys, file, sha256), given, str(file))


def _with(found: Candidate, given: Mapping[str, str], text: str) -> Candidate:
    """A candidate with some parameters."""
    for key in given:
        if key in _BUFFERS and key in found.keys:
            raise AqmlabError(
                f"{text}: found {key}, but every queue gets the same buffer from the test; "
                f"leave {key} out"
            )
        if key not in found.keys:
            raise AqmlabError(
                f"{text}: {found.name} has no parameter {key}; it has "
                f"{', '.join(sorted(found.keys - {*_BUFFERS}))}"
            )
    if not given:
        return found
    shown = ", ".join(f"{key} {value}" for key, value in given.items())
    table = {**found.table, **{key: _value(value) for key, value in given.items()}}
    return Candidate(f"{found.name} ({shown})", table, found.keys, found.file, found.sha256)


def _parameters(text: str, whole: str) -> dict[str, str]:
    """``target 5 ms, ecn true`` as pairs."""
    found = {}
    for part in text.split(","):
        key, _, value = part.strip().partition(" ")
        if not value or not re.fullmatch(r"[a-z]\w*", key):
            raise AqmlabError(
                f'{whole[:60]}: found "{part.strip()[:40]}"; expected NAME VALUE, as in '
                "'pie: qdelay_ref 5 ms, ecn true'"
            )
        found[key] = value.strip()
    return found


def _value(text: str) -> object:
    """A value: a number, a truth value, or text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


@cache
def _catalog() -> dict[str, dict[str, Any]]:
    """Disciplines and presets, as the engine describes them."""
    content: dict[str, dict[str, Any]] = json.loads(_native.catalog())
    return content


def named(text: str) -> Candidate:
    """A preset, or a kind of discipline, with parameters behind a colon.

    Raises:
        AqmlabError: there is none of that name, or it has no buffer of its own.
    """
    name, colon, rest = text.partition(":")
    name = name.strip()
    if colon:
        given = _parameters(rest, text)
        return _with(named(name), given, text)
    kinds, presets = _catalog()["disciplines"], _catalog()["presets"]

    def keys_of(kind: str) -> frozenset[str]:
        return frozenset(one["name"] for one in kinds[kind]["parameters"])

    if name in presets:
        values = {one["name"]: one["value"] for one in presets[name]["parameters"]}
        return _with_buffer(Candidate(name, {"preset": name}, keys_of(values["kind"])))
    if name in kinds and name != "plugin":
        return _with_buffer(Candidate(name, {"kind": name}, keys_of(name)))
    known: Sequence[str] = [*presets, *kinds]
    raise AqmlabError(
        f'found "{name[:60]}", which is no discipline, preset or plug-in file'
        f"{nearest(name, known)}; aqmlab list presets prints them"
    )


def _with_buffer(found: Candidate) -> Candidate:
    """Gives a discipline back; an error if it has no buffer that a test can set."""
    if not found.keys & {*_BUFFERS}:
        raise AqmlabError(
            f"found {found.name}, which has no buffer of its own, but every queue gets the same "
            f"buffer from the test; expected a queue with {' or '.join(_BUFFERS)}"
        )
    return found


@dataclass(frozen=True)
class CandidateControl:
    """A congestion control."""

    name: str
    """As people call it."""
    table: str | Mapping[str, Any]
    """As a scenario has it."""
    tcp: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the stack of its flows: those of ECN."""
    file: Path | None = None
    """The file of a plug-in."""
    sha256: str = ""
    """The hash of that file."""


CUBIC = CandidateControl("cubic", "cubic")
"""What a suite's subject is where none is under test."""
ECN: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "classic": {"ecn": True},
    "l4s": {"ecn": True, "ect": "ect1", "ect_on": "all-data", "ecn_echo": "accurate"},
}
"""By name: keys of a stack."""


def with_ecn(found: CandidateControl, ecn: str) -> CandidateControl:
    """A control whose flows use ECN."""
    return replace(found, tcp=ECN[ecn])


def control(text: str) -> CandidateControl:
    """A congestion control as the command line names it.

    Args:
        text: a plug-in's file (``.py`` or ``.so``) or a kind; behind a colon parameters:
            ``cubic: beta 0.8``.

    Raises:
        AqmlabError: there is no such control, or the file holds none, or several.
    """
    head, colon, rest = text.partition(":")
    head = head.strip()
    given = _parameters(rest, text) if colon else {}
    if Path(head).suffix in (".py", ".so", ".dylib"):
        found, keys = _control_of_file(Path(head))
    else:
        prefix = "congestion_control."
        known = {
            name.removeprefix(prefix): about
            for name, about in _catalog()["transports"].items()
            if name.startswith(prefix)
        }
        if head not in known or head in ("plugin", "external"):
            raise AqmlabError(
                f'--control: found "{head[:40]}", which is no congestion control or plug-in file'
                f"{nearest(head, known)}"
            )
        found = CandidateControl(head, {"kind": head} if given else head)
        keys = {one["name"] for one in known[head]["parameters"]}
    for key in given:
        if key not in keys:
            raise AqmlabError(
                f"{text}: {found.name} has no parameter {key}; it has "
                f"{', '.join(sorted(keys)) or 'none'}"
            )
    if not given:
        return found
    shown = ", ".join(f"{key} {value}" for key, value in given.items())
    table = {**found.table, **{key: _value(value) for key, value in given.items()}}  # type: ignore[dict-item]
    return replace(found, name=f"{found.name} ({shown})", table=table)


def _control_of_file(file: Path) -> tuple[CandidateControl, set[str]]:
    """The only congestion control of a plug-in's file, and its parameters."""
    plugins.load(file)
    names = [name for kind, name in kinds_of(file) if kind == "control"]
    if len(names) != 1:
        found = f"found {', '.join(names)}" if names else "found no congestion control"
        raise AqmlabError(f"{file}: {found}; expected one congestion control in the file")
    sha256 = hashlib.sha256(read_bytes(file, "plug-in", _MAX_BYTES)).hexdigest()
    table = {"kind": "plugin", "name": names[0], "sha256": sha256}
    keys = {
        one["name"]
        for entry in json.loads(_native.plugins())
        if entry["name"] == names[0]
        for one in entry["parameters"]
    }
    return CandidateControl(names[0], table, {}, file, sha256), keys
