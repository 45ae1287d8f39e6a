"""The command line: ``aqmlab``."""

from __future__ import annotations

import sys

from aqmlab.cli.interrupts import INTERRUPTED, MESSAGE, leaving_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status, whenever an interrupt comes.

    Args:
        arguments: Behind the command's name; default: those of the process, which then ends.
    """
    try:
        with leaving_at_once():
            from aqmlab.cli.app import application
            from aqmlab.cli.app import main as run

            application()
        return run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(MESSAGE)
        return INTERRUPTED
    finally:
        if arguments is None:
            import gc

            # The process ends: looking for garbage once more would take 30 ms.
            gc.freeze()
