"""``aqmlab playground``: the simulator in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aqmlab._util.console import out, say
from aqmlab.cli.build import Opt
from aqmlab.cli.options import Link, Sets

__all__ = ["command"]


def command(
    scenario: Path | None = None,
    sets: Sets = None,
    link: Link = None,
    port: Annotated[
        int, Opt("N", "Port on this machine. 0 selects a free port.", least=0, most=65535)
    ] = 0,
    *,
    browser: bool = True,
) -> None:
    """Open the playground in the browser: queues side by side.

    Only this machine can reach the address of the page. Ctrl-C ends the command. --link replaces
    the bottleneck and the round-trip times of the scenario.

    Options:
        scenario (SCENARIO): Scenario file (TOML) or run directory to begin with; default: a
            step-by-step story about bufferbloat.
        browser (--browser/--no-browser): Open the browser, or only print the address.
    """
    import webbrowser

    from aqmlab.cli.served_page import folder, fragment_of, serving
    from aqmlab.reports.playground import fragment_of_link

    there = folder()  # fail before the work, not after it
    fragment = None
    if scenario is not None:
        fragment = fragment_of(scenario, sets or [], link)
    elif link is not None:
        fragment = fragment_of_link(link)
    with serving(there, port) as (server, address):
        whole = address if fragment is None else f"{address}#{fragment}"
        out(whole)
        if browser and not webbrowser.open(whole):
            say("found no browser; open the address above in one on this machine")
        server.serve_forever()
