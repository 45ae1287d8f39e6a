"""Validation of the disciplines: the headline of each one's own paper, run and checked.

``python -m lab.disciplines.validate`` reads ``lab/disciplines/NAME.toml``, one per discipline (see
:mod:`lab.disciplines.checks`), runs what is missing, judges every check and writes
``docs/validation.md``, ``records/validation.md`` and the figures in ``docs/images/disciplines``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab._util.console import Progress, out
from aqmlab._util.files import write_text

from lab import study
from lab.disciplines.checks import Validation, expected, validate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aqmlab.results.verdict import Verdict

    from lab.disciplines.checks import Check

__all__ = ["answer", "compared", "main"]

_FOLDER = Path("lab/disciplines")
"""Where the validation files are."""
_PAGE = Path("docs/validation.md")
"""What holds of each discipline's promise, and what does not."""
_BY_HAND = "<!-- generated until here -->\n"
"""The page keeps its text after this line."""
_RECORD = Path("records/validation.md")
"""The table of all checks."""
_FIGURES = Path("docs/images/disciplines")
"""Where the figures go, one for each discipline."""


@study.program
def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0 if every check came as its file says, 1 if not, 2 for wrong input."""
    parser = study.parser(__doc__, out="out/validate")
    parser.add_argument("names", nargs="*", help="disciplines; default: all, and the page of them")
    parser.add_argument("--jobs", type=int, help="runs at a time; default: all processors")
    options = parser.parse_args(arguments)
    return _validate_all(options.names, options.out, options.jobs)


def _validate_all(names: Sequence[str], out_dir: Path, jobs: int | None) -> int:
    """Validates some disciplines, or all; prints their tables and writes page and figures."""
    from lab.disciplines.figures import draw

    known = {path.stem: path for path in sorted(_FOLDER.glob("*.toml"), key=lambda it: it.stem)}
    sections, missed, all_verdicts = [], [], []
    for path in study.chosen(known, names, f"there is no {_FOLDER}/{{}}.toml"):
        validation = Validation.load(path)
        with Progress("running") as progress:
            verdicts, results = validate(validation, out_dir / "runs", jobs, progress.update)
        draw(validation, results, _FIGURES / f"{path.stem}.svg", out_dir / f"{path.stem}.png")
        sections.append(_lines(validation, verdicts))
        missed += _missed(validation, verdicts)
        all_verdicts += verdicts
        out(sections[-1])
    if not names:
        written = _PAGE.read_text() if _PAGE.exists() else ""
        _, mark, by_hand = written.partition(_BY_HAND)
        write_text(_PAGE, "\n".join([_page(missed, all_verdicts), mark + by_hand]).strip() + "\n")
        write_text(_RECORD, _record(sections))
    return 0 if all(expected(verdict) for verdict in all_verdicts) else 1


def _lines(validation: Validation, verdicts: Sequence[Verdict]) -> str:
    """A discipline's checks as a section of the page."""
    rows = "\n".join(
        f"| {check.claim} | {validation.quantities[check.quantity].title}{compared(check)} | "
        f"{verdict.measured} | {check.wanted} | {answer(verdict)} |"
        for check, verdict in zip(validation.checks, verdicts, strict=True)
    )
    head = "| check | quantity | measured | wanted | holds |\n| --- | --- | --- | --- | --- |"
    return f"## {_link(validation, '../docs/')}: {validation.title}\n\n{head}\n{rows}\n"


def _link(validation: Validation, docs: str = "") -> str:
    """A link to the page of the discipline, or of what else is validated."""
    return f"[{validation.name}]({docs}{validation.page_of})"


def _missed(validation: Validation, verdicts: Sequence[Verdict]) -> list[str]:
    """The checks that fail, a row for each."""
    return [
        f"| {_link(validation)} | {check.claim} | {verdict.measured} | {check.wanted} | "
        f"{verdict.caveat or '**not known**'} |"
        for check, verdict in zip(validation.checks, verdicts, strict=True)
        if not verdict.holds
    ]


def answer(verdict: Verdict) -> str:
    """Whether a check holds, in words."""
    if verdict.holds:
        return "yes, against the known miss" if verdict.caveat else "yes"
    return f"no: {verdict.caveat}" if verdict.caveat else "**no**"


def compared(check: Check) -> str:
    """What becomes of the quantity before it is judged."""
    windows = ", ".join(f"{low:g} to {high:g}" for low, high in check.windows_s)
    during = f", during {windows} s" if windows else ""
    spread = ", largest over smallest" if check.across == "spread" else ""
    relative = f", over that of {check.relative_to}" if check.relative_to else ""
    return during + spread + relative


def _page(missed: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """The page: how many checks hold, and those that fail."""
    held = sum(bool(verdict.holds) for verdict in verdicts)
    intro = (
        f"{held} of {len(verdicts)} checks hold. A check is what a discipline's own paper "
        "promises, run and measured. `make validate` runs `lab/disciplines/NAME.toml`, and writes "
        "this page, [the table of every check](../records/validation.md) and the figures.\n\n"
        "Most disciplines also follow traces of an independent script row by row, to 1e-9 "
        "(`crates/aqm/tests/worked`). Tests with random events show that each discipline keeps "
        "its packets, limit and order, and marks only ECN-capable packets.\n"
    )
    parts = ["# Validation of the disciplines\n", intro]
    if missed:
        head = "| discipline | check | measured | wanted | why |\n| --- | --- | --- | --- | --- |"
        parts += ["## What does not hold\n", "\n".join([head, *missed]) + "\n"]
    return "\n".join(parts)


def _record(sections: Sequence[str]) -> str:
    """The table of every check."""
    head = (
        "# Validation of the disciplines: every check\n\n"
        "[Summary](../docs/validation.md). `make validate` writes this page.\n"
    )
    return "\n".join([head, *sections])


if __name__ == "__main__":
    sys.exit(main())
