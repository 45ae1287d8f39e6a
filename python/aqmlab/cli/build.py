"""Commands out of functions: types give the parsers, docstrings the help, ``Opt`` the rest.

::

    def command(file: Path, *, directory: Path | None = None, tier: str = "quick") -> None:
        \"\"\"Do something.

        Options:
            file (FILE): What is read.
            directory (--out FOLDER): Where it goes; default: here.
            tier (TIER): Which tests.
        \"\"\"

A parameter by position is an argument, one by name an option. In parentheses stand the names of an
option, unless it is called as the parameter, and what stands for its value, unless it has none or
the choices are named. An annotation with :class:`Opt` or :class:`Arg` says all of this itself.
A parameter whose type is a dataclass stands for the options that are its fields, and the
docstring of the dataclass describes them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import click
from click.exceptions import NoSuchCommand

import aqmlab
from aqmlab._util.words import capital
from aqmlab.errors import AqmlabError

__all__ = [
    "METAVAR",
    "Arg",
    "Command",
    "Either",
    "Group",
    "Opt",
    "built",
    "made",
    "modes",
    "part",
    "refuse_beside",
]


METAVAR = "COMMAND [ARGS]..."
"""What stands for the commands of a group in its usage."""
_Function = Callable[..., Any]
_HEAD = re.compile(r"\n\n(?:Options|Args):\n")
_ENTRY = re.compile(r"^    (\w+)(?: \(([^)]*)\))?: (.*(?:\n     .*)*)$", re.MULTILINE)


class Opt:
    """What neither the type nor the docstring says of an option.

    Args:
        metavar: what stands for the value in the help; empty: the choices that there are.
        help: what it means; empty: what the docstring says.
        names: what it is called; none: as the parameter, after two dashes.
        least: the least number.
        most: the largest number.
        callback: called with the value before the command; what it returns is the value.
        is_eager: whether that comes before the other parameters.
        complete: the values that begin with a text.
        parse: makes the value of a text, or of the texts of an option that may be repeated.
        is_hidden: whether the help leaves it out.
    """

    def __init__(
        self,
        metavar: str = "",
        help: str = "",  # noqa: A002 - as click calls it
        *names: str,
        least: float | None = None,
        most: float | None = None,
        callback: Callable[[Any], Any] | None = None,
        is_eager: bool = False,
        complete: Callable[[str], list[Any]] | None = None,
        parse: Callable[[Any], Any] | None = None,
        is_hidden: bool = False,
    ) -> None:
        self.metavar = metavar
        self.help = help
        self.names = names
        self.bounds = (least, most)
        self.callback = callback
        self.is_eager = is_eager
        self.complete = complete
        self.parse = parse
        self.is_hidden = is_hidden


class Arg(Opt):
    """What neither the type nor the docstring says of an argument."""


_LEFT = object()
"""A value that is left to the function, whose default only its module knows."""


def built(function: _Function | str, **options: Any) -> Callable[[_Function], _Function]:  # noqa: ANN401
    """Gives a command the parameters of a function of the package.

    The command gets the function with what was given filled in, as its first argument, and calls it
    with what only Python knows, such as ``progress``::

        @built("aqmlab.sweeps.campaign.sweep", out=Opt("FOLDER"), verify=Opt())
        def command(made: partial[pa.Table], *, as_json: Json = False) -> None:
            print(made(progress=False).num_rows)

    Args:
        function: the function, or where it is: then its source is read, and its module is imported
            when the command runs. `Args:` of its docstring gives the help.
        options: its parameters that are on the command line, each with an ``Opt`` or ``Arg``, or
            with a type, annotated with one of them, that replaces that of Python.
    """

    def decorate(command: _Function) -> _Function:
        documentation, parameters = _read(function) if isinstance(function, str) else (
            inspect.getdoc(function), inspect.signature(function).parameters.values()
        )  # fmt: skip
        names = {"Path": Path, "os": os, **getattr(function, "__globals__", {})}
        _, entries = _described(documentation)
        listed = []
        for one in parameters:
            if one.name in options:
                kind, opt = _annotated(options[one.name])
                opt.help = opt.help or _sentence(entries[one.name][1])
                kind = eval(one.annotation, names) if kind is None else kind
                kind = Annotated[kind, opt]
                listed.append(one.replace(annotation=kind, kind=one.KEYWORD_ONLY))
        unknown = options.keys() - {one.name for one in listed}
        if unknown:
            raise TypeError(f"{', '.join(sorted(unknown))}: no parameters of the function")
        _, *own = inspect.signature(command).parameters.values()
        own = [one.replace(annotation=eval(one.annotation, command.__globals__)) for one in own]

        def call(**values: Any) -> None:  # noqa: ANN401 - checked by the parameters' types
            called = _imported(function) if isinstance(function, str) else function
            given = {one.name: values.pop(one.name, one.default) for one in listed}
            filled = {name: value for name, value in given.items() if value is not _LEFT}
            command(partial(called, **filled), **values)

        first = [one for one in own if one.kind is not one.KEYWORD_ONLY]
        vars(call)["__signature__"] = inspect.Signature([*first, *listed, *own[len(first) :]])
        call.__doc__ = command.__doc__
        return call

    return decorate


def _imported(place: str) -> _Function:
    """The function at a place, whose module is imported."""
    module, _, name = place.rpartition(".")
    found: _Function = getattr(importlib.import_module(module), name)
    return found


def _read(place: str) -> tuple[str | None, list[inspect.Parameter]]:
    """The docstring of a function and its parameters, from its source."""
    module, _, name = place.rpartition(".")
    file = Path(aqmlab.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    [*_, node] = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    first, named = node.args.args, node.args.kwonlyargs
    defaults = [None] * (len(first) - len(node.args.defaults)) + [*node.args.defaults]
    return ast.get_docstring(node), [
        inspect.Parameter(
            one.arg,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is None else _literal(default),
            annotation=ast.unparse(one.annotation) if one.annotation else "str",
        )
        for one, default in zip([*first, *named], [*defaults, *node.args.kw_defaults], strict=True)
    ]


def _literal(default: ast.expr) -> object:
    """A default that stands in the source, or none."""
    try:
        return ast.literal_eval(default)
    except ValueError:
        return _LEFT


def _annotated(declared: Any) -> tuple[Any, Opt]:  # noqa: ANN401 - types
    """A type, if there is one, and what is said beside it."""
    if isinstance(declared, Opt):
        return None, declared
    kind, *more = get_args(declared)
    return kind, next(one for one in more if isinstance(one, Opt))


def _sentence(text: str) -> str:
    """What a docstring says of an argument, as the help has it."""
    return capital(text.replace("``", ""))


def part(
    whole: _Function,
    about: str,
    required: str,
    arguments: str,
    options: str,
    **fixed: Any,  # noqa: ANN401 - values of any type
) -> _Function:
    """A command that is a part of a larger command: it has some of its parameters.

    Args:
        whole: the larger command.
        about: what the help says of the part.
        required: parameters that are arguments of the part and have to be given, between blanks.
        arguments: those that are arguments and may be left out.
        options: those that are options of it.
        fixed: values of others.
    """
    of_whole = {one.name: one for one in _parameters(whole)}
    listed, spelled = [], {}
    for name in f"{required} {arguments} {options}".split():
        one = of_whole[name]
        kind, opt = _annotated(one.annotation)
        if name not in options.split():
            spelled[f"--{name}"] = opt.metavar
            opt = Arg(opt.metavar, opt.help)
            one = one.replace(kind=one.POSITIONAL_OR_KEYWORD)
        if name in required.split():
            one, kind = one.replace(default=one.empty), get_args(kind)[0]
        listed.append(one.replace(annotation=Annotated[kind, opt]))

    def call(**values: Any) -> None:  # noqa: ANN401 - checked by the parameters' types
        try:
            whole(**fixed, **values)
        except AqmlabError as error:
            place, colon, rest = str(error).partition(":")
            if place not in spelled:
                raise
            raise type(error)(f"{spelled[place]}{colon}{rest}") from None

    vars(call)["__signature__"] = inspect.Signature(listed)
    call.__doc__ = about
    return call


def modes(**others: _Function) -> Callable[[_Function], _Function]:
    """Gives a command other functions, each of which an option of its name chooses.

    Each function has the parameters that it needs. Parameters of the others are refused beside it::

        @modes(doctor=examine)
        def command(program: list[str] | None = None, *, link: LinkOptions) -> None: ...

    Args:
        others: the functions, by the parameter that chooses each.
    """

    def decorate(own: _Function) -> _Function:
        listed: dict[str, inspect.Parameter] = {}
        for found in (one for function in (own, *others.values()) for one in _parameters(function)):
            one = found
            if one.name in others:
                kind, _ = _annotated(one.annotation)
                one = one.replace(default=False if kind is bool else None)
            listed.setdefault(one.name, one)

        def call(**values: Any) -> None:  # noqa: ANN401 - checked by the parameters' types
            given = [name for name, value in values.items() if value != listed[name].default]
            chosen = next((name for name in others if name in given), "")
            function = others.get(chosen, own)
            takes = {one.name for one in _parameters(function)}
            if chosen:
                left = {_spelled(listed[name]): name for name in given if name not in takes}
                refuse_beside(left, _spelled(listed[chosen]), "which does not take it")
            function(**_grouped(function, values))

        vars(call)["__signature__"] = inspect.Signature(list(listed.values()))
        call.__doc__, _ = _described(inspect.getdoc(own))
        return call

    return decorate


def refuse_beside(given: Mapping[str, object], option: str, why: str) -> None:
    """An error if something was given that has no place beside an option.

    Args:
        given: what was given, by what it is called; None: it was not.
        option: the option.
        why: why it has no place there.
    """
    for name, value in given.items():
        if value is not None:
            raise AqmlabError(f"{name}: found one beside {option}, {why}")


def _grouped(function: _Function, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function, those of a group together."""
    found = {}
    for one in inspect.signature(function, eval_str=True).parameters.values():
        if is_dataclass(one.annotation):
            group: Any = one.annotation
            names = inspect.signature(group).parameters
            found[one.name] = group(**{name: values[name] for name in names})
        else:
            found[one.name] = values[one.name]
    return found


