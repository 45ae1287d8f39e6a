"""The examples in the docstrings of what `import aqmlab` offers, as they stand there."""

from __future__ import annotations

import doctest
from collections.abc import Iterator

import aqmlab
import pytest

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def examples(name: str) -> Iterator[doctest.DocTest]:
    """Those of a public name and, if it is a class, of its methods."""
    for found in doctest.DocTestFinder().find(getattr(aqmlab, name), f"aqmlab.{name}", globs={}):
        if found.examples:
            yield found


# Errors are shown where they arise.
NAMES = [name for name in aqmlab.__all__ if not name.endswith("Error")]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    found = list(examples(name))
    assert found, f"{name} has no example"
    failures: list[str] = []
    for example in found:
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)
