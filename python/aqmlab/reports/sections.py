"""The sections of a report, whatever it is written as."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["SECTIONS"]


if TYPE_CHECKING:
    pass


SECTIONS = {
    "summary": "Summary",
    "differences": "Differences",
    "responses": "Response times",
    "queues": "Queues",
    "pictures": "Figures",
    "reasons": "Drops",
    "fidelity": "Fidelity",
    "details": "All numbers",
    "method": "Runs",
}
"""Sections of the page, as far as there is something to show."""
