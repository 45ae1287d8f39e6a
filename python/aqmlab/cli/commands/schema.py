"""``aqmlab schema``: the JSON Schema of scenario files."""

from __future__ import annotations

from aqmlab import _native
from aqmlab._util.console import out

__all__ = ["command"]


def command() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    out(_native.schema())
