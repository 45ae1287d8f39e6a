"""Queue disciplines and congestion controls of your own.

A class, given by ``--plugin FILE`` or :func:`load`; see docs/extending.md::

    from aqmlab.plugins import ADMIT, SIGNAL, Discipline, Packets, chance

    class Threshold(Discipline):
        \"\"\"Signals with a probability above a threshold.\"\"\"

        above: Packets = 20
        p: float = 0.1

        def on_arrival(self, event):
            return SIGNAL if event.packets > self.above and chance(event, self.p) else ADMIT

A scenario names it: ``discipline = { kind = "plugin", name = "threshold", p = 0.2 }``.
"""

from __future__ import annotations

from aqmlab._util.plugin_sources import Source
from aqmlab.plugins.compiled import cbrt, chance, compiled, draw, exp, log, pow  # noqa: A004
from aqmlab.plugins.declared import (
    ADMIT,
    DROP,
    ECHO,
    FORCE,
    LOSS,
    SIGNAL,
    TIMEOUT,
    Bytes,
    Control,
    Discipline,
    Packets,
    Rate,
    Time,
    Variable,
)
from aqmlab.plugins.files import load, loaded, register

__all__ = [
    "ADMIT",
    "DROP",
    "ECHO",
    "FORCE",
    "LOSS",
    "SIGNAL",
    "TIMEOUT",
    "Bytes",
    "Control",
    "Discipline",
    "Packets",
    "Rate",
    "Source",
    "Time",
    "Variable",
    "cbrt",
    "chance",
    "compiled",
    "draw",
    "exp",
    "load",
    "loaded",
    "log",
    "pow",
    "register",
]
