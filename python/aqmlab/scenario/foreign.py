"""What other programs say of a queue or a host, as a discipline or a stack in TOML.

Lines of ``tc``, the configuration of SQM, and dumps of ``sysctl`` are read. What has no counterpart
is named, never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError, ScenarioError
from aqmlab.scenario.foreign_hosts import stack
from aqmlab.scenario.foreign_queues import Reading, discipline, is_line
from aqmlab.scenario.scenario import Scenario, inline

__all__ = ["Foreign", "foreign"]


_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Foreign:
    """What a text of another program says."""

    kind: str
    """``tc``, ``sqm`` or ``sysctl``."""
    toml: str
    """Lines of a scenario."""
    without: tuple[str, ...] = ()
    """What of the text has no counterpart."""
    notes: tuple[str, ...] = field(default=())
    """What is to be known of the lines."""

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return asdict(self)


def foreign(text: str) -> Foreign | None:
    """Reads ``tc: ...``, ``sqm: ...`` or ``sysctl: ...``, or a file of one of them; None: neither.

    Raises:
        AqmlabError: it says that it is one of them, and cannot be read as that.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind.strip() in _READERS:
        kind = kind.strip()
        rest = rest.strip()
        if "\n" not in rest and len(rest) < 4096 and rest and Path(rest).is_file():
            rest = _text_of(Path(rest))
        return _READERS[kind](rest)
    if "\n" not in text and len(text) < 4096 and Path(text).is_file():
        content = _text_of(Path(text))
        for name, looks in _LOOKS.items():
            if looks.search(content):
                return _READERS[name](content)
        raise AqmlabError(
            f"{text}: found neither lines of tc (qdisc ...), nor a configuration of SQM, nor a "
            "dump of sysctl (net.ipv4.tcp_... = ...)"
        )
    return None


def _table(table: Mapping[str, object]) -> str:
    """An inline table of TOML."""
    return f"{{ {', '.join(f'{key} = {inline(value)}' for key, value in table.items())} }}"


def _check(kind: str, *, discipline: str = '"droptail-24"', tcp: str = '"linux"') -> None:
    """Raises an error if no scenario takes what was read."""
    try:
        Scenario.from_toml(_FRAME.format(discipline, tcp))
    except ScenarioError as error:
        raise AqmlabError(f"{kind}: {error}") from None


_FRAME = """title = "a line"
[measure]
duration = "1 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "10 Mbit/s"
discipline = {}
[[traffic]]
kind = "bulk"
flows = 1
tcp = {}
rtt = {{ kind = "constant", rtt = "30 ms" }}
"""


