"""Folders that appear under their names when they are complete."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aqmlab._util.files import synced
from aqmlab.errors import AqmlabError

__all__ = ["remove_abandoned", "workspace"]


@contextmanager
def workspace(target: Path) -> Iterator[Path]:
    """A temporary sibling of a folder that takes its name when the block ends well.

    Its files reach the disk before its name does: after a power failure it is whole or not there.
    It is locked while it is in use. Workspaces in the same folder that nobody holds (their process
    was killed) are removed on the way.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Nobody may clear away a workspace between its making and its locking.
        with _locked(target.parent):
            remove_abandoned(target.parent)
            folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_PARTIAL}")
            folder.mkdir()
            lock = _lock_folder(folder)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be made: {error.strerror}") from None
    try:
        yield folder
        for path in folder.iterdir():
            synced(path)
        synced(folder)
        folder.rename(target)
        synced(target.parent)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


_PARTIAL = ".partial"
"""Suffix of workspaces."""


def _lock_folder(folder: Path, flags: int = 0) -> int:
    """Locks a folder against other holders until the returned descriptor is closed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | flags)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a folder's lock."""
    descriptor = _lock_folder(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path) -> list[Path]:
    """Removes the workspaces in a folder that nobody holds; which they were."""
    removed = []
    for folder in parent.glob(f".*{_PARTIAL}"):
        with suppress(OSError):
            descriptor = _lock_folder(folder, fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
            removed.append(folder)
    return removed
