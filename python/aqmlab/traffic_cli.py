"""The sub-commands ``aqmlab traffic ...``."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def traffic() -> None:
    """Where traffic comes from, and what it is like."""
