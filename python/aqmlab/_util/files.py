"""Reading and writing files, with errors that are one sentence."""

from __future__ import annotations

import difflib
import os
from contextlib import suppress
from pathlib import Path

from aqmlab.errors import AqmlabError


def read_text(path: Path, what: str, limit: int) -> str:
    """Text of a file of at most `limit` bytes; `what` names it in messages."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise AqmlabError(f"{path}: there is no such {what} file{similar(path)}") from None
    except IsADirectoryError:
        raise AqmlabError(f"{path}: is a folder, not a {what} file") from None
    except OSError as error:
        raise AqmlabError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > limit:
        raise AqmlabError(f"{path}: is longer than {limit >> 20} MiB, too long for a {what} file")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise AqmlabError(
            f"{path}: is not UTF-8 text (byte {error.start}), so it is no {what} file"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Writes a text file; it appears under its name when it is complete."""
    write_bytes(path, text.encode())


def synced(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file; it appears under its name when it is complete and on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        synced(part)
        part.replace(path)
        synced(path.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise AqmlabError(f"{path}: cannot be written: {error.strerror}") from None


def similar(path: Path) -> str:
    """A hint at a file of nearly the same name in the same folder, or nothing."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.with_name(close[0])}?" if close else ""