def _text_of(file: Path) -> str:
    """A file's text."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise AqmlabError(f"{file}: has {file.stat().st_size:,} bytes; expected 1 MiB at most")
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise AqmlabError(f"{file}: cannot be read: {error.strerror or error}") from None


def _tc(text: str) -> Foreign:
    """Lines of ``tc qdisc show`` or ``tc -s qdisc``, or of ``tc qdisc add``."""
    lines = [line.strip() for line in text.splitlines() if is_line(line)]
    if not lines and text.strip():
        lines = [text.strip().splitlines()[0]]
    if not lines:
        raise AqmlabError("tc: found no line; expected one such as qdisc fq_codel ... limit 10240p")
    shown, without, notes = [], [], []
    for line in lines:
        found = discipline(line)
        where = f" of {found.device}" if found.device and len(lines) > 1 else ""
        if found.table:
            _check("tc", discipline=_table(found.table))
            shown.append(f"{_comment(found, len(lines))}discipline = {_table(found.table)}")
        if found.rate:
            shown.append(f'rate = "{found.rate}"')
        without += [f"{word}{where}" for word in found.without]
        notes += [note for note in found.notes if note not in notes]
    return Foreign("tc", "\n".join(shown), tuple(without), tuple(notes))


def _comment(found: Reading, lines: int) -> str:
    """Whose queue a line is, where there are several."""
    return f"# {found.device or found.name}\n" if lines > 1 else ""


_OPTION = re.compile(
    r"""^\s*(?:option\s+|sqm\.[^=\s]*?\.)?(?P<key>[a-z_]+)(?:\s+|\s*=\s*)(?P<value>.+?)\s*$""", re.M
)
_QDISCS = {
    "piece_of_cake.qos": ("cake", "besteffort"),
    "layer_cake.qos": ("cake", "diffserv3"),
    "simple.qos": ("fq_codel", ""),
    "simplest.qos": ("fq_codel", ""),
    "simplest_tbf.qos": ("fq_codel", ""),
}
"""Scripts of SQM: the queue they are made for, and its tins."""
_SILENT = {"enabled", "interface", "debug_logging", "verbosity", "qdisc_advanced", "config",
           "qdisc_really_really_advanced", "linklayer_advanced", "queue"}  # fmt: skip
"""Keys that say nothing about a queue."""
_LAYERS = {"none": None, "ethernet": "none", "atm": "atm", "adsl": "atm", "ptm": "ptm"}


def _sqm(text: str) -> Foreign:
    """The configuration of SQM: ``/etc/config/sqm`` or ``uci show sqm``."""
    values = {
        one["key"]: one["value"].strip("'\"")
        for one in _OPTION.finditer(re.sub(r"\s+option\s+", "\noption ", text))
    }
    if not values.keys() & {"download", "upload", "qdisc", "script"}:
        raise AqmlabError(
            "sqm: found no download, upload, qdisc or script; expected lines such as "
            "option download '85000'"
        )
    script = values.get("script", "")
    meant, tins = _QDISCS.get(script, ("", ""))
    name = values.get("qdisc") or meant or "fq_codel"
    used = {"download", "upload", "qdisc", "script"} | _SILENT
    without = [f"script {script}"] if script and not meant else []
    notes = []
    shown = ["[topology.bottleneck]"]
    for way, rate_key, options, ecn_key, target in (
        ("forward", "download", "iqdisc_opts", "ingress_ecn", "itarget"),
        ("reverse", "upload", "eqdisc_opts", "egress_ecn", "etarget"),
    ):
        words = [name]
        if name == "cake" and tins:
            words.append(tins)
        words += values.get(options, "").split()
        if name == "cake":
            if "overhead" in values:
                words += ["overhead", values["overhead"]]
            if values.get("tcMPU", values.get("tcmpu", "0")) != "0":
                words += ["mpu", values.get("tcMPU", values.get("tcmpu", "0"))]
            layer = values.get("linklayer", "none")
            if layer not in _LAYERS:
                known = ", ".join(_LAYERS)
                raise AqmlabError(f"sqm: linklayer: found {layer!r}; expected {known}")
            words += [{"atm": "atm", "ptm": "ptm"}.get(_LAYERS[layer] or "", "noatm")]
            used |= {"overhead", "linklayer", ecn_key}
        elif ecn_key in values:
            words.append("ecn" if values[ecn_key].upper() == "ECN" else "noecn")
        if values.get(target, "auto") != "auto" and name != "cake":
            words += ["target", values[target]]
        used |= {options, ecn_key, target}
        found = discipline("qdisc " + " ".join(words))
        _check("sqm", discipline=_table(found.table))
        shown.append(f"\n[topology.bottleneck.{way}]")
        kbit = values.get(rate_key, "0")
        if not kbit.isdigit():
            raise AqmlabError(f"sqm: {rate_key}: found {kbit!r}; expected kbit/s, such as 85000")
        if int(kbit):
            shown.append(f'rate = "{int(kbit)} kbit/s"')
        else:
            notes.append(f"{rate_key} is 0: SQM shapes nothing there; state the link's rate")
        shown.append(f"discipline = {_table(found.table)}")
        without += found.without
        notes += [note for note in found.notes if note not in notes]
    without += [f"{key} {value}" for key, value in values.items() if key not in used]
    notes.append("the rates are those of SQM's shaper, which then is the bottleneck")
    return Foreign("sqm", "\n".join(shown), tuple(dict.fromkeys(without)), tuple(notes))


def _sysctl(text: str) -> Foreign:
    """A dump of ``sysctl -a``, or some lines of it."""
    values = dict(_settings(text))
    if not values:
        raise AqmlabError("sysctl: found no setting; expected lines such as net.ipv4.tcp_sack = 1")
    table, without, notes = stack(values)
    _check("sysctl", tcp=_table(table))
    return Foreign("sysctl", f"tcp = {_table(table)}", tuple(without), tuple(notes))


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Names and values; ``;`` parts them as lines do."""
    for line in re.split(r"[\n;]", text):
        line = line.strip()  # noqa: PLW2901 - the same line
        if not line or line.startswith(("#", "sysctl:")):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise AqmlabError(f'sysctl: found "{line[:60]}"; expected NAME = VALUE')
        yield name.strip().replace("/", "."), value.strip()


_READERS: Mapping[str, Callable[[str], Foreign]] = {"tc": _tc, "sqm": _sqm, "sysctl": _sysctl}
_LOOKS = {
    "tc": re.compile(r"^\s*(qdisc|tc qdisc) ", re.M),
    "sqm": re.compile(r"^\s*(option\s+(download|qdisc|script)\b|sqm\.)", re.M),
    "sysctl": re.compile(r"^\s*net[./][a-z0-9_./]+\s*=", re.M),
}
"""How their lines look."""
