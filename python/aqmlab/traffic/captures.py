"""From a capture to connection vectors: what the applications did, without the network."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aqmlab import _native
from aqmlab._util.files import check_output_file, size_of
from aqmlab.errors import AqmlabError
from aqmlab.traffic.capture_files import unpacked

__all__ = ["from_capture"]


def from_capture(
    capture: Path,
    output: Path,
    *,
    idle: str = "500 ms",
    timeout: str = "10 min",
    partial: str = "keep",
    layout: str = "original",
    outside: Path | None = None,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Writes the TCP connections of a capture as connection vectors and returns a report.

    The file appears under its name when it is complete.

    Args:
        capture: capture file: pcap or pcapng.
        output: file of the connection vectors.
        idle: longest pause within one application data unit. A longer pause begins a new unit.
        timeout: end a connection that sends nothing for longer than this time.
        partial: keep or drop connections without their start, their end or one direction.
        layout: text format of the vectors. Tmix has two formats.
        outside: where connections go that were opened from beyond the link, if there are any.
        progress: called with the share that is done.
    """
    size = size_of(capture, "capture")
    check_output_file(output)

    def on_progress(done: int) -> None:
        if progress and size:
            progress(min(done / size, 1.0))

    settings = (idle, timeout, partial, layout)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with (
            unpacked(capture) as plain,
            tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder,
        ):
            part, beyond = Path(folder) / "vectors", Path(folder) / "outside"
            text = _native.vectors_from_capture(
                str(plain),
                str(part),
                folder,
                settings,
                str(beyond) if outside else None,
                on_progress,
            )
            report: dict[str, Any] = json.loads(text)
            opened_outside = report["connections"]["opened_outside"]
            if outside and opened_outside:
                beyond.replace(outside)
            if not outside or opened_outside < report["connections"]["made"]:
                part.replace(output)
    except OSError as error:
        raise AqmlabError(f"{capture}: cannot be turned into {output}: {error}") from None
    return report
