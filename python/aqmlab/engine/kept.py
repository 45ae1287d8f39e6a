"""Numbers of runs in a store, kept for the next time.

To open a run and to check what it holds takes a millisecond or more, and a sweep that is called
again has thousands. Beside its results it keeps the numbers of every run that it has opened, with
what the file system said of the run's files then: names, lengths, inodes, when each was last
changed. As long as all of that is the same, the numbers are taken from there. Whatever writes to a
file, cuts, removes or replaces it changes some of it; then the run is opened and checked as if it
were new. What changes on the disk behind the file system's back is found by ``--verify``.

Metrics of one's own are kept under the hash of their text, so that another text is another number.

The file is a convenience: where it is missing, damaged or of another version, all runs are opened.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from aqmlab import _native
from aqmlab._util.files import read_bytes, write_bytes
from aqmlab._util.lazy import pa
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError
from aqmlab.results.numbers import Layout, Numbers, layout_of
from aqmlab.results.own_metrics import Definition, kept_name
from aqmlab.results.run import Run

__all__ = ["KNOWN", "Kept", "signed"]


KNOWN = "known.arrow"
"""Name of the file."""
_FORMAT = 1
_HASH_BYTES = 32
_MAX_BYTES = 2**30
_COARSE_S = 2.0
"""Where file systems note whole seconds, a file that young may change without a trace."""
_SECOND_NS = 10**9


def signature(folder: str | os.PathLike[str]) -> str | None:
    """What the file system says of the files of a folder; None if that would not tell a change."""
    said: list[tuple[str, int, int, int, int]] = []
    is_coarse = True
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                stat = entry.stat(follow_symlinks=False)
                changed = stat.st_ctime_ns
                is_coarse = is_coarse and changed % _SECOND_NS == 0
                said.append((entry.name, stat.st_size, stat.st_mtime_ns, changed, stat.st_ino))
    except OSError:
        return None
    if is_coarse:
        latest = max((changed for _, _, _, changed, _ in said), default=0)
        if time.time() - latest / _SECOND_NS < _COARSE_S:
            return None
    said.sort()
    return hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest()


def signed(run: Run, wanted: Sequence[Definition] = ()) -> tuple[str | None, Numbers]:
    """What is kept of a run: the signature of its files, and its numbers.

    Args:
        run: the run.
        wanted: metrics of one's own that are among the numbers.
    """
    return signature(run.path), Numbers.of(run, _own(run, wanted))


def _own(run: Run, wanted: Sequence[Definition]) -> dict[str, float | None]:
    """Metrics of one's own of a run, as they are kept."""
    return {kept_name(one): one.of(run) for one in wanted}


class Kept:
    """The numbers of runs by key, for those who want nothing else of them.

    Args:
        folder: where the file is, that of a sweep.
        wanted: metrics of one's own that are wanted, too.
    """

    def __init__(self, folder: Path, wanted: Sequence[Definition] = ()) -> None:
        self._file = folder / KNOWN
        self._wanted = {kept_name(one): one for one in wanted}
        self._shown: dict[Layout, tuple[Layout, list[int]]] = {}
        self._found: dict[str, tuple[str, Numbers]] = {}
        self._is_new = False
        # Arrow's errors are among them.
        with suppress(AqmlabError, OSError, ValueError, KeyError, TypeError):
            self._found = _read(read_bytes(self._file, "sweep", _MAX_BYTES))

    def find(self, key: str, store: Store) -> Numbers | None:
        """The numbers of a run in a store; it is opened if its folder is not what it was."""
        now = signature(store.place(key))
        known = self._found.get(key)
        own: dict[str, float | None] = {}
        if known is not None and known[0] == now and not store.verify:
            own = {name: known[1].get(name) for name in known[1].layout.names if _is_own(name)}
            if self._wanted.keys() <= own.keys():
                return self._named(known[1])
        run = store.find(key)
        if run is None:
            return None
        own |= _own(run, [one for name, one in self._wanted.items() if name not in own])
        return self.note(key, now, Numbers.of(run, own))

    def note(self, key: str, signed: str | None, numbers: Numbers) -> Numbers:
        """Keeps a run that was opened and checked, and the signature from before that."""
        if signed is not None:
            self._found[key] = (signed, numbers)
            self._is_new = True
        return self._named(numbers)

    def _named(self, numbers: Numbers) -> Numbers:
        """The same numbers, with the wanted metrics of one's own under their names."""
        layout = numbers.layout
        if layout not in self._shown:
            kept = [
                (place, f"metrics.{self._wanted[name].name}" if _is_own(name) else name)
                for place, name in enumerate(layout.names)
                if not _is_own(name) or name in self._wanted
            ]
            places = [place for place, _ in kept]
            whole = bytes(layout.whole[place] for place in places)
            self._shown[layout] = layout_of(tuple(name for _, name in kept), whole), places
        shown, places = self._shown[layout]
        if shown is layout:
            return numbers
        return Numbers(shown, array("d", (numbers.values[place] for place in places)))

    def write(self) -> None:
        """Writes what is new, if it can be written."""
        if self._is_new:
            with suppress(AqmlabError):
                write_bytes(self._file, _written(self._found))


