"""``aqmlab live ...``: the live bed."""

from __future__ import annotations

import typer

from aqmlab import _native
from aqmlab._util.console import out, print_json
from aqmlab.cli.options import Json

__all__ = ["app"]


app = typer.Typer(no_args_is_help=True)


@app.callback()
def _live() -> None:
    """The live bed: the same scenarios on this machine's kernel."""


@app.command("clean")
def _live_clean_command(as_json: Json = False) -> None:
    """Remove the network namespaces that killed live runs left behind."""
    removed = _native.live_clean()
    if as_json:
        print_json(removed)
        return
    out("\n".join(f"removed: {name}" for name in removed) or "nothing to remove")
