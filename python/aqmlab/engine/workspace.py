"""Folders that appear under their names when they are complete."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aqmlab import _native
from aqmlab._util.files import made_folder, renamed, synced
from aqmlab.errors import AqmlabError

__all__ = [
    "RUNS",
    "held",
    "is_being_made",
    "is_locked",
    "is_workspace_of",
    "remove_abandoned",
    "remove_folder",
    "workspace",
]


@contextmanager
def workspace(target: Path, *, durable: bool = True) -> Iterator[Path]:
    """A temporary sibling of a folder that takes its name when the block ends well.

    Its files reach the disk before its name does: after a power failure it is whole or not there.
    It is locked while it is in use. Workspaces in the same folder that nobody holds (their process
    was killed) are removed on the way. What keeps two processes apart is the rename alone: where a
    file system has no locks (some network file systems), all of it holds but that a workspace
    counts as left behind when nothing was written into it for a day.

    Args:
        target: the folder.
        durable: whether to wait for the disk; if not, the caller does so later, and holds the
            folder above, so that nothing is locked.
    """
    descriptor = None
    try:
        if durable:
            made_folder(target.parent)
            remove_abandoned(target.parent)
            folder, descriptor = held(target)
        else:
            folder = _sibling(target)
            folder.mkdir()
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be made: {error.strerror}") from None
    try:
        yield folder
        if durable:
            _native.sync_folder(folder)
        renamed(folder, target)
        if durable:
            synced(target.parent)
    except OSError as error:
        raise AqmlabError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        if os.path.lexists(folder):
            shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def held(target: Path) -> tuple[Path, int]:
    """A new temporary sibling of a folder, and the descriptor that locks it until it is closed."""
    # Nobody may clear away a folder between its making and its locking.
    with _locked(target.parent):
        folder = _sibling(target)
        folder.mkdir()
        descriptor, _ = _lock_folder(folder)
    return folder, descriptor


def is_workspace_of(folder: Path, target: Path) -> bool:
    """Whether a folder is a temporary sibling of another, by its name."""
    return folder.name.startswith(f".{target.name}.") and folder.name.endswith(_PARTIAL)


def is_locked(folder: Path) -> bool:
    """Whether somebody holds a temporary folder."""
    try:
        descriptor, _ = _lock_folder(folder, fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    os.close(descriptor)
    return False


def is_being_made(target: Path) -> bool:
    """Whether somebody else is making the contents of a folder."""
    return any(is_workspace_of(one, target) and is_locked(one) for one in _partial(target.parent))


def _sibling(target: Path) -> Path:
    """A name for a temporary sibling of a folder."""
    return target.with_name(f".{target.name}.{os.urandom(4).hex()}{_PARTIAL}")


def remove_folder(folder: Path, descriptor: int) -> None:
    """Removes a temporary folder, if it is still there, and its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


RUNS = "runs"
"""Name in a temporary folder of what holds finished runs without names."""
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


def remove_abandoned(parent: Path, save: Callable[[Path], object] = lambda _: None) -> list[Path]:
    """Removes the temporary folders in a folder that nobody holds; which they were.

    Args:
        parent: the folder.
        save: called with each before it is removed.
    """
    removed: list[Path] = []
    if not _partial(parent):
        return removed
    with _locked(parent):
        for folder in _partial(parent):
            with suppress(OSError):
                descriptor, locked = _lock_folder(folder, fcntl.LOCK_NB)
                try:
                    if locked or _left(folder):
                        save(folder)
                        shutil.rmtree(folder, ignore_errors=True)
                        removed.append(folder)
                finally:
                    os.close(descriptor)
    return removed


def _partial(parent: Path) -> list[Path]:
    """The temporary folders in a folder. A glob over thousands of runs takes longer than a run."""
    names = os.listdir(parent) if parent.is_dir() else []  # noqa: PTH208 - paths are what takes long
    return [parent / name for name in names if name[0] == "." and name.endswith(_PARTIAL)]


def _left(folder: Path) -> bool:
    """Whether nothing was written into a workspace for long, by the clock of its file system."""
    newest = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    # A new name in the folder above: what its file system takes for now.
    probe = folder.with_name(f".{os.urandom(4).hex()}.clock")
    probe.touch()
    try:
        return probe.stat().st_mtime - newest > _LEFT_S
    finally:
        probe.unlink()
