"""How the help names arguments: as ``RUNS...`` and ``[FILE]``.

typer writes ``{RUNS}...`` and the Python type, such as ``<list[Path]>``. Braces look like a choice,
and the type says nothing that the description does not.
"""

from __future__ import annotations

from typing import Any

__all__ = ["name_plainly"]


def name_plainly(command: Any) -> None:  # noqa: ANN401 - click's type
    """Names the arguments of a command, or of the commands of a group, by their names alone."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            _name(parameter)
    inner = getattr(command, "commands", None)
    for each in inner.values() if isinstance(inner, dict) else ():
        name_plainly(each)


def _name(argument: Any) -> None:  # noqa: ANN401 - click's type
    """Replaces what typer asks an argument for its help."""
    many = "..." if argument.nargs != 1 else ""
    of_typer = argument.get_help_record
    usage = f"{argument.metavar}{many}"

    def get_usage_pieces(ctx: Any) -> list[str]:  # noqa: ANN401, ARG001 - click's type
        return [usage if argument.required else f"[{usage}]"]

    def get_help_record(ctx: Any) -> tuple[str, str] | None:  # noqa: ANN401 - click's type
        record = of_typer(ctx)
        if record is None:
            return None
        names, meaning = record
        choices = names.partition(" ")[2] if "|" in names else ""
        return f"{argument.metavar} {choices}".strip(), meaning

    argument.get_usage_pieces = get_usage_pieces
    argument.get_help_record = get_help_record
