"""``aqmlab init``: a first scenario of one's own."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from enum import Enum
from pathlib import Path
from textwrap import indent

import click

from aqmlab._util.console import out
from aqmlab._util.files import write_text
from aqmlab._util.shipped import SHIPPED
from aqmlab.cli.options import Link as LinkName
from aqmlab.errors import AqmlabError
from aqmlab.scenario.access import plans_of
from aqmlab.scenario.libreqos import read_access
from aqmlab.scenario.named_links import NamedLink, named_link
from aqmlab.scenario.quantities import parsed_rates, parsed_rtt
from aqmlab.scenario.starter import LINKS, StarterLink, next_commands, scenario_text

__all__ = ["command"]


class _StarterKind(str, Enum):
    """The kinds of links."""

    office = "office"
    home = "home"
    data_centre = "data-centre"
    lab = "lab"
    fairness = "fairness"
    isp = "isp"


def command(
    file: Path | None = None,
    *,
    kind: _StarterKind | None = None,
    link_name: LinkName = None,
    rate: str | None = None,
    rtt: str | None = None,
    users: int | None = None,
    controls: str | None = None,
    plans: str | None = None,
    network: Path | None = None,
    circuits: Path | None = None,
    names: bool = False,
    fit: bool = False,
    wifi: int | None = None,
    call: bool | None = None,
    upload: bool | None = None,
    force: bool = False,
) -> None:
    """Write a first scenario of your own link, with comments.

    Without options, the command asks a few questions on a terminal. The kinds office and home have
    a call and an upload; --no-call and --no-upload remove these.

    Options:
        file (FILE): Scenario file to write; default: KIND.toml, or LINK.toml with --link.
        kind: Kind of network and users; default: office.
        rate (DOWN/UP): Download and upload rate in Mbit/s, such as 100/20, or with a unit, such as
            "1 Gbit/s".
        rtt (MS): Round-trip time without queueing, such as 30 (in ms) or "100 us".
        users (N): Number of people. Other kinds count workers (data-centre), long transfers (lab),
            transfers of each control (fairness) or subscribers (isp).
        controls (A,B): With --kind fairness: congestion controls that share the link; default:
            cubic,bbr3.
        plans (PLANS): With --kind isp: rates of each plan, and its share of the subscribers;
            default: 100/20:0.6,500/50:0.4.
        network (FILE): With --kind isp: network.json of LibreQoS.
        circuits (FILE): With --kind isp: ShapedDevices.csv of LibreQoS.
        names (--names): Keep the names of nodes in network.json. By default, numbers replace them.
        fit (--fit): Compute assured (guaranteed) rates that all nodes can get at the same time.
            Ignore the assured rates in --network and --circuits.
        wifi (N): With --kind home or office: number of devices on Wi-Fi. One of them is far from
            the access point.
        call (--call/--no-call): Add a voice call.
        upload (--upload/--no-upload): Add a long upload, such as a backup.
        force (--force): Replace the file if it exists.
    """
    chosen = kind or _StarterKind.office
    if controls is not None and chosen is not _StarterKind.fairness:
        raise AqmlabError("--controls: is for --kind fairness; give both")
    if chosen is not _StarterKind.isp and (plans or network or circuits or names or fit):
        raise AqmlabError("--plans, --network, --circuits, --names, --fit: are for --kind isp")
    if wifi is not None and chosen not in (_StarterKind.home, _StarterKind.office):
        raise AqmlabError("--wifi: is for --kind home and --kind office; give one of them")
    named = None if link_name is None else _named(link_name, chosen, rate=rate, rtt=rtt)
    options = (kind, rate, rtt, users, wifi, call, upload, link_name)
    asked = all(option is None for option in options) and _is_terminal()
    if asked:
        chosen = _StarterKind(
            _asked(
                "What is the link? office, home, data-centre, lab, fairness or isp", chosen.value
            )
        )
    target = file or Path(f"{link_name or chosen.value}.toml")
    if os.path.lexists(target) and not force:
        raise AqmlabError(f"{target}: is there already; choose another name, or --force")
    link = LINKS[chosen.value]
    if asked:
        link = _questioned(link)
    else:
        forward, reverse = parsed_rates(rate) if rate else (link.forward_bps, link.reverse_bps)
        link = replace(
            link,
            forward_bps=forward,
            reverse_bps=reverse,
            rtt_s=parsed_rtt(rtt) if rtt else link.rtt_s,
            users=link.users if users is None else users,
            wifi=wifi,
            call=link.call if call is None else call,
            upload=link.upload if upload is None else upload,
            controls=link.controls if controls is None else _listed(controls),
        )
    if named is not None:
        forward, reverse = named.rates_bps
        link = replace(
            link, named=named, rtt_s=named.rtt_s, forward_bps=forward, reverse_bps=reverse
        )
    if chosen is _StarterKind.isp:
        link = _with_subscribers(link, plans, (network, circuits), names=names, fit=fit)
    name = shlex.quote(str(target))
    write_text(target, scenario_text(link, name))
    for trace in named.traces if named else ():
        copied = target.parent / trace
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SHIPPED / "scenarios" / trace, copied)
        out(f"trace: {copied}")
    out(f"scenario: {target}")
    out("Next:")
    for text in next_commands(link, name):
        out(indent(text, "  "))


def _named(name: str, kind: _StarterKind, *, rate: str | None, rtt: str | None) -> NamedLink:
    """The link of ``--link``, which has rates and a round trip of its own."""
    for given, value in (("--rate", rate), ("--rtt", rtt)):
        if value is not None:
            raise AqmlabError(f"{given}: found one beside --link, which has its own; give either")
    if kind is _StarterKind.isp:
        raise AqmlabError("--link: found one beside --kind isp, whose link is a tree of rates")
    return named_link(name)


def _with_subscribers(
    link: StarterLink,
    plans: str | None,
    files: tuple[Path | None, Path | None],
    *,
    names: bool,
    fit: bool,
) -> StarterLink:
    """The link with the tree of its subscribers, of plans or of LibreQoS's files."""
    rates = (link.forward_bps, link.reverse_bps)
    network, circuits = files
    if network is None and circuits is None:
        if names or fit:
            raise AqmlabError("--names, --fit: are for --network and --circuits")
        access = plans_of(plans or "100/20:0.6,500/50:0.4", link.users, rates)
        return replace(link, access=access)
    if network is None or circuits is None or plans is not None:
        raise AqmlabError("--network, --circuits: give both, and no --plans")
    access = read_access(network, circuits, rates, names=names, fit=fit)
    for warning in access.warnings:
        click.echo(f"warning: {warning}", err=True)
    what = f"An access network of {access.subscribers} subscribers"
    return replace(link, what=what, access=access, users=access.hosts)