def _is_own(name: str) -> bool:
    """Whether a number is a metric of one's own, as it is kept."""
    return name.startswith("metrics.") and "@" in name


def _about() -> str:
    """What the file is good for: this version of the code that makes the numbers."""
    return f"{_FORMAT} {_native.version()} {_native.results_version()} {_native.engine()}"


def _written(found: dict[str, tuple[str, Numbers]]) -> bytes:
    """Everything as a file: a hash, then an Arrow table."""
    layouts: dict[Layout, int] = {}
    table = pa.table(
        {
            "key": list(found),
            "signature": [signed for signed, _ in found.values()],
            "layout": [
                layouts.setdefault(numbers.layout, len(layouts)) for _, numbers in found.values()
            ],
            "values": _lists([numbers.values for _, numbers in found.values()]),
        }
    )
    stated = json.dumps([[layout.names, layout.whole.hex()] for layout in layouts])
    table = table.replace_schema_metadata({"about": _about(), "layouts": stated})
    buffer = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(buffer, table.schema, options=options) as file:
        file.write_table(table)
    content = buffer.getvalue()
    return hashlib.sha256(content).digest() + content


def _lists(values: list[array[float]]) -> pa.ListArray:
    """The values of each run as a column; taken as they lie, not number by number."""
    ends = array("i", [0, *accumulate(map(len, values))])
    flat = b"".join(memoryview(one) for one in values)
    numbers = pa.Array.from_buffers(pa.float64(), ends[-1], [None, pa.py_buffer(flat)])
    offsets = pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends)])
    return pa.ListArray.from_arrays(offsets, numbers)


def _read(content: bytes) -> dict[str, tuple[str, Numbers]]:
    """Reads such a file; nothing if it is not whole or of another version."""
    body = memoryview(content)[_HASH_BYTES:]
    if hashlib.sha256(body).digest() != content[:_HASH_BYTES]:
        return {}
    table = pa.ipc.open_file(pa.py_buffer(body)).read_all()
    about = table.schema.metadata
    if about[b"about"].decode() != _about():
        return {}
    layouts = [
        layout_of(tuple(names), bytes.fromhex(whole))
        for names, whole in json.loads(about[b"layouts"])
    ]
    keys, signatures, kinds = (
        table.column(name).to_pylist() for name in ("key", "signature", "layout")
    )
    lists = table.column("values").combine_chunks()
    ends, flat = lists.offsets.to_numpy(), lists.values.to_numpy()
    found = {}
    for place, (key, signed, kind) in enumerate(zip(keys, signatures, kinds, strict=True)):
        values = array("d")
        values.frombytes(flat[ends[place] : ends[place + 1]].tobytes())
        found[key] = (signed, Numbers(layouts[kind], values))
    return found
