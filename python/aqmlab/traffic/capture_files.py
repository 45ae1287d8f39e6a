"""Which files are captures, by their first bytes, and what unpacks those that are compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from aqmlab._util.files import size_of, special
from aqmlab.errors import AqmlabError

__all__ = ["is_capture", "notes_in_words", "replaced", "unpacked"]


_MAGIC = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)
"""How pcap and pcapng files begin."""


def _zstandard(path: Path) -> IO[bytes]:
    import pyarrow as pa

    found: IO[bytes] = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
    return found


_PACKED: Mapping[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _zstandard,
}
"""How compressed files begin, and what reads them."""
_PIECE = 1 << 16
"""Bytes that are unpacked at once: so little is lost in front of a cut."""
_UNREADABLE = (OSError, EOFError, lzma.LZMAError, ValueError)


def is_capture(path: Path) -> bool:
    """Whether a file is a capture, compressed or not; its name says nothing."""
    if special(path) is not None:
        return False
    try:
        opener = _opener(path)
        with opener(path) if opener else path.open("rb") as file:
            return bytes(file.read(4)) in _MAGIC
    except _UNREADABLE:
        return False


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The capture itself, or for as long as the block lasts what was compressed.

    Raises:
        AqmlabError: the file is not there, or its compression is broken.
    """
    size_of(path, "capture")
    try:
        opener = _opener(path)
    except OSError as error:
        raise AqmlabError(f"{path}: cannot be read: {error.strerror or error}") from None
    if opener is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="aqmlab-") as folder:
        plain = Path(folder) / path.stem
        try:
            with opener(path) as packed, plain.open("wb") as file:
                _copy(packed, file)
        except _UNREADABLE as error:
            raise AqmlabError(f"{path}: cannot be unpacked: {error}; unpack it first") from None
        try:
            yield plain
        except AqmlabError as error:
            raise type(error)(str(error).replace(str(plain), str(path))) from None


def _copy(packed: IO[bytes], file: IO[bytes]) -> None:
    """Unpacks; of a stream that was cut what stands in front of the cut is kept."""
    read = getattr(packed, "read1", packed.read)  # what there is, up to the cut
    while True:
        try:
            part = read(_PIECE)
        except (EOFError, OSError) as error:
            is_cut = isinstance(error, EOFError) or "Truncated" in str(error)
            if not is_cut or not file.tell():
                raise
            return
        if not part:
            return
        file.write(part)


@contextmanager
def replaced(path: Path) -> Iterator[IO[str]]:
    """A text file that takes its place when it is complete."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="ascii") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _opener(path: Path) -> Callable[[Path], Any] | None:
    """What unpacks a file; None if nothing needs to."""
    with path.open("rb") as file:
        head = file.read(6)
    return next((opener for magic, opener in _PACKED.items() if head.startswith(magic)), None)


def notes_in_words(notes: Mapping[str, Any]) -> list[str]:
    """What was put right in front of everything, in sentences."""
    found = []
    if cut := notes["cut"]:
        found.append(f"the file is read to its cut: {cut}")
    if moved := notes["out_of_order"]:
        found.append(f"{moved:,} packets stood behind later ones; they are put in order of time")
    found += [
        f"the clock was set back by {by:.1f} s; what follows is moved by as much"
        for by in notes["set_back_s"][:5]
    ]
    found += [
        f"the clock was set forward by {by:.1f} s; what follows is moved by as much"
        for by in notes["set_forward_s"][:5]
    ]
    found += [
        f"no packet passes for {long:,.1f} s, {at:,.1f} s after the first one: the clock may have "
        "been set forward, or nothing was sent"
        for at, long in notes["unclear_silences_s"][:3]
    ]
    if seconds := notes["second_sights"]:
        found.append(f"{seconds:,} packets are second sights of others; they are dropped")
    if renamed := notes["translated"]:
        found.append(
            f"{renamed:,} connections are seen with two client addresses (NAT); they count once"
        )
    return found
