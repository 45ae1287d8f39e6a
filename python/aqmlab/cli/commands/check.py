"""``aqmlab check``: the properties of native algorithms, asked of one's own; packet scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import click

from aqmlab import plugins
from aqmlab._util.console import out, print_json, show
from aqmlab._util.table import TableModel
from aqmlab.cli.build import Opt
from aqmlab.cli.options import Json
from aqmlab.errors import AqmlabError, PluginError, ScenarioError
from aqmlab.plugins.files import kinds_of
from aqmlab.validation.properties import check, check_trace

__all__ = ["command"]

_RATE = "10 Mbit/s"
_SCRIPTS = (".pkt", ".script")


def command(
    files: list[Path],
    *,
    parameters: list[str] | None = None,
    trace: Path | None = None,
    rate: Annotated[
        str | None,
        Opt("RATE", f"Link rate for --trace, without link-layer overhead; default: {_RATE}."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test your own queue or control, or the TCP of aqmlab.

    In small simulations, every packet must depart, be dropped or wait. A queue must not exceed its
    limit, and must mark only ECN-capable packets. Two runs with the same seed must write the same
    bytes. With --trace, the plug-in must also make the decisions in the trace.

    To test the TCP of aqmlab, use packet scripts in the format of packetdrill. For each script, the
    command prints PASS, FAIL, or why it cannot check the script.

    Options:
        files (FILE...): The plug-in (.py or .so), or packet scripts (.pkt or .script).
        parameters (--set KEY=VALUE): Set a parameter of the plug-in. May be repeated.
        trace (TRACE): CSV file with packet arrivals and the expected decisions.
    """
    if any(file.suffix in _SCRIPTS for file in files):
        _check_scripts(files, bool(parameters or trace or rate), as_json)
        return
    if len(files) > 1:
        raise AqmlabError(f"FILE: found {len(files)} plug-ins; expected one, or packet scripts")
    (file,) = files
    if rate is not None and trace is None:
        raise AqmlabError("--rate: is the rate of --trace; give both")
    names = plugins.load(file)
    settings: Mapping[str, object] = dict(_pair(text) for text in parameters or [])
    kinds = [(kind, name) for kind, name in kinds_of(file) if name in names]
    try:
        found = {name: check(kind, name, settings) for kind, name in kinds}
        if trace is not None:
            for kind, name in kinds:
                found[name].append(check_trace(kind, name, settings, trace, rate or _RATE))
    except ScenarioError as error:
        raise _of_options(error, settings) from None
    if as_json:
        print_json({name: [vars(it) for it in asked] for name, asked in found.items()})
    else:
        for name, asked in found.items():
            out(name)
            for it in asked:
                out(f"  {'holds' if it.holds else 'FAILS'}: {it.name} ({it.found})")
    if broken := [name for name, asked in found.items() if not all(it.holds for it in asked)]:
        raise PluginError(f"{file}: {', '.join(broken)} lacks a property, see above")


def _check_scripts(files: Sequence[Path], has_options: bool, as_json: bool) -> None:
    """Packet scripts against the simulator's TCP; the exit status is 1 if one fails."""
    from aqmlab.validation import packetdrill

    if other := [file for file in files if file.suffix not in _SCRIPTS]:
        raise AqmlabError(f"FILE: found {other[0]} beside packet scripts; expected .pkt or .script")
    if has_options:
        raise AqmlabError("--set, --trace, --rate: are of plug-ins; packet scripts take none")
    found = [packetdrill.check(file) for file in files]
    if as_json:
        print_json([one.row() for one in found])
    else:
        texts = ("line", "expected, or why not", "found")
        table = TableModel("", ["script", "verdict"], texts=texts)
        for one in found:
            line = "" if one.line is None else str(one.line)
            table.add_row(
                one.file, one.verdict, line, one.expected or one.why or "", one.found or ""
            )
        show(table)
    if any(one.verdict == packetdrill.FAIL for one in found):
        raise click.exceptions.Exit(1)


def _of_options(error: ScenarioError, settings: Mapping[str, object]) -> AqmlabError:
    """What is wrong with a field, by the option that it comes from."""
    path, _, rest = str(error).partition(": ")
    place, _, key = path.rpartition(".")
    if key in settings or place.endswith((".discipline", ".congestion_control")):
        return AqmlabError(f"--set: {key}: {rest}")
    return AqmlabError(f"--rate: {rest}") if path == "topology.bottleneck.rate" else error


def _pair(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals:
        raise AqmlabError(f"--set: found {text}; expected KEY=VALUE")
    try:
        return key, float(value) if set(value) & set(".eE") else int(value)
    except ValueError:
        return key, {"true": True, "false": False}.get(value, value)
