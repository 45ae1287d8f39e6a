"""What a script's commands, options and sysctls make of profile ``linux``.

A sysctl has a key of the profile, changes nothing that an end point shows, or makes the script not
applicable.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from aqmlab.validation.packetdrill.language import (
    Command,
    Event,
    LanguageError,
    NotApplicableError,
    Source,
)
from aqmlab.validation.packetdrill.packets import Packet

__all__ = ["CONTROLS", "System", "settings_of", "system_of"]

IPV4_HEADERS = 40
STAMPS_LENGTH = 12
"""Bytes of time stamps in every segment."""
DEFAULT_MSS = 536
"""Of a peer that states none (RFC 9293, section 3.7.1)."""
CONTROLS = {"cubic": "cubic", "reno": "reno", "bbr": "bbr1", "dctcp": "dctcp"}
"""Our congestion controls by the kernel's names."""
LARGEST_SCRIPT = 100_000
"""Characters of a shell script that a script names."""
SHELL = re.compile(r"#[^\n]*|\\\n")
FIELD = re.compile(r"(?:net[./]ipv4[./])?(?P<name>tcp_\w+)|(?P<other>[\w./]+)")
QUIET = (">", "/dev/null", "2>", "2>&1", "&1", "&")
UNPACED = ("pfifo", "pfifo_fast", "bfifo", "noqueue", "fq_codel", "noop")
LITTLE = {
    "tcp_rmem", "tcp_wmem", "tcp_mem", "tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save",
    "tcp_fastopen", "tcp_fastopen_key", "tcp_fastopen_blackhole_timeout_sec",
    "tcp_syncookies", "tcp_min_tso_segs", "tcp_tso_win_divisor", "tcp_tso_rtt_log",
    "tcp_limit_output_bytes", "tcp_notsent_lowat", "tcp_fack", "tcp_max_syn_backlog",
    "tcp_fin_timeout", "tcp_tw_reuse", "tcp_moderate_rcvbuf", "tcp_adv_win_scale",
    "tcp_pacing_ss_ratio", "tcp_pacing_ca_ratio", "tcp_autocorking", "tcp_early_demux",
    "tcp_keepalive_time", "tcp_keepalive_intvl", "tcp_keepalive_probes", "tcp_syn_retries",
    "tcp_synack_retries", "tcp_stdurg", "tcp_invalid_ratelimit", "tcp_challenge_ack_limit",
    "tcp_max_reordering", "tcp_rfc1337", "tcp_shrink_window", "tcp_workaround_signed_windows",
    "tcp_available_congestion_control", "tcp_allowed_congestion_control",
    "tcp_orphan_retries", "tcp_max_orphans", "tcp_max_tw_buckets",
}  # fmt: skip
"""Sysctls that change nothing which a script can see here."""
ONLY = {
    "tcp_recovery": ("1",),
    "tcp_reordering": ("3",),
    "tcp_mtu_probing": ("0",),
    "tcp_abort_on_overflow": ("0",),
    "tcp_retries1": ("3",),
    "tcp_retries2": ("15",),
    "tcp_retrans_collapse": ("0", "1"),
    "tcp_thin_linear_timeouts": ("0",),
    "tcp_app_win": ("31",),
    "tcp_ecn_fallback": ("0", "1"),
    "tcp_ecn_option_beacon": ("3",),
    "tcp_backlog_ack_defer": ("0", "1"),
    "tcp_syn_linear_timeouts": ("4",),
}
"""Sysctls of which the profile has these values alone."""
SWITCHES = {
    "tcp_sack": "sack",
    "tcp_timestamps": "timestamps",
    "tcp_window_scaling": "window_scaling",
}
"""Sysctls that switch what a handshake offers."""
KEYS: dict[str, dict[str, dict[str, str]]] = {
    "tcp_dsack": {"0": {"dsack": "false"}, "1": {"dsack": "true"}},
    "tcp_frto": {"0": {"frto": '"off"'}, "1": {"frto": '"linux"'}, "2": {"frto": '"linux"'}},
    "tcp_slow_start_after_idle": {
        "0": {"restart_after_idle": "false"},
        "1": {"restart_after_idle": "true"},
    },
    "tcp_early_retrans": {
        "0": {"tail_loss_probe": '{ kind = "off" }'},
        "3": {},
        "4": {},
    },
    "tcp_comp_sack_nr": {"0": {"sack_compression": ""}, "44": {}},
    "tcp_ecn_option": {
        "0": {"accecn_option": "false"},
        "1": {"accecn_option": "true"},
        "2": {"accecn_option": "true"},
        "3": {"accecn_option": "true"},
    },
}
"""Keys of the profile by a sysctl and its value."""


