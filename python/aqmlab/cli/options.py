"""Options that several commands have, and what they mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from aqmlab._util.markup import Markup
from aqmlab.cli.completion import assigned, link_names
from aqmlab.engine.memory import limit
from aqmlab.errors import AqmlabError

__all__ = [
    "Format",
    "Jobs",
    "Json",
    "Link",
    "Memory",
    "MetricFiles",
    "OwnMetrics",
    "Plugins",
    "Runs",
    "ScenarioFile",
    "SchedulerAddress",
    "Seed",
    "Seeds",
    "Sets",
    "StoreFolder",
    "Tsv",
    "Where",
    "argument",
    "check_format",
    "chosen_seeds",
    "described",
    "flag",
    "named_as_options",
    "one_seed",
    "option",
    "renamed",
    "switch",
]


_Command = TypeVar("_Command", bound=Callable[..., None])
_HEAD = "\n\nOptions:\n"
_ENTRY = re.compile(r"^    (\w+)(?: \(([^)]*)\))?: (.*(?:\n     .*)*)$", re.MULTILINE)


def described(command: _Command) -> _Command:
    r"""A function as typer takes it: what the help says of a parameter stands in its docstring.

    ::

        @described
        def command(file: Path, *, directory: Path | None = None, tier: str = "quick") -> None:
            \"\"\"Do something.

            Options:
                file (FILE): What is read.
                directory (--out FOLDER): Where it goes; default: here.
                tier: Which tests.
            \"\"\"

    A parameter by position is an argument, one by name an option. In parentheses stand the names of
    an option, unless it is called as the parameter, and what stands for its value, unless it has
    none or the choices are named. Parameters of the types below say all of this themselves.
    """
    about, _, listed = (inspect.getdoc(command) or "").partition(_HEAD)
    entries = {name: (how, " ".join(text.split())) for name, how, text in _ENTRY.findall(listed)}
    parameters = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        kind = one.annotation
        if one.name in entries:
            is_argument = one.kind is not inspect.Parameter.KEYWORD_ONLY
            kind = Annotated[kind, _declared(*entries.pop(one.name), is_argument=is_argument)]
        parameters.append(one.replace(annotation=kind))
    if entries:
        raise TypeError(f"{', '.join(entries)}: described, but no parameters of the command")
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = about
    return command


def _declared(how: str, meaning: str, *, is_argument: bool) -> Any:  # noqa: ANN401 - typer's types
    """The declaration of a parameter for typer."""
    words = how.split()
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    if is_argument:
        return typer.Argument(metavar=metavar, help=meaning)
    return typer.Option(*names, metavar=metavar, help=meaning)


def argument(metavar: str, meaning: str, **more: Any) -> Any:  # noqa: ANN401 - typer's type
    """An argument: what stands for it in the usage, and what it is."""
    return typer.Argument(metavar=metavar or None, help=meaning, **more)


def option(metavar: str, meaning: str, *names: str, **more: Any) -> Any:  # noqa: ANN401
    """An option with a value: what stands for the value, what it means, its names.

    Args:
        metavar: what stands for the value in the help; empty: the choices that there are.
        meaning: what it means.
        *names: what it is called; none: as the parameter, after two dashes.
        **more: what else typer takes.
    """
    return typer.Option(*names, metavar=metavar or None, help=meaning, **more)


def switch(name: str, meaning: str, **more: Any) -> Any:  # noqa: ANN401 - typer's type
    """An option without a value."""
    return typer.Option(name, help=meaning, **more)


ScenarioFile = Annotated[Path, argument("SCENARIO", "Scenario file (TOML).")]
Runs = Annotated[
    list[Path],
    argument(
        "RUNS",
        "Run directories, folders of them, patterns such as 'runs/bulk-*', or sweeps: the "
        "folder of the results, or the file.",
    ),
]
Where = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE",
        "Take the runs that have this value of a parameter, such as rate_mbit=12 or seed=1; "
        "commas separate several. May be repeated: values of one parameter are alternatives.",
    ),
]
Sets = Annotated[
    list[str] | None,
    option(
        "FIELD=VALUE",
        "Replace a field, such as traffic.browsers.users=3000; may be repeated.",
        "--set",
        autocompletion=assigned,
    ),
]
Link = Annotated[
    str | None,
    option(
        "LINK",
        "A link by its name, such as dsl, leo or policed: aqmlab list links.",
        "--link",
        autocompletion=link_names,
    ),
]
Seed = Annotated[
    list[int] | None, option("N", "Seed of every random stream; default: the scenario's.", "--seed")
]
Seeds = Annotated[str | None, option("A..B", "Run once with each seed: 1..8 or 1,5,9.", "--seeds")]
SchedulerAddress = Annotated[
    str | None,
    option("ADDRESS", "Make the runs on this Dask scheduler: tcp://HOST:8786.", "--scheduler"),
]
StoreFolder = Annotated[Path, option("FOLDER", "Folder of the runs, by key.", "--store")]
Json = Annotated[bool, switch("--json", "Print JSON and nothing else.")]
Tsv = Annotated[
    bool, switch("--tsv", "Print tab-separated values and nothing else, unrounded, by key.")
]
Format = Annotated[
    Markup | None,
    option(
        "",
        "Print only the tables, as LaTeX (booktabs), Markdown or CSV, rounded as on a terminal.",
        "--format",
    ),
]


def _define(texts: list[str] | None) -> list[str] | None:
    """Defines metrics before anything names them."""
    if texts:
        from aqmlab.results import own_metrics  # few commands want them

        own_metrics.define([own_metrics.option(text) for text in texts])
    return texts


OwnMetrics = Annotated[
    list[str] | None,
    option(
        "'NAME = TEXT'",
        "A metric of your own, such as 'late = share(responses.response_s > 1) in %'; "
        "docs/how-to/metrics-of-your-own.md explains the text. May be repeated.",
        "--metric",
        callback=_define,
        is_eager=True,
    ),
]


def _load_metrics(files: list[Path] | None) -> list[Path] | None:
    """Runs the files, before anything names their functions."""
    for file in files or ():
        from aqmlab.results import own_metrics  # few commands want them

        own_metrics.load(file)
    return files


MetricFiles = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "Load metrics of your own in Python: functions of a run. May be repeated. Their code runs.",
        "--metrics",
        callback=_load_metrics,
        is_eager=True,
    ),
]
Jobs = Annotated[
    int | None, option("N", "Number of runs at a time; default: the number of processors.", min=1)
]


@contextmanager
def named_as_options(arguments: Iterable[str]) -> Iterator[None]:
    """Within it, errors about arguments name the option that was given."""
    try:
        yield
    except AqmlabError as error:
        name, colon, rest = str(error).partition(":")
        if colon and name in arguments:
            raise AqmlabError(f"--{flag(name)}:{rest}") from None
        raise


def flag(argument: str) -> str:
    """What an argument is called on the command line: units of times are part of its meaning."""
    return {"traffic": "class"}.get(argument, argument.removesuffix("_s").replace("_", "-"))


def check_format(*, as_json: bool, as_tsv: bool, markup: Markup | None = None) -> None:
    """An error if more than one is asked for."""
    asked = {"--json": as_json, "--tsv": as_tsv, "--format": markup is not None}
    given = [name for name, wanted in asked.items() if wanted]
    if len(given) > 1:
        raise AqmlabError(f"{given[0]} and {given[1]}: found both; give one of them")


def _limit(memory: str | None) -> None:
    """Bounds the runs of this process."""
    try:
        limit(memory)
    except AqmlabError as error:
        raise AqmlabError(f"--{error}") from None


Memory = Annotated[
    str | None,
    option(
        "SIZE",
        'Memory limit of all runs together, such as "4 GiB"; default: nine tenths of what is free.',
        "--memory",
        callback=_limit,
    ),
]


def _load_plugins(files: list[Path] | None) -> list[Path] | None:
    """Loads the plug-ins of files, before anything that names them is read."""
    if not files:
        return files
    from aqmlab import plugins  # they load what compiles

    seen: dict[str, Path] = {}
    for file in files:
        try:
            names = plugins.load(file)
        except AqmlabError as error:
            raise type(error)(f"--plugin: {error}") from None
        for name in names:
            if (other := seen.setdefault(name, file)) != file:
                raise AqmlabError(
                    f"--plugin: {other} and {file}: both have a plug-in called {name}"
                )
    return files


Plugins = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "Load disciplines and congestion controls of your own, .py or .so; may be repeated. "
        "Their code runs.",
        "--plugin",
        callback=_load_plugins,
        is_eager=True,
    ),
]


def one_seed(seed: Sequence[int] | None) -> int | None:
    """The seed of ``--seed``, which is given once."""
    if seed and len(seed) > 1:
        given = ",".join(map(str, seed))
        raise AqmlabError(f"--seed: found {len(seed)} of them; several are --seeds {given}")
    return seed[0] if seed else None


def chosen_seeds(seed: Sequence[int] | None, seeds: str | None) -> list[int] | None:
    """The seeds of ``--seed N`` or ``--seeds A..B``; None: those of the file."""
    one = one_seed(seed)
    if seeds is None:
        return None if one is None else [one]
    if one is not None:
        raise AqmlabError("--seed and --seeds: found both; give one of them")
    from aqmlab.scenario import vary

    return vary.seeds(seeds)


def renamed(old: str, new: str) -> Any:  # noqa: ANN401 - typer's own type
    """A hidden option that is refused with its new name."""

    def refuse(value: str | None) -> None:
        if value is None:
            return
        raise AqmlabError(f"{old}: is called {new}")

    return typer.Option(old, hidden=True, callback=refuse)
