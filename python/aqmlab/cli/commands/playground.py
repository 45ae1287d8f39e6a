"""``aqmlab playground``: the simulator in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab._util.console import out, say
from aqmlab.cli.options import Sets

__all__ = ["command"]


def command(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario file (TOML) or run directory that the page begins with; default: the "
            "first story.",
            show_default=False,
        ),
    ] = None,
    sets: Sets = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, metavar="N", help="Port of this machine; 0 is a free one."),
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open the browser, or print the address only."),
    ] = True,
) -> None:
    """Open the playground in the browser: queues side by side.

    The command prints the page's address, which only this machine can reach. Ctrl-C ends it.
    """
    import webbrowser

    from aqmlab.cli.served_page import folder, fragment_of, serving

    there = folder()  # fail before the work, not after it
    fragment = None if scenario is None else fragment_of(scenario, sets or [])
    with serving(there, port) as (server, address):
        whole = address if fragment is None else f"{address}#{fragment}"
        out(whole)
        if browser and not webbrowser.open(whole):
            say("found no browser; open the address above in one on this machine")
        server.serve_forever()
