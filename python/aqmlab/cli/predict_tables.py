"""The prediction of a capture on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aqmlab._util.table import TableModel
from aqmlab.scenario.quantities import loads_text, rate_text
from aqmlab.traffic.capture_files import notes_in_words
from aqmlab.traffic.foreseen import METRICS, Foreseen

__all__ = ["content", "ratio_table", "self_test_table", "sentences"]


_TESTED = {
    "t50": "response time, median",
    "t90": "response time, 90 %",
    "delay": "queueing delay of both directions, 95 %",
}


def sentences(found: Foreseen) -> Iterator[str]:
    """What was read, and what is known of the link."""
    passed = found.inferred.passed
    down, up = found.inferred.rates
    yield from notes_in_words(found.inferred.segments.notes)
    yield (
        f"{len(found.inferred.segments):,} TCP segments in {found.inferred.seconds:,.0f} s; "
        f"{100 * passed.judged:.0f} % of the bytes are judged (TCP "
        f"{100 * (passed.judged - passed.quic_share):.0f} %, QUIC {100 * passed.quic_share:.0f} %)"
    )
    yield f"the tap is {found.inferred.tap}"
    for way, rate in (("down", down), ("up", up)):
        known = (
            f"{rate_text(rate.bps)} {way}: {rate.why}" if rate.is_proven else f"{way}: {rate.why}"
        )
        yield known
    yield from found.assumed
    yield f"captured: {loads_text(*passed.loads_bps)}"
    if found.replayed:
        again = loads_text(found.replayed["load_down"], found.replayed["load_up"])
        yield f"replayed behind {found.present.kind}: {again}"


def self_test_table(found: Foreseen) -> TableModel:
    """The capture beside the replay behind the present queue."""
    title = f"self-test behind {found.present.kind}"
    heads = ("captured ms", "replayed ms", "factor")
    table = TableModel(title, ["metric"], heads, name="self-test")
    for key, label in _TESTED.items():
        right, value = found.captured[key], found.replayed[key]
        factor = f"{value / right:.2f}" if right else "-"
        table.add_row(label, f"{1e3 * right:,.0f}", f"{1e3 * value:,.0f}", factor)
    return table


def ratio_table(found: Foreseen) -> TableModel:
    """New over old for each queue and metric, with the band and one word."""
    table = TableModel("predicted: new over old", name="prediction")
    table.add_key("queue")
    table.add_key("metric")
    for head in ("old ms", "new ms", "ratio", "band"):
        table.add_number(head)
    table.add_key("verdict")
    for queue, metrics in found.ratios.items():
        for key, one in metrics.items():
            old, new = (f"{1e3 * value:,.1f}" for value in (one.old, one.new))
            band = f"{one.low:.2f} to {one.high:.2f}"
            table.add_row(queue, METRICS[key], old, new, f"{one.ratio:.2f}", band, one.verdict)
    return table


def content(found: Foreseen) -> dict[str, Any]:
    """Everything as JSON."""
    inferred = found.inferred
    taps = ("behind" if one else "before" for one in inferred.behind)
    rates = dict(zip(("down", "up"), inferred.rates, strict=True))
    return {
        "capture": str(inferred.capture),
        "verdict": "nothing to gain" if found.nothing_to_gain else "predicted",
        "why": found.nothing_to_gain or None,
        "rate": {way: one.bps / 1e6 if one.is_proven else None for way, one in rates.items()},
        "rate_known_by": {way: one.why for way, one in rates.items()},
        "tap": dict(zip(("down", "up"), taps, strict=True)),
        "judged_share": inferred.passed.judged,
        "quic_share": inferred.passed.quic_share,
        "present": None if found.nothing_to_gain else found.present.kind,
        "captured": dict(found.captured),
        "replayed": dict(found.replayed),
        "assumed": list(found.assumed),
        "queues": {
            queue: {key: one.to_json() for key, one in metrics.items()}
            for queue, metrics in found.ratios.items()
        },
        "band_parts": dict(found.parts),
        "left_out": list(found.left_out),
    }
