"""About how long a run takes: its beginning shows."""

from __future__ import annotations

import time
from contextlib import suppress

from aqmlab import _native
from aqmlab.engine.memory import bound
from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Scenario

__all__ = ["probe"]

_PROBE_S = 0.4
"""Seconds that it may take."""


class _Enough(Exception):  # noqa: N818 - a signal, not an error
    """The probe has lasted long enough."""


def probe(scenario: Scenario) -> float:
    """About how many seconds a run takes. Its plug-ins run in this process."""
    began = time.perf_counter()
    share = 1.0

    def look(done: float) -> None:
        nonlocal share
        if time.perf_counter() - began > _PROBE_S and done > 0:
            share = done
            raise _Enough

    with suppress(_Enough, AqmlabError):  # a run that fails says so later
        _native.run(scenario.effective, None, look, bound())
    return (time.perf_counter() - began) / share
