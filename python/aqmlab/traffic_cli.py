"""The sub-commands ``aqmlab traffic ...``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aqmlab import vary
from aqmlab.console import out, show
from aqmlab.describe import EXAMPLES, SECONDS, describe, example
from aqmlab.errors import ScenarioError
from aqmlab.scenario import Override, Scenario

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def traffic() -> None:
    """Where traffic comes from, and what it is like."""


@app.command("describe")
def describe_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help=f"A scenario file, or a kind: {', '.join(EXAMPLES)}."
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Replaces a field, such as traffic.0.rate='200 /s'; may be repeated.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random stream.")] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, max=1e6, help="Seconds that the source is played.")
    ] = SECONDS,
    figure: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Figure (.svg, .png, .pdf, .html)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Show what a source of traffic asks for.

    It is played on an ideal network, which loses nothing and where bytes take no time but the round
    trip. Quantiles, tail indices (Hill), and how long it remembers (Hurst parameter, from the
    logscale diagram of the Haar wavelet).
    """
    from aqmlab import describe_views, figures

    pairs = [vary.assignment(text, "--set") for text in overrides or []]
    if seed is not None:
        pairs.append(("seed", str(seed)))
    found = describe(opened(source, pairs), seconds)
    if figure is not None:
        figures.save(describe_views.describe_figure(found), figure)
    if as_json:
        out(json.dumps([description.to_json() for description in found], indent=2))
        return
    for description in found:
        show(*describe_views.describe_tables(description))
    if figure is not None:
        out(f"figure: {figure}")


def opened(source: str, overrides: list[Override]) -> Scenario:
    """The scenario of a file, or of a kind of traffic."""
    if source in EXAMPLES:
        return example(source, overrides)
    if not Path(source).exists() and not source.endswith(".toml"):
        known = ", ".join(EXAMPLES)
        raise ScenarioError(f"SOURCE: found {source!r}; expected a scenario file or one of {known}")
    return Scenario.load(source, overrides)
