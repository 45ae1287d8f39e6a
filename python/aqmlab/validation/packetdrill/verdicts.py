"""What becomes of a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

__all__ = ["FAIL", "NOT_APPLICABLE", "PASS", "Verdict"]

PASS = "PASS"
FAIL = "FAIL"
NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Verdict:
    """What becomes of a script."""

    file: str
    verdict: str
    """``PASS``, ``FAIL`` or ``not applicable``."""
    line: int | None = None
    """The line that does not hold, or that does not apply; nothing: the end of the script."""
    expected: str | None = None
    found: str | None = None
    why: str | None = None
    """Why a script does not apply."""

    def row(self) -> Mapping[str, object]:
        """For JSON."""
        return asdict(self)
