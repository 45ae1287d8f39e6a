"""A report as one web page that needs no network."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2
import vl_convert

from aqmlab._util.files import write_text
from aqmlab._util.places import cache_folder
from aqmlab.document.html import environment as document
from aqmlab.document.html import style
from aqmlab.errors import AqmlabError
from aqmlab.figures.palette import PALETTE
from aqmlab.reports import charts
from aqmlab.reports.charts import Style, address, stills, stroke
from aqmlab.reports.data import PACKETS
from aqmlab.reports.page import SECTIONS

if TYPE_CHECKING:
    from aqmlab.reports.content import Report

__all__ = ["page"]


_TIP_LINES = 12
"""Most curves that a tooltip lists."""


def page(report: Report, playground: str | None = None) -> str:
    """The report as HTML; scenarios that fit are linked to the playground at this address."""
    environment = document("aqmlab.reports")
    environment.filters |= {"tojson": _compact, "address": address}
    script = environment.get_template("report.js").render()
    single = not report.parts
    live = _live_charts(report) if single else {}
    parts = [
        environment.get_template("report.part.html").render(
            report=part,
            prefix=prefix,
            single=single,
            strokes=_strokes(part),
            pictures=_pictures(part),
        )
        for prefix, part in _prefixed(report)
    ]
    return environment.get_template("report.html").render(
        title=report.title,
        report=report,
        parts=parts,
        prefix="",
        playground=playground,
        sections=_sections(report),
        strokes=_strokes(report),
        charts=live,
        style=style(environment),
        script=_bundle(script) if live else "",
        licences=environment.get_template("vega-licences.txt").render(),
    )


def _prefixed(report: Report) -> list[tuple[str, Report]]:
    """The report of each scenario and what its addresses inside the page begin with."""
    if not report.parts:
        return [("", report)]
    return [(f"s{number}-", part) for number, part in enumerate(report.parts, 1)]


def _sections(report: Report) -> list[tuple[str, str]]:
    """Addresses and names of what the page consists of."""
    own = [entry for entry in SECTIONS.items() if _present(report, entry[0])]
    if not report.parts:
        return own
    parts = [(f"{prefix}part", part.title) for prefix, part in _prefixed(report)]
    return [*parts, *(entry for entry in own if entry[0] in ("fidelity", "method"))]


def _strokes(report: Report) -> dict[str, dict[str, str]]:
    """The style of each configuration's curves."""
    return {name: stroke(report.places[name]) for name in report.drawn}


@cache
def _bundle(script: str) -> str:
    """A script together with the libraries that it needs; kept, for it takes a second to make."""
    made_by = f"{vars(vl_convert)['__version__']}\n{script}"
    file = cache_folder() / f"bundle-{hashlib.sha256(made_by.encode()).hexdigest()[:32]}.js"
    with suppress(OSError, ValueError):
        digest, _, kept = file.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(kept):  # else it is damaged, and made again
            return kept
    found = vl_convert.javascript_bundle(script)
    with suppress(AqmlabError):  # a home that cannot be written is no reason to have no report
        write_text(file, f"{_digest(found)}\n{found}")
    return found


def _digest(script: str) -> str:
    """The first line of a kept script: the hash of all that follows it."""
    return f"// sha256 {hashlib.sha256(script.encode()).hexdigest()}"


def _compact(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
    """JSON without spaces that a script element may hold."""
    return jinja2.utils.htmlsafe_json_dumps(value, separators=(",", ":"))


def _present(report: Report, section: str) -> bool:
    """Whether a section has something to show."""
    shown = {
        "differences": report.differences,
        "responses": report.distributions,
        "queues": report.traces,
        "pictures": report.pictures or None,
        "reasons": report.reasons,
        "fidelity": report.fidelity,
    }
    return section not in shown or shown[section] is not None


def _live_charts(report: Report) -> dict[str, Any]:
    """The charts that the page's script draws, with their data; empty without any."""
    style = Style(report.drawn, live=True, among=[*report.places])
    content: dict[str, Any] = {}
    if found := report.distributions:
        content |= {"limit": found.limit, "traffic": found.traffic}
        for spec, name, steps in (
            (charts.cdf(found, style), "cdf", "after"),
            (charts.ccdf(found, style), "ccdf", "before"),
        ):
            data = spec["datasets"]["rows"]
            content[name] = {"spec": _without_data(spec), "rows": data, "steps": steps, "unit": "%"}
    if traced := report.traces:
        kinds = {"queue": PACKETS, "inner": None}
        content["traces"] = {
            "rows": charts.trace_rows(traced.traces),
            "probability": {trace.group: trace.variable for trace in traced.probabilities},
        } | {
            kind: {"spec": _without_data(charts.trace(traced, style, name)), "steps": "near"}
            for kind, name in kinds.items()
        }
    if not content:
        return {}
    return {**content, "names": report.drawn, "lines": _TIP_LINES, "light": PALETTE["light"]}


def _without_data(spec: dict[str, Any]) -> dict[str, Any]:
    """A definition whose data stand elsewhere in the page."""
    return {key: value for key, value in spec.items() if key != "datasets"}


def _pictures(report: Report) -> dict[str, str]:
    """The charts as pictures, for readers without scripts, as data addresses."""
    nothing = dict.fromkeys(("cdf", "ccdf", "queue", "probability"), "")
    return nothing | {name: address(still) for name, still in stills(report).items()}