TIMES = {
    "tcp_rto_min_us": ("rto_min", "us"),
    "tcp_rto_max_ms": ("rto_max", "ms"),
    "tcp_comp_sack_delay_ns": ("sack_compression", "ns"),
}
"""Keys that are times, by a sysctl, and its unit."""


@dataclass
class System:
    """The machine that a script asks for."""

    keys: dict[str, str] = field(default_factory=lambda: {"sack_compression": '"1 ms"'})
    """Keys of the profile and their values in TOML. Kernels compress reports of gaps by default."""
    ecn: int = 2
    """The sysctl: the kernel's default takes what a peer asks for."""
    sack: bool = True
    timestamps: bool = True
    window_scaling: bool = True
    tolerance: int = 4000
    """Microseconds."""
    tolerance_percent: float = 12.5
    ticks: int = 0
    """Microseconds of a tick of time stamps; 0: their values are not looked at."""
    mtu: int = 1500
    max_segment: int | None = None
    """What an application allows (TCP_MAXSEG)."""

    def mss(self) -> int:
        """The largest segment that this end announces."""
        mss = self.mtu - IPV4_HEADERS
        return mss if self.max_segment is None else min(mss, self.max_segment)


def switch(line: int, name: str, value: str) -> bool:
    """The value of a sysctl that switches something."""
    if value not in ("0", "1"):
        raise NotApplicableError(line, f"{name} = {value}: only 0 and 1 are modelled")
    return value == "1"


def set_sysctl(system: System, line: int, name: str, value: str) -> None:
    """A sysctl is set."""
    if name in LITTLE:
        return
    if name in SWITCHES:
        setattr(system, SWITCHES[name], switch(line, name, value))
    elif name == "tcp_ecn":
        system.ecn = int(one_of(line, name, value, "012345"))
    elif name == "tcp_congestion_control":
        set_control(system, line, value)
    elif name in ONLY:
        one_of(line, name, value, ONLY[name])
    elif name in KEYS:
        for key, text in KEYS[name][one_of(line, name, value, KEYS[name])].items():
            if text:
                system.keys[key] = text
            else:
                system.keys.pop(key, None)
    elif name in TIMES:
        if not re.fullmatch(r"[1-9]\d{0,11}", value):
            raise NotApplicableError(line, f"{name} = {value}: only numbers above 0 are modelled")
        key, unit = TIMES[name]
        system.keys[key] = f'"{value} {unit}"'
    else:
        raise NotApplicableError(line, f"sysctl {name}: the profile has no key for it")


def one_of(line: int, name: str, value: str, known: Iterable[str]) -> str:
    """The value of a sysctl, which must be one of these."""
    if value in known:
        return value
    raise NotApplicableError(line, f"{name} = {value}: only {' or '.join(known)} is modelled")


def set_control(system: System, line: int, name: str) -> None:
    """The congestion control by its kernel's name."""
    if name not in CONTROLS:
        known = ", ".join(CONTROLS)
        raise NotApplicableError(line, f"congestion control {name}: known are {known}")
    system.keys["congestion_control"] = f'"{CONTROLS[name]}"'
    if name == "bbr":
        system.keys.setdefault("pacing", '"control"')


