"""The text of effective scenarios: runs of the same scenario differ in their seed alone."""

from __future__ import annotations

import hashlib
import re

from aqmlab import _native

__all__ = ["key_of", "split_at_seed"]


_HEAD = re.compile(
    r"""(title = (?!"{3}|'{3}).*\nseed = )(0|[1-9]\d{0,17})$""",
    re.MULTILINE,
)
"""How one begins whose title has one line: up to its seed, and the seed."""


def split_at_seed(text: str) -> tuple[str, int, str] | None:
    """What stands before the seed, the seed, what stands after it; None where that is not clear."""
    head = _HEAD.match(text)
    return None if head is None else (head[1], int(head[2]), text[head.end() :])


def key_of(text: str, engine: str = "") -> str:
    """Hexadecimal hash of an effective scenario, or of a part of one, and of an engine's name.

    Args:
        text: the scenario.
        engine: the name; default: that of this engine.
    """
    return hashlib.sha256(f"{engine or _native.engine()}\n{text}".encode()).hexdigest()
