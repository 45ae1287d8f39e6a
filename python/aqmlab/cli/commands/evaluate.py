"""``aqmlab evaluate``: the report card of a queue or a control, and suites of tests."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from aqmlab._util.console import Progress, out, print_json, say, show
from aqmlab._util.files import check_output_folder, write_text
from aqmlab._util.places import RUNS_ROOT
from aqmlab._util.words import counted
from aqmlab.cards import candidates, cases, leaderboard, overview, suites, worst_search
from aqmlab.cards import junit as card_junit
from aqmlab.cards.campaign import Role, without_place
from aqmlab.cards.card import TIERS, Card, card_rows
from aqmlab.cards.evaluation import evaluate
from aqmlab.cards.findings import ORDER
from aqmlab.cards.kinds import CONTROL, QUEUE, Kind
from aqmlab.cards.regression import Comparison
from aqmlab.cards.worst import FILE
from aqmlab.cards.worst_search import SEEDS, TRIALS
from aqmlab.cli import evaluate_tables, worst_tables
from aqmlab.cli.build import Arg, Opt, built, part
from aqmlab.cli.evaluate_cases import run_cases
from aqmlab.cli.options import (
    Jobs,
    Json,
    Memory,
    MetricFiles,
    OwnMetrics,
    SchedulerAddress,
    SeedNumbers,
    StoreFolder,
)
from aqmlab.engine.store import STORE_ROOT
from aqmlab.errors import AqmlabError, RunError

__all__ = ["COMMANDS", "OLD", "command"]


_ENOUGH = range(1, 11)
"""Seeds of the first reference of a comparison."""
_FEW = 6
"""With fewer seeds than this Holm's correction leaves hardly any difference clear."""


def _split(text: str | None) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


