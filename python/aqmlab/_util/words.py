"""Words of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_UNPRINTABLE = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What a terminal would obey rather than show: control characters but line feeds, marks that turn
the direction of writing, and surrogates, which stand for bytes of file names that are no text."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at the known word that is meant, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def counted(number: int, noun: str) -> str:
    """A number of things: "1 run", "3,000 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def lasting(seconds: float) -> str:
    """A length of time, roughly: "40 s", "12 min", "5 h", "3.1 days"."""
    for limit, unit, length in ((90, "s", 1), (90 * 60, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < limit:
            return f"{max(1, round(seconds / length))} {unit}"
    return f"{seconds / 86400:.1f} days"


def printable(text: str) -> str:
    r"""Text that a terminal only shows: other characters stand there as ``\u001b``.

    JSON text stays JSON text of the same meaning.
    """
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def natural(text: str) -> list[tuple[int, str]]:
    """A text's place in an order in which "queue 9" stands before "queue 10"."""
    parts = re.findall(r"\d+|\D+", text)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def listing(names: Sequence[str], word: str) -> str:
    """Names as a list in words: "a", "a or b", "a, b or c"."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def in_sentence(parts: Sequence[str]) -> str:
    """Clauses as a list in a sentence: "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def several(names: Sequence[object], most: int, between: str = ", ") -> str:
    """The first of many: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(map(str, names[:most])) + more


def ranged(found: Sequence[int], most: int | None = None) -> str:
    """Numbers as people write them: "1 to 5", "1, 3"; of so many at most, then "..."."""
    if len(found) > 2 and list(found) == list(range(found[0], found[-1] + 1)):
        return f"{found[0]} to {found[-1]}"
    cut = ", ..." if most is not None and len(found) > most else ""
    return ", ".join(map(str, found[:most])) + cut


def capital(text: str) -> str:
    """A text as a sentence begins."""
    return text[:1].upper() + text[1:]


def wrapped(text: str, width: int = 80) -> list[str]:
    """A paragraph as lines, for a terminal."""
    import textwrap

    return textwrap.wrap(text, width, break_on_hyphens=False)