# ---- commands of a shell ----


def words_of(line: int, text: str) -> Iterator[tuple[int, list[str]]]:
    """The commands of a shell script: their lines and words."""
    lines = SHELL.sub(" ", text).split("\n")
    for number, content in enumerate(lines, start=line):
        for one in re.split(r"&&|;|\|\|", content):
            try:
                found = shlex.split(re.sub(r"\$\(\([^()]*\)\)", "1", one))
            except ValueError:
                raise NotApplicableError(number, f"command {one.strip()[:60]!r}") from None
            kept = [word for word in found if word not in QUIET and not word.startswith("2>")]
            if kept:
                yield number, kept


def run(system: System, command: Command, folder: Path | None, deep: bool = False) -> None:
    """Does what the commands of a script's beginning do."""
    for number, words in words_of(command.line, command.text):
        line = command.line if deep else number
        name = Path(words[0]).name
        if name == "sysctl":
            for word in words[1:]:
                set_word(system, line, word)
        elif name == "ip" and words[1:2] == ["tcp_metrics"]:
            continue
        elif name == "ip" and words[1:3] in (
            ["route", "replace"],
            ["route", "change"],
            ["route", "add"],
            ["ro", "replace"],
        ):
            set_route(system, line, words[3:])
        elif name == "tc" and "qdisc" in words:
            set_qdisc(system, line, words)
        elif name in ("ethtool", "nstat", "modprobe", "echo", "true", "sync", "exit"):
            continue
        elif name.endswith(".sh") and not deep and folder is not None:
            run_file(system, line, folder, words[0])
        else:
            shown = " ".join(words)[:60]
            raise NotApplicableError(line, f"command {shown!r} has no meaning here")


def run_file(system: System, line: int, folder: Path, name: str) -> None:
    """Does what a shell script beside the packet script does; nothing of it is run."""
    path = folder / name
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise NotApplicableError(line, f"command {name}: there is no such text file") from None
    if len(text) > LARGEST_SCRIPT:
        raise NotApplicableError(line, f"command {name}: the file is too long")
    run(system, Command(line, text), folder, deep=True)


def set_word(system: System, line: int, word: str) -> None:
    """A word of a ``sysctl`` command."""
    if word.startswith("-"):
        return
    field_name, equals, value = word.partition("=")
    found = FIELD.fullmatch(field_name.strip())
    if not equals or found is None:
        raise NotApplicableError(line, f"sysctl {word[:60]}: only KEY=VALUE is modelled")
    if found["name"]:
        set_sysctl(system, line, found["name"], value.strip())
    elif found["other"] == "net.core.default_qdisc":
        set_qdisc(system, line, ["root", value.strip()])
    elif not found["other"].startswith("net.core."):
        raise NotApplicableError(line, f"sysctl {found['other']}: the profile has no key for it")


def set_route(system: System, line: int, words: list[str]) -> None:
    """Values of a route."""
    values = dict(pairwise(words))
    for name, key, pattern, form in (
        ("initcwnd", "initial_window", r"[1-9]\d{0,3}", "{}"),
        ("rto_min", "rto_min", r"[1-9]\d{0,6}(ms|s|us)", '"{}"'),
        ("mtu", "mtu", r"[1-9]\d{0,4}", "{}"),
    ):
        if name not in values:
            continue
        value = values[name]
        if not re.fullmatch(pattern, value):
            raise NotApplicableError(line, f"{name} {value}: this value is not modelled")
        if name == "mtu":
            system.mtu = int(value)
        else:
            system.keys[key] = form.format(re.sub(r"([a-z]+)$", r" \1", value))
    if lacking := set(values) & {"advmss", "cwnd", "ssthresh", "initrwnd", "congctl", "quickack"}:
        raise NotApplicableError(line, f"{min(lacking)} of a route is not modelled")


