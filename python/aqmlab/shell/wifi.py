"""Wi-Fi between a link and a program: its keys, and which stations there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab._util.lazy import tomllib
from aqmlab.errors import AqmlabError
from aqmlab.scenario.scenario import Override

__all__ = ["ShellWifi"]

_STATIONS = "wifi.stations"
_PHY = "wifi.phy"
_OTHERS = 3
"""Devices of the users beside a program."""
_NEAR: Mapping[str, Mapping[str, object]] = {
    "11a": {"rate": "54 Mbit/s"},
    "vht80": {"mcs": 9, "streams": 2},
    "he80": {"mcs": 11, "streams": 2},
}
"""What a device near the access point sends with."""
_NEAR_HT: Mapping[str, object] = {"mcs": 15}


@dataclass(frozen=True)
class ShellWifi:
    """Wi-Fi behind a link, whose stations are the program and the users beside it."""

    content: Mapping[str, Any] | None = None
    """That of a scenario; None: the program's device and those of others, all of them near."""
    source: str = "--wifi"
    """Where it comes from, as errors have it."""
    clients: int = 10
    """Client hosts of the scenario."""
    sets: tuple[Override, ...] = ()
    """Keys that have other values."""

    def __post_init__(self) -> None:
        sets = [(path.removeprefix("topology."), value) for path, value in self.sets]
        object.__setattr__(self, "sets", tuple(sets))
        for path, _ in self.sets:
            if not path.startswith("wifi."):
                raise AqmlabError(
                    f'--set: found "{path[:40]}"; expected a key of topology.wifi, such as '
                    "wifi.queue=fifo"
                )

    def topology(self, program: str, users: Sequence[str]) -> dict[str, object]:
        """What a scenario's topology has besides its bottleneck.

        Args:
            program: the class that stands for the program.
            users: the classes beside it.
        """
        stations = self._stations(program, users)
        wifi = {**(self.content or {}), "stations": stations}
        count = sum(it["count"] if isinstance(it.get("count"), int) else 1 for it in stations)
        return {"wifi": wifi, "hosts": {"clients": max(self.clients, count)}}

    def _stations(self, program: str, users: Sequence[str]) -> list[dict[str, Any]]:
        """The stations of these classes: those whose class stays away stay away, too."""
        values = dict(self.sets)
        if _STATIONS in values:
            return _read(values[_STATIONS])
        if self.content is None:
            near = dict(_NEAR.get(values.get(_PHY, "").strip("\"'"), _NEAR_HT))
            own = {"count": 1, **near, "class": program}
            return [own, {"count": _OTHERS, **near}] if users else [own]
        present = (None, program, *users)
        stations = [it for it in self.content["stations"] if it.get("class") in present]
        if not any(it.get("class") in (None, program) for it in stations):
            raise AqmlabError(
                f"{self.source}: topology.wifi.stations: found none for the program; expected "
                "stations without a class, or --set 'wifi.stations=[{ mcs = 15 }]'"
            )
        return stations


def _read(text: str) -> list[dict[str, Any]]:
    """Stations as TOML."""
    try:
        found = tomllib.loads(f"stations = {text}")["stations"]
    except tomllib.TOMLDecodeError:
        found = None
    if not (isinstance(found, list) and found and all(isinstance(it, dict) for it in found)):
        raise AqmlabError(
            f"--set wifi.stations: found {text[:60]}; expected tables such as "
            "[{ mcs = 15 }, { count = 2, mcs = 0 }]"
        )
    return found
