"""Runs that are wanted: what is there is found, what is missing is made.

Sweeps, searches and cards each want many runs. Whatever makes the same run shares it: runs are
wanted by their key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aqmlab._util.files import check_output_folder
from aqmlab._util.pool import OnProgress, Shares
from aqmlab.errors import AqmlabError
from aqmlab.results.run import Run
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from aqmlab.engine.schedulers import Scheduler
    from aqmlab.engine.store import Store

__all__ = ["Batch"]


_Wanted = TypeVar("_Wanted")
_Found = TypeVar("_Found")
_Taken = TypeVar("_Taken")
_PROBES = 3
"""Runs that are begun to learn how long they take."""


class Batch(Generic[_Wanted, _Found]):
    """Some runs: those that are found, and those that are missing.

    Args:
        wanted: by key what stands for each run.
        scenario_of: the scenario of such a run; it is made when it is asked for.
        store: where the runs go that are missing.
        find: what is known of the run of a key; None: it is missing.
    """

    def __init__(
        self,
        wanted: Mapping[str, _Wanted],
        scenario_of: Callable[[_Wanted], Scenario],
        store: Store,
        find: Callable[[str], _Found | None],
    ) -> None:
        self._scenario_of = scenario_of
        self._store = store
        self.found = {key: found for key in wanted if (found := find(key)) is not None}
        """By key."""
        self.missing = {key: one for key, one in wanted.items() if key not in self.found}
        """By key."""
        if self.missing:
            check_output_folder(store.root)

    def seconds(self, pool: Scheduler) -> float:
        """About how long it takes to make what is missing: a few of the runs are begun."""
        count, lacking = len(self.missing), [*self.missing.values()]
        # Runs differ by what they simulate: the probes are spread over all.
        probes = lacking[:: max(1, count // _PROBES)][:_PROBES]
        times = pool.probe([self._scenario_of(one) for one in probes])
        return sum(times) / len(times) * count / min(pool.jobs, count)

    def make(
        self,
        pool: Scheduler,
        take: Callable[[Run], _Taken],
        progress: OnProgress,
        each: Callable[[_Wanted, float], None] = lambda _, __: None,
    ) -> dict[str, _Taken | AqmlabError]:
        """Makes what is missing.

        Args:
            pool: who makes the runs.
            take: what is wanted of a run, a function of a module; see
                :class:`~aqmlab.engine.schedulers.Scheduler`.
            progress: called with the share of all that is done, from several threads.
            each: called with the share of each run that is done, before that.

        Returns:
            By key what was taken of each, or why it failed.
        """
        if not self.missing:
            return {}
        lacking = _Scenarios([*self.missing.values()], self._scenario_of)
        shares = Shares(len(lacking), progress)

        def on_progress(index: int, done: float) -> None:
            each(lacking.wanted[index], done)
            shares(index, done)

        made = pool.run(lacking, self._store, on_progress, take)
        return dict(zip(self.missing, made, strict=True))


@dataclass(frozen=True)
class _Scenarios(Sequence[Scenario]):
    """Scenarios that are made when they are asked for: there may be thousands."""

    wanted: Sequence[Any]
    scenario_of: Callable[[Any], Scenario]

    def __len__(self) -> int:
        return len(self.wanted)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - nobody asks for a slice
        return self.scenario_of(self.wanted[place])
