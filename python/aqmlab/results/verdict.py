"""Verdicts: what runs say of a statement, be it a claim of a paper or a check."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAILS", "HOLDS", "UNDECIDED", "Verdict"]


HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


@dataclass(frozen=True)
class Verdict:
    """What became of a statement."""

    id: str
    """Short name of the statement."""
    statement: str
    """What is claimed, in words."""
    outcome: str
    """``holds``, ``fails`` or ``undecided``."""
    measured: str
    """The numbers behind it, or why it is undecided."""
    caveat: str = ""
    """What is known to stand against the statement; empty: nothing."""

    @classmethod
    def of(
        cls, name: str, statement: str, holds: bool | None, measured: str, caveat: str = ""
    ) -> Verdict:
        """The verdict of an answer; None: undecided."""
        outcome = UNDECIDED if holds is None else HOLDS if holds else FAILS
        return cls(name, statement, outcome, measured, caveat)

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None: undecided."""
        return None if self.outcome == UNDECIDED else self.outcome == HOLDS
