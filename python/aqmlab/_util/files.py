"""Reading and writing files, with errors that are one sentence."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from aqmlab.errors import AqmlabError

_SPECIAL = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
"""What a path may name that is no file."""


def special(path: Path) -> str | None:
    """What a path names that is no file, such as "a pipe"; None: a file, or nothing."""
    try:
        return _SPECIAL.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return None


def size_of(path: Path, what: str) -> int:
    """Bytes of a file that is to be read; an error if it is none. `what` names it in messages.

    Nothing is opened: a pipe without a writer would let its reader wait, and a device never ends.
    """
    if (found := special(path)) is not None:
        raise AqmlabError(f"{path}: is {found}, not a {what}")
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise AqmlabError(f"{path}: there is no such {what}{similar(path)}") from None
    except OSError as error:
        raise AqmlabError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a path that no file can have
        raise AqmlabError(f"{path}: cannot be read: {error}") from None


def read_text(path: Path, what: str, limit: int) -> str:
    """Text of a file of at most `limit` bytes; `what` names it in messages."""
    return decoded(read_bytes(path, what, limit), path, what)


def read_bytes(path: Path, what: str, limit: int) -> bytes:
    """Bytes of a file of at most `limit` bytes; `what` names it in messages."""
    size_of(path, f"{what} file")
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise AqmlabError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > limit:
        raise AqmlabError(f"{path}: is longer than {limit >> 20} MiB, too long for a {what} file")
    return content


def decoded(content: bytes, path: Path, what: str) -> str:
    """The bytes of a file as text; `what` names it in messages."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise AqmlabError(
            f"{path}: is not UTF-8 text (byte {error.start}), so it is no {what} file"
        ) from None


def check_output_file(path: Path, what: str = "the output") -> None:
    """An error, before any work, if a file cannot be written at a place; `what` names it."""
    if (found := special(path)) is not None:
        raise AqmlabError(f"{path}: is {found}; {what} is a file")
    _check_writable(path, path.parent)


def check_output_folder(path: Path) -> None:
    """An error, before any work, if nothing can be written into a folder, or it cannot be made."""
    _check_writable(path, path)


def _check_writable(path: Path, folder: Path) -> None:
    """Tries to write into a folder, or into the next one above it that exists."""
    place = folder.absolute()
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise AqmlabError(f"{path}: cannot be written: {place} is not a folder")
    import tempfile

    try:
        # Permissions do not tell all: the file system may be one that is only read.
        with tempfile.TemporaryFile(prefix=".aqmlab-", dir=place):
            pass
    except OSError as error:
        raise AqmlabError(
            f"{path}: cannot be written: no file can be made in {place}: {error.strerror}"
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


def filesystem_synced(path: Path) -> None:
    """Waits until everything that was written to the file system of a folder is on the disk."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):  # macOS
        os.sync()
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if library.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def made_folder(path: Path) -> None:
    """Makes a folder and those above it, where they are missing; their names are on the disk."""
    missing = [path]
    while not missing[-1].parent.is_dir() and missing[-1] != missing[-1].parent:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            synced(folder.parent)


def renamed(path: Path, target: Path) -> None:
    """Gives a file or a folder another name; a file takes the place of one that has it."""
    inode = path.stat().st_ino
    try:
        path.rename(target)
    except FileNotFoundError:
        # A network file system whose answer got lost asks again, and finds what it has done.
        with suppress(FileNotFoundError):
            if target.stat().st_ino == inode:
                return
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file; it appears under its name when it is complete and on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        made_folder(path.parent)
        part.write_bytes(content)
        synced(part)
        renamed(part, path)
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
    import difflib

    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.with_name(close[0])}?" if close else ""
