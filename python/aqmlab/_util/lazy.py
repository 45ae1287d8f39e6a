"""Libraries that are imported when they are first used.

NumPy and pyarrow cost from 50 to 150 ms each and a reader of TOML 2 ms, which a command that needs
none of them would wait for. ``from aqmlab._util.lazy import np`` gives a module that is imported at
its first use.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False

__all__ = ["np", "pa", "pc", "pq", "tomllib"]

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
