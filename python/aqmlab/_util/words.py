"""Words of messages."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable

if sys.version_info >= (3, 11):
    pass
else:
    pass


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that is meant, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
