"""Completion in bash, zsh and fish: the scripts that ask for it, and what answers them.

The protocol is that of the scripts that are installed already: ``_AQMLAB_COMPLETE=complete_SHELL``.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import BashComplete, CompletionItem, ShellComplete, split_arg_string

from aqmlab.errors import AqmlabError

__all__ = ["VARIABLE", "answer", "install", "script"]


VARIABLE = "_AQMLAB_COMPLETE"
"""What the scripts set."""
_ASK = f"env {VARIABLE}=complete_fish _TYPER_COMPLETE_ARGS=(commandline -cp)"
_SCRIPTS = {
    "bash": rf"""_aqmlab_completion() {{
    local IFS=$'\n'
    COMPREPLY=( $( env COMP_WORDS="${{COMP_WORDS[*]}}" \
                   COMP_CWORD=$COMP_CWORD \
                   {VARIABLE}=complete_bash $1 ) )
    return 0
}}

complete -o default -F _aqmlab_completion aqmlab""",
    "zsh": f"""#compdef aqmlab

_aqmlab_completion() {{
  eval $(env _TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {VARIABLE}=complete_zsh aqmlab)
}}

compdef _aqmlab_completion aqmlab""",
    "fish": "complete --command aqmlab --no-files "
    f'--arguments "({_ASK} _TYPER_COMPLETE_FISH_ACTION=get-args aqmlab)" '
    f'--condition "{_ASK} _TYPER_COMPLETE_FISH_ACTION=is-args aqmlab"',
}
_FILES = {
    "bash": ".bash_completions/aqmlab.sh",
    "zsh": ".zfunc/_aqmlab",
    "fish": ".config/fish/completions/aqmlab.fish",
}
"""Where the scripts go, below the home folder."""


def script(shell: str) -> str:
    """The script of a shell; of the user's, if none is named."""
    return _SCRIPTS[_known(shell)]


def install(shell: str) -> str:
    """Installs the script of a shell; what was done."""
    name = _known(shell)
    file = Path.home() / _FILES[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{_SCRIPTS[name]}\n", encoding="utf-8")
    if name == "bash":
        _add(Path.home() / ".bashrc", f"source '{file}'")
    elif name == "zsh":
        _add(Path.home() / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
    return (
        f"{name} completion installed in {file}\n"
        "Completion will take effect once you restart the terminal"
    )


def _known(shell: str) -> str:
    """The name of a shell for which there is a script."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in _SCRIPTS:
        raise AqmlabError(f'SHELL: found "{name[:40]}"; expected one of {", ".join(_SCRIPTS)}')
    return name


def _add(file: Path, line: str) -> None:
    """Adds a line to a file that lacks it."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if line not in text:
        file.write_text(f"{text}\n{line}\n", encoding="utf-8")


def answer(root: click.Command, instruction: str) -> int:
    """Prints what a script has asked for, ``complete_SHELL``; the exit status."""
    kind = {
        "complete_bash": BashComplete,
        "complete_zsh": _WordCompletion,
        "complete_fish": _WordCompletion,
    }.get(instruction)
    if kind is None:
        click.echo(f'Completion instruction "{instruction}" not supported.', err=True)
        return 1
    completion = kind(root, {}, "aqmlab", VARIABLE)
    found = completion.get_completions(*completion.get_completion_args())
    found = [one for one in found if one.type == "plain"]
    if instruction == "complete_bash":
        click.echo("\n".join(one.value for one in found))
    elif instruction == "complete_zsh":
        words = "\n".join(map(_in_zsh, found))
        click.echo(f"_arguments '*: :(({words}))'" if found else "_files")
    elif os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if found else 1
    else:
        lines = (f"{one.value}\t{' '.join(one.help.split())}" if one.help else one.value
                 for one in found)  # fmt: skip
        click.echo("\n".join(lines))
    return 0


class _WordCompletion(ShellComplete):
    """The words of a command line that zsh and fish hand over as one text."""

    name = "words"
    source_template = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the last one, and what there is of that."""
        text = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = split_arg_string(text)[1:]
        return (words[:-1], words[-1]) if words and not text.endswith(" ") else (words, "")


def _in_zsh(one: CompletionItem) -> str:
    """A word and its meaning between zsh's quotation marks."""
    marks = str.maketrans({'"': '""', "'": "''", "$": "\\$", "`": "\\`", ":": "\\\\:"})
    texts = (str(text).translate(marks) for text in (one.value, one.help) if text)
    return ":".join(f'"{text}"' for text in texts)
