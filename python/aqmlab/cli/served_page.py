"""The built playground: where it is, what it begins with, and a server for this machine alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aqmlab._util.shipped import SHIPPED
from aqmlab.cli.planning import load
from aqmlab.errors import AqmlabError
from aqmlab.reports.playground import fragment
from aqmlab.results.run import Run

__all__ = ["PAGE", "folder", "fragment_of", "serving"]


PAGE = SHIPPED / "playground"
"""Where the package has the page; in a checkout ``make playground`` puts it there."""
_LOOPBACK = "127.0.0.1"


def folder() -> Path:
    """The folder of the page.

    Raises:
        AqmlabError: this installation was made without it.
    """
    if not (PAGE / "index.html").is_file():
        raise AqmlabError(
            "the playground is not part of this installation; in a clone of aqmlab `make "
            "playground` builds it, which needs Node, and `make wheel` then includes it"
        )
    return PAGE


def fragment_of(place: Path, sets: Sequence[str], link: str | None = None) -> str:
    """What follows the ``#`` of the page's address for a scenario file or a run directory.

    Raises:
        AqmlabError: the page cannot show its packets.
    """
    if place.is_dir():
        given = "--set" if sets else "--link" if link is not None else None
        if given is not None:
            raise AqmlabError(
                f"{given}: a scenario file takes it; {place} is a run that is finished"
            )
        data = Run.open(place).scenario
    else:
        data = load(place, sets, None, link).data
    found = fragment(data)
    if found is None:
        raise AqmlabError(
            f"{place}: the playground cannot show it: a lane is one bottleneck with classes named "
            'transfers-1, transfers-2, web, call and video, as "Open as scenario" saves them; '
            "docs/playground.md describes them"
        )
    return found


class _Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each on standard error."""

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - of the base class
        """Says nothing."""


@contextmanager
def serving(files: Path, port: int) -> Iterator[tuple[ThreadingHTTPServer, str]]:
    """A server of a folder that this machine alone can reach, and its address.

    Args:
        files: the folder.
        port: where it listens; 0 for a free one.

    Raises:
        AqmlabError: the port is taken.
    """
    handler = partial(_Quiet, directory=str(files))
    try:
        server = ThreadingHTTPServer((_LOOPBACK, port), handler)
    except OSError as error:
        raise AqmlabError(
            f"--port: cannot listen at {port}: {error.strerror}; leave it out for a free port"
        ) from None
    with server:
        yield server, f"http://{_LOOPBACK}:{server.server_address[1]}/"
