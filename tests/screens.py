"""Commands on a terminal: a pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path

ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-_])")
"""What tells a terminal how to draw."""
_END = "-- end --"


def on_terminal(
    calls: Sequence[Sequence[object]], columns: int, **environment: str
) -> tuple[list[str], str]:
    """What each of some calls of the command writes into a window; what all say on standard error.

    One process makes them all; each must end with status 0.
    """
    code = (
        "import sys\nfrom aqmlab.cli import main\n"
        f"for call in {[list(map(str, call)) for call in calls]!r}:\n"
        f"    assert main(call) == 0, call\n    print({_END!r})"
    )
    (out, out_side), (err, err_side) = _terminal(columns), _terminal(columns)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=out_side,
        stdout=out_side,
        stderr=err_side,
        env=_environment(**environment),
    )
    os.close(out_side)
    os.close(err_side)
    # What is said on standard error is short: it waits in its terminal.
    written = [_all_of(out), _all_of(err)]
    assert process.wait() == 0, written
    return written[0].split(f"{_END}\n")[:-1], written[1]


def script_on_terminal(text: str, columns: int, folder: Path) -> tuple[int, str, str]:
    """The status of a script of bash, what it writes into a window, and on standard error."""
    out, side = _terminal(columns)
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            ["bash", "-c", text],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=side,
            stderr=err,
            env=_environment(NO_COLOR="1"),
        )
        os.close(side)
        written = ESCAPES.sub("", _all_of(out))
        status = process.wait()
        err.seek(0)
        return status, written, err.read().decode()


def _terminal(columns: int) -> tuple[int, int]:
    """Both sides of a new terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    return ours, theirs


def _environment(**more: str) -> dict[str, str]:
    """The environment of a command in a window, which tells its size itself."""
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    return {**kept, "TERM": "xterm-256color", **more}


def _all_of(terminal: int) -> str:
    """All that is written to a terminal until its other side is closed."""
    found = b""
    try:
        while part := os.read(terminal, 1 << 16):
            found += part
    except OSError:  # nobody has the other side open
        pass
    os.close(terminal)
    return found.decode().replace("\r\n", "\n")