def _spelled(one: inspect.Parameter) -> str:
    """What a parameter is called on the command line."""
    _, opt = _annotated(one.annotation)
    if isinstance(opt, Arg):
        return one.name
    return opt.names[0].partition("/")[0] if opt.names else f"--{one.name.replace('_', '-')}"


def _parameters(function: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - or a group
    """A command's parameters, each annotated with its type and what is said of it.

    Groups are spread: a dataclass stands for its fields.
    """
    _, entries = _described(inspect.getdoc(function))
    found = []
    for one in inspect.signature(function, eval_str=True).parameters.values():
        kind, opt = one.annotation, None
        if is_dataclass(kind):
            found += _parameters(kind)
            continue
        if get_origin(kind) is Annotated:
            kind, opt = _annotated(kind)
        opt = opt or _declared(one, *entries.pop(one.name, ("", "")))
        found.append(one.replace(annotation=Annotated[kind, opt]))
    if entries:
        raise TypeError(f"{', '.join(entries)}: described, but no parameters of the command")
    return found


def _described(documentation: str | None) -> tuple[str, dict[str, tuple[str, str]]]:
    """What a docstring says, and by parameter what stands in parentheses and what it is."""
    about, *rest = _HEAD.split(documentation or "", maxsplit=1)
    listed = rest[0].split("\n\n")[0] if rest else ""
    found = _ENTRY.findall(listed)
    return about, {name: (how, " ".join(text.split())) for name, how, text in found}


def made(function: _Function, name: str, **settings: Any) -> Command:  # noqa: ANN401 - click's
    """A function as a command."""
    parameters: list[click.Parameter] = []
    for one in _parameters(function):
        kind, opt = _annotated(one.annotation)
        parameters.append((_Argument if isinstance(opt, Arg) else _Option)(one, kind, opt))
    about, _ = _described(inspect.getdoc(function))
    return Command(name, callback=function, params=parameters, help=about, **settings)


def _declared(one: inspect.Parameter, how: str, meaning: str) -> Opt:
    """What a docstring says of a parameter."""
    words = how.split()
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    kind = Opt if one.kind is one.KEYWORD_ONLY else Arg
    return kind(" ".join(words[len(names) :]), meaning, *names)


class _Choices(click.Choice[Any]):
    """One of some words, or the member of an enumeration that has it as its value."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(list(values))
        self.values = values

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - click's types
        if isinstance(value, Enum):
            return value
        return self.values[super().convert(value, param, ctx)]


class _Number(click.ParamType[Any]):
    """A number within bounds."""

    name = "number"

    def __init__(self, kind: type[float], least: float | None, most: float | None) -> None:
        self.kind, self.least, self.most = kind, least, most

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - click's types
        text = str(value)
        try:
            found = self.kind(re.sub(r"\.0+$", "", text) if self.kind is int else text)
        except ValueError:
            found = None
        least, most = self.least, self.most
        if found is None or not (
            (least is None or least <= found) and (most is None or found <= most)
        ):
            ends = (("at least", least), ("at most", most))
            bounds = [f"{words} {end:,.15g}" for words, end in ends if end is not None]
            name = "a whole number" if self.kind is int else "a number"
            wanted = ", ".join([name, *([" and ".join(bounds)] if bounds else [])])
            self.fail(f"found {text[:40] or 'nothing'}; expected {wanted}", param, ctx)
        return found

    @property
    def bounds(self) -> str:
        """The bounds as the help has them; empty: there are none."""
        if self.most is None:
            return f"at least {self.least:,.15g}"
        if self.least is None:
            return f"at most {self.most:,.15g}"
        return f"{self.least:,.15g} to {self.most:,.15g}"


class _File(click.ParamType[Path]):
    """A path: of a file that can be read, if it is there."""

    name = "path"

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:  # noqa: ANN401 - click's types
        path = Path(value)
        if "\0" in str(value) or (path.exists() and not os.access(path, os.R_OK)):
            self.fail(f"Path {str(value)!r} is not readable.", param, ctx)
        return path


def _type(kind: Any, opt: Opt) -> click.ParamType[Any]:  # noqa: ANN401 - a type
    """What reads the values of a type."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return _Choices({word: word for word in parts})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Choices({member.value: member for member in kind})
    if kind in (int, float):
        return _Number(kind, *opt.bounds)
    if kind is Path or any(get_origin(one) is os.PathLike for one in parts):
        return _File()
    if kind is str or str in parts or opt.parse is not None:
        return click.STRING
    raise TypeError(f"{kind}: no parser; give the parameter another type")


class _Parameter(click.Parameter):
    """What arguments and options share: their types, and their lines of the help."""

    opt: Opt

    def _settings(self, one: inspect.Parameter, kind: Any, opt: Opt) -> dict[str, Any]:  # noqa: ANN401
        """What click is given of a parameter."""
        self.opt = opt
        required = one.default is one.empty
        if type(None) in get_args(kind):
            required = False
            optional = [part for part in get_args(kind) if part is not type(None)]
            kind = optional[0] if len(optional) == 1 else kind
        self.is_list = get_origin(kind) is list
        if self.is_list:
            [kind] = get_args(kind)
        self.fallback = [] if one.default is one.empty else one.default
        self.shown = one.default if isinstance(one.default, str | int | float | Path) else None
        return {
            **({"is_flag": True} if kind is bool else {"type": _type(kind, opt)}),
            **({} if required else {"default": self.shown}),
            "required": required,
            "metavar": opt.metavar or None,
            "callback": None if opt.callback is None and opt.parse is None else self._called,
            "is_eager": opt.is_eager,
            "shell_complete": None if opt.complete is None else self._completed,
        }

    def _called(self, _: click.Context, __: click.Parameter, value: Any) -> Any:  # noqa: ANN401
        """The value as the option's own functions make it."""
        value = list(value) if self.is_list else value
        value = self.opt.callback(value) if self.opt.callback else value
        return value if value in (None, []) or not self.opt.parse else self.opt.parse(value)

    def _completed(self, _: click.Context, __: click.Parameter, text: str) -> list[Any]:
        """The values that begin with a text, as click has them."""
        from click.shell_completion import CompletionItem

        assert self.opt.complete is not None
        pairs = [(one, None) if isinstance(one, str) else one for one in self.opt.complete(text)]
        return [CompletionItem(name, help=meaning) for name, meaning in pairs]

    def process_value(self, ctx: click.Context, value: Any) -> Any:  # noqa: ANN401 - click's
        """The value; several are a list. What is not given is as the function has it."""
        found = super().process_value(ctx, value)
        if found is None or (self.is_list and not found):
            return self.fallback
        return list(found) if isinstance(found, tuple) else found

    @property
    def choices(self) -> str:
        """The choices, as the help names them; empty: there are none."""
        return f"<{'|'.join(self.type.values)}>" if isinstance(self.type, _Choices) else ""

    @property
    def meaning(self) -> str:
        """What the help says of it: its meaning, default and bounds."""
        default = self.shown.value if isinstance(self.shown, Enum) else self.shown
        if isinstance(default, bool):
            default = self.opts[0].lstrip("-") if default and self.secondary_opts else ""
        extra = []
        if default is not None and str(default) and "default: " not in self.opt.help:
            extra.append(f"default: {default}")
        if isinstance(self.type, _Number) and (self.type.least, self.type.most) != (None, None):
            extra.append(self.type.bounds)
        if self.required:
            extra.append("required")
        return self.opt.help + (f"  [{'; '.join(extra)}]" if extra else "")


class _Argument(_Parameter, click.Argument):
    """An argument."""

    def __init__(self, one: inspect.Parameter, kind: Any, opt: Opt) -> None:  # noqa: ANN401
        settings = self._settings(one, kind, opt)
        nargs = -1 if self.is_list else 1
        super().__init__([one.name], nargs=nargs, **settings)

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002 - click's
        """What stands for it."""
        return self.human_readable_name

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """What the usage shows."""
        usage = self.make_metavar(ctx) + ("..." if self.is_list else "")
        return [usage if self.required else f"[{usage}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """What it is called, and what it means."""
        return f"{self.make_metavar(ctx)} {self.choices}".strip(), self.meaning


class _Option(_Parameter, click.Option):
    """An option."""

    def __init__(self, one: inspect.Parameter, kind: Any, opt: Opt) -> None:  # noqa: ANN401
        settings = self._settings(one, kind, opt)
        names = opt.names or (f"--{one.name.replace('_', '-')}",)
        super().__init__(
            [one.name, *names], multiple=self.is_list, hidden=opt.is_hidden, **settings
        )

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002 - click's
        """What stands for its value."""
        return self.metavar or self.choices

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """What it is called, and what it means."""
        found = super().get_help_record(ctx)
        return found and (found[0], self.meaning)


class Command(click.Command):
    """A command."""

    params: list[Any]

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the arguments."""
        rows = [one.get_help_record(ctx) for one in self.params if isinstance(one, _Argument)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)


class _Commands:
    """Commands that are made when they are asked for."""

    functions: Mapping[str, _Function]
    commands: MutableMapping[str, click.Command]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """The commands' names."""
        return list(self.functions)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """A command."""
        if cmd_name not in self.commands and (function := self.functions.get(cmd_name)):
            self.commands[cmd_name] = made(function, cmd_name)
        return self.commands.get(cmd_name)


class Either(_Commands, Command):
    """A command whose first argument may be the name of a further command.

    Args:
        name: what it is called.
        functions: functions of the further commands, by name.
        own: the command's own function.
        old: parameters that the help leaves out: other commands have them.
    """

    def __init__(
        self, name: str, functions: Mapping[str, _Function], own: _Function, old: Collection[str]
    ) -> None:
        found = made(own, name)
        for one in found.params:
            one.hidden = one.name in old
        super().__init__(name, callback=own, params=found.params, help=found.help)
        self.functions, self.commands = functions, {}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the other commands."""
        click.Group.format_commands(self, ctx, formatter)  # type: ignore[arg-type]


class Group(_Commands, click.Group):
    """A group of commands.

    Args:
        name: what it is called.
        functions: the commands' functions by name.
        own: the group's function. It is called before a command; alone, if it has parameters.
    """

    def __init__(self, name: str, functions: Mapping[str, _Function], own: _Function) -> None:
        found = made(own, name)
        self.functions = functions
        super().__init__(
            name,
            callback=own,
            params=found.params,
            help=found.help,
            invoke_without_command=bool(found.params),
            no_args_is_help=not found.params,
            subcommand_metavar=METAVAR,
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with; an unknown one is compared with all names."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=self.functions, ctx=ctx) from None
