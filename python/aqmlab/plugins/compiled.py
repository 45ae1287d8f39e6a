"""Plug-ins that numba compiles (extra ``aqmlab[numba]``): no interpreter in the run.

A class is as for plain Python, within what numba can compile: its callbacks may use parameters and
variables of ``self``, the fields of the event, :func:`draw`, :func:`chance` and the functions of
mathematics below. ``self`` is a record of the declared fields, nothing else.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from aqmlab import _native
from aqmlab.errors import AqmlabError
from aqmlab.plugins.declared import Control, Declared, Discipline

__all__ = ["cbrt", "chance", "compiled", "draw", "exp", "log", "pow", "translated"]

_Class = TypeVar("_Class", bound=type[Discipline] | type[Control])
_NOTHING = -(2**63)
"""What the engine gets of a callback that returns nothing."""


def compiled(plugin: _Class) -> _Class:
    """Marks a class to be compiled by numba where it is loaded."""
    plugin.plugin_is_compiled = True
    return plugin


def _function(name: str, arguments: int) -> Callable[..., float]:
    """A function of the engine, the same on every machine."""
    address = _native.plugin_records()["functions"][name]
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arguments)(address)


pow = _function("pow", 2)  # noqa: A001 - the name that mathematics has
"""x to the power of y, the same on every machine."""
cbrt = _function("cbrt", 1)
"""The cube root, the same on every machine."""
exp = _function("exp", 1)
"""e to the power of x, the same on every machine."""
log = _function("log", 1)
"""The natural logarithm, the same on every machine."""


def draw(event: Any) -> float:  # noqa: ANN401 - a record
    """The next random number of the run, uniform on [0, 1)."""
    number: float = event.draw()
    return number


def chance(event: Any, probability: float) -> bool:  # noqa: ANN401 - a record
    """Whether something of this probability happens; a number is drawn only where that is open.

    Raises:
        AqmlabError: the probability is not a number.
    """
    if probability <= 0.0:
        return False
    if probability < 1.0:
        happens: bool = event.draw() < probability
        return happens
    if probability >= 1.0:
        return True
    raise AqmlabError(f"chance: found {probability}; expected a probability, 0 to 1")


@cache
def _numba() -> Any:  # noqa: ANN401 - a module without types
    """The module numba, to which the functions above are made known."""
    try:
        import numba
        from numba.extending import intrinsic, overload
    except ImportError:
        raise AqmlabError(
            "a compiled plug-in needs numba, which is not installed: pip install 'numba>=0.65'"
        ) from None
    drawn = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_size_t)(
        _native.plugin_records()["functions"]["draw"]
    )

    def address_of(context: Any, record: Any) -> Any:  # noqa: ANN401, ARG001 - numba's types
        def generated(_context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ANN401
            return builder.ptrtoint(values[0], _context.get_value_type(signature.return_type))

        return numba.types.uintp(record), generated

    address: Any = intrinsic(address_of)

    @overload(draw)
    def draw_of(event: Any) -> Any:  # noqa: ANN401, ARG001
        return lambda event: drawn(address(event))

    @overload(chance)
    def chance_of(event: Any, probability: Any) -> Any:  # noqa: ANN401, ARG001
        def happens(event: Any, probability: Any) -> bool:  # noqa: ANN401
            if probability <= 0.0:
                return False
            if probability < 1.0:
                return bool(drawn(address(event)) < probability)
            if probability >= 1.0:
                return True
            event.nan = 1  # compiled code raises nothing: the engine looks here
            return False

        return happens

    return numba


_KEPT: list[object] = []
"""Compiled functions, which live as long as the process."""


def translated(plugin: type[Discipline | Control], says: Declared) -> list[int]:
    """The addresses of the compiled callbacks, in the engine's order; 0 where there is none."""
    numba = _numba()
    import numpy as np

    records = _native.plugin_records()
    pairs = zip(says.fields, says.is_number, strict=True)
    own = np.dtype([(field[0], "f8" if number else "i8") for field, number in pairs])
    known, size = records["event" if says.kind == "discipline" else "ack"]
    names, kinds, offsets = zip(*known, strict=True)
    event = np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": size})
    if not says.fields:
        own = np.dtype([("unused", "i8")])
    pointers = [numba.types.CPointer(numba.from_dtype(kind)) for kind in (own, event)]
    signature = numba.types.int64(*pointers)
    addresses = []
    for callback in records[says.kind]:
        if callback not in says.callbacks:
            addresses.append(0)
            continue
        try:
            function = _wrapped(numba, getattr(plugin, callback), signature)
        except numba.core.errors.NumbaError as error:
            raise AqmlabError(
                f"{says.name}: numba cannot compile {callback}: {str(error).strip()}"
            ) from None
        _KEPT.append(function)
        addresses.append(int(function.address))
    return addresses


def _wrapped(numba: Any, callback: Callable[..., Any], signature: Any) -> Any:  # noqa: ANN401
    """A C function around a callback."""
    # Functions of the user's module that a callback calls are compiled as well.
    namespace = dict(callback.__globals__)

    def jitted(function: types.FunctionType) -> Any:  # noqa: ANN401
        copied = types.FunctionType(function.__code__, namespace, function.__name__)
        return numba.njit(copied, error_model="numpy")

    for name, item in list(namespace.items()):
        if isinstance(item, types.FunctionType) and item.__globals__ is callback.__globals__:
            namespace[name] = jitted(item)
    assert isinstance(callback, types.FunctionType)
    inner = jitted(callback)

    def call(own: Any, event: Any) -> int:  # noqa: ANN401
        answer = inner(numba.carray(own, 1)[0], numba.carray(event, 1)[0])
        return _NOTHING if answer is None else answer

    return numba.cfunc(signature, error_model="numpy")(call)
