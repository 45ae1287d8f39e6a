"""Words of messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that is meant, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def counted(number: int, noun: str) -> str:
    """A number of things: "1 run", "3 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
