"""``aqmlab evaluate suite control-cases``: which cases hold, which fail, and their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab._util.console import Progress, print_json, say, show
from aqmlab._util.files import check_output_folder
from aqmlab._util.table import Cell, TableModel
from aqmlab._util.words import counted
from aqmlab.cards import candidates, case_files, cases
from aqmlab.cards.suites import Row
from aqmlab.errors import AqmlabError, RunError

__all__ = ["run_cases"]


_TONES = {"holds": "better", "fails": "worse", "n/a": "clear"}


def run_cases(
    rows: Sequence[Row],
    queue: str | None,
    control: str | None,
    ecn: str,
    seeds: Sequence[int] | None,
    allowed: Sequence[str],
    how: Mapping[str, Any],
    folder: Path | None = None,
    *,
    as_json: bool,
) -> None:
    """Runs the cases and prints them, and writes them to a folder if there is one.

    A case that fails and is not allowed ends with status 1.
    """
    if control is None:
        raise AqmlabError("--control: found none; the cases of this suite are about a control")
    found = candidates.with_ecn(candidates.control(control), ecn)
    under_test = candidates.candidate(queue or candidates.DROPTAIL)
    if folder is not None:
        check_output_folder(folder)
    with Progress("evaluate") as progress:
        judged = cases.judged(
            rows,
            under_test,
            found,
            seeds=seeds or (1,),
            progress=progress.task(found.name),
            **how,
        )
    if as_json:
        print_json({"control": found.name, "rows": [_to_json(case) for case in judged]})
    else:
        show(*_tables(judged))
    if folder is not None:
        files = [*case_files.written(judged, under_test, found, folder)]
        say(f"cases and scenarios: {folder} ({counted(len(files), 'file')})")
    failed = [case.row.id for case in judged if case.verdict == "fails"]
    if wrong := [one.error for case in judged for one in case.shown if one.error]:
        raise RunError(f"{len(wrong)} runs failed; the first: {wrong[0]}")
    if unknown := [name for name in failed if name not in allowed]:
        raise RunError(f"{found.name} fails: {', '.join(unknown)}")


def _to_json(case: cases.CaseOutcome) -> dict[str, Any]:
    """A case for other programs."""
    row = case.row
    return {
        "id": row.id,
        "section": row.section,
        "scenario": row.scenario,
        "verdict": case.verdict,
        "rule": row.holds,
        "expect": row.expect,
        "numbers": [
            {
                "setting": one.setting,
                "seed": one.seed,
                "holds": one.holds,
                "error": one.error,
                **one.numbers,
            }
            for one in case.shown
        ],
    }


def _tables(judged: Sequence[cases.CaseOutcome]) -> Iterator[str | TableModel]:
    """A row for each setting and seed, and how many cases hold."""
    table = TableModel("", ["case", "verdict", "setting"], texts=["numbers", "holds if"])
    several = any(one.seed != case.shown[0].seed for case in judged for one in case.shown)
    for case in judged:
        for number, one in enumerate(case.shown):
            said = ", ".join(f"{name} {_format(value)}" for name, value in one.numbers.items())
            setting = f"{one.setting} seed {one.seed}".strip() if several else one.setting
            word = {True: "holds", False: "fails", None: "n/a"}[one.holds]
            rule = case.row.holds if number == 0 else ""
            table.add_row(case.row.id, Cell(word, _TONES[word]), setting, said or "-", rule)
    yield table
    verdicts = [case.verdict for case in judged]
    yield ", ".join(
        f"{verdicts.count(word)} {said}"
        for word, said in (("holds", "hold"), ("fails", "fail"), ("n/a", "not applicable"))
        if word in verdicts
    )


def _format(value: float | None) -> str:
    """A number in three digits."""
    return "-" if value is None else f"{value:.3g}"
