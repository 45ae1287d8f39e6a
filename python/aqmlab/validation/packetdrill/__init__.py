"""Packetdrill's scripts, and packet scripts of ours, against the simulator's TCP.

:func:`check` says of a file ``PASS``, ``FAIL`` with line, expected and found, or ``not applicable``
and why.
"""

from __future__ import annotations

from pathlib import Path

from aqmlab import _native
from aqmlab.errors import AqmlabError
from aqmlab.validation.packetdrill.calls import MismatchError
from aqmlab.validation.packetdrill.language import (
    LARGEST,
    NotApplicableError,
    parse,
)
from aqmlab.validation.packetdrill.player import Player
from aqmlab.validation.packetdrill.settings import system_of
from aqmlab.validation.packetdrill.verdicts import FAIL, NOT_APPLICABLE, PASS, Verdict
from aqmlab.validation.script import Script

__all__ = ["FAIL", "NOT_APPLICABLE", "PACKETDRILL", "PASS", "Verdict", "as_script", "check"]

SCRIPT = ".script"
PACKETDRILL = ".pkt"


def read(path: Path) -> str:
    """The text of a file."""
    try:
        if path.stat().st_size > 4 * LARGEST:
            raise AqmlabError(f"{path}: found {path.stat().st_size} bytes; expected a script")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise AqmlabError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise AqmlabError(f"{path}: found bytes that are no UTF-8 at {error.start}") from None


def player_of(path: Path, text: str) -> Player:
    """What plays the script of a file."""
    source = parse(text)
    return Player(source, system_of(source, path.parent))


def check(path: Path) -> Verdict:
    """What becomes of the script in a file.

    Raises:
        AqmlabError: The file cannot be read.
    """
    text = read(path)
    if path.suffix == SCRIPT:
        return check_script(path, text)
    name = str(path)
    try:
        player_of(path, text).play()
    except NotApplicableError as error:
        return Verdict(name, NOT_APPLICABLE, error.line, why=error.message)
    except MismatchError as error:
        return Verdict(name, FAIL, error.line, error.expected, error.found)
    except AqmlabError as error:
        raise AqmlabError(f"{path}: {error}") from None
    return Verdict(name, PASS)


def check_script(path: Path, text: str) -> Verdict:
    """What becomes of a packet script of ours."""
    failure = _native.play_script(text)
    if failure is None:
        return Verdict(str(path), PASS)
    line, expected, found = failure
    if expected is None:
        place = "at the end" if line is None else f"line {line}"
        raise AqmlabError(f"{path}: {place}: {found}")
    return Verdict(str(path), FAIL, line, expected, found)


def as_script(path: Path) -> Script:
    """A script that holds, as a packet script of profile ``linux``: the kernel can play it.

    Raises:
        AqmlabError: It does not hold, or does not apply.
    """
    player = player_of(path, read(path))
    try:
        player.play()
    except (MismatchError, AqmlabError) as error:
        raise AqmlabError(f"{path}: {error}") from None
    return Script("linux", dict(player.settings), tuple(player.played()))
