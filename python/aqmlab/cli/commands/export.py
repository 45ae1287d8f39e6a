"""``aqmlab export``: traced connections of runs as qlog."""

from __future__ import annotations

from pathlib import Path

from aqmlab._util.console import out, say
from aqmlab._util.files import check_output_folder, made_folder, write_text
from aqmlab._util.words import counted
from aqmlab.cli.options import Runs
from aqmlab.errors import AqmlabError
from aqmlab.results import qlog
from aqmlab.results.sources import gather

__all__ = ["command"]

_MOST = 1000
"""More files than this help nobody."""


def command(
    places: Runs,
    *,
    output: Path = Path("qlog"),
    flow: list[int] | None = None,
    packets: str | None = None,
) -> None:
    """Write traced connections of runs as qlog, for qvis.

    Each connection that measure.flow_trace selects becomes one file, with the congestion window,
    bytes in flight, round-trip times, pacing rate and state of the sender.

    Options:
        output (-o, --output FOLDER): Folder for the files.
        flow (N): Number of a traced connection. May be repeated. Default: all traced connections.
        packets (LINK): Add the packets that reach the queues of this link, such as bottleneck. The
            runs need "packets" in measure.record.
    """
    runs = gather(places)
    if packets is not None:
        for run in runs:
            qlog.check_link(run, packets)
    found = [connection for run in runs for connection in qlog.connections(run, flow)]
    if len(found) > _MOST:
        raise AqmlabError(
            f"RUNS: {len(found)} traced connections; at most {_MOST} files are written at a time: "
            "take fewer runs, or --flow N"
        )
    files: dict[Path, qlog.QlogConnection] = {}
    for connection in found:
        name = f"{connection.run.path.name}-flow-{connection.flow}{qlog.SUFFIX}"
        other = files.setdefault(output / name, connection)
        if other is not connection:
            raise AqmlabError(
                f"{other.run.path} and {connection.run.path}: both give {name}; "
                "export them with an --output for each"
            )
    check_output_folder(output)
    made_folder(output)
    for file, connection in files.items():
        write_text(file, "".join(qlog.lines(connection, packets)))
        out(str(file))
    say(f"{counted(len(files), 'connection')} as qlog 0.3; open the files in qvis, or read them")
