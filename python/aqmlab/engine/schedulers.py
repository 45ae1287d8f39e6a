"""Where runs are made: in processes of this machine, or on a Dask cluster.

Both make the runs that a store lacks and put them into it. The results are the same, byte for byte:
the engine gives the same bytes on every machine.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from aqmlab import _native
from aqmlab._util.plugin_sources import sources_of
from aqmlab._util.pool import OnProgress, available_cpus, run_all
from aqmlab.engine import memory
from aqmlab.engine.commit import Done, RunCommit, itself, nothing
from aqmlab.engine.execute import execute, make
from aqmlab.engine.store import Store
from aqmlab.errors import AqmlabError, NoWorkerWarning, RunError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    import distributed

__all__ = [
    "DaskCluster",
    "LocalProcesses",
    "Scheduler",
    "carried",
    "collected",
    "scheduler",
    "send",
]


_Progress = Callable[[int, float], None]
"""Called with the index of a run and the share of it that is done, maybe from several threads."""
_Taken = TypeVar("_Taken")
_CONNECT_S = 10.0
"""How long a cluster may take to answer."""
_ATTEMPTS = 3
"""How often a run is tried whose worker disappears, here or on a cluster."""


_LOOK_S = 4.0
"""How often a cluster is asked for its workers."""
_SAY_AGAIN_S = 30.0
"""How long after saying that there is none it is said again."""


class Scheduler(Protocol):
    """Makes runs, several at a time."""

    @property
    def jobs(self) -> int:
        """Runs at a time."""

    def probe(self, scenarios: Sequence[Scenario]) -> list[float]:
        """About how many seconds each run takes; not in this process, which plug-ins may end."""

    def run(
        self,
        scenarios: Sequence[Scenario],
        store: Store,
        progress: _Progress,
        take: Callable[[Run], _Taken],
    ) -> list[_Taken | AqmlabError]:
        """Has the runs of some different scenarios made, and put into the store.

        Args:
            scenarios: what is run.
            store: where the runs go.
            progress: called with the share of each scenario that is done.
            take: what is wanted of a run, a function of a module: it may be called in the process
                that made the run, before the run has its name.

        Returns:
            What was taken of each, in their order; where one failed, its error.
        """


@dataclass(frozen=True)
class _Directory:
    """A run directory."""

    path: Path
    durable: bool
    """Whether it waits for the disk; a :class:`RunCommit` does so for some together."""

    def run(self, scenario: Scenario, progress: OnProgress) -> Run:
        """Finds the run of a scenario there, or makes it."""
        if self.durable:
            return execute(scenario, self.path, progress=progress, reuse=True)
        return make(scenario, self.path, progress)


class _WorkerDiedError(RunError):
    """The process that made a run is gone."""


class _Worker:
    """A process that makes runs, one after the other; see :mod:`aqmlab.engine.worker`."""

    def __init__(self, bounds: Mapping[str, str]) -> None:
        package = os.fspath(Path(__file__).resolve().parents[2])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "aqmlab.engine.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths, **bounds},
            # An interrupt from the keyboard is for the process that gives the tasks.
            start_new_session=True,
        )

    def run(
        self,
        scenario: Scenario,
        place: _Directory | None,
        report: OnProgress,
        take: Callable[[Run], Any] = nothing,
    ) -> Done:
        """Has a run made and put into its place; errors of the run are raised here.

        Without a place it is only begun, and the one report is how many seconds it takes.
        """
        tasks, answers = self._process.stdin, self._process.stdout
        assert tasks is not None
        assert answers is not None
        try:
            send(tasks, (scenario, place, take))
            while isinstance(answer := pickle.load(answers), float):
                report(answer)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            files = ", ".join(source.file for source in sources_of(scenario.effective))
            ended = _how_it_ended(self._process.wait())
            raise _WorkerDiedError(
                f"the process of this run {ended}, {_ATTEMPTS} times over"
                + (f"; its plug-in may have ended it: {files}" if files else "")
            ) from None
        if not isinstance(answer, Done):
            raise answer
        return answer

    @property
    def alive(self) -> bool:
        """Whether it can take another task."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.communicate()


def _how_it_ended(status: int) -> str:
    """What an exit status says."""
    if status >= 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    hint = "; was memory short?" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"


