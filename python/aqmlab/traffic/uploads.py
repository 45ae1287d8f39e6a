"""Uploads of a capture as responses of the hosts at home, so that they have times to compare.

A connection on which one side sends and the other only acknowledges has no response. Played from
the other side it has one: the far end opens it, asks with one byte, and gets what was uploaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aqmlab.traffic.capture_files import replaced

__all__ = ["part_uploads"]


def part_uploads(vectors: Path, uploads: Path) -> tuple[int, int]:
    """Moves the uploads of a file of vectors (original layout) to another, turned round.

    Returns:
        How many connections stay, and how many are uploads. A file without any is removed.
    """
    stay = moved = 0
    with replaced(vectors) as rest, replaced(uploads) as turned:
        for block in _blocks(vectors):
            if (other := _turned(block)) is None:
                rest.writelines([*block, "\n"])
                stay += 1
            else:
                turned.writelines([*other, "\n"])
                moved += 1
    for file, number in ((vectors, stay), (uploads, moved)):
        if not number:
            file.unlink()
    return stay, moved


def _blocks(vectors: Path) -> Iterator[list[str]]:
    """The lines of each vector."""
    block: list[str] = []
    with vectors.open(encoding="ascii") as file:
        for line in file:
            if line.strip():
                block.append(line)
            elif block:
                yield block
                block = []
    if block:
        yield block


def _turned(block: list[str]) -> list[str] | None:
    """A vector with one unit, of the initiator, as the acceptor's; None for any other."""
    words = [line.split() for line in block]
    kinds = [one[0] for one in words]
    if kinds[0] != "SEQ" or kinds.count(">") != 1 or "<" in kinds:
        return None
    found = []
    for one, line in zip(words, block, strict=True):
        if one[0] in ("w", "m"):
            found.append(f"{one[0]} {one[2]} {one[1]}\n")
        elif one[0] == ">":
            found += ["> 1\n", "t 1\n", f"< {one[1]}\n"]
        elif not (one[0] == "t" and kinds.index("t") < kinds.index(">")):
            found.append(line)
    return found
