"""Options that several commands have, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aqmlab._util.markup import Markup
from aqmlab.cli.build import Arg, Opt
from aqmlab.cli.completion import assigned, link_names
from aqmlab.engine.memory import limit
from aqmlab.errors import AqmlabError

if TYPE_CHECKING:
    from aqmlab.scenario.scenario import Override

__all__ = [
    "Fields",
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
    "SeedNumbers",
    "Seeds",
    "Sets",
    "StoreFolder",
    "Tsv",
    "Where",
    "check_format",
    "chosen_seeds",
    "flag",
    "named_as_options",
    "one_seed",
    "renamed",
]


ScenarioFile = Annotated[Path, Arg("SCENARIO", "Scenario file (TOML).")]
Runs = Annotated[
    list[Path],
    Arg(
        "RUNS",
        "Run directories, folders of run directories, patterns such as 'runs/bulk-*', sweep files, "
        "or folders of sweep results.",
    ),
]
Where = Annotated[
    list[str] | None,
    Opt(
        "NAME=VALUE",
        "Use only runs in which a parameter has this value, such as seed=1. Commas separate "
        "several conditions. May be repeated. Conditions on the same parameter are alternatives.",
    ),
]


def _pairs(texts: list[str]) -> list[Override]:
    """Fields and their values."""
    from aqmlab.scenario import vary  # few commands want them

    return [vary.assignment(text, "--set") for text in texts]


def _sets(parse: Callable[[list[str]], list[Override]] | None = None) -> Opt:
    """What ``--set`` is."""
    return Opt(
        "FIELD=VALUE",
        "Change the value of a field, such as traffic.browsers.users=3000. May be repeated.",
        "--set",
        complete=assigned,
        parse=parse,
    )


Sets = Annotated[list[str] | None, _sets()]
Fields = Annotated[list[tuple[str, str]] | None, _sets(_pairs)]
"""As pairs."""
Link = Annotated[
    str | None,
    Opt(
        "LINK",
        "Use a named link, such as dsl, leo or policed. `aqmlab list links` prints all names.",
        "--link",
        complete=link_names,
    ),
]
Seed = Annotated[
    list[int] | None,
    Opt("N", "Seed of all random numbers; default: the seed of the scenario.", "--seed"),
]


def _numbers(text: str) -> list[int]:
    """The seeds of a text."""
    from aqmlab.scenario import vary

    return vary.seeds(text)


_SEEDS = ("A..B", "Run once with each of these seeds, such as 1..8 or 1,5,9.", "--seeds")
Seeds = Annotated[str | None, Opt(*_SEEDS)]
SeedNumbers = Annotated[str | None, Opt(*_SEEDS, parse=_numbers)]
SchedulerAddress = Annotated[
    str | None,
    Opt("ADDRESS", "Make the runs on this Dask scheduler, such as tcp://HOST:8786.", "--scheduler"),
]
StoreFolder = Annotated[
    Path,
    Opt(
        "FOLDER", "Folder of the store, which keeps finished runs; default: runs/store.", "--store"
    ),
]
Json = Annotated[bool, Opt("", "Print JSON only.", "--json")]
Tsv = Annotated[
    bool,
    Opt("", "Print tab-separated values only. Numbers are not rounded.", "--tsv"),
]
Format = Annotated[
    Markup | None,
    Opt(
        "",
        "Print only the tables, as LaTeX (booktabs), Markdown or CSV. Numbers are rounded.",
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
    Opt(
        "'NAME = TEXT'",
        "Define your own metric, such as 'late = share(responses.response_s > 1) in %'. "
        "docs/how-to/metrics-of-your-own.md explains how to write one. May be repeated.",
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
    Opt(
        "FILE",
        "Load your own metrics (functions of a run) from a Python file. aqmlab executes the file. "
        "May be repeated.",
        "--metrics",
        callback=_load_metrics,
        is_eager=True,
    ),
]
Jobs = Annotated[
    int | None,
    Opt("N", "Number of runs at the same time; default: the number of processors.", least=1),
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
    Opt(
        "SIZE",
        'Memory limit of all runs together, such as "4 GiB"; default: 90 % of the free memory.',
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
    Opt(
        "FILE",
        "Load your own disciplines and congestion controls from a .py or .so file. aqmlab executes "
        "the file. May be repeated.",
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


def renamed(old: str, new: str) -> Opt:
    """A hidden option that is refused with its new name."""

    def refuse(value: str | None) -> None:
        if value is None:
            return
        raise AqmlabError(f"{old}: is called {new}")

    return Opt("TEXT", "", old, callback=refuse, is_hidden=True)
