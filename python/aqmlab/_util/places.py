"""Where results go unless somebody says otherwise."""

from __future__ import annotations

from pathlib import Path

__all__ = ["RUNS_ROOT", "SWEEPS_ROOT"]


RUNS_ROOT = Path("runs")
"""Run directories."""
SWEEPS_ROOT = RUNS_ROOT / "sweeps"
"""The results of sweeps, each in a folder of its name."""