def _listed(controls: str) -> tuple[str, ...]:
    """The congestion controls between commas: two at least."""
    found = tuple(name.strip() for name in controls.split(","))
    if len(found) < 2 or not all(found):
        raise AqmlabError(f'--controls: found "{controls[:80]}"; expected two or more, cubic,bbr3')
    return found


def _is_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _asked(question: str, default: str) -> str:
    """An answer in words; the default if it is empty. Kinds are asked for until one is known."""
    while True:
        answer = str(click.prompt(question, default=default, err=True)).strip()
        if default not in LINKS or answer in LINKS:
            return answer
        click.echo(f"There are {', '.join(LINKS)}.", err=True)


def _questioned(link: StarterLink) -> StarterLink:
    """The link as its owner describes it."""
    both = f"{link.forward_bps / 1e6:g}/{link.reverse_bps / 1e6:g}"
    forward, reverse = parsed_rates(_asked("Download/upload in Mbit/s", both))
    rtt_s = parsed_rtt(_asked("Round-trip time in ms", f"{link.rtt_s * 1e3:g}"))
    noun = link.what.partition("{users} ")[2]
    return replace(
        link,
        forward_bps=forward,
        reverse_bps=reverse,
        rtt_s=rtt_s,
        users=int(click.prompt(f"How many {noun}", default=link.users, type=int, err=True)),
        call=click.confirm("A voice call beside them", default=link.call, err=True),
        upload=click.confirm("A long upload", default=link.upload, err=True),
    )
