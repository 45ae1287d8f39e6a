"""Commands on a terminal: a pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence

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
    terminals = [pty.openpty() for _ in range(2)]
    for _, side in terminals:
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    (out, out_side), (err, err_side) = terminals
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=out_side,
        stdout=out_side,
        stderr=err_side,
        env={**kept, "TERM": "xterm-256color", **environment},
    )
    os.close(out_side)
    os.close(err_side)
    # What is said on standard error is short: it waits in its terminal.
    written = [_all_of(out), _all_of(err)]
    assert process.wait() == 0, written
    return written[0].split(f"{_END}\n")[:-1], written[1]


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