@built(
    "aqmlab.cards.evaluation.evaluate",
    queue=Annotated[str | None, Arg("QUEUE")],
    control=Annotated[str | None, Opt("CONTROL")],
    ecn=Opt("WAY"),
    tier=Opt("TIER"),
    baselines=Annotated[str | None, Opt("NAME,...", "", "--baseline", parse=_split)],
    only=Annotated[str | None, Opt("TEST,...", parse=_split)],
    seeds=SeedNumbers,
    jobs=Jobs,
    scheduler=SchedulerAddress,
    store=StoreFolder,
    sealed=Opt("WORD"),
    measures=Annotated[Path | None, Opt("FILE")],
    keep_going=Opt(),
)
def command(
    made: partial[Card],
    *,
    everything: bool = False,
    all_controls: bool = False,
    suite: str | None = None,
    listed: bool = False,
    weights: str | None = None,
    worst: bool = False,
    trials: Annotated[
        int | None,
        Opt("N", f"Number of scenarios to try; default: {TRIALS}."),
    ] = None,
    allow: str | None = None,
    write: Path | None = None,
    directory: Path | None = None,
    against: Path | None = None,
    update: bool = False,
    junit: Path | None = None,
    markdown: Path | None = None,
    as_json: Json = False,
    memory: Memory = None,  # noqa: ARG001 - its callback has set it
    metrics: OwnMetrics = None,
    metric_files: MetricFiles = None,
) -> None:
    """Make a report card of a queue or a congestion control.

    The command compares the candidate, the queue or control under test, with baselines. Baselines
    are queues or controls in use today. The card grades areas such as delay, users and fairness. A
    gate is a check for a serious fault. A finding is a check of how a queue treats one kind of
    packets. The same command continues an interrupted evaluation.

    The suites bbr-draft and control-cases have no card. Each of their cases passes or fails.

    The exit status is 1 if a run of the candidate, a gate, a finding or a case fails. With
    --against, it is 1 if a run of the candidate fails, or if a result is clearly worse than in the
    other card.

    Options:
        everything (--all): Make a card of every shipped discipline, and a table of all grades.
        all_controls (--all-controls): Make a card of every shipped congestion control, and a table
            of all grades.
        suite (SUITE): Name of the suite: rfc7928, rfc9743, tcpeval, rfc8867, responsiveness,
            access, bbr-draft, control-cases, card or card-controls.
        listed (--list): Print the tests, with the number and length of their runs, and run nothing.
        weights (AREA=WEIGHT,...): Print an overall grade with these weights, such as
            users=2,delay=1.
        worst (--worst): Search for the scenario in which the candidate is worst, compared with the
            baselines.
        allow (NAME,...): Ignore failures of these gates, findings and cases in the exit status.
        write (FOLDER): Write the scenario file of each test to FOLDER, and run nothing.
        directory (--out FOLDER): Folder of the card; default: runs/cards/QUEUE, or runs/worst/QUEUE
            for `evaluate worst`. The suites bbr-draft and control-cases write cases.csv and their
            scenarios only if you state FOLDER.
        against (CARD): Compare the new card with this card.json.
        update (--update): Replace the file of --against by the new card.
        junit (FILE): Write gates, findings and grades as JUnit XML. With --against, write the
            comparison instead.
        markdown (FILE): With --against, append the comparison to FILE as Markdown.
    """
    asked = made.keywords
    queue, control, ecn, tier = (asked[name] for name in ("queue", "control", "ecn", "tier"))
    baselines, words, numbers = asked["baselines"] or None, [*asked["only"]], asked["seeds"]
    _check_own(
        {"--metric": metrics, "--metrics": metric_files, "--measures": asked["measures"]},
        {
            "--all": everything,
            "--all-controls": all_controls,
            "--suite": suite,
            "--write": write,
            "--worst": worst,
            "--list": listed,
        },
    )
    _allowed(allow, suites.rows(suite) if suite else ())
    _check_pairs("--against", against, {"--update": update, "--markdown": markdown})
    _check_pairs("--control", control, {"--ecn": ecn != "none"})
    _check_pairs("--worst", worst or None, {"--trials": trials})
    _check_tier(tier)
    if listed:
        _list(suite, tier, words, CONTROL if control else QUEUE, as_json=as_json)
        return
    wanted = None if weights is None else _weights(weights, CONTROL if control else QUEUE)
    how: dict[str, Any] = {
        "jobs": asked["jobs"],
        "scheduler": asked["scheduler"],
        "store": asked["store"] or STORE_ROOT,
        "say": say,
    }
    if everything or all_controls:
        others = {
            "QUEUE": queue,
            "--control": control,
            "--suite": suite,
            "--write": write,
            "--against": against,
            "--worst": worst or None,
            "--all-controls": (everything and all_controls) or None,
        }
        _refuse_beside("--all" if everything else "--all-controls", others)
        _all(
            leaderboard.QUEUES if everything else leaderboard.CONTROLS,
            directory,
            tier=tier,
            baselines=baselines,
            only=words,
            seeds=numbers,
            how=how,
            as_json=as_json,
        )
        return
    if queue is None and control is None:
        raise AqmlabError(
            "QUEUE: found none; expected a plug-in file, a preset or a kind, such as fq-codel, or "
            "--control; --list prints the tests"
        )
    if suite is not None or write is not None:
        if against is not None:
            raise AqmlabError("--against: found it with a suite; only cards are compared")
        _suite(
            *(suite, tier, words, queue, control, ecn, write, directory, numbers, allow, how),
            as_json=as_json,
        )
        return
    if queue is not None and control is not None:
        raise AqmlabError(
            f"--control: found it with the queue {queue[:40]}; a card is about one of the two"
        )
    if worst:
        _refuse_beside("--worst", {"--against": against, "--only": words or None})
        _worst(
            directory,
            queue=queue,
            control=control,
            ecn=ecn,
            baselines=baselines,
            trials=trials,
            seeds=numbers,
            how=how,
            as_json=as_json,
        )
        return
    reference = _reference(against, update=update)
    if numbers is None and against is not None:
        numbers = [*(_ENOUGH if reference is None else reference.seeds)]
    with Progress("evaluate") as progress:
        card = made(
            baselines=baselines,
            seeds=numbers,
            progress=progress.task(queue or control or ""),
            **how,
        )
    comparison = None if reference is None else card.compare(reference)
    evaluate_tables.print_card(card, directory, comparison, wanted, as_json=as_json)
    if update and against is not None:
        evaluate_tables.write_card(card, against)
    if comparison is not None:
        _report(comparison, junit, markdown)
        if comparison.regressions and not update:
            found = counted(len(comparison.regressions), "regression")
            raise RunError(f"{found} against {against}; the first: {comparison.regressions[0]}")
    elif junit is not None:
        write_text(junit, card_junit.junit(card))
    _end(card, _allowed(allow), counts=comparison is None)


def _check_own(own: Mapping[str, object], others: Mapping[str, object]) -> None:
    """An error where metrics of one's own stand beside what makes no single card."""
    for name, given in own.items():
        for other, value in others.items():
            if given and value:
                raise AqmlabError(f"{name}: found it with {other}; only a card shows your metrics")


def _allowed(text: str | None, cases_of: Sequence[suites.Row] = ()) -> list[str]:
    """Gates, findings and cases that may fail.

    Raises:
        AqmlabError: there is none of a name.
    """
    known = [*(rule.name for kind in (QUEUE, CONTROL) for rule in kind.gates), *ORDER]
    known = [row.id for row in cases_of if row.holds] or known
    what = "case" if any(row.holds for row in cases_of) else "gate and no finding"
    found = _split(text)
    for name in found:
        if name not in known:
            raise AqmlabError(
                f'--allow: found "{name[:40]}", which is no {what}; expected some of '
                f"{', '.join(dict.fromkeys(known))}"
            )
    return found