def send(channel: IO[bytes], content: Any) -> None:  # noqa: ANN401 - whatever is pickled
    """Writes one object into a pipe."""
    channel.write(pickle.dumps(content))
    channel.flush()


class LocalProcesses(AbstractContextManager["LocalProcesses"]):
    """Processes of this machine, as many as it has processors by default."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = max(1, jobs or available_cpus())
        most = memory.share(self.jobs)
        self._bounds = {} if most is None else {memory.VARIABLE: f"{most} bytes"}
        self._idle: SimpleQueue[_Worker] = SimpleQueue()

    def probe(self, scenarios: Sequence[Scenario]) -> list[float]:
        """See :class:`Scheduler`."""
        seconds = []
        for scenario in scenarios:
            began = time.perf_counter()
            answers: list[float] = []
            with suppress(AqmlabError):  # what fails here fails again, and says so then
                self._make(scenario, None, answers.append)
            seconds.append(answers[0] if answers else time.perf_counter() - began)
        return seconds

    def make(
        self, scenario: Scenario, path: Path, report: OnProgress, *, durable: bool = True
    ) -> Run:
        """Has a run made in a directory, or finds it there.

        Unless it is durable, the caller waits for the disk.
        """
        done = self._made(scenario, _Directory(path, durable=durable), report, itself)
        return Run.open(path) if done is None else done.taken

    def run(
        self,
        scenarios: Sequence[Scenario],
        store: Store,
        progress: _Progress,
        take: Callable[[Run], _Taken],
    ) -> list[_Taken | AqmlabError]:
        """See :class:`Scheduler`."""

        def work(scenario: Scenario, report: OnProgress) -> str:
            key = scenario.key
            done = None
            if store.find(key) is None:
                place = _Directory(group.place(key), durable=False)
                done = self._made(scenario, place, report, take)
            group.add(key, done)
            return key

        with RunCommit(store, take) as group:
            made = run_all(work, scenarios, jobs=self.jobs, progress=progress)
        return [group.taken[key] if isinstance(key, str) else key for key in made]

    def _made(
        self,
        scenario: Scenario,
        place: _Directory,
        report: OnProgress,
        take: Callable[[Run], Any] = nothing,
    ) -> Done | None:
        """Has a run made, as often as its process disappears; nothing if its answer is lost."""
        attempt = 1
        while True:
            try:
                return self._make(scenario, place, report, take)
            except _WorkerDiedError:
                if place.path.is_dir():
                    return None  # it died between the end of the run and its answer
                if attempt == _ATTEMPTS:
                    raise
            attempt += 1

    def _make(
        self,
        scenario: Scenario,
        place: _Directory | None,
        report: OnProgress,
        take: Callable[[Run], Any] = nothing,
    ) -> Done:
        """Lets an idle process, or a new one, make a run."""
        try:
            worker = self._idle.get_nowait()
        except Empty:
            worker = _Worker(self._bounds)
        try:
            done = worker.run(_portable(scenario), place, report, take)
        except AqmlabError:
            if worker.alive:
                self._idle.put(worker)
            else:
                worker.stop()
            raise
        except BaseException:
            worker.stop()
            raise
        self._idle.put(worker)
        return done

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().stop()


class _Watch(AbstractContextManager["_Watch"]):
    """Says so, and again from time to time, while a cluster has no worker."""

    def __init__(self, client: distributed.Client) -> None:
        self._client = client
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        """Looks every few seconds."""
        alone_since: float | None = None
        said_at = -math.inf
        while not self._ended.wait(_LOOK_S):
            now = time.monotonic()
            if self._workers():
                alone_since, said_at = None, -math.inf
                continue
            alone_since = now if alone_since is None else alone_since
            if now - said_at >= _SAY_AGAIN_S:
                said_at = now
                warnings.warn(
                    f"the cluster has had no worker for {now - alone_since:.0f} s; waiting for one",
                    NoWorkerWarning,
                    stacklevel=2,
                )

    def _workers(self) -> int:
        """How many workers the cluster has; none if its scheduler does not answer."""
        try:
            return len(self._client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, KeyError):
            return 0


class DaskCluster(AbstractContextManager["DaskCluster"]):
    """A Dask cluster; its workers need aqmlab, and no folder in common with this machine."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise AqmlabError(
                "--scheduler: needs the package distributed, which is not installed: "
                "pip install 'distributed>=2025.1'"
            ) from None
        _check_address(address)
        try:
            self._client: distributed.Client = distributed.Client(
                address, timeout=_CONNECT_S, set_as_default=False
            )
        except (OSError, ValueError, TypeError) as error:
            raise AqmlabError(
                f"--scheduler: no Dask scheduler answers at {address}: {error}"
            ) from None

    @property
    def jobs(self) -> int:
        """Threads of all workers together."""
        return max(1, sum(map(int, self._client.ncores().values())))

    def probe(self, scenarios: Sequence[Scenario]) -> list[float]:
        """See :class:`Scheduler`; on this machine."""
        with LocalProcesses(1) as here:
            return here.probe(scenarios)

    def run(
        self,
        scenarios: Sequence[Scenario],
        store: Store,
        progress: _Progress,
        take: Callable[[Run], _Taken],
    ) -> list[_Taken | AqmlabError]:
        """See :class:`Scheduler`."""
        from distributed import as_completed

        made: dict[int, str | AqmlabError] = {}
        futures = {
            self._client.submit(
                carried, _portable(scenario), _native.engine(), pure=False, retries=_ATTEMPTS - 1
            ): index
            for index, scenario in enumerate(scenarios)
        }
        try:
            with _Watch(self._client), RunCommit(store, take) as group:
                for future in as_completed(futures, loop=self._client.loop):
                    index = futures[future]
                    made[index] = collected(future, scenarios[index].key, group)
                    progress(index, 1.0)
                    future.release()
        except BaseException:
            self._client.cancel(list(futures))
            raise
        found = (made[index] for index in range(len(scenarios)))
        return [group.taken[key] if isinstance(key, str) else key for key in found]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()


