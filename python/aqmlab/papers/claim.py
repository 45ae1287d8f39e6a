"""Claims: what ``claims.toml``, which explains itself, says that a paper claims."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

from aqmlab._util.fields import toml_table
from aqmlab.errors import AqmlabError
from aqmlab.results.verdict import FAILS, HOLDS

__all__ = [
    "CONTRADICTED",
    "STATES",
    "Claim",
    "ClaimCause",
    "Claims",
    "Further",
    "Noise",
    "NoiseOf",
    "combinations",
]


CONTRADICTED = ("partly", "disagrees")
"""What the paper's own tables say of claims that are not counted."""
STATES = {
    "shown": "an experiment shows the cause: without it the claim holds or its numbers agree, or a "
    "reference program fails the claim, too",
    "print": "numbers or sentences of the paper contradict each other",
    "unpublished": "the paper leaves out a setting that decides it",
    "supported": "an experiment supports the cause, and does not prove it",
    "bound": "our number is near the bound of the rule, or between two bounds of the text",
    "open": "the cause is not known",
}
"""What is known of a cause."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and what decides it."""

    id: str
    type: str
    """``ordering``, ``threshold``, ``equality`` or ``crossover``."""
    text: str
    own_tables: str
    """Whether the paper's own tables bear it out: ``agrees``, ``partly``, ``disagrees`` or
    ``not_tabulated``."""
    rules: tuple[str, ...] = ()
    """Predicates, of :mod:`aqmlab.papers.rule`, that must all be true; none: nothing decides it."""
    undecided: str = ""
    """Why nothing decides it."""
    elsewhere: str = ""
    """The verdict of a measurement that no table holds; ``because`` says which, and its numbers."""
    because: str = ""
    sentence: str = ""
    """The paper's own words, where the rules hang on them."""

    @property
    def contradicted(self) -> bool:
        """Whether the paper's own tables contradict it, wholly or in part."""
        return self.own_tables in CONTRADICTED

    def without(self, columns: Collection[str]) -> Claim:
        """The same where some columns say nothing: rules lose the conditions that need them."""
        found = (_without(rule, columns) for rule in self.rules)
        rules = tuple(dict.fromkeys(rule for rule in found if rule))
        lost = "" if rules or not self.rules else f"it compares {', '.join(columns)} only"
        return replace(self, rules=rules, undecided=self.undecided or lost)

    @classmethod
    def read(cls, spec: Mapping[str, Any], file: Path) -> Claim:
        """An entry of ``[[claims]]``."""
        name = spec.get("id", "a claim")
        for key in ("id", "type", "text", "own_tables"):
            if key not in spec:
                raise AqmlabError(f"{file}: {name}: found no {key}; every claim has one")
        ways = [key for key in ("rule", "undecided", "elsewhere") if key in spec]
        if len(ways) != 1:
            found = " and ".join(ways) or "none"
            right = "expected one of rule, undecided and elsewhere"
            raise AqmlabError(f"{file}: {name}: found {found}; {right}")
        if spec.get("elsewhere", HOLDS) not in (HOLDS, FAILS) or (
            ("because" in spec) != ("elsewhere" in spec)
        ):
            right = f"expected {HOLDS} or {FAILS}, and because with what was measured"
            raise AqmlabError(f"{file}: {name}: elsewhere: {right}")
        try:
            rules = _rules(spec.get("rule", []), spec.get("each", {}))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise AqmlabError(f"{file}: {name}: rule or each: {error!r}") from None
        keys = ("id", "type", "text", "own_tables", "undecided", "elsewhere", "because", "sentence")
        return cls(rules=rules, **{key: spec[key] for key in keys if key in spec})


def _without(rule: str, columns: Collection[str]) -> str:
    """A rule without those of its conditions, joined by ``and``, that need one of some columns."""
    whole = ast.parse(rule, mode="eval").body
    conditions = [whole]
    if isinstance(whole, ast.BoolOp) and isinstance(whole.op, ast.And):
        conditions = whole.values
    kept = [
        one
        for one in conditions
        if not any(isinstance(n, ast.Attribute) and n.attr in columns for n in ast.walk(one))
    ]
    if len(kept) == len(conditions):
        return rule
    return " and ".join(f"({ast.unparse(one)})" for one in kept)