def _end(card: Card, allowed: Sequence[str], *, counts: bool) -> None:
    """Ends with status 1 if a run of the candidate failed, or a gate or finding that counts."""
    if card.failures:
        cell, seed, why = card.failures[0]
        count = counted(len(card.failures), "run")
        raise RunError(f"{count} of {card.name} failed; the first, {cell} with seed {seed}: {why}")
    failed = card.failing(allowed)
    if counts and failed:
        raise RunError(f"{card.name} fails: {', '.join(failed)}")


def _all(
    board: leaderboard.Board,
    directory: Path | None,
    *,
    tier: str,
    baselines: Sequence[str] | None,
    only: Sequence[str],
    seeds: Sequence[int] | None,
    how: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Makes the cards one after the other; what the store has is not run again."""
    from aqmlab._util import drawing  # noqa: F401 - fails before the work: the table is a page

    folder = directory or RUNS_ROOT / "cards"
    check_output_folder(folder)
    cards = []
    with Progress("evaluate") as progress:
        for entry in leaderboard.entries(board):
            is_queue = board is leaderboard.QUEUES
            card = evaluate(
                entry.text if is_queue else None,
                control=None if is_queue else entry.text,
                ecn=entry.ecn,
                tier=tier,
                baselines=baselines,
                only=only,
                seeds=seeds,
                progress=progress.task(entry.kind),
                **how,
            )
            evaluate_tables.written(card, folder / evaluate_tables.folder_name(card.name))
            cards.append((entry, card))
    rows = leaderboard.rows_of(cards)
    names = {entry.kind: evaluate_tables.folder_name(card.name) for entry, card in cards}
    files = leaderboard.write(rows, [names[row["kind"]] for row in rows], folder, board)
    if as_json:
        print_json(rows)
        return
    show(leaderboard.table(rows, board))
    out("")
    for limit in board.limits:
        for line in textwrap.wrap(limit, 80, initial_indent="- ", subsequent_indent="  "):
            out(line)
    out("")
    for line in textwrap.wrap(
        f"written: {len(cards)} cards below {folder}, {', '.join(map(str, files))}", 80
    ):
        out(line)


def _worst(
    directory: Path | None,
    *,
    queue: str | None,
    control: str | None,
    ecn: str,
    baselines: Sequence[str] | None,
    trials: int | None,
    seeds: Sequence[int] | None,
    how: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Searches for the worst scenario; a search that was interrupted goes on."""
    name = candidates.control(control).name if control else candidates.candidate(queue or "").name
    folder = directory or RUNS_ROOT / "worst" / evaluate_tables.folder_name(name)
    with Progress("evaluate") as progress:
        found = worst_search.worst(
            queue,
            control=control,
            ecn=ecn,
            baselines=baselines,
            trials=TRIALS if trials is None else trials,
            seeds=seeds or SEEDS,
            out=folder,
            progress=progress.task(name),
            **{key: value for key, value in how.items() if key != "say"},
        )
    if as_json:
        print_json(worst_tables.found_json(found))
        return
    show(*worst_tables.page(found))
    out("")
    out(f"written: {folder / FILE}")


def _refuse_beside(option: str, given: Mapping[str, object]) -> None:
    """An error if something was given that has no meaning with an option."""
    for name, value in given.items():
        if value is not None:
            raise AqmlabError(f"{option}: found it with {name}; expected one of them")


def _reference(against: Path | None, *, update: bool) -> Card | None:
    """The card to compare with; none where the first one is yet to be written."""
    if against is None or (update and not against.exists()):
        return None
    return Card.load(against)


def _report(comparison: Comparison, junit: Path | None, markdown: Path | None) -> None:
    """Writes a comparison for other programs, and warns where it can hardly tell."""
    if len(comparison.seeds) < _FEW:
        say(
            f"warning: {len(comparison.seeds)} seeds in common hardly show a regression; make both "
            f"cards with --seeds {_ENOUGH[0]}..{_ENOUGH[-1]}"
        )
    if junit is not None:
        write_text(junit, comparison.junit())
    if markdown is not None:
        earlier = markdown.read_text(encoding="utf-8") if markdown.is_file() else ""
        write_text(markdown, earlier + comparison.markdown())


def _list(suite: str | None, tier: str, words: Sequence[str], kind: Kind, *, as_json: bool) -> None:
    """Prints the tests of a suite, or of the card's tier."""
    found = suites.chosen(suites.rows(suite) if suite else card_rows(tier, kind), words)
    if as_json:
        print_json(evaluate_tables.listed_json(found))
    else:
        show(*evaluate_tables.listed(found, suites.SUITES[suite or kind.suite]))


def _suite(
    suite: str | None,
    tier: str,
    words: Sequence[str],
    queue: str | None,
    control: str | None,
    ecn: str,
    write: Path | None,
    directory: Path | None,
    seeds: Sequence[int] | None,
    allow: str | None,
    how: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Runs the tests of a suite, or writes their scenario files."""
    if suite is not None and write is None and cases.are_cases(suites.rows(suite)):
        chosen_rows = suites.chosen(suites.rows(suite), words)
        allowed = _allowed(allow, suites.rows(suite))
        run_cases(
            *(chosen_rows, queue, control, ecn, seeds, allowed, how, directory), as_json=as_json
        )
        return
    under_test = candidates.candidate(queue or candidates.DROPTAIL)
    if ecn not in candidates.ECN:
        raise AqmlabError(f'--ecn: found "{ecn[:40]}"; expected one of {", ".join(candidates.ECN)}')
    chosen_control = candidates.with_ecn(
        candidates.control(control) if control else candidates.CUBIC, ecn
    )
    kind = CONTROL if control else QUEUE
    rows = suites.chosen(suites.rows(suite) if suite else card_rows(tier, kind), words)
    cells, left = overview.suite_cells(rows, is_control=control is not None and queue is None)
    role = Role(under_test.name, under_test, chosen_control)
    homeless = without_place(cells, lambda _: [role])
    chosen = [cell for cell in cells if cell.row.id not in homeless]
    if homeless and not chosen:
        raise AqmlabError(next(iter(homeless.values())))
    observed: list[overview.Observed] = []
    if write is not None:
        for path in overview.written(chosen, under_test, write, chosen_control):
            out(str(path))
    else:
        with Progress("evaluate") as progress:
            observed = overview.observe(
                chosen,
                under_test,
                control=chosen_control,
                seeds=seeds or (1,),
                progress=progress.task(under_test.name),
                **how,
            )
        if as_json:
            print_json([evaluate_tables.observed_json(one) for one in observed])
        else:
            show(*evaluate_tables.observed(observed))
    for line in evaluate_tables.left_out(left, homeless):
        say(line)
    failed = [one for one in observed if isinstance(one.numbers, AqmlabError)]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(observed)} runs failed; the first, {failed[0].cell.id}: "
            f"{failed[0].numbers}"
        )


def _check_pairs(name: str, given: object, others: Mapping[str, object]) -> None:
    """An error if something was given without the option that it belongs to."""
    for other, value in others.items():
        if value and given is None:
            raise AqmlabError(f"{other}: found it without {name}; expected both")


def _check_tier(text: str) -> None:
    """An error if there is no tier of that name."""
    if text not in TIERS:
        raise AqmlabError(f'--tier: found "{text[:40]}"; expected one of {", ".join(TIERS)}')


def _weights(text: str, kind: Kind) -> dict[str, float]:
    """``users=2,delay=1`` by area."""
    found = {}
    for piece in _split(text):
        area, _, number = piece.partition("=")
        if area not in kind.areas:
            raise AqmlabError(
                f'--weights: found "{area[:40]}", which is no area; expected one of '
                f"{', '.join(kind.areas)}"
            )
        try:
            weight = float(number)
        except ValueError:
            weight = 0.0
        if not 0 < weight < math.inf:
            raise AqmlabError(
                f'--weights: found "{piece[:40]}"; expected a weight above 0, as in {area}=2'
            )
        found[area] = weight
    return found


OLD = ("control", "ecn", "suite", "worst", "trials", "everything", "all_controls")
"""Options that say what the commands below say: valid until the next minor version."""
_MADE = "seeds scheduler store as_json jobs memory"
_CARD = (
    "listed only tier baselines weights sealed measures allow keep_going write directory against "
    f"update junit markdown {_MADE} metrics metric_files"
)
_BOARD = f"only tier baselines directory {_MADE}"
COMMANDS = {
    "control": part(
        command, "Make a report card of a congestion control.", "control", "", f"ecn {_CARD}"
    ),
    "suite": part(
        command,
        "Run the tests of a suite, without a card.\n\n"
        "With --control, the queue is drop-tail unless you state QUEUE.",
        "suite",
        "queue",
        f"control ecn listed only allow write directory {_MADE}",
    ),
    "worst": part(
        command,
        "Find the scenario in which a queue or control is worst.",
        "",
        "queue",
        f"control ecn baselines trials directory {_MADE}",
        worst=True,
    ),
    "all": part(
        command,
        "Make a card of every discipline, and a table of all grades.",
        "",
        "",
        _BOARD,
        everything=True,
    ),
    "all-controls": part(
        command,
        "Make a card of every control, and a table of all grades.",
        "",
        "",
        _BOARD,
        all_controls=True,
    ),
}
