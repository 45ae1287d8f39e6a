"""Libraries that are imported when they are first used.

NumPy and pyarrow cost from 50 to 150 ms each and a reader of TOML 2 ms, which a command that needs
none of them would wait for. ``from aqmlab._util.lazy import np`` gives a module that is imported at
its first use.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False

__all__ = ["np", "numpy_on_one_thread", "pa", "pc", "pq", "tomllib"]

_THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""Where a user says how many threads linear algebra may have."""

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
else:

    class _Library:
        """Stands for a module until an attribute of it is asked for, and keeps what it gave."""

        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __getattr__(self, attribute: str) -> object:
            found = getattr(importlib.import_module(self.__name__), attribute)
            self.__dict__[attribute] = found
            return found

    np = _Library("numpy")
    pa = _Library("pyarrow")
    pc = _Library("pyarrow.compute")
    pq = _Library("pyarrow.parquet")
    tomllib = _Library("tomllib" if sys.version_info >= (3, 11) else "tomli")


def numpy_on_one_thread() -> None:
    """Imports NumPy for commands that multiply small matrices only.

    Its linear algebra starts a thread for each further processor, and these threads spin: with two
    processors that costs 30 ms. What a user has set counts, and child processes get the
    environment as it was.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in _THREADS):
        return
    os.environ[_THREADS[0]] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_THREADS[0]]
