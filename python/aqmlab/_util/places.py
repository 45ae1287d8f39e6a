"""Where results go unless somebody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["RUNS_ROOT", "SWEEPS_ROOT", "cache_folder"]


RUNS_ROOT = Path("runs")
"""Run directories."""
SWEEPS_ROOT = RUNS_ROOT / "sweeps"
"""The results of sweeps, each in a folder of its name."""


def cache_folder() -> Path:
    """Where what can be made again is kept: ``AQMLAB_CACHE``, or ``aqmlab`` in the user's cache."""
    if own := os.environ.get("AQMLAB_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aqmlab"