def scheduler(address: str | None, jobs: int | None) -> LocalProcesses | DaskCluster:
    """The cluster at an address, or processes of this machine."""
    return LocalProcesses(jobs) if address is None else DaskCluster(address)


_ADDRESS = re.compile(
    r"(?:(?:tcp|tls)://)?(?P<host>[^\s:/\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})"
)
"""An address on a network; Dask has others, such as inproc://."""


def _check_address(address: str) -> None:
    """An error if an address is none, or if nothing listens there.

    A client of Dask that cannot connect tries for long and leaves a traceback when it goes.
    """
    if re.match(r"(?!tcp:|tls:)[a-z]+://", address):
        return
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise AqmlabError(
            f'--scheduler: found "{address[:80]}"; expected the address of a Dask scheduler such '
            "as tcp://HOST:8786"
        )
    try:
        host, port = match["host"].strip("[]"), int(match["port"])
        socket.create_connection((host, port), _CONNECT_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AqmlabError(f"--scheduler: nothing answers at {address}: {reason}") from None


def _portable(scenario: Scenario) -> Scenario:
    """The scenario, complete without the files that it was made from."""
    _ = scenario.offered_load, scenario.key, scenario.uncalibrated
    return scenario


def carried(scenario: Scenario, engine: str) -> Mapping[str, bytes] | AqmlabError:
    """Makes a run on a cluster's worker: the files of its directory, or why it failed."""
    if _native.engine() != engine:
        return AqmlabError(
            f"the worker has engine {_native.engine()}, not {engine}; install the same aqmlab there"
        )
    with tempfile.TemporaryDirectory(prefix="aqmlab-") as folder:
        try:
            run = make(scenario, Path(folder) / "run", None)
        except AqmlabError as error:
            return error
        return {file.name: file.read_bytes() for file in sorted(run.path.iterdir())}


def collected(future: Any, key: str, group: RunCommit[Any]) -> str | AqmlabError:  # noqa: ANN401 - untyped
    """The key of a run that a cluster's answer has brought into a group, or why it has not."""
    try:
        answer = future.result()
    except Exception as error:  # noqa: BLE001 - whatever a cluster's worker may raise
        return RunError(f"the cluster lost it: {' '.join(str(error).split())}")
    if isinstance(answer, AqmlabError):
        return answer
    group.put(key, answer)
    return key
