"""Scenarios, sweeps and papers that come with the package, wherever it is installed."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "shipped"
"""Holds ``scenarios`` and ``papers``; in a checkout these are links to the project's folders."""


def found(path: Path) -> Path:
    """A file, or the shipped one of that path if there is none here."""
    shipped = SHIPPED / path
    return shipped if not path.exists() and shipped.is_file() else path