def _rules(rule: str | Sequence[str], each: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """The rules, each for every combination of the texts that ``each`` gives its $NAMEs."""
    written = [rule] if isinstance(rule, str) else rule
    texts = combinations(each)
    return tuple(dict.fromkeys(Template(one).substitute(text) for one in written for text in texts))


def combinations(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, str]]:
    """Every combination of the values of some names; a single empty one without names."""
    return [
        dict(zip(axes, map(str, values), strict=True))
        for values in itertools.product(*axes.values())
    ]


@dataclass(frozen=True)
class Further:
    """Claims whose rows have more seeds than the others."""

    claims: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class ClaimCause:
    """Why some claims fail."""

    claims: tuple[str, ...]
    state: str
    """One of :data:`STATES`."""
    why: str

    @classmethod
    def read(cls, spec: Mapping[str, Any], file: Path) -> ClaimCause:
        """An entry of ``[[causes]]``."""
        if spec["state"] not in STATES:
            right = f"expected one of {', '.join(STATES)}"
            raise AqmlabError(f"{file}: causes: found state {spec['state']!r}; {right}")
        return cls(tuple(spec["claims"]), spec["state"], spec["why"])


@dataclass(frozen=True)
class NoiseOf:
    """How the experiments of some tables vary from one run of the laboratory to the next."""

    tables: tuple[str, ...]
    relative: Mapping[str, float]
    """By column: what one standard deviation makes of a number, as a fraction of it."""
    residuals: tuple[str, ...] = ()
    """Two tables that print the same experiments twice: their differences are the noise."""


@dataclass(frozen=True)
class Noise:
    """Copies of a paper's tables that another run of its laboratory could have printed."""

    copies: int
    seed: int
    of: tuple[NoiseOf, ...]


@dataclass(frozen=True)
class Claims:
    """What a ``claims.toml`` says."""

    file: Path = field(default_factory=Path)
    entries: tuple[Claim, ...] = ()
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What names of rows stand for: ids of tables and fits, and last a pattern of labels."""
    quick: tuple[str, ...] = ()
    """Types of claims that quick runs decide."""
    further: tuple[Further, ...] = ()
    causes: tuple[ClaimCause, ...] = ()
    """Why those fail that do; a claim has one."""
    noise: Noise | None = None

    @classmethod
    def load(cls, folder: Path) -> Claims:
        """What a paper claims, with what files of a folder ``claims`` add to it."""
        file = folder / "claims.toml"
        if not file.exists():
            return cls(file)
        source = toml_table(file, "paper")
        more = [toml_table(path, "paper") for path in sorted((folder / "claims").glob("*.toml"))]
        try:
            specs = [spec for part in (source, *more) for spec in part.get("claims", [])]
            return cls(
                file=file,
                entries=tuple(Claim.read(spec, file) for spec in specs),
                rows=source["rows"],
                quick=tuple(source["quick"]),
                further=tuple(
                    Further(tuple(spec["claims"]), tuple(spec["seeds"]))
                    for spec in source.get("further", [])
                ),
                causes=tuple(ClaimCause.read(spec, file) for spec in source.get("causes", [])),
                noise=_noise(source["noise"]) if "noise" in source else None,
            )._checked()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise AqmlabError(f"{file}: {error!r}") from error

    def _checked(self) -> Claims:
        """The same; an error if a claim of seeds or causes is unknown, or has two causes."""
        known = {claim.id for claim in self.entries}
        for key, parts in (("further", self.further), ("causes", self.causes)):
            for name in (name for one in parts for name in one.claims if name not in known):
                raise AqmlabError(f"{self.file}: {key}: found {name}, which is none of its claims")
        names = [name for cause in self.causes for name in cause.claims]
        for name in (name for name in set(names) if names.count(name) > 1):
            raise AqmlabError(f"{self.file}: causes: found two of {name}; a claim has one")
        return self

    def without(self, columns: Collection[str]) -> Claims:
        """The claims without what they say of some columns."""
        if not columns:
            return self
        return replace(self, entries=tuple(claim.without(columns) for claim in self.entries))

    def named(self, name: str) -> Claim:
        """The claim of this id."""
        return next(claim for claim in self.entries if claim.id == name)

    def types(self) -> Iterable[str]:
        """What the claims assert, each once."""
        return dict.fromkeys(claim.type for claim in self.entries)


def _noise(spec: Mapping[str, Any]) -> Noise:
    """What ``[noise]`` says."""
    return Noise(
        copies=int(spec["copies"]),
        seed=int(spec["seed"]),
        of=tuple(
            NoiseOf(tuple(one["tables"]), one["relative"], tuple(one.get("residuals", ())))
            for one in spec["of"]
        ),
    )
