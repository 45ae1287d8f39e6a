"""What a disk may hold after a power failure, from the log of `tests/syscalls.c`.

A write is on the disk when its file has been synced since, or the whole file system; a name when
its folder has. Of everything else, each act may be there or not, whatever came before it, and a
write may be there in part. File systems promise more, each something else.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = struct.Struct("<cQQII")


@dataclass(frozen=True)
class Act:
    """Something that was done to a file or a folder."""

    kind: str
    inode: int
    offset: int
    first: bytes
    second: bytes

    def writes(self, path: Path) -> bool:
        """Whether it opens that file to write."""
        return self.kind == "O" and self.first == os.fsencode(path)


def acts(log: bytes) -> Iterator[Act]:
    """What a log tells."""
    at = 0
    while at < len(log):
        kind, inode, offset, one, two = _HEAD.unpack_from(log, at)
        at += _HEAD.size
        yield Act(kind.decode(), inode, offset, log[at : at + one], log[at + one : at + one + two])
        at += one + two


@dataclass(eq=False)
class _File:
    """A file: what is on the disk, and what was done to it since it was synced."""

    synced: bytes = b""
    since: list[Act] = field(default_factory=list)


@dataclass(eq=False)
class _Folder:
    """A folder: the names in it that are on the disk, and the names that there are."""

    synced: dict[str, _Node] = field(default_factory=dict)
    names: dict[str, _Node] = field(default_factory=dict)


_Node = _File | _Folder


@dataclass(eq=False)
class _Renaming:
    """Names that change in one act, which is on the disk when one of their folders is synced."""

    changes: Sequence[tuple[_Folder, str, _Node | None]]

    def do(self) -> None:
        """It is on the disk."""
        for folder, name, node in self.changes:
            if node is None:
                folder.synced.pop(name, None)
            else:
                folder.synced[name] = node


class Disk:
    """A folder and all below it, from an empty one on."""

    def __init__(self, root: Path) -> None:
        self._base = os.fsencode(root)
        self._root = _Folder()
        self._of: dict[int, _Node] = {root.stat().st_ino: self._root}
        self._pending: list[_Renaming] = []

    def do(self, act: Act) -> None:
        """Something happens."""
        match act.kind:
            case "O":
                folder, name = self._place(act.first)
                if name not in folder.names:
                    self._rename((folder, name, _File()))
                self._of[act.inode] = folder.names[name]
            case "W" | "T":
                file = self._of.get(act.inode)
                if isinstance(file, _File):  # else one without a name
                    file.since.append(act)
            case "F":
                self._sync(self._of.get(act.inode))
            case "S":
                for node in {*self._of.values()}:
                    self._sync(node)
            case "M":
                folder, name = self._place(act.first)
                made = self._of[act.inode] = _Folder()
                self._rename((folder, name, made))
            case "U" | "D":
                self._rename((*self._place(act.first), None))
            case "R":
                before, old = self._place(act.first)
                after, new = self._place(act.second)
                self._rename((before, old, None), (after, new, before.names[old]))
            case _:
                raise AssertionError(act)

    def _place(self, path: bytes) -> tuple[_Folder, str]:
        """The folder of a path, and its name there."""
        *above, name = os.fsdecode(path.removeprefix(self._base)).strip("/").split("/")
        folder = self._root
        for part in above:
            below = folder.names[part]
            assert isinstance(below, _Folder)
            folder = below
        return folder, name

    def _rename(self, *changes: tuple[_Folder, str, _Node | None]) -> None:
        for folder, name, node in changes:
            if node is None:
                del folder.names[name]
            else:
                folder.names[name] = node
        self._pending.append(_Renaming(changes))

    def _sync(self, node: _Node | None) -> None:
        if isinstance(node, _File):
            node.synced = _applied(node.synced, node.since)
            node.since.clear()
        for renaming in [*self._pending]:
            if any(folder is node for folder, _, _ in renaming.changes):
                renaming.do()
                self._pending.remove(renaming)

    def fail(self, target: Path, chance: random.Random) -> None:
        """Writes what may be there afterwards into an empty folder. It cannot go on from there."""
        kept = chance.choice([0.0, 0.5, 1.0])
        for renaming in self._pending:
            if chance.random() < kept:
                renaming.do()
        _write(self._root, target, chance, kept)


def _applied(content: bytes, acts: Sequence[Act]) -> bytes:
    """A file after some writes."""
    found = bytearray(content)
    for act in acts:
        grown = act.offset + len(act.first) - len(found)
        found.extend(bytes(max(0, grown)))
        if act.kind == "T":
            del found[act.offset :]
        else:
            found[act.offset : act.offset + len(act.first)] = act.first
    return bytes(found)


def _write(folder: _Folder, target: Path, chance: random.Random, kept: float) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, node in folder.synced.items():
        if isinstance(node, _Folder):
            _write(node, target / name, chance, kept)
            continue
        since = [act for act in node.since if chance.random() < kept]
        content = _applied(node.synced, since)
        if since and chance.random() < 0.5:
            content = content[: chance.randrange(len(content) + 1)]
        (target / name).write_bytes(content)
