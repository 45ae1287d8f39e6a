"""What became of programs behind queues, in lines and in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aqmlab._util.table import TableModel
from aqmlab.results.formats import format_estimate
from aqmlab.results.metrics import ALL, look_up
from aqmlab.results.run import Run
from aqmlab.results.statistics import estimate
from aqmlab.scenario.quantities import rate_text
from aqmlab.shell.link import PROGRAM, FileLink, Link
from aqmlab.shell.notes import controls, refusals, trust, ways_out
from aqmlab.shell.program import ProgramOutcome

__all__ = ["ending", "series_table", "summary_lines"]


_WAYS = ("down", "up")
_OF_TESTS: tuple[tuple[str, Callable[[Mapping[str, Any]], float | None], float], ...] = (
    ("RPM", lambda test: test.get("rpm"), 1.0),
    ("UDP p95 ms", lambda test: look_up(test, ("probes", "UDP BE", "p95_s")), 1e3),
)
"""What a table shows of built-in tests: its head, what it is, and its scale."""


_OF_LINKS = (
    ("throughput_bps", 1e-6, "{:.2f}"),
    ("sojourn_p95_s", 1e3, "{:.1f}"),
    ("loss_rate", 1e2, "{:.2f}"),
)
"""What a table shows of each direction of a link: its key, its scale and its form."""


def ending(outcome: ProgramOutcome) -> str:
    """How a program ended, and when."""
    end = "was ended" if outcome.status is None else f"ended with status {outcome.status}"
    return f"{end} after {outcome.took_s:.2f} s"


def series_table(series: Mapping[str, Sequence[ProgramOutcome]]) -> TableModel:
    """A row for each queue: the program's time, and what the link did, with intervals.

    The numbers are of the valid runs; of all runs of a queue that has no valid one.
    """
    counts = {len(outcomes) for outcomes in series.values()}
    each = f", {max(counts)} runs each; ± is half of the 95 % interval" if max(counts) > 1 else ""
    [first, *_] = [outcome.run for found in series.values() for outcome in found]
    down, up = controls(first)
    senders = f"; senders use {down}" if down == up else f"; senders use {down} down, {up} up"
    measured = [f"{way} {what}" for way in _WAYS for what in ("Mbit/s", "p95 ms", "lost %")]
    has_wifi = "wifi" in first.summary["links"]
    measured += [f"Wi-Fi {way} p95 ms" for way in _WAYS if has_wifi]
    tests = [outcome.run.summary.get("test", {}) for found in series.values() for outcome in found]
    shown = [(head, key, factor) for head, key, factor in _OF_TESTS if any(map(key, tests))]
    title = f"queues beside each other{each}{senders}"
    numbers = ("time s", *measured, *(head for head, _, _ in shown), "valid")
    table = TableModel(title, ["queue"], numbers)
    for name, outcomes in series.items():
        counted = [outcome for outcome in outcomes if not outcome.run.invalid] or outcomes
        runs = [outcome.run for outcome in counted]
        cells = [_mean([outcome.took_s for outcome in counted], "{:.2f}")]
        for way in ("forward", "reverse"):
            ways = [run.summary["links"]["bottleneck"][way] for run in runs]
            for key, factor, form in _OF_LINKS:
                values = [factor * it[key] for it in ways if it[key] is not None]
                cells.append(_mean(values, form))
        for way in _WAYS if has_wifi else ():
            waits = [run.summary["links"]["wifi"][way]["sojourn_p95_s"] for run in runs]
            cells.append(_mean([1e3 * it for it in waits if it is not None], "{:.1f}"))
        for _, of, scale in shown:
            found = [of(run.summary.get("test", {})) for run in runs]
            cells.append(_mean([scale * it for it in found if it is not None], "{:.0f}"))
        valid = sum(not outcome.run.invalid for outcome in outcomes)
        cells.append(f"{valid} of {len(outcomes)}")
        table.add_row(name, *cells)
    return table


def _mean(values: Sequence[float], form: str) -> str:
    """The mean of some values, which are not negative, with its interval."""
    write: Callable[[float], str] = form.format
    if not values:
        return "-"
    if len(set(map(write, values))) == 1:
        return write(values[0])
    return format_estimate(estimate(values, bounds=(0.0, float("inf"))), write)


def summary_lines(
    outcome: ProgramOutcome, link: Link | FileLink, name: str, words: Sequence[str]
) -> list[str]:
    """Some lines: what was run, what each direction saw, how far to trust it, and where it is."""
    run = outcome.run
    directions = [run.summary["links"]["bottleneck"][way] for way in ("forward", "reverse")]
    flows = run.summary["flows"][PROGRAM]
    rows = [("", "down", "up")]
    rows.append(("goodput", _rate(flows["goodput_bps"]), _rate(flows["upload_goodput_bps"])))
    rows += [
        (label, shown(directions[0]), shown(directions[1]))
        for label, shown in (
            ("rate", lambda it: f"{_rate(it['throughput_bps'])} ({it['utilization']:.0%})"),
            ("queueing", _queueing),
            ("lost", _lost),
            ("marked", lambda it: _count(it["marked_packets"], it["mark_rate"])),
        )
    ]
    rows += _on_air(run)
    rows.append(("control", *controls(run)))
    width = max(len(down) for _, down, _ in rows)
    return [
        f"{name} {ending(outcome)}: {link}",
        *(f"  {label:<8} {down:<{width}}  {up}".rstrip() for label, down, up in rows),
        *_beside(run),
        *_tested(run),
        *_outside(run),
        *refusals(run, words),
        f"  {_health(run)}",
        *(f"  {'':<8} {line}" for line in ways_out([run])),
        f"  run directory: {run.path}",
    ]


def _on_air(run: Run) -> list[tuple[str, str, str]]:
    """What both directions of the air did, if there is Wi-Fi."""
    links = run.summary["links"].get("wifi")
    if links is None:
        return []
    stations = run.summary["wifi"].values()

    def on_air(way: str) -> str:
        share = sum(it[way]["airtime_share"] for it in stations)
        sent = sum(it[way]["transmissions"] for it in stations)
        return f"{share:.0%} of the time, {sent} transmissions"

    down, up = (links[way] for way in _WAYS)
    return [
        ("Wi-Fi", _queueing(down), _queueing(up)),
        ("", _lost_on_air(down), _lost_on_air(up)),
        ("", on_air("down"), on_air("up")),
    ]


def _beside(run: Run) -> list[str]:
    """What the users beside the program got, a line for each class."""
    lines = []
    for name, flows in run.summary["flows"].items():
        if name in (PROGRAM, ALL):
            continue
        responses = run.summary["responses"][name]
        if responses["count"]:
            text = f"{responses['count']} responses, p50 {responses['p50_s']:.2f} s"
        elif flows["datagrams_sent"]:
            lost = flows["datagram_loss_rate"]
            text = f"{flows['datagrams_sent']} datagrams, {lost:.2%} lost"
        else:
            text = f"goodput {_rate(flows['goodput_bps'])}"
        lines.append(f"{name}: {text}")
    head = ["beside", *[""] * (len(lines) - 1)]
    return [f"  {word:<8} {line}" for word, line in zip(head, lines, strict=False)]


def _tested(run: Run) -> list[str]:
    """What a built-in test found, if it was one."""
    test = run.summary.get("test")
    if test is None:
        return []
    lines = [f"failed: {why}" for why in test["failed"][:3]]
    for kind, probe in test.get("probes", {}).items():
        text = f"{kind}: {probe['count']} probes"
        if probe["p50_s"] is not None:
            times = [1e3 * probe[key] for key in ("p50_s", "p95_s", "p99_s")]
            text += ", p50 {:.1f}, p95 {:.1f}, p99 {:.1f} ms".format(*times)
        lines.append(text + (f", {probe['lost']} lost" if probe["lost"] else ""))
    if test.get("rpm") is not None:
        shown = "RPM {rpm:.0f} (probes {probe_rpm:.0f}, load {load_rpm:.0f})"
        lines.insert(0, shown.format_map(test))
    if "goodput_down_bps" in test:
        down, up = (rate_text(round(test[f"goodput_{way}_bps"], -3)) for way in ("down", "up"))
        lines.insert(0, f"goodput {down} down, {up} up")
    head = ["test", *[""] * (len(lines) - 1)]
    return [f"  {word:<8} {line}" for word, line in zip(head, lines, strict=True)]


def _outside(run: Run) -> list[str]:
    """What the gateway met beyond the link, if the program could reach anything there."""
    met = run.summary["live"].get("outside")
    if met is None:
        return []
    text = f"{met['connections']} connections"
    if met["connections"]:
        times = (1e3 * met["connect_p50_s"], 1e3 * met["connect_max_s"])
        text += " made in {:.1f} ms (p50), {:.1f} ms at most".format(*times)
    for key, what in (
        ("refused", "refused"),
        ("unreachable", "not reached"),
        ("datagram_flows", "flows of datagrams"),
    ):
        if met[key]:
            text += f", {met[key]} {what}"
    return [f"  outside  {text}"]


def _rate(bps: float) -> str:
    """A rate with three digits."""
    return rate_text(float(f"{bps:.3g}"))


def _queueing(direction: dict[str, Any]) -> str:
    """How long packets were in the queue; two directions fit into 80 columns."""
    shown = [
        f"{word} {_ms(direction[key])}"
        for word, key in (
            ("p50", "sojourn_p50_s"),
            ("p95", "sojourn_p95_s"),
            ("max", "sojourn_max_s"),
        )
        if direction[key] is not None
    ]
    return f"{' '.join(shown)} ms" if shown else "no packet"


def _ms(seconds: float) -> str:
    """Milliseconds with a digit behind the point below a hundred, as a queue's tables have them."""
    return f"{1e3 * seconds:.{int(seconds < 0.09995)}f}"


def _lost(direction: dict[str, Any]) -> str:
    """Packets that the queue dropped, and that the link lost."""
    text = _count(direction["dropped_packets"], direction["loss_rate"])
    if lost := direction["wire_lost_packets"]:
        text += f", {lost} on the wire"
    return text


def _lost_on_air(direction: dict[str, Any]) -> str:
    """Packets that the queues of the air dropped, and that were given up."""
    text = f"lost {_count(direction['dropped_packets'], direction['loss_rate'])}"
    if lost := direction["wire_lost_packets"]:
        text += f", {lost} given up"
    return text


def _count(packets: int, share: float | None) -> str:
    """Packets, and their share."""
    return f"{packets} packets ({share or 0.0:.2%})"


def _health(run: Run) -> str:
    """Whether the run is valid, and why it is not."""
    if run.invalid:
        return trust(run)
    late = max(it["late_p99_s"] for it in run.summary["live"]["router"].values())
    return f"{trust(run)}: 99 of 100 packets left within {1e3 * late:.2f} ms of their time"
