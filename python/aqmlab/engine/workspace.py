"""Folders that appear under their names when they are complete."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aqmlab._util.files import made_folder, renamed, synced
from aqmlab.errors import AqmlabError

__all__ = ["remove_abandoned", "workspace"]


@contextmanager
def workspace(target: Path) -> Iterator[Path]:
    """A temporary sibling of a folder that takes its name when the block ends well.

    Its files reach the disk before its name does: after a power failure it is whole or not there.
    It is locked while it is in use. Workspaces in the same folder that nobody holds (their process
    was killed) are removed on the way. What keeps two processes apart is the rename alone: where a
    file system has no locks (some network file systems), all of it holds but that a workspace
    counts as left behind when nothing was written into it for a day.
    """
    try:
        made_folder(target.parent)
        # Nobody may clear away a workspace between its making and its locking.
        with _locked(target.parent):
            remove_abandoned(target.parent)
            folder = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_PARTIAL}")
            folder.mkdir()
            descriptor, _ = _lock_folder(folder)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be made: {error.strerror}") from None
    try:
        yield folder
        for path in folder.iterdir():
            synced(path)
        synced(folder)
        renamed(folder, target)
        synced(target.parent)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


_PARTIAL = ".partial"
"""Suffix of workspaces."""
_LEFT_S = 24 * 3600.0
"""How long nothing is written into a workspace that counts as left behind, where locks fail."""


def _lock_folder(folder: Path, flags: int = 0) -> tuple[int, bool]:
    """Locks a folder against other holders until the returned descriptor is closed.

    Not every file system can: the second value says whether it is locked. A holder who may not be
    waited for is a BlockingIOError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | flags)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        return descriptor, False
    return descriptor, True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a folder's lock, if there are locks."""
    descriptor, _ = _lock_folder(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path) -> list[Path]:
    """Removes the workspaces in a folder that nobody holds; which they were."""
    removed = []
    for folder in parent.glob(f".*{_PARTIAL}"):
        with suppress(OSError):
            descriptor, locked = _lock_folder(folder, fcntl.LOCK_NB)
            try:
                if locked or _left(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder)
            finally:
                os.close(descriptor)
    return removed


def _left(folder: Path) -> bool:
    """Whether nothing was written into a workspace for long, by the clock of its file system."""
    newest = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    # A new name in the folder above: what its file system takes for now.
    probe = folder.with_name(f".{secrets.token_hex(4)}.clock")
    probe.touch()
    try:
        return probe.stat().st_mtime - newest > _LEFT_S
    finally:
        probe.unlink()
