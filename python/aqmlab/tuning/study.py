"""The search itself: Optuna proposes settings, SQLite keeps what became of them.

J. Bergstra, R. Bardenet, Y. Bengio, B. Kegl, "Algorithms for Hyper-Parameter Optimization", NIPS
2011: the tree-structured Parzen estimator, for several goals as Y. Ozaki et al., "Multiobjective
Tree-Structured Parzen Estimator", JAIR 73, 2022. T. Akiba et al., "Optuna: A Next-generation
Hyperparameter Optimization Framework", KDD 2019. Importance: S. Watanabe, A. Bansal, F. Hutter,
"PED-ANOVA", IJCAI 2023.

A search that is killed and begun again proposes what it would have proposed: settings come in
batches that depend on the finished ones alone, and every setting draws its numbers by its own
number.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from aqmlab._util.fields import Scalar
from aqmlab.errors import AqmlabError, RunError
from aqmlab.tuning.goals import Goal
from aqmlab.tuning.space import Variable

if TYPE_CHECKING:
    import optuna

__all__ = ["FAILED", "MEASURED", "OPEN", "REFUSED", "Searched", "Study", "Trial", "needed"]


FILE = "study.db"
"""The search in its folder."""
MEASURED, REFUSED, FAILED, OPEN = "measured", "refused", "failed", "open"
"""What became of a setting.

It was run, it is no scenario, one of its runs ended in an error, or the machine could not make a
run: then the next search of the folder tries it again.
"""
_NAME = "tune"
_RECORD = "record"
"""Under which name a trial keeps what was measured."""
_FEWEST = 10
"""With fewer settings their importance says nothing."""
_RANDOM_FIRST = 10
"""Settings that are drawn before the estimator has something to go by."""


class Searched(Protocol):
    """What a search asks of its plan."""

    @property
    def variables(self) -> Sequence[Variable]:
        """What varies."""

    @property
    def goals(self) -> Sequence[Goal]:
        """What is to be small or large."""

    @property
    def trials(self) -> int:
        """How many settings are tried."""

    @property
    def batch(self) -> int:
        """Settings that are proposed before any of them is known."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What tells one search from another, as JSON."""


@dataclass(frozen=True)
class Trial:
    """A setting and what became of it."""

    number: int
    values: Mapping[str, Scalar]
    """Of the variables that are searched."""
    state: str
    measured: Mapping[str, list[list[float]]] = field(default_factory=dict)
    """By metric: for each scenario a number for each seed, in the unit of ``summary.json``."""
    error: str = ""


