"""The options of ``aqmlab shell`` that say what the link is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from aqmlab.cli.build import Opt, refuse_beside
from aqmlab.cli.options import Link as LinkName
from aqmlab.errors import AqmlabError
from aqmlab.scenario import vary
from aqmlab.scenario.named_links import named_link
from aqmlab.scenario.quantities import parsed_rates, parsed_rtt, parsed_time, time_text
from aqmlab.scenario.scenario import Scenario
from aqmlab.shell.link import FileLink, Link, trace_rate_bps
from aqmlab.shell.mahimahi import read
from aqmlab.shell.wifi import ShellWifi

__all__ = ["LinkOptions"]

_RATE = "20/2"
_RATE_BEFORE_WIFI = "1000/1000"


@dataclass(frozen=True, kw_only=True)
class LinkOptions:
    """What the link is.

    Options:
        scenario (FILE): Use the bottleneck of this scenario. --queue replaces the queue. --beside
            with the same FILE adds the users of the scenario.
        rate (DOWN/UP): Download and upload rate in Mbit/s. A single number sets both. Default:
            20/2.
        down (RATE|FILE): Rate of the download, or a trace file of mahimahi.
        up (RATE|FILE): Rate of the upload, or a trace file.
        rtt (TIME): Round-trip time without queueing, in ms; default: 20 ms.
        queue (QUEUE,...): Queue of both directions: a name from `aqmlab list disciplines` or
            `aqmlab list presets`, NAME:BUFFER, or a TOML table; default: droptail. With several
            queues the program runs once with each, and a table compares the runs.
        queue_down (QUEUE): Queue of the download only.
        queue_up (QUEUE): Queue of the upload only.
        buffer (SIZE): Buffer size of the queues: '100 packets', '64 kB', '250 ms' or '2 bdp'
            (bandwidth-delay products). Default: the queue's own size, or 1 bdp if it has none.
        loss (SHARE): Probability of a random loss in each direction: 0.01 is 1 %.
        jitter (TIME): Add a random delay of at most TIME to each packet in each direction. Packets
            keep their order.
        mm (--mm): Accept the arguments of mahimahi's mm-delay and mm-link before the program, such
            as: --mm mm-delay 20 mm-link up.trace down.trace --downlink-queue=codel -- PROGRAM.
        wifi (--wifi): Add Wi-Fi (802.11n, 20 MHz) after the link. The program is a device near the
            access point. The users of --beside have three other devices. The default of --rate is
            then 1000/1000.
    """

    scenario: Path | None = None
    link_name: LinkName = None
    rate: str | None = None
    down: str | None = None
    up: str | None = None
    rtt: str | None = None
    queue: list[str] | None = None
    queue_down: str | None = None
    queue_up: str | None = None
    buffer: str | None = None
    loss: float = 0.0
    jitter: str = "0 ms"
    mm: bool = False
    wifi: bool = False
    sets: Annotated[
        list[str] | None,
        Opt(
            "FIELD=VALUE",
            "Change a field of topology.wifi, such as wifi.queue=fifo. May be repeated.",
            "--set",
        ),
    ] = None

    def read(self, words: Sequence[str] | None) -> tuple[Sequence[str] | None, LinkOptions]:
        """The program's words and the link, where the first words may be those of mahimahi."""
        if not self.mm:
            return words, self
        of_queues = {"--queue": self.queue, "--queue-down": self.queue_down}
        of_queues |= {"--queue-up": self.queue_up, "--buffer": self.buffer}
        others = {"--link": self.link_name, "--scenario": self.scenario}
        refuse_beside({**self._of_rates(), **of_queues, **others}, "--mm", "whose words say it")
        line = read(words or [])
        rtt = self.rtt or (None if line.rtt_s is None else time_text(line.rtt_s))
        options: dict[str, Any] = line.options()
        return line.program, replace(self, rtt=rtt, **options)

    def links(self) -> dict[str, Link] | dict[str, FileLink]:
        """The links that are asked for, by the names of their queues."""
        rtt_s = None if self.rtt is None else parsed_rtt(self.rtt)
        if self.link_name is None and self.scenario is None:
            return self._made(rtt_s)
        if self.link_name is not None and self.scenario is not None:
            raise AqmlabError("--link: found one beside --scenario; give either")
        return self._of_file("--link" if self.scenario is None else "--scenario", rtt_s)

    def _of_file(self, option: str, rtt_s: float | None) -> dict[str, FileLink]:
        """The link of a scenario, or one that has a name: with its queue, or each of some others.

        Args:
            option: what it comes from.
            rtt_s: its round trip, if not that of its delays.
        """
        loss = {"--loss": self.loss or None}
        refuse_beside({**self._of_rates(), **loss}, option, "whose link says it")
        if self.buffer is not None and not (self.queue or self.queue_down or self.queue_up):
            raise AqmlabError(
                f"--buffer: found one beside {option}, whose queue says it; expected --queue, too"
            )
        if self.scenario is None:
            named = named_link(self.link_name or "")
            content, file = named.scenario(), Path(named.name)
            rtt_s = named.rtt_s if rtt_s is None else rtt_s
        else:
            content, file = Scenario.load(self.scenario), self.scenario
        names = self._queues() if self.queue else [None]
        jitter_s = self._jitter_s()
        return {
            name or file.stem: FileLink.of(
                content,
                file,
                rtt_s,
                jitter_s,
                self.queue_down or name,
                self.queue_up or name,
                self.buffer,
                self._wifi(content, file),
            )
            for name in names
        }

    def _made(self, rtt_s: float | None) -> dict[str, Link]:
        """The link that options alone make, with each of some queues."""
        rates = parsed_rates(self.rate or (_RATE_BEFORE_WIFI if self.wifi else _RATE))
        down_bps, trace_down = _way("--down", "forward", self.down, rates[0])
        up_bps, trace_up = _way("--up", "reverse", self.up, rates[1])
        jitter_s = self._jitter_s()
        return {
            name: Link(
                down_bps=down_bps,
                up_bps=up_bps,
                rtt_s=Link.rtt_s if rtt_s is None else rtt_s,
                jitter_s=jitter_s,
                loss=self.loss,
                queue_down=self.queue_down or name,
                queue_up=self.queue_up or name,
                buffer=self.buffer,
                trace_down=trace_down,
                trace_up=trace_up,
                wifi=self._wifi(),
            )
            for name in self._queues()
        }

    def _of_rates(self) -> dict[str, object]:
        """What is given of rates and traces."""
        return {"--rate": self.rate, "--down": self.down, "--up": self.up}

    def _queues(self) -> list[str]:
        """The queues that are asked for, each once, as far as the directions leave a choice."""
        if not self.queue:
            return [Link.queue_down]
        try:
            found = [name for text in self.queue for name in vary.split(text)]
        except AqmlabError:
            raise AqmlabError(
                f'--queue: found "{self.queue[0][:40]}", where a name is missing'
            ) from None
        for name in found:
            if found.count(name) > 1:
                raise AqmlabError(f"--queue: found {name[:40]} twice; --repeat runs it again")
        if len(found) > 1 and self.queue_down and self.queue_up:
            raise AqmlabError(
                "--queue: found several beside --queue-down and --queue-up; leave out one of these"
            )
        return found

    def _jitter_s(self) -> float:
        """The jitter in seconds."""
        seconds = parsed_time(self.jitter, "--jitter", "ms")
        if seconds > 10.0:
            raise AqmlabError(f'--jitter: found "{self.jitter[:40]}"; expected at most 10 s')
        return seconds

    def _wifi(self, scenario: Scenario | None = None, file: Path | None = None) -> ShellWifi | None:
        """The Wi-Fi behind a link: that of a scenario, or one that is asked for."""
        sets = tuple(vary.assignment(text, "--set") for text in self.sets or [])
        topology = scenario.data["topology"] if scenario is not None else {}
        own = topology.get("wifi")
        if own is not None and self.wifi:
            raise AqmlabError(f"--wifi: found it beside {file}, whose topology.wifi says it")
        if own is not None:
            return ShellWifi(own, str(file), topology["hosts"]["clients"], sets)
        if self.wifi:
            return ShellWifi(sets=sets)
        for path, _ in sets:
            raise AqmlabError(
                f'--set: found "{path[:40]}" without Wi-Fi; expected --wifi, or a scenario '
                "with topology.wifi"
            )
        return None


def _way(
    option: str, direction: str, text: str | None, rate_bps: float
) -> tuple[float, Path | None]:
    """The rate of a direction in bits per second, and its trace if it has one."""
    if text is None:
        return rate_bps, None
    if Path(text).is_file():
        return trace_rate_bps(Path(text), direction), Path(text)
    try:
        return parsed_rates(text)[0], None
    except AqmlabError:
        raise AqmlabError(
            f'{option}: found "{text[:40]}", which is no file; expected one, or a rate in Mbit/s'
        ) from None
