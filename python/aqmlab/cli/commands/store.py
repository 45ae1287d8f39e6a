"""``aqmlab store ...``: what the store of runs holds, and whether it is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from aqmlab._util.console import Progress, out, print_json, say
from aqmlab._util.words import counted
from aqmlab.cli.options import Json, StoreFolder
from aqmlab.engine.store import STORE_ROOT, Store
from aqmlab.errors import AqmlabError, LaterRunError, RunError

__all__ = ["COMMANDS", "command"]


def command() -> None:
    """Check, measure and prune the store of runs that sweeps share."""


def _opened(folder: Path) -> Store:
    """The store in a folder."""
    if not folder.is_dir():
        raise AqmlabError(f"{folder}: there is no such store")
    return Store(folder)


def _check(store: StoreFolder = STORE_ROOT, as_json: Json = False) -> None:
    """Check every byte of every run.

    The exit status is 1 if a run is damaged. A sweep makes a damaged run again.
    """
    found = _opened(store)
    paths = list(found.runs())
    damaged: dict[Path, str] = {}
    states: Counter[str] = Counter()
    with Progress("check") as progress:
        for number, path in enumerate(paths, 1):
            try:
                run = found.opened(path, everything=True)
                states["whole" if run.manifest else "without a manifest"] += 1
            except LaterRunError:
                states["of a later version"] += 1
            except AqmlabError as error:
                damaged[path] = str(error)
            progress.update(str(found.root), number / len(paths))
    if as_json:
        print_json({
            "runs": len(paths),
            **{name.replace(" ", "_"): count for name, count in states.items()},
            "damaged": {str(path): reason for path, reason in damaged.items()},
        })  # fmt: skip
    else:
        parts = [f"{count} {name}" for name, count in states.items()]
        out(", ".join([counted(len(paths), "run"), *parts, f"{len(damaged)} damaged"]))
    for reason in damaged.values():
        say(reason)
    if damaged:
        raise RunError(f"{len(damaged)} of {counted(len(paths), 'run')} damaged")


def _size(store: StoreFolder = STORE_ROOT, as_json: Json = False) -> None:
    """Print the number of runs and their size."""
    found = _opened(store)
    places = {"runs": list(found.runs()), "damaged": found.damaged()}
    numbers = {
        name: {"count": len(paths), "bytes": sum(map(_bytes_of, paths))}
        for name, paths in places.items()
    }
    if as_json:
        print_json(numbers)
        return
    for name, values in numbers.items():
        out(f"{name}: {values['count']}, {values['bytes'] / 1e6:.1f} MB")


def _bytes_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _prune(
    store: StoreFolder = STORE_ROOT,
    *,
    other_engines: bool = False,
) -> None:
    """Remove damaged runs, and the files of interrupted runs.

    Options:
        other_engines (--other-engines): Also remove the runs of other versions of the simulator.
    """
    from aqmlab import _native

    found = _opened(store)
    found.tidy()
    doomed = found.damaged()
    for path in found.runs():
        try:
            run = found.opened(path, everything=False)
        except LaterRunError:
            continue
        except AqmlabError:
            doomed.append(path)
            continue
        if other_engines and run.metadata["versions"]["engine"] != _native.engine():
            doomed.append(path)
    freed = sum(map(_bytes_of, doomed))
    for path in doomed:
        found.remove(path)
    out(f"removed {counted(len(doomed), 'run')}, {freed / 1e6:.1f} MB")


COMMANDS: Mapping[str, Callable[..., None]] = {"check": _check, "size": _size, "prune": _prune}