def needed() -> Any:  # noqa: ANN401 - a module
    """Optuna; an error that says how to install it."""
    try:
        import optuna
    except ImportError:
        raise AqmlabError(
            "tuning needs the package optuna, which is not installed: pip install 'optuna>=5.0'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


_FULL = "database or disk is full"
"""What SQLite says of a full disk."""


class Study(AbstractContextManager["Study"]):
    """A search on its way."""

    def __init__(self, folder: Path, plan: Searched) -> None:
        """Opens the search of a folder, or begins it there.

        Raises:
            AqmlabError: the folder holds another search, or somebody is at work on it.
        """
        self._optuna = needed()
        self._plan = plan
        self._open: dict[int, optuna.Trial] = {}
        self._left: set[int] = set()
        file = self._file = folder / FILE
        self._closing = ExitStack()
        self._closing.callback(_Lock(folder / f".{FILE}.lock").release)
        try:
            self._storage = self._optuna.storages.RDBStorage(f"sqlite:///{file.resolve()}")
            self._closing.callback(self._storage.engine.dispose)
            self._study: optuna.Study = self._optuna.create_study(
                storage=self._storage,
                study_name=_NAME,
                directions=["minimize" if one.is_minimized else "maximize" for one in plan.goals],
                load_if_exists=True,
            )
            self._refuse_another(folder)
        except (RuntimeError, self._sqlalchemy_error) as error:
            self.close()
            if _FULL in str(error):
                raise RunError(f"{file}: cannot be written: {_why(error)}") from None
            raise AqmlabError(f"{file}: is no search of aqmlab tune: {_first(error)}") from None
        except BaseException:
            self.close()
            raise

    @property
    def _sqlalchemy_error(self) -> type[Exception]:
        """What a file raises that is no database, or none of Optuna's."""
        from sqlalchemy.exc import SQLAlchemyError

        return SQLAlchemyError

    def _refuse_another(self, folder: Path) -> None:
        """Raises an error if the folder holds a search for something else."""
        known = self._study.user_attrs.get("plan")
        if known is None:
            self._study.set_user_attr("plan", dict(self._plan.identity))
        elif (other := _differing(known, self._plan.identity)) is not None:
            raise AqmlabError(
                f"{folder}: holds a search with another {other} ({_briefly(known.get(other))} "
                f"instead of {_briefly(self._plan.identity[other])}); choose another --out"
            )

    def close(self) -> None:
        """Lets the file go."""
        self._closing.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self) -> list[Trial]:
        """The settings that are to be run next; none if there have been enough.

        Those that were proposed and never evaluated come first: with them the batch is complete.

        Raises:
            RunError: the file of the search cannot be read or written.
        """
        with self._writing():
            return self._asked()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Within it the file's own errors are those of the machine."""
        try:
            yield
        except (self._sqlalchemy_error, self._optuna.exceptions.StorageInternalError) as error:
            raise RunError(f"{self._file}: cannot be written: {_why(error)}") from None

    def _asked(self) -> list[Trial]:
        """The same, with the errors of the file."""
        size, running = self._plan.batch, self._optuna.trial.TrialState.RUNNING
        known = self._study.get_trials(deepcopy=False)
        waiting = [
            one.number for one in known if one.state == running and one.number not in self._left
        ]
        end = math.ceil(len(known) / size) * size
        if not waiting and end == len(known):
            end += size
        new = range(len(known), min(self._plan.trials, end))
        return [self._proposed(number, len(known)) for number in (*waiting, *new)]

    def _proposed(self, number: int, known: int) -> Trial:
        """A setting by its number: a new one, or one that an interruption left unfinished."""
        self._draw_by(number, 0)
        if number < known:
            study = self._storage.get_study_id_from_name(_NAME)
            identity = self._storage.get_trial_id_from_study_id_trial_number(study, number)
            trial = self._optuna.trial.Trial(self._study, identity)
        else:
            trial = self._study.ask()
        self._open[number] = trial
        values = {}
        for place, variable in enumerate(self._plan.variables, 1):
            self._draw_by(number, place)
            values[variable.name] = variable.value(_suggested(trial, variable))
        return Trial(number, values, "")

    def _draw_by(self, number: int, place: int) -> None:
        """Lets a setting's value draw its own random numbers, whatever was drawn before."""
        self._study.sampler = self._optuna.samplers.TPESampler(
            seed=1000 * number + place,
            n_startup_trials=_RANDOM_FIRST,
            multivariate=True,
        )

    def tell(
        self, trial: Trial, objectives: Sequence[float] | None, violations: Sequence[float]
    ) -> None:
        """Notes what became of a setting that :meth:`ask` gave.

        Args:
            trial: the setting and what was measured.
            objectives: a number for each goal; None: there are none.
            violations: a number for each constraint, above zero where it does not hold.
        """
        with self._writing():
            self._told(trial, objectives, violations)

    def leave(self, trial: Trial) -> None:
        """Leaves a setting to the next search of the folder."""
        self._left.add(trial.number)
        del self._open[trial.number]

    def _told(
        self, trial: Trial, objectives: Sequence[float] | None, violations: Sequence[float]
    ) -> None:
        """What :meth:`tell` does, with the errors of the file."""
        own = self._open.pop(trial.number)
        record = {"state": trial.state, "error": trial.error, "measured": trial.measured}
        own.set_user_attr(_RECORD, json.dumps(record))
        known = own.constraints or {}
        for place, violation in enumerate(violations):
            if str(place) not in known:
                own.set_constraint(str(place), violation)
        if objectives is None:
            self._study.tell(own, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(own, list(objectives))

    @property
    def trials(self) -> list[Trial]:
        """Every finished setting, in their order."""
        found = []
        for one in self._study.get_trials(deepcopy=False):
            if one.state.is_finished():
                record = json.loads(one.user_attrs.get(_RECORD, "{}"))
                values = {
                    variable.name: variable.value(one.params[variable.name])
                    for variable in self._plan.variables
                }
                found.append(Trial(one.number, values, **record))
        return found

    def importance(self, goal: int) -> dict[str, float] | None:
        """Each variable's share of what decides whether a setting is among the good ones of a goal.

        None where too few settings, or a single variable, leave it open.
        """
        complete = self._optuna.trial.TrialState.COMPLETE
        done = self._study.get_trials(deepcopy=False, states=(complete,))
        if len(done) < _FEWEST or len(self._plan.variables) < 2:
            return None
        sign = self._plan.goals[goal].sign
        with suppress(RuntimeError, ValueError), warnings.catch_warnings():
            # It says that it looks at low values, which is what the sign makes of the good ones.
            warnings.simplefilter("ignore")
            found: dict[str, float] = self._optuna.importance.get_param_importances(
                self._study,
                evaluator=self._optuna.importance.PedAnovaImportanceEvaluator(),
                target=lambda trial: sign * trial.values[goal],
            )
            if all(map(math.isfinite, found.values())):
                return found
        return None


def _suggested(trial: optuna.Trial, variable: Variable) -> float | str:
    """What the search proposes for a variable."""
    name = variable.name
    if variable.choices:
        found: str = trial.suggest_categorical(name, variable.choices)
        return found
    if variable.is_whole:
        low, high = int(variable.low), int(variable.high)
        return trial.suggest_int(name, low, high, log=variable.is_log)
    return trial.suggest_float(name, variable.low, variable.high, log=variable.is_log)


class _Lock:
    """Keeps a second search out of a folder; ends with the process that holds it."""

    def __init__(self, path: Path) -> None:
        import fcntl

        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        while True:
            self._file = path.open("w")
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._file.close()
                raise AqmlabError(f"{path.parent}: another aqmlab tune is at work there") from None
            except OSError:
                return  # a file system without locks
            # Its last holder may have removed it between the opening and the lock.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(self._file.fileno()).st_ino:
                    return
            self._file.close()

    def release(self) -> None:
        """Lets others in."""
        with suppress(OSError):
            self._path.unlink()
        self._file.close()


def _differing(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """The first part in which two searches differ; None: they are the same."""
    return next((key for key, value in wanted.items() if known.get(key) != value), None)


def _briefly(value: Any) -> str:  # noqa: ANN401 - JSON
    """A part of a plan in a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _why(error: BaseException) -> str:
    """Why a file could not be written: the words of SQLite, without the statement."""
    return _FULL if _FULL in str(error) or _FULL in str(error.__cause__) else _first(error)


def _first(error: BaseException) -> str:
    """The first line of an error."""
    return str(error).strip().partition("\n")[0]
