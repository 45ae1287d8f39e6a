"""The manifest of a run directory: what its files were when the run was finished.

``manifest.json`` is written last and names every other file with its length and SHA-256 hash, and
the key of the run. What is not as it says is never read as a result. ``metadata.json`` says that
there is a manifest, so that a lost one is noticed; runs of earlier versions have none.
"""

from __future__ import annotations

import errno
import hashlib
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab.errors import DamagedRunError

__all__ = ["MANIFEST", "Manifest", "seal"]


MANIFEST = "manifest.json"
_SMALL = 2**20
"""Files up to so many bytes are hashed whenever a run is opened; longer ones when they are read."""
_CHUNK = 2**20


@dataclass(frozen=True)
class _Entry:
    """What a file was."""

    length: int
    """In bytes."""
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What the files of a run directory were."""

    folder: Path
    key: str
    """Key of the run."""
    files: Mapping[str, _Entry]

    @classmethod
    def of(cls, folder: Path, metadata: Mapping[str, Any]) -> Manifest | None:
        """The manifest of a run directory; None of a run that was made without one.

        Raises:
            DamagedRunError: it should have one, and none can be read.
        """
        path = folder / MANIFEST
        try:
            _length(path)
            content = json.loads(path.read_bytes())
            entries = {
                name: _Entry(int(entry["bytes"]), str(entry["sha256"]))
                for name, entry in content["files"].items()
            }
            return cls(folder, str(content["key"]), entries)
        except FileNotFoundError:
            if metadata.get("manifest") is None:
                return None
            raise DamagedRunError(f"{folder}: is damaged: {MANIFEST} is missing") from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DamagedRunError(f"{folder}: is damaged: {MANIFEST} cannot be read") from None

    def check(self, metadata: Mapping[str, Any]) -> dict[str, bytes]:
        """Raises an error if a file is missing or has another length, or a small one other bytes.

        A run directory holds small files and tables; tables are hashed when they are read.

        Returns:
            The small files by name, so that nobody reads them twice.
        """
        if metadata.get("key") != self.key:
            raise self._damage(f"metadata.json has another key than {MANIFEST}")
        small = {}
        for name, entry in self.files.items():
            if entry.length > _SMALL:
                self._check_length(name)
            else:
                small[name] = self._small(name, entry)
        return small

    def source(self, name: str) -> bytes | Path:
        """A file to be read whole, which has the bytes that it had: its bytes, or where it is."""
        entry = self.files.get(name)
        if entry is not None and entry.length <= _SMALL:
            return self._small(name, entry)
        self.check_hash(name)
        return self.folder / name

    def _small(self, name: str, entry: _Entry) -> bytes:
        """A small file; an error if it is not what it was."""
        self._check_length(name)  # nothing is opened yet: a pipe would let its reader wait
        try:
            with (self.folder / name).open("rb") as file:
                content = file.read(entry.length + 1)
        except OSError as error:
            raise self._damage(f"{name} cannot be read: {error.strerror}") from None
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise self._damage(f"{name} does not have the bytes that were written")
        return content

    def check_everything(self) -> None:
        """Raises an error if a file is not, to the last bit, what it was."""
        for name in self.files:
            self._check_length(name)
            self.check_hash(name)

    def check_hash(self, name: str) -> None:
        """Raises an error if a file does not have the bytes that it had.

        A file that has neither grown nor been written to since it was hashed is not hashed again.
        """
        entry = self.files.get(name)
        if entry is None:
            raise self._damage(f"{name} is not in {MANIFEST}")
        path = self.folder / name
        try:
            now = path.stat()
            found = _hash(path, now.st_size, now.st_ctime_ns, now.st_ino)
        except OSError as error:
            raise self._damage(f"{name} cannot be read: {error.strerror}") from None
        if found != entry.sha256:
            raise self._damage(f"{name} does not have the bytes that were written")

    def _check_length(self, name: str) -> None:
        """Raises an error if a file is missing, or is longer or shorter than it was."""
        wanted = self.files[name].length
        try:
            length = _length(self.folder / name)
        except FileNotFoundError:
            raise self._damage(f"{name} is missing") from None
        except OSError as error:
            raise self._damage(f"{name} cannot be read: {error.strerror}") from None
        if length != wanted:
            raise self._damage(f"{name} has {length} bytes; {wanted} were written")

    def _damage(self, what: str) -> DamagedRunError:
        return DamagedRunError(f"{self.folder}: is damaged: {what}")


def _length(path: Path) -> int:
    """Bytes of a file. Anything else is an error: a pipe would let its reader wait without end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no file")
    return found.st_size


def seal(folder: Path, key: str, files: Mapping[str, bytes] | None = None) -> Manifest:
    """Writes some files into a folder whose others are complete, then the manifest of all."""
    entries = _native.seal(folder, key, list((files or {}).items()))
    return Manifest(folder, key, {name: _Entry(length, found) for name, length, found in entries})


@lru_cache(maxsize=4096)
def _hash(path: Path, length: int, changed_ns: int, inode: int) -> str:  # noqa: ARG001 - they tell
    """The hash of a file that has this length and was changed last at this time."""
    return _hash_of(path)


def _hash_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    found = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