def set_qdisc(system: System, line: int, words: list[str]) -> None:
    """A queue discipline: ``fq`` paces, the simple ones do nothing."""
    kinds = [word for word in words if word in (*UNPACED, "fq")]
    if not kinds or "netem" in words or "del" in words:
        shown = " ".join(words)[:60]
        raise NotApplicableError(line, f"queue discipline {shown!r} is not modelled")
    if kinds[-1] == "fq":
        system.keys["pacing"] = '"linux"'
    elif system.keys.get("pacing") == '"linux"':
        del system.keys["pacing"]


# ---- options of packetdrill ----


def positive(line: int, name: str, value: str) -> float:
    """The value of an option that is a number."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        raise LanguageError(line, f"--{name}: found {value[:40]!r}; expected a number")
    return float(value)


def set_option(system: System, line: int, name: str, value: str) -> None:
    """An option in the head of a script."""
    numbers: dict[str, Callable[[float], None]] = {
        "tolerance_usecs": lambda number: setattr(system, "tolerance", int(number)),
        "tolerance_percent": lambda number: setattr(system, "tolerance_percent", number),
        "tcp_ts_tick_usecs": lambda number: setattr(system, "ticks", int(number)),
        "mtu": lambda number: setattr(system, "mtu", int(number)),
    }
    if name in numbers:
        numbers[name](positive(line, name, value))
    elif name == "ip_version":
        if value != "ipv4":
            raise NotApplicableError(line, f"--ip_version={value}: only ipv4 is modelled")
    elif name not in (
        "speed",
        "bind_port",
        "connect_port",
        "local_ip",
        "remote_ip",
        "gateway_ip",
        "netmask_ip",
        "code_format",
        "code_sockopt",
        "verbose",
        "v",
        "debug",
        "mss",
        "send_omit_free",
    ):
        raise NotApplicableError(line, f"--{name}: this option is not modelled")
    if system.ticks not in (0, 1000):
        raise NotApplicableError(line, f"--{name}={value}: time stamps here are of 1000 us")
    if not 100 <= system.mtu <= 65_535:
        raise NotApplicableError(line, f"--{name}={value}: packets of 100 to 65535 bytes only")


def system_of(source: Source, folder: Path | None) -> System:
    """The machine that a script asks for before its first event.

    Raises:
        NotApplicableError: There is no such machine here.
    """
    system = System()
    for name, value in source.options.items():
        set_option(system, source.option_lines[name], name, value)
    for command in source.commands:
        run(system, command, folder)
    return system


# ---- the profile ----


def peer_of(events: tuple[Event, ...]) -> Packet | None:
    """The first SYN or SYN-ACK that arrives."""
    for event in events:
        if isinstance(event.what, Packet) and not event.what.outbound and "S" in event.what.flags:
            return event.what
    return None


def settings_of(system: System, events: tuple[Event, ...], asks: bool) -> dict[str, str]:
    """Keys of the profile in TOML; ``asks``: this end opens the connection."""
    peer = peer_of(events)
    options = peer.options if peer else None
    stamps = system.timestamps and (options is None or options.stamps is not None)
    theirs = DEFAULT_MSS if options is None or options.mss is None else options.mss
    mss = min(system.mss(), theirs) - (STAMPS_LENGTH if stamps else 0)
    keys = dict(system.keys)
    keys["mss"] = f'"{max(mss, 1)} bytes"'
    keys["timestamps"] = "true" if system.timestamps else "false"
    if not stamps:
        # Without time stamps an ACK of what was sent again is no sample, and a fourth block fits.
        keys["backoff_ends_with"] = '"sample"'
        keys["sack_blocks"] = "4"
    accurate = system.ecn in ((3,) if asks else (3, 4, 5))
    classic = system.ecn in ((1, 4) if asks else (1, 2))
    keys["ecn"] = "true" if accurate or classic else "false"
    if accurate:
        keys["ecn_echo"] = '"accurate"'
    return keys
